// SPDX-License-Identifier: Apache-2.0
// The face of libscal.so: the pool of device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#define STRAIT_SCAL_API extern "C" __attribute__((visibility("default")))

namespace strait::soft::gaudi::scal {

inline constexpr int kSuccess = 0, kFailure = -1, kInvalidParam = -4, kOutOfMemory = -5, kNotFound = -11,
                     kNotImplemented = -12;

struct Handle_;
struct PoolHandle_;
using Handle = Handle_*;
using PoolHandle = PoolHandle_*;

struct PoolInfo {
  Handle scal;
  const char* name;
  unsigned index;
  std::uint64_t device_base;
  void* host_base;
  std::uint32_t core_base;
  std::uint64_t total_bytes;
  std::uint64_t free_bytes;
};

struct PoolInfoV2 {
  Handle scal;
  const char* name;
  unsigned index;
  std::uint64_t device_base;
  void* host_base;
  std::uint32_t core_base;
  std::uint64_t total_bytes;
  std::uint64_t free_bytes;
  std::uint64_t device_base_allocated;
};

// One row each.
// clang-format off
#define SCAL_FUNCTIONS(function)                                                  \
  function(int, scal_set_logs_folder, (const char*))                              \
  function(int, scal_init, (int, const char*, Handle*, void*))                    \
  function(void, scal_destroy, (Handle))                                          \
  function(int, scal_get_fd, (Handle))                                            \
  function(int, scal_get_handle_from_fd, (int, Handle*))                          \
  function(std::uint32_t, scal_get_sram_size, (Handle))                           \
  function(int, scal_get_pool_handle_by_name, (Handle, const char*, PoolHandle*)) \
  function(int, scal_get_pool_handle_by_id, (Handle, unsigned, PoolHandle*))      \
  function(int, scal_pool_get_info, (PoolHandle, PoolInfo*))                      \
  function(int, scal_pool_get_infoV2, (PoolHandle, PoolInfoV2*))                  \
  function(const char*, scal_get_version_sha1, ())                                \
  function(const char*, scal_get_build_time, ())
// clang-format on

}  // namespace strait::soft::gaudi::scal
