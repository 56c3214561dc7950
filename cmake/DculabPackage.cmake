# `packaging/deb`: Debian packages of the program (dculab) and of the simulator's libraries
# (dculab-dev), for the distribution on which they are made. DculabInstall says what is in each.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME dculab)
set(CPACK_PACKAGE_CONTACT "dculab <dculab@localhost>" CACHE STRING "Maintainer of the Debian packages, with an address")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts how fast an LLM runs on a DCU or another GPU")
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development)
# Whatever the umask is.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME dculab)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "dculab says what limits an LLM on a Hygon DCU or another GPU, and which GQA
group size and KV block size to use. It contains an inference engine for CPUs,
a simulator, and machine files of DCUs and GPUs.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME dculab-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libyaml-cpp-dev, nlohmann-json3-dev, libsqlite3-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS "dculab (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "The simulator of dculab as static C++ libraries with headers: dculab::study,
which answers how fast an LLM runs on a machine, for find_package(dculab).")
include(CPack)
