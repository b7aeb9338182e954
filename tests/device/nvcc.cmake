# SPDX-License-Identifier: Apache-2.0
# With nvcc on the machine: every function of device/ in a kernel. Without: no target, no test. Nothing is run on a GPU.
find_program(STRAIT_NVCC nvcc PATHS /usr/local/cuda/bin)
if(NOT STRAIT_NVCC)
  return()
endif()
set(flags -std=c++20 -arch=sm_90 -Werror all-warnings -I${PROJECT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR})
file(GLOB headers ${PROJECT_SOURCE_DIR}/include/strait/wire/*.hpp ${PROJECT_SOURCE_DIR}/include/strait/device/*.hpp)
foreach(name every_header wqe_from_piece)
  add_custom_command(
    OUTPUT ${name}.cu.o ${name}.ptx
    COMMAND ${STRAIT_NVCC} ${flags} -c ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu -o ${name}.cu.o
    COMMAND ${STRAIT_NVCC} ${flags} --ptx ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu -o ${name}.ptx
    DEPENDS ${name}.cu all_functions.hpp ${headers}
    COMMENT "nvcc ${name}.cu" VERBATIM)
endforeach()
add_custom_target(strait_device_nvcc ALL DEPENDS every_header.cu.o wqe_from_piece.cu.o)
add_test(NAME device.nvcc_compiles_every_function COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target strait_device_nvcc)
add_test(NAME device.nvcc_stores_whole_segments
  COMMAND ${CMAKE_COMMAND} -DPTX=${CMAKE_CURRENT_BINARY_DIR}/wqe_from_piece.ptx -P ${CMAKE_CURRENT_SOURCE_DIR}/whole_stores.cmake)
set_tests_properties(device.nvcc_compiles_every_function PROPERTIES LABELS device TIMEOUT 300 FIXTURES_SETUP strait_ptx)
set_tests_properties(device.nvcc_stores_whole_segments PROPERTIES LABELS device FIXTURES_REQUIRED strait_ptx)
