# dculab_hip_sources(TARGET sources...)  compiles the sources with hipcc for DCULAB_HIP_ARCHITECTURES, into TARGET.
#
# CMake's own HIP language does not work with Debian's packages (it looks for ROCm outside the multiarch folders), hence
# a custom command with a depfile.
find_program(HIPCC hipcc REQUIRED)
find_package(hip CONFIG QUIET)
find_library(AMDHIP64 amdhip64 REQUIRED)

set(DCULAB_HIP_ARCHITECTURES gfx906 gfx908 gfx90a CACHE STRING "GPUs that the HIP kernels are compiled for")
set(DCULAB_HIP_FLAGS -std=c++20 -O3 -fPIC -Wall -Wextra -Wpedantic -Wshadow)
if(DCULAB_WERROR)
  list(APPEND DCULAB_HIP_FLAGS -Werror)
endif()

function(dculab_hip_sources target)
  list(TRANSFORM DCULAB_HIP_ARCHITECTURES PREPEND "--offload-arch=" OUTPUT_VARIABLE architectures)
  foreach(source ${ARGN})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/hip/${source}.o)
    cmake_path(GET object PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${HIPCC} ${DCULAB_HIP_FLAGS} ${architectures} -I${PROJECT_SOURCE_DIR} -x hip -c ${CMAKE_CURRENT_SOURCE_DIR}/${source}
              -o ${object} -MD -MF ${object}.d
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "hipcc ${source}"
      VERBATIM)
    target_sources(${target} PRIVATE ${object})
  endforeach()
  target_link_libraries(${target} PUBLIC ${AMDHIP64})
endfunction()
