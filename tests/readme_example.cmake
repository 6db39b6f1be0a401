# The first C block of README.md as a file of the build folder, so that it is compiled and run as it stands there.
file(READ ${PROJECT_SOURCE_DIR}/README.md readme)
string(FIND "${readme}" "```c\n" begin)
math(EXPR begin "${begin} + 5")
string(SUBSTRING "${readme}" ${begin} -1 readme)
string(FIND "${readme}" "```\n" length)
string(SUBSTRING "${readme}" 0 ${length} readme)
file(CONFIGURE OUTPUT readme_example.c CONTENT "${readme}" @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md)

add_executable(readme_example ${CMAKE_CURRENT_BINARY_DIR}/readme_example.c)
set_target_properties(readme_example PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
target_link_libraries(readme_example PRIVATE clfd::clfd clfd_warnings)
add_test(NAME readme_example COMMAND readme_example)
