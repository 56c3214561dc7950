# Compiles for WebAssembly with emscripten (Debian's package), which its own file describes.
include(/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake)

# Packages of headers alone are the same for all compilers. The folder they share with the C library of this machine
# must not be searched: a folder of links has them.
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)
set(packages ${CMAKE_BINARY_DIR}/packages)
file(MAKE_DIRECTORY ${packages})
file(CREATE_LINK /usr/include/nlohmann ${packages}/nlohmann SYMBOLIC)

set(CMAKE_CXX_FLAGS_INIT
  "-fwasm-exceptions -isystem ${packages} -include ${CMAKE_CURRENT_LIST_DIR}/standard_library.hpp")
