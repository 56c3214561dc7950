# Installs the program with its data, completions and manual pages (component `program`), and for find_package(dculab) the
# libraries that need no engine (`development`): `dculab::study` with all that it rests on, of which `dculab::sim` alone
# reads no files. DculabPackage makes packages of them.
include(CMakePackageConfigHelpers)

set(data ${CMAKE_INSTALL_DATADIR}/dculab)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/dculab)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(TARGETS dculab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY hwmodels scenarios stacks DESTINATION ${data})
# The page that the preset `web` built, if it did.
install(FILES build/web/lab.html DESTINATION ${data} OPTIONAL)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES packaging/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What the program says about its own commands and options.
find_program(GZIP_PROGRAM gzip REQUIRED)
set(words ${CMAKE_CURRENT_BINARY_DIR}/command_line)
install(CODE "execute_process(COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:dculab> -DGZIP=${GZIP_PROGRAM} -DFOLDER=${words}
  -P ${PROJECT_SOURCE_DIR}/cmake/describe_program.cmake COMMAND_ERROR_IS_FATAL ANY)")
install(DIRECTORY ${words}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${words}/dculab DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# zsh looks elsewhere for what packages bring than for what a user installs.
install(CODE "string(REGEX REPLACE \"^.*/usr$\" vendor-completions place \"\${CMAKE_INSTALL_PREFIX}\")
  if(NOT place STREQUAL vendor-completions)
    set(place site-functions)
  endif()
  file(INSTALL ${words}/_dculab DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${place}\")")
install(FILES ${words}/dculab.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(FILES packaging/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/dculab-dev)
install(TARGETS dculab_core dculab_fields dculab_files dculab_model dculab_model_folder dculab_lower dculab_sim dculab_config dculab_study
  EXPORT dculabTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY core fields files model lower sim config study DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dculab
  FILES_MATCHING PATTERN "*.hpp" REGEX "/study/measure$" EXCLUDE)
install(EXPORT dculabTargets NAMESPACE dculab:: DESTINATION ${package})
write_basic_package_version_file(dculabConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/dculabConfig.cmake.in dculabConfig.cmake INSTALL_DESTINATION ${package})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/dculabConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/dculabConfigVersion.cmake
  DESTINATION ${package})
