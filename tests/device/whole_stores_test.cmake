# SPDX-License-Identifier: Apache-2.0
# strait_whole_stores(compiler kind label fixture): the tests that look at what a compiler made of the kernels that post, and that the
# look would have found what byte_stores.cu does. A write from a piece and one of a value have three segments each, a put with a
# signal seven, a CXI command four or two.
function(strait_whole_stores compiler kind label fixture)
  set(look ${CMAKE_COMMAND} -DKIND=${kind})
  set(script -P ${CMAKE_CURRENT_SOURCE_DIR}/whole_stores.cmake)
  foreach(each "segments wqe_from_piece 6" "segments_of_puts lane_put 12" "segments_of_posts lane_posts 20" "commands cxi_put 6")
    separate_arguments(each)
    list(GET each 0 what)
    list(GET each 1 name)
    list(GET each 2 whole)
    list(APPEND tests device.${compiler}_stores_whole_${what})
    add_test(NAME device.${compiler}_stores_whole_${what}
      COMMAND ${look} -DASSEMBLY=${CMAKE_CURRENT_BINARY_DIR}/${name}.${kind} -DWHOLE=${whole} ${script})
  endforeach()
  list(APPEND tests device.${compiler}_byte_stores_are_seen)
  add_test(NAME device.${compiler}_byte_stores_are_seen
    COMMAND ${look} -DASSEMBLY=${CMAKE_CURRENT_BINARY_DIR}/byte_stores.${kind} -DWHOLE=0 ${script})
  # CMake breaks the lines of a message.
  set_tests_properties(device.${compiler}_byte_stores_are_seen PROPERTIES
    PASS_REGULAR_EXPRESSION "[1-9][0-9]*[ \n]+stores[ \n]+narrower")
  set_tests_properties(${tests} PROPERTIES LABELS ${label} FIXTURES_REQUIRED "${fixture}")
endfunction()
