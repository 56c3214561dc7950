# dculab_kernel_table(CSV OUTPUT)  turns the committed table of compiled kernels into rows of a C++ array.
function(dculab_kernel_table csv output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${csv})
  file(STRINGS ${csv} lines)
  list(POP_FRONT lines)
  set(number "([0-9]+)")
  set(rows "")
  foreach(line IN LISTS lines)
    # target,kernel,threads,vgprs,agprs,sgprs,lds_bytes,... to the end: or a name without quotes would take in numbers.
    if(NOT line MATCHES "^([^,]+),\"?([^\"]+)\"?,${number},${number},${number},${number},${number},[0-9]+,[0-9]+,[0-9]+$")
      message(FATAL_ERROR "${csv}: not a row of the kernel table: ${line}")
    endif()
    # gfx908 has a file of AGPRs as large as that of VGPRs beside it; elsewhere VGPRs are all that there are.
    set(vgprs ${CMAKE_MATCH_4})
    if(CMAKE_MATCH_5 GREATER vgprs)
      set(vgprs ${CMAKE_MATCH_5})
    endif()
    string(APPEND rows "{\"${CMAKE_MATCH_1}\", \"${CMAKE_MATCH_2}\", "
      "{${CMAKE_MATCH_3}, ${vgprs}, ${CMAKE_MATCH_6}, Bytes(${CMAKE_MATCH_7})}},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "${rows}" @ONLY)
endfunction()
