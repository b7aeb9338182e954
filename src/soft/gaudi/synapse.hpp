// SPDX-License-Identifier: Apache-2.0
// The face of libSynapse.so: devices, memory, streams, events, copies. From its documentation; nothing packaged checks
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#define STRAIT_SYN_API extern "C" __attribute__((visibility("default")))

namespace strait::soft::gaudi::syn {

using Answer = std::int32_t;  // synStatus
inline constexpr Answer kSuccess = 0, kInvalidArgument = 1, kOutOfHostMemory = 3, kOutOfDeviceMemory = 4,
                        kNoDeviceFound = 8, kFailedToFreeDeviceMemory = 15, kDeviceReset = 17, kUnsupported = 18,
                        kDeviceAlreadyAcquired = 20, kBusy = 22, kFail = 26, kUninitialized = 28,
                        kAlreadyInitialized = 29, kInvalidEventHandle = 33, kMappingNotFound = 34;

// synDmaDir and synDeviceType
inline constexpr std::int32_t kHostToDram = 0, kDramToHost = 1, kDramToDram = 2;
inline constexpr std::int32_t kTypeGaudi = 2, kTypeGaudi2 = 4, kTypes = 8;

using DeviceId = std::uint32_t;
struct StreamHandle_;
struct EventHandle_;
using StreamHandle = StreamHandle_*;
using EventHandle = EventHandle_*;

struct DeviceInfo {
  std::uint64_t sram_base;
  std::uint64_t dram_base;
  std::uint32_t sram_size;
  std::uint64_t dram_size;
  std::uint64_t tpc_enabled_mask;
  std::uint8_t dram_enabled;
  std::uint32_t device_id;
  std::uint32_t fd;
  std::int32_t type;
};

struct DeviceInfoV2 {
  std::uint64_t sram_base;
  std::uint64_t dram_base;
  std::uint32_t sram_size;
  std::uint64_t dram_size;
  std::uint64_t tpc_enabled_mask;
  std::uint8_t dram_enabled;
  std::uint32_t device_id;
  std::uint32_t fd;
  std::int32_t type;
  std::uint8_t device_index;
  std::uint64_t global_hbm_base;
};

// One row each.
// clang-format off
#define SYN_FUNCTIONS(function)                                                                                       \
  function(synInitialize, ())                                                                                         \
  function(synDestroy, ())                                                                                            \
  function(synDeviceGetCount, (std::uint32_t*))                                                                       \
  function(synDeviceGetCountByDeviceType, (std::uint32_t*, std::int32_t))                                             \
  function(synDeviceCount, (std::uint32_t*))                                                                          \
  function(synDeviceGetModuleIDs, (std::uint32_t*, std::uint32_t*))                                                   \
  function(synDeviceAcquireByDeviceType, (DeviceId*, std::int32_t))                                                   \
  function(synDeviceAcquireByModuleId, (DeviceId*, std::uint32_t))                                                    \
  function(synDeviceAcquire, (DeviceId*, const char*))                                                                \
  function(synDeviceRelease, (DeviceId))                                                                              \
  function(synDeviceSynchronize, (DeviceId))                                                                          \
  function(synDriverGetVersion, (char*, int))                                                                         \
  function(synDeviceGetName, (char*, int, DeviceId))                                                                  \
  function(synDeviceGetPCIBusId, (char*, int, DeviceId))                                                              \
  function(synDeviceGetMemoryInfo, (DeviceId, std::uint64_t*, std::uint64_t*))                                        \
  function(synDeviceGetInfo, (DeviceId, DeviceInfo*))                                                                 \
  function(synDeviceGetInfoV2, (DeviceId, DeviceInfoV2*))                                                             \
  function(synDeviceMalloc, (DeviceId, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t*))                  \
  function(synDeviceFree, (DeviceId, std::uint64_t, std::uint32_t))                                                   \
  function(synHostMalloc, (DeviceId, std::uint64_t, std::uint32_t, void**))                                           \
  function(synHostFree, (DeviceId, const void*, std::uint32_t))                                                       \
  function(synHostMap, (DeviceId, std::uint64_t, const void*))                                                        \
  function(synHostUnmap, (DeviceId, const void*))                                                                     \
  function(synStreamCreateGeneric, (StreamHandle*, DeviceId, std::uint32_t))                                          \
  function(synStreamDestroy, (StreamHandle))                                                                          \
  function(synStreamWaitEvent, (StreamHandle, EventHandle, std::uint32_t))                                            \
  function(synStreamSynchronize, (StreamHandle))                                                                      \
  function(synStreamQuery, (StreamHandle))                                                                            \
  function(synEventCreate, (EventHandle*, DeviceId, std::uint32_t))                                                   \
  function(synEventDestroy, (EventHandle))                                                                            \
  function(synEventRecord, (EventHandle, StreamHandle))                                                               \
  function(synEventQuery, (EventHandle))                                                                              \
  function(synEventSynchronize, (EventHandle))                                                                        \
  function(synEventElapsedTime, (std::uint64_t*, EventHandle, EventHandle))                                           \
  function(synMemCopyAsync, (StreamHandle, std::uint64_t, std::uint64_t, std::uint64_t, std::int32_t))                \
  function(synMemCopyAsyncMultiple, (StreamHandle, const std::uint64_t*, const std::uint64_t*,                        \
                                     const std::uint64_t*, std::int32_t, std::uint64_t))                              \
  function(synMemsetD8Async, (std::uint64_t, unsigned char, std::size_t, StreamHandle))                               \
  function(synMemsetD16Async, (std::uint64_t, std::uint16_t, std::size_t, StreamHandle))                              \
  function(synMemsetD32Async, (std::uint64_t, std::uint32_t, std::size_t, StreamHandle))                              \
  function(synStatusGetBriefDescription, (Answer, char*, std::size_t))
// clang-format on

// Habana's communication library, where libfabric looks for it: dlsym() on libSynapse.so. What it answers with.
inline constexpr int kHcclSuccess = 0, kHcclUninitialized = -1, kHcclInvalidArgument = 7;
STRAIT_SYN_API int hcclLookupDMABuff(std::uint64_t address, std::uint64_t size, int* fd);

}  // namespace strait::soft::gaudi::syn
