# SPDX-License-Identifier: Apache-2.0
# strait_whole_stores(compiler kind label fixture): the tests that look at what a compiler made of wqe_from_piece.cu and cxi_put.cu, and
# that the look would have found what byte_stores.cu does.
function(strait_whole_stores compiler kind label fixture)
  set(look ${CMAKE_COMMAND} -DKIND=${kind})
  set(script -P ${CMAKE_CURRENT_SOURCE_DIR}/whole_stores.cmake)
  add_test(NAME device.${compiler}_stores_whole_segments
    COMMAND ${look} -DASSEMBLY=${CMAKE_CURRENT_BINARY_DIR}/wqe_from_piece.${kind} ${script})
  add_test(NAME device.${compiler}_stores_whole_commands
    COMMAND ${look} -DASSEMBLY=${CMAKE_CURRENT_BINARY_DIR}/cxi_put.${kind} ${script})
  add_test(NAME device.${compiler}_byte_stores_are_seen
    COMMAND ${look} -DASSEMBLY=${CMAKE_CURRENT_BINARY_DIR}/byte_stores.${kind} ${script})
  # CMake breaks the lines of a message.
  set_tests_properties(device.${compiler}_byte_stores_are_seen PROPERTIES
    PASS_REGULAR_EXPRESSION "[1-9][0-9]*[ \n]+stores[ \n]+narrower")
  set_tests_properties(device.${compiler}_stores_whole_segments device.${compiler}_stores_whole_commands device.${compiler}_byte_stores_are_seen PROPERTIES
    LABELS ${label} FIXTURES_REQUIRED "${fixture}")
endfunction()
