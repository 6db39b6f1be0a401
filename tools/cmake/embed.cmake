# clfd_embed(OUTPUT SYMBOL FILE...): a C file that holds the given text files as byte arrays, rebuilt when one changes.
#
#   const struct clfd_embedded SYMBOL[] = {{"types.cl", bytes, length}, ..., {0, 0, 0}};
#
# Run as a script (cmake -P) this same file writes the output.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "/* Written by embed.cmake. */\n#include \"program/embedded.h\"\n\n")
  set(table "")
  foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} identifier)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND text "static const unsigned char ${identifier}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${name}\", (const char *)${identifier}, sizeof ${identifier} - 1},\n")
  endforeach()
  string(APPEND text "\nconst struct clfd_embedded ${SYMBOL}[] = {\n${table}    {0, 0, 0},\n};\n")
  file(WRITE ${OUTPUT} "${text}")
  return()
endif()

set(CLFD_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(clfd_embed output symbol)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DSYMBOL=${symbol} "-DFILES=${files}" -P ${CLFD_EMBED_SCRIPT}
    DEPENDS ${files} ${CLFD_EMBED_SCRIPT}
    COMMENT "Embedding ${symbol}"
    VERBATIM)
endfunction()
