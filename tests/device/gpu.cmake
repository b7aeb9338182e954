# SPDX-License-Identifier: Apache-2.0
# The lane `gpu`: every function of device/ by the compilers that Debian has for GPUs. hipcc makes objects for gfx90a,
# both passes; clang makes PTX for sm_90, which nothing here can assemble. Nothing is run.
find_program(STRAIT_HIPCC hipcc)
find_program(STRAIT_CLANG clang++-16)
if(NOT STRAIT_HIPCC)
  message(FATAL_ERROR "hipcc is missing: apt-get install hipcc, or leave the lane out with ./dev test --without-gpu")
endif()
if(NOT STRAIT_CLANG)
  message(FATAL_ERROR "clang++-16 is missing: apt-get install clang-16, or leave the lane out with ./dev test --without-gpu")
endif()
set(flags -std=c++20 -O2 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror
  -I${PROJECT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR})
set(hip ${STRAIT_HIPCC} --offload-arch=gfx90a ${flags} -include hip/hip_runtime.h)
# No CUDA is looked for, and one that is there changes nothing.
set(cuda ${STRAIT_CLANG} -x cuda --cuda-device-only --cuda-gpu-arch=sm_90 --cuda-path=${CMAKE_CURRENT_BINARY_DIR}
  -nocudainc -nocudalib ${flags} -include cuda_words.hpp)
file(GLOB headers ${PROJECT_SOURCE_DIR}/include/strait/wire/*.hpp ${PROJECT_SOURCE_DIR}/include/strait/device/*.hpp
  ${PROJECT_SOURCE_DIR}/include/strait/device/cxi/*.hpp ${PROJECT_SOURCE_DIR}/include/strait/cxi.h
  ${PROJECT_SOURCE_DIR}/include/strait/cxi/*.hpp)
foreach(name every_header every_lane every_cxi every_cxi_names every_cxi_format wqe_from_piece lane_put lane_posts cxi_put
    byte_stores reach_scopes)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu)
  add_custom_command(
    OUTPUT ${name}.hip.o ${name}.gcn
    COMMAND ${hip} -c ${source} -o ${name}.hip.o
    # hipcc names libraries even where nothing is linked.
    COMMAND ${hip} -Wno-unused-command-line-argument --cuda-device-only -S ${source} -o ${name}.gcn
    DEPENDS ${name}.cu all_functions.hpp ${headers}
    COMMENT "hipcc ${name}.cu" VERBATIM)
  add_custom_command(
    OUTPUT ${name}.ptx
    COMMAND ${cuda} -S ${source} -o ${name}.ptx
    DEPENDS ${name}.cu all_functions.hpp cuda_words.hpp ${headers}
    COMMENT "clang ${name}.cu" VERBATIM)
  list(APPEND made ${name}.hip.o ${name}.ptx)
endforeach()
add_custom_target(strait_device_gpu ALL DEPENDS ${made})
include(whole_stores_test.cmake)
strait_whole_stores(hipcc gcn gpu "")
strait_whole_stores(clang_ptx ptx gpu "")
include(scopes_test.cmake)
strait_scopes(clang gpu "")
