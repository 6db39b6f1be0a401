# What `cmake --install` lays down: libraries, headers, the CMake package and the pkg-config file.
include(CMakePackageConfigHelpers)

set(CLFD_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/clfd)

install(TARGETS clfd clfd_shared clfd_static EXPORT clfd_targets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/clfd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

install(EXPORT clfd_targets NAMESPACE clfd:: FILE clfdTargets.cmake DESTINATION ${CLFD_PACKAGE_DIR})
configure_package_config_file(tools/cmake/clfdConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/clfdConfig.cmake
  INSTALL_DESTINATION ${CLFD_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/clfdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/clfdConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/clfdConfigVersion.cmake
  DESTINATION ${CLFD_PACKAGE_DIR})

# The pkg-config file finds the prefix from where it lies, so that an installed tree can be moved.
file(RELATIVE_PATH CLFD_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(folder LIBDIR INCLUDEDIR)
  set(CLFD_PC_${folder} "\${prefix}")
  cmake_path(APPEND CLFD_PC_${folder} ${CMAKE_INSTALL_${folder}})
endforeach()
configure_file(tools/cmake/clfd.pc.in clfd.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/clfd.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
