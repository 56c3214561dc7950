# Installs the program, its data, and for find_package(dculab) the libraries that need no engine: `dculab::study` with all that it
# rests on, of which `dculab::sim` alone reads no files.
include(CMakePackageConfigHelpers)

install(TARGETS dculab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS dculab_core dculab_fields dculab_files dculab_model dculab_model_folder dculab_lower dculab_sim dculab_config dculab_study
  EXPORT dculabTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY core fields files model lower sim config study DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dculab
  FILES_MATCHING PATTERN "*.hpp" REGEX "/study/measure$" EXCLUDE)
# The page that the preset `web` built, if it did.
install(FILES build/web/lab.html DESTINATION ${CMAKE_INSTALL_DATADIR}/dculab OPTIONAL)
install(DIRECTORY hwmodels scenarios stacks DESTINATION ${CMAKE_INSTALL_DATADIR}/dculab)
install(EXPORT dculabTargets NAMESPACE dculab:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dculab)
write_basic_package_version_file(dculabConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/dculabConfig.cmake.in dculabConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dculab)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/dculabConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/dculabConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dculab)
