# SPDX-License-Identifier: Apache-2.0
# libibverbs, for the verbs rail and the kernel lab. STRAIT_VERBS: AUTO builds them where it is found, and insists when
# there are tests to build; ON insists; OFF leaves them out.
set(STRAIT_VERBS AUTO CACHE STRING "The verbs rail and the kernel lab, which need libibverbs: AUTO, ON or OFF")
set_property(CACHE STRAIT_VERBS PROPERTY STRINGS AUTO ON OFF)
set(STRAIT_HAS_VERBS OFF)
if(STRAIT_VERBS STREQUAL "OFF")
  message(STATUS "verbs rail and kernel lab: left out (STRAIT_VERBS is OFF)")
  return()
endif()
find_path(IBVERBS_INCLUDE infiniband/verbs.h)
find_library(IBVERBS_LIBRARY ibverbs)
find_library(MLX5_LIBRARY mlx5)  # comes with it; for tests that look behind verbs
if(IBVERBS_INCLUDE AND IBVERBS_LIBRARY)
  set(STRAIT_HAS_VERBS ON)
  add_library(ibverbs SHARED IMPORTED)
  set_target_properties(ibverbs PROPERTIES IMPORTED_LOCATION ${IBVERBS_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${IBVERBS_INCLUDE})
  if(MLX5_LIBRARY)
    add_library(mlx5 SHARED IMPORTED)
    set_target_properties(mlx5 PROPERTIES IMPORTED_LOCATION ${MLX5_LIBRARY})
  elseif(STRAIT_TESTS)
    message(FATAL_ERROR "libmlx5 was not found, but libibverbs was: install libibverbs-dev with its providers")
  endif()
elseif(STRAIT_TESTS OR STRAIT_VERBS STREQUAL "ON")
  message(FATAL_ERROR "libibverbs was not found: install libibverbs-dev, or leave the verbs rail and the kernel lab out "
    "with -DSTRAIT_VERBS=OFF")
else()
  message(STATUS "verbs rail: left out (libibverbs was not found)")
endif()
