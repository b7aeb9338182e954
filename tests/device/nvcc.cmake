# SPDX-License-Identifier: Apache-2.0
# With nvcc on the machine: every function of device/ in a kernel, and with a disassembler beside it a look at the machine
# code. Without: no target, no test. Nothing is run on a GPU. The lane `gpu` compiles the same sources without nvcc.
# One build of all is enough: the other lanes differ in what nvcc does not see.
if(STRAIT_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  return()
endif()
find_program(STRAIT_NVCC nvcc PATHS /usr/local/cuda/bin)
if(NOT STRAIT_NVCC)
  return()
endif()
get_filename_component(toolkit ${STRAIT_NVCC} DIRECTORY)
find_program(STRAIT_NVDISASM nvdisasm HINTS ${toolkit})
find_program(STRAIT_CUOBJDUMP cuobjdump HINTS ${toolkit})
if(STRAIT_NVDISASM)
  set(disassemble ${STRAIT_NVDISASM})
elseif(STRAIT_CUOBJDUMP)
  set(disassemble ${STRAIT_CUOBJDUMP} -sass)
else()
  message(STATUS "nvcc without nvdisasm and cuobjdump: there are no tests of its machine code")
endif()
set(flags -std=c++20 -arch=sm_90 -Werror all-warnings -I${PROJECT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR})
file(GLOB headers ${PROJECT_SOURCE_DIR}/include/strait/wire/*.hpp ${PROJECT_SOURCE_DIR}/include/strait/device/*.hpp
  ${PROJECT_SOURCE_DIR}/include/strait/device/cxi/*.hpp ${PROJECT_SOURCE_DIR}/include/strait/cxi.h
  ${PROJECT_SOURCE_DIR}/include/strait/cxi/*.hpp)
foreach(name every_header every_lane every_cxi every_cxi_names every_cxi_format wqe_from_piece lane_put lane_posts cxi_put
    byte_stores reach_scopes)
  add_custom_command(
    OUTPUT ${name}.cu.o ${name}.ptx
    COMMAND ${STRAIT_NVCC} ${flags} -c ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu -o ${name}.cu.o
    COMMAND ${STRAIT_NVCC} ${flags} --ptx ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu -o ${name}.ptx
    DEPENDS ${name}.cu all_functions.hpp ${headers}
    COMMENT "nvcc ${name}.cu" VERBATIM)
  list(APPEND made ${name}.cu.o)
  if(disassemble)
    add_custom_command(
      OUTPUT ${name}.sass
      COMMAND ${STRAIT_NVCC} ${flags} --cubin ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu -o ${name}.cubin
      COMMAND ${disassemble} ${name}.cubin > ${name}.sass
      DEPENDS ${name}.cu all_functions.hpp ${headers}
      COMMENT "machine code of ${name}.cu" VERBATIM)
    list(APPEND made ${name}.sass)
  endif()
endforeach()
foreach(name lane_put lane_posts cxi_put)
  add_custom_command(
    OUTPUT ${name}.usage
    COMMAND ${STRAIT_NVCC} ${flags} -Xptxas -v --cubin ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu -o ${name}.usage.cubin
      2> ${name}.usage
    DEPENDS ${name}.cu ${headers}
    COMMENT "registers of ${name}.cu" VERBATIM)
  list(APPEND made ${name}.usage)
endforeach()
add_custom_target(strait_device_nvcc ALL DEPENDS ${made})
add_test(NAME device.nvcc_compiles_every_function COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target strait_device_nvcc)
set_tests_properties(device.nvcc_compiles_every_function PROPERTIES LABELS device TIMEOUT 300 FIXTURES_SETUP strait_nvcc)
set(kernels_lane_put 4)
set(kernels_lane_posts 4)
set(kernels_cxi_put 2)
foreach(name lane_put lane_posts cxi_put)
  add_test(NAME device.nvcc_${name}_has_no_stack
    COMMAND ${CMAKE_COMMAND} -DUSAGE=${CMAKE_CURRENT_BINARY_DIR}/${name}.usage -DKERNELS=${kernels_${name}}
      -P ${CMAKE_CURRENT_SOURCE_DIR}/no_spills.cmake)
  set_tests_properties(device.nvcc_${name}_has_no_stack PROPERTIES LABELS device FIXTURES_REQUIRED strait_nvcc)
endforeach()
include(whole_stores_test.cmake)
strait_whole_stores(nvcc_ptx ptx device strait_nvcc)
include(scopes_test.cmake)
strait_scopes(nvcc device strait_nvcc)
if(disassemble)
  strait_whole_stores(nvcc_sass sass device strait_nvcc)
endif()

# The suite of Lane on a GPU: built by name where there is nvcc, run by gpu/run.
add_custom_command(
  OUTPUT strait_lane_gpu_test
  COMMAND ${STRAIT_NVCC} ${flags} -O2 ${CMAKE_CURRENT_SOURCE_DIR}/gpu/lane_gpu_test.cu -o strait_lane_gpu_test
    -lgtest -lgtest_main -lpthread
  DEPENDS gpu/lane_gpu_test.cu gpu/cuda_machine.cuh lane_suite.hpp lane_bodies.hpp near_suite.hpp near_bodies.hpp requests.hpp rig.hpp
    decode.hpp paper_nic.hpp cpu_machine.hpp ${headers}
  COMMENT "nvcc gpu/lane_gpu_test.cu" VERBATIM)
add_custom_target(strait_device_gpu_suite DEPENDS strait_lane_gpu_test)

# And kernels that post to the software Cassini through libstrait.
get_filename_component(cuda ${toolkit}/.. REALPATH)
find_library(STRAIT_CUDART cudart_static HINTS ${cuda}/lib64 ${cuda}/lib ${cuda}/targets/x86_64-linux/lib /usr/local/cuda/lib64)
if(STRAIT_CUDART)
  add_custom_command(
    OUTPUT cxi_gpu_test.cu.o
    COMMAND ${STRAIT_NVCC} ${flags} -O2 -Xcompiler=-fPIC -c ${CMAKE_CURRENT_SOURCE_DIR}/gpu/cxi_gpu_test.cu -o cxi_gpu_test.cu.o
    DEPENDS gpu/cxi_gpu_test.cu gpu/cuda_machine.cuh ${headers} ${PROJECT_SOURCE_DIR}/include/strait/cxi_queue.hpp
    COMMENT "nvcc gpu/cxi_gpu_test.cu" VERBATIM)
  add_executable(strait_cxi_gpu_test EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/cxi_gpu_test.cu.o)
  set_target_properties(strait_cxi_gpu_test PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(strait_cxi_gpu_test PRIVATE strait GTest::gtest ${STRAIT_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
  add_dependencies(strait_cxi_gpu_test strait_soft)
  add_dependencies(strait_device_gpu_suite strait_cxi_gpu_test)
endif()
# And kernels of two processes, with device queues of theirs.
if(STRAIT_CUDART)
  add_custom_command(
    OUTPUT queue_gpu_test.cu.o
    COMMAND ${STRAIT_NVCC} ${flags} -O2 -Xcompiler=-fPIC -c ${CMAKE_CURRENT_SOURCE_DIR}/gpu/queue_gpu_test.cu -o queue_gpu_test.cu.o
    DEPENDS gpu/queue_gpu_test.cu far_bodies.hpp far_sides.hpp ${headers} ${PROJECT_SOURCE_DIR}/include/strait/device_queue.hpp
    COMMENT "nvcc gpu/queue_gpu_test.cu" VERBATIM)
  add_executable(strait_queue_gpu_test EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/queue_gpu_test.cu.o)
  set_target_properties(strait_queue_gpu_test PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(strait_queue_gpu_test PRIVATE strait GTest::gtest ${STRAIT_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
  add_dependencies(strait_queue_gpu_test strait_soft)
  if(TARGET strait_verbs)
    add_dependencies(strait_queue_gpu_test strait_verbs)
  endif()
  add_dependencies(strait_device_gpu_suite strait_queue_gpu_test)
endif()
