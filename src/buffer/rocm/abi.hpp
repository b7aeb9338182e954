// SPDX-License-Identifier: Apache-2.0
// The part of AMD's HSA runtime interface that strait calls, written down here so that it builds without its headers.
// Handles are structs of one number, passed by value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strait::buffer::rocm {

using HsaStatus = std::int32_t;

struct Agent {
  std::uint64_t handle = 0;
};
struct Signal {
  std::uint64_t handle = 0;
};
struct MemoryPool {
  std::uint64_t handle = 0;
};
struct IpcMemory {
  std::uint32_t handle[8] = {};
};
// `size` is set before the call: the struct grew over the releases, and this is its oldest shape.
struct PointerInfo {
  std::uint32_t size = sizeof(PointerInfo);
  std::int32_t type = 0;
  void* agent_base = nullptr;
  void* host_base = nullptr;
  std::size_t length_bytes = 0;
  void* user_data = nullptr;
  Agent owner;
  std::uint32_t global_flags = 0;
};

inline constexpr HsaStatus kOk = 0;
inline constexpr HsaStatus kInfoBreak = 1;
inline constexpr HsaStatus kInvalidArgument = 0x1001;
inline constexpr HsaStatus kInvalidAllocation = 0x1003;
inline constexpr HsaStatus kInvalidAgent = 0x1004;
inline constexpr HsaStatus kOutOfResources = 0x1008;

inline constexpr int kTypeUnknown = 0;
inline constexpr int kTypeHsa = 1;
inline constexpr int kTypeLocked = 2;
inline constexpr int kTypeIpc = 4;
inline constexpr int kTypeReserved = 5;
inline constexpr int kTypeVmem = 6;  // hipMallocAsync since ROCm 10

inline constexpr int kSystemVersionMajor = 0;  // of the interface
inline constexpr int kSystemVersionMinor = 1;
inline constexpr int kSystemBuildVersion = 0x200;  // a const char*
inline constexpr int kSystemDmabuf = 0x204;
inline constexpr int kAgentName = 0;
inline constexpr int kAgentDevice = 17;  // 0: CPU, 1: GPU
inline constexpr int kAgentBdf = 0xA006;
inline constexpr int kAgentProduct = 0xA009;
inline constexpr int kAgentDomain = 0xA00F;
inline constexpr int kAgentMemoryFree = 0xA015;
inline constexpr int kPoolSegment = 0;
inline constexpr int kPoolFlags = 1;
inline constexpr int kPoolBytes = 2;
inline constexpr int kPoolAllocates = 5;
inline constexpr std::uint32_t kFlagCoarse = 4;
inline constexpr std::uint64_t kExportPcieMapping = 1;

using AgentCallback = HsaStatus (*)(Agent, void*);
using PoolCallback = HsaStatus (*)(MemoryPool, void*);
using FreedCallback = void (*)(void*, void*);

// X(member, symbol, required, return type, signature)
#define STRAIT_HSA_FUNCTIONS(X)                                                                                       \
  X(init, "hsa_init", true, HsaStatus, ())                                                                            \
  X(shut_down, "hsa_shut_down", true, HsaStatus, ())                                                                  \
  X(status_string, "hsa_status_string", false, HsaStatus, (HsaStatus, const char**))                                  \
  X(system_info, "hsa_system_get_info", true, HsaStatus, (int, void*))                                                \
  X(iterate_agents, "hsa_iterate_agents", true, HsaStatus, (AgentCallback, void*))                                    \
  X(agent_info, "hsa_agent_get_info", true, HsaStatus, (Agent, int, void*))                                           \
  X(iterate_pools, "hsa_amd_agent_iterate_memory_pools", true, HsaStatus, (Agent, PoolCallback, void*))               \
  X(pool_info, "hsa_amd_memory_pool_get_info", true, HsaStatus, (MemoryPool, int, void*))                             \
  X(pool_allocate, "hsa_amd_memory_pool_allocate", true, HsaStatus, (MemoryPool, std::size_t, std::uint32_t, void**)) \
  X(pool_free, "hsa_amd_memory_pool_free", true, HsaStatus, (void*))                                                  \
  X(pointer_info, "hsa_amd_pointer_info", true, HsaStatus,                                                            \
    (const void*, PointerInfo*, void* (*)(std::size_t), std::uint32_t*, Agent**))                                     \
  X(allow_access, "hsa_amd_agents_allow_access", true, HsaStatus,                                                     \
    (std::uint32_t, const Agent*, const std::uint32_t*, const void*))                                                 \
  X(lock, "hsa_amd_memory_lock", true, HsaStatus, (void*, std::size_t, Agent*, int, void**))                          \
  X(unlock, "hsa_amd_memory_unlock", true, HsaStatus, (void*))                                                        \
  X(async_copy, "hsa_amd_memory_async_copy", true, HsaStatus,                                                         \
    (void*, Agent, const void*, Agent, std::size_t, std::uint32_t, const Signal*, Signal))                            \
  X(signal_create, "hsa_signal_create", true, HsaStatus, (std::int64_t, std::uint32_t, const Agent*, Signal*))        \
  X(signal_destroy, "hsa_signal_destroy", true, HsaStatus, (Signal))                                                  \
  X(signal_load, "hsa_signal_load_scacquire", true, std::int64_t, (Signal))                                           \
  X(watch_free, "hsa_amd_register_deallocation_callback", false, HsaStatus, (void*, FreedCallback, void*))            \
  X(unwatch_free, "hsa_amd_deregister_deallocation_callback", false, HsaStatus, (void*, FreedCallback))               \
  X(export_dmabuf, "hsa_amd_portable_export_dmabuf", false, HsaStatus,                                                \
    (const void*, std::size_t, int*, std::uint64_t*))                                                                 \
  X(export_dmabuf_v2, "hsa_amd_portable_export_dmabuf_v2", false, HsaStatus,                                          \
    (const void*, std::size_t, int*, std::uint64_t*, std::uint64_t))                                                  \
  X(close_dmabuf, "hsa_amd_portable_close_dmabuf", false, HsaStatus, (int))                                           \
  X(ipc_create, "hsa_amd_ipc_memory_create", false, HsaStatus, (void*, std::size_t, IpcMemory*))                      \
  X(ipc_attach, "hsa_amd_ipc_memory_attach", false, HsaStatus,                                                        \
    (const IpcMemory*, std::size_t, std::uint32_t, const Agent*, void**))                                             \
  X(ipc_detach, "hsa_amd_ipc_memory_detach", false, HsaStatus, (void*))

}  // namespace strait::buffer::rocm
