# dculab_hip_sources(TARGET sources...)  compiles the sources with hipcc for DCULAB_HIP_ARCHITECTURES, into TARGET.
#
# CMake's own HIP language does not work with Debian's packages (it looks for ROCm outside the multiarch folders), hence
# a custom command with a depfile.
find_program(HIPCC hipcc)
if(NOT HIPCC)
  message(FATAL_ERROR "hipcc is not in PATH. On Debian 12 scripts/install-packages --test --hip installs it; with ROCm or "
                      "a DCU's DTK add its bin folder to PATH (docs/howto/run-on-a-gpu.md).")
endif()
# A toolkit is where its hipcc is: /opt/rocm/bin/hipcc, /opt/dtk/hip/bin/hipcc.
file(REAL_PATH ${HIPCC} hipcc_path)
cmake_path(GET hipcc_path PARENT_PATH hipcc_folder)
set(rocm_folders $ENV{ROCM_PATH} ${hipcc_folder}/.. ${hipcc_folder}/../..)
list(TRANSFORM rocm_folders APPEND /lib OUTPUT_VARIABLE rocm_libraries)
list(TRANSFORM rocm_folders APPEND /hip/lib OUTPUT_VARIABLE hip_libraries)
list(TRANSFORM rocm_folders APPEND /llvm/bin OUTPUT_VARIABLE rocm_tools)
find_library(AMDHIP64 amdhip64 HINTS ${rocm_libraries} ${hip_libraries} REQUIRED)
# The tools beside hipcc's clang.
find_path(DCULAB_HIP_LLVM clang-offload-bundler PATHS ${rocm_tools} /usr/lib/llvm-15/bin /opt/rocm/llvm/bin NO_DEFAULT_PATH REQUIRED)

# Whether hipcc compiles a text for the target.
function(dculab_hip_compiles text architecture result)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/asked.hip)
  file(WRITE ${source} "${text}")
  execute_process(COMMAND ${HIPCC} -std=c++20 --offload-arch=${architecture} --cuda-device-only -c ${source} -o ${source}.o
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    set(${result} FALSE PARENT_SCOPE)
  else()
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Whether hipcc knows the target. Compilers know those of their time: Debian 12's no gfx942, AMD's no DCU's.
macro(dculab_hip_knows architecture result)
  dculab_hip_compiles("#include <hip/hip_runtime.h>\n__global__ void nothing() {}\n" ${architecture} ${result})
endmacro()

# Left empty: all that hipcc knows of the GPUs with waves of 64 lanes that machine files describe.
set(DCULAB_HIP_ARCHITECTURES "" CACHE STRING "GPUs that the HIP kernels are compiled for; empty: those that hipcc knows")
if(NOT DCULAB_HIP_ARCHITECTURES)
  foreach(architecture gfx906 gfx908 gfx90a gfx942 gfx950 gfx926 gfx928 gfx936 gfx938)
    dculab_hip_knows(${architecture} is_known)
    if(is_known)
      list(APPEND known_architectures ${architecture})
    endif()
  endforeach()
  set(DCULAB_HIP_ARCHITECTURES "${known_architectures}" CACHE STRING "" FORCE)
  message(STATUS "the HIP kernels are compiled for ${known_architectures}, which hipcc knows")
else()
  foreach(architecture ${DCULAB_HIP_ARCHITECTURES})
    if(architecture MATCHES "^gfx1[0-9]")
      message(FATAL_ERROR "${architecture} is an RDNA GPU with waves of 32 lanes, and the HIP kernels are for waves of 64 "
                          "(docs/howto/run-on-a-gpu.md says what works there).")
    endif()
    dculab_hip_knows(${architecture} is_known)
    if(NOT is_known)
      message(FATAL_ERROR "${HIPCC} does not compile for ${architecture}. gfx942 takes ROCm 6, gfx950 ROCm 7; gfx926, "
                          "gfx928, gfx936 and gfx938 take the DTK of the DCU.")
    endif()
  endforeach()
endif()
set(DCULAB_HIP_FLAGS -std=c++20 -O3 -fPIC -Wall -Wextra -Wpedantic -Wshadow)
if(DCULAB_WERROR)
  list(APPEND DCULAB_HIP_FLAGS -Werror)
endif()

# Whether hipcc knows the target and AMD's matrix instructions for it.
macro(dculab_hip_has_mfma architecture result)
  dculab_hip_compiles("
#include <hip/hip_runtime.h>
using Half4 = _Float16 __attribute__((ext_vector_type(4)));
using Short4 = short __attribute__((ext_vector_type(4)));
using Float16 = float __attribute__((ext_vector_type(16)));
__global__ void multiply(Half4 a, Short4 b, Float16* sums) {
  *sums = __builtin_amdgcn_mfma_f32_32x32x8f16(a, a, *sums, 0, 0, 0);
  *sums = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(b, b, *sums, 0, 0, 0);
}
" ${architecture} ${result})
endmacro()

# Of gfx908 and gfx90a it is known (kernels/gpu/matrix_core.hpp); DCUs with matrix units are asked for.
foreach(architecture gfx928 gfx936)
  if(NOT architecture IN_LIST DCULAB_HIP_ARCHITECTURES)
    continue()
  endif()
  dculab_hip_has_mfma(${architecture} has_mfma)
  if(has_mfma)
    string(TOUPPER ${architecture} name)
    list(APPEND DCULAB_HIP_FLAGS -DDCULAB_MFMA_${name}=1)
  else()
    message(STATUS "the kernels for ${architecture} multiply on vector units: hipcc has no MFMA instructions for it")
  endif()
endforeach()

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
    list(APPEND objects ${object})
  endforeach()
  target_sources(${target} PRIVATE ${objects})
  target_link_libraries(${target} PUBLIC ${AMDHIP64})
  set(DCULAB_HIP_OBJECTS ${objects} CACHE INTERNAL "")

  # Rewrites the committed table of what the kernels ask for: to be run, and committed, after a kernel has changed.
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  add_custom_target(kernel_resources
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/gpu/kernel_resources.py --llvm ${DCULAB_HIP_LLVM}
            --output ${PROJECT_SOURCE_DIR}/lower/dculab_gpu/compiled_kernels.csv ${objects}
    DEPENDS ${objects}
    VERBATIM)
endfunction()

# Sets OUTPUT to those of DCULAB_HIP_ARCHITECTURES that a library folder of rocBLAS has no kernels for: no file there has
# their name. Empty where there is no such folder.
function(dculab_without_rocblas_kernels FOLDER OUTPUT)
  set(without)
  if(IS_DIRECTORY ${FOLDER})
    foreach(architecture ${DCULAB_HIP_ARCHITECTURES})
      string(REGEX MATCH "^gfx[0-9a-f]+" name ${architecture})
      file(GLOB found ${FOLDER}/*${name}*)
      if(NOT found)
        list(APPEND without ${name})
      endif()
    endforeach()
  endif()
  set(${OUTPUT} ${without} PARENT_SCOPE)
endfunction()
