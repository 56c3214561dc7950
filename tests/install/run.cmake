# cmake -DBUILD=... -DSOURCE=... -DWORK=... -P run.cmake: installs dculab into WORK, builds and runs the
# consumers on it.
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${text}")
  endif()
  message("${text}")
endfunction()

file(REMOVE_RECURSE ${WORK})
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
must(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix
     -DCMAKE_CXX_FLAGS=${FLAGS})
must(${CMAKE_COMMAND} --build ${WORK}/build)
must(${WORK}/build/consumer)
set(data ${WORK}/prefix/share/dculab)
must(${CMAKE_COMMAND} -E env DCULAB_DATA=${data}
     ${WORK}/build/recommend ${data}/scenarios/models/llama-3-8b ${data}/hwmodels/z100.yaml)
must(${CMAKE_COMMAND} -E chdir ${WORK} ${WORK}/prefix/bin/dculab show z100)
