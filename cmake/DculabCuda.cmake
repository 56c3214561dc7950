# dculab_cuda_sources(TARGET sources...)  compiles the sources with nvcc for DCULAB_CUDA_ARCHITECTURES, into TARGET.
#
# The sources are HIP and end in .cpp, hence `-x cu` and a custom command, as in DculabHip.cmake.
find_program(NVCC nvcc REQUIRED)
cmake_path(GET NVCC PARENT_PATH nvcc_folder)
find_library(CUDART cudart_static HINTS ${nvcc_folder}/../lib64 ${nvcc_folder}/../lib REQUIRED)

set(DCULAB_CUDA_ARCHITECTURES 80 90 CACHE STRING "Compute capabilities that the kernels are compiled for")
set(DCULAB_CUDA_FLAGS -std=c++20 -O3 --expt-relaxed-constexpr -Xcompiler=-fPIC,-Wall,-Wextra)
if(DCULAB_WERROR)
  list(APPEND DCULAB_CUDA_FLAGS -Werror=all-warnings)
endif()

function(dculab_cuda_sources target)
  foreach(architecture ${DCULAB_CUDA_ARCHITECTURES})
    list(APPEND architectures "-gencode=arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  # And an intermediate form of the last, for cards that come later.
  list(GET DCULAB_CUDA_ARCHITECTURES -1 last)
  list(APPEND architectures "-gencode=arch=compute_${last},code=compute_${last}")
  foreach(source ${ARGN})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${source}.o)
    cmake_path(GET object PARENT_PATH folder)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${NVCC} ${DCULAB_CUDA_FLAGS} ${architectures} -I${PROJECT_SOURCE_DIR} -x cu
              -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object} -MD -MF ${object}.d
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "nvcc ${source}"
      VERBATIM)
    target_sources(${target} PRIVATE ${object})
    list(APPEND objects ${object})
  endforeach()

  # Rewrites the rows of these targets in the committed table: to be run, and committed, after a kernel has changed.
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  add_custom_target(cuda_kernel_resources
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/gpu/kernel_resources.py --cuda ${nvcc_folder}
            --output ${PROJECT_SOURCE_DIR}/lower/dculab_gpu/compiled_kernels.csv ${objects}
    DEPENDS ${objects}
    VERBATIM)
  target_link_libraries(${target} PUBLIC ${CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
endfunction()
