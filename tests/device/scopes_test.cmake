# SPDX-License-Identifier: Apache-2.0
# strait_scopes(compiler label fixture): the tests that look at how far the fences and atomics of reach_scopes.cu go in a compiler's
# PTX, and that the look would have found a fence that goes too far.
function(strait_scopes compiler label fixture)
  set(look ${CMAKE_COMMAND} -DASSEMBLY=${CMAKE_CURRENT_BINARY_DIR}/reach_scopes.ptx)
  set(script -P ${CMAKE_CURRENT_SOURCE_DIR}/scopes.cmake)
  foreach(each "towards_a_near_nic fence gpu 2" "towards_a_far_nic fence sys 2" "among_a_block fence cta 1"
      "among_a_block atomic cta 15" "among_a_gpu fence gpu 1" "among_a_gpu atomic gpu 15")
    separate_arguments(each)
    list(GET each 0 kernel)
    list(GET each 1 what)
    list(GET each 2 scope)
    list(GET each 3 least)
    list(APPEND tests device.${compiler}_${what}s_${kernel})
    add_test(NAME device.${compiler}_${what}s_${kernel}
      COMMAND ${look} -DKERNEL=${kernel} -DWHAT=${what} -DSCOPE=${scope} -DLEAST=${least} ${script})
  endforeach()
  list(APPEND tests device.${compiler}_other_scopes_are_seen)
  add_test(NAME device.${compiler}_other_scopes_are_seen
    COMMAND ${look} -DKERNEL=towards_a_far_nic -DWHAT=fence -DSCOPE=gpu -DLEAST=0 ${script})
  # CMake breaks the lines of a message.
  set_tests_properties(device.${compiler}_other_scopes_are_seen PROPERTIES
    PASS_REGULAR_EXPRESSION "0[ \n]+of[ \n]+2[ \n]+instructions[ \n]+have")
  set_tests_properties(${tests} PROPERTIES LABELS ${label} FIXTURES_REQUIRED "${fixture}")
endfunction()
