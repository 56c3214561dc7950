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

# A package installs below DESTDIR; what it installed finds its own data wherever that lies.
must(${CMAKE_COMMAND} -E env DESTDIR=${WORK}/staged ${CMAKE_COMMAND} --install ${BUILD} --prefix /usr --component program)
file(RENAME ${WORK}/staged/usr ${WORK}/moved)
foreach(file bin/dculab share/dculab/stacks/dculab.yaml share/doc/dculab/LICENSE share/doc/dculab/copyright
        share/man/man1/dculab.1.gz share/man/man1/dculab-tables-intensity.1.gz
        share/bash-completion/completions/dculab share/zsh/vendor-completions/_dculab
        share/fish/vendor_completions.d/dculab.fish)
  if(NOT EXISTS ${WORK}/moved/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
foreach(file include lib lib64)  # of the component `development`
  if(EXISTS ${WORK}/moved/${file})
    message(FATAL_ERROR "installed with the program: ${file}")
  endif()
endforeach()
file(RENAME ${WORK}/moved/share/dculab/hwmodels/z100.yaml ${WORK}/moved/share/dculab/hwmodels/only-here.yaml)
must(${CMAKE_COMMAND} -E chdir ${WORK} env -u DCULAB_DATA ${WORK}/moved/bin/dculab predict --model llama-3-8b --machine only-here)
