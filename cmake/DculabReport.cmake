# dculab_page(OUTPUT ENTRY PAGE STYLE...)  makes a page of the program as a C++ string literal: PAGE with the styles, and
# with ENTRY and all modules that it imports bundled into one script. DCULAB_HAS_PAGES says whether that can be done: it
# takes Node.js and the npm packages that report/package-lock.json names. Without them OUTPUT is an empty string, and the
# options that write pages say how to get them.
find_program(NODE_PROGRAM NAMES node nodejs DOC "Node.js, which bundles the scripts of --report")
# npm writes this file last.
set(npm_packages ${PROJECT_SOURCE_DIR}/report/node_modules/.package-lock.json)
if(NODE_PROGRAM AND EXISTS ${npm_packages})
  set(DCULAB_HAS_PAGES TRUE)
else()
  set(DCULAB_HAS_PAGES FALSE)
  message(STATUS "No page of charts (--report): `scripts/install-packages` gets Node.js and the npm packages of report/")
endif()

function(dculab_page output entry page)
  if(NOT DCULAB_HAS_PAGES)
    file(CONFIGURE OUTPUT ${output} CONTENT "\"\"\n")
    return()
  endif()
  set(bundle ${PROJECT_SOURCE_DIR}/report/bundle.mjs)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${NODE_PROGRAM} ${bundle} ${entry} ${page} ${output} ${ARGN}
    DEPENDS ${bundle} ${PROJECT_SOURCE_DIR}/report/bundled.mjs ${entry} ${page} ${ARGN} ${npm_packages}
    DEPFILE ${output}.d
    COMMENT "Page of charts ${page}"
    VERBATIM)
endfunction()
