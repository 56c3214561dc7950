# dculab_library(NAME sources...)  a static library dculab_NAME, known to others as dculab::NAME
# dculab_test(NAME sources...)     one Catch2 program per module, its cases registered with CTest
# dculab_host_lanes(TARGET)        its sources contain GPU kernels that run on the host

function(dculab_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  if(DCULAB_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

function(dculab_library name)
  add_library(dculab_${name} STATIC ${ARGN})
  add_library(dculab::${name} ALIAS dculab_${name})
  set_target_properties(dculab_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(dculab_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/dculab>)
  target_compile_features(dculab_${name} PUBLIC cxx_std_20)
  dculab_compile_options(dculab_${name})
endfunction()

# TAGS: of Catch, for what `name` runs of the program; another test runs the rest.
function(dculab_test name)
  cmake_parse_arguments(ARG "" "TAGS" "LIBRARIES" ${ARGN})
  add_executable(test_${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(test_${name} PRIVATE dculab_test_main ${ARG_LIBRARIES})
  # Compiled once, by the first of the tests; a definition for each of them would forbid that.
  set_target_properties(test_${name} PROPERTIES DEFINE_SYMBOL "")
  if(NOT TARGET test_core OR name STREQUAL "core")
    target_precompile_headers(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/catch.hpp)
  else()
    target_precompile_headers(test_${name} REUSE_FROM test_core)
  endif()
  dculab_compile_options(test_${name})
  # Catch's macros take the compiler a third longer at -O3.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  # Where libraries are compiled several sources at a time, tests are sixteen at a time: their headers outweigh them.
  set_target_properties(test_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
  # [once]: in the optimised build only, where it is how well something does, or minutes when sanitized, and smaller
  # tests run the same code.
  add_test(NAME ${name} COMMAND test_${name} ${ARG_TAGS}$<$<CONFIG:None>:~[once]~[.]> COMMAND_EXPAND_LISTS)
endfunction()

# The host build knows a barrier, a shuffle or an access by its address in the program. GCC must not copy one to several
# places, as it would where a condition differs between lanes (Clang is told in kernels/gpu/host/workgroup.hpp). Without
# that it mistakes what lanes use for unset, and strings for overlapping.
function(dculab_host_lanes target)
  set(one_place -fno-thread-jumps -fno-unswitch-loops -fno-split-loops -fno-split-paths
      -fno-version-loops-for-strides -freorder-blocks-algorithm=simple -Wno-maybe-uninitialized -Wno-restrict)
  target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:${one_place}>")
  # As in dculab_kernels: a fifth of the sanitized build's time.
  target_compile_options(${target} PRIVATE -fno-sanitize-address-use-after-scope
    $<$<CXX_COMPILER_ID:Clang>:-Wno-unused-command-line-argument>)
endfunction()
