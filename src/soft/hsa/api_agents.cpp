// SPDX-License-Identifier: Apache-2.0
// Entry points: opening, the machine, its agents and pools.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "soft/hsa/api.hpp"
#include "soft/hsa/visible.hpp"
#include "sys/clock.hpp"

namespace strait::soft::hsa {
namespace {

template <class T>
Answer put_value(void* value, T what) {
  std::memcpy(value, &what, sizeof what);
  return kSuccess;
}

// All of a fixed field: programs print it and compare it.
Answer put_text(void* value, std::string_view text, std::size_t room) {
  std::memset(value, 0, room);
  std::memcpy(value, text.data(), std::min(text.size(), room - 1));
  return kSuccess;
}

constexpr std::size_t kNameBytes = 64;
constexpr std::uint32_t kFirstBus = 0xc1;  // slot 0 is 0000:c1:00.0

// Registers that a program writes to make a GPU's writes visible; in software all are.
std::uint32_t hdp_words[2];

Answer cpu_info(const Runtime&, std::int32_t attribute, void* value) {
  switch (attribute) {
    case kAgentName:
    case kAgentProductName: return put_text(value, "strait software CPU", kNameBytes);
    case kAgentVendorName: return put_text(value, "CPU", kNameBytes);
    case kAgentUuid: return put_text(value, "CPU-XX", 21);
    case kAgentFeature: return put_value<std::uint32_t>(value, 0);
    case kAgentDevice: return put_value(value, kDeviceCpu);
    case kAgentQueuesMax:
    case kAgentBdfId:
    case kAgentDomain:
    case kAgentChipId: return put_value<std::uint32_t>(value, 0);
    default: return kInvalidArgument;
  }
}

Answer gpu_info(Runtime& runtime, const Gpu& gpu, std::int32_t attribute, void* value) {
  switch (attribute) {
    case kAgentName: return put_text(value, "gfx942", kNameBytes);
    case kAgentVendorName: return put_text(value, "AMD", kNameBytes);
    case kAgentProductName: return put_text(value, "strait software GPU", kNameBytes);
    case kAgentUuid: return put_text(value, uuid_of_slot(gpu.slot), 21);
    case kAgentFeature: return put_value<std::uint32_t>(value, 0);  // runs no kernels
    case kAgentDevice: return put_value(value, kDeviceGpu);
    case kAgentWavefrontSize: return put_value<std::uint32_t>(value, 64);
    case kAgentQueuesMax: return put_value<std::uint32_t>(value, 0);
    case kAgentBdfId: return put_value<std::uint32_t>(value, (kFirstBus + gpu.slot) << 8);
    case kAgentDomain: return put_value<std::uint32_t>(value, 0);
    case kAgentChipId: return put_value<std::uint32_t>(value, 0x74a1);
    case kAgentComputeUnits: return put_value<std::uint32_t>(value, 304);
    case kAgentMaxClock: return put_value<std::uint32_t>(value, 2100);
    case kAgentMemoryWidth: return put_value<std::uint32_t>(value, 8192);
    case kAgentAsicRevision: return put_value<std::uint32_t>(value, 1);
    case kAgentSvmDirectHostAccess: return put_value(value, runtime.large_bar());
    case kAgentMemoryAvail: return put_value(value, runtime.available_bytes(gpu.node));
    case kAgentNumSdmaEngines: return put_value<std::uint32_t>(value, 2);
    case kAgentDriverUid: return put_value<std::uint64_t>(value, 0x5374726169740000u + gpu.slot);
    case kAgentNearestCpu: return put_value(value, Runtime::agent_of(0));
    case kAgentMemoryProperties: std::memset(value, 0, 8); return kSuccess;
    case kAgentHdpFlush: {
      std::uint32_t* const words[2] = {&hdp_words[0], &hdp_words[1]};
      std::memcpy(value, words, sizeof words);
      return kSuccess;
    }
    default: return kInvalidArgument;
  }
}

Answer common_info(std::uint32_t node, std::int32_t attribute, void* value) {
  switch (attribute) {
    case kAgentMachineModel: return put_value<std::int32_t>(value, 1);  // large
    case kAgentProfile: return put_value<std::int32_t>(value, 0);
    case kAgentQueueMinSize:
    case kAgentQueueMaxSize: return put_value<std::uint32_t>(value, 0);
    case kAgentQueueType: return put_value<std::int32_t>(value, 0);
    case kAgentNode:
    case kAgentDriverNode: return put_value(value, node);
    case kAgentCacheSize: std::memset(value, 0, 4 * sizeof(std::uint32_t)); return kSuccess;
    case kAgentExtensions: std::memset(value, 0, 128); return kSuccess;
    case kAgentVersionMajor: return put_value<std::uint16_t>(value, 1);
    case kAgentVersionMinor: return put_value<std::uint16_t>(value, 1);
    case kAgentCachelineSize: return put_value<std::uint32_t>(value, 64);
    default: return kInvalidArgument;
  }
}

}  // namespace

Answer hsa_init() {
  return open_runtime();
}

Answer hsa_shut_down() {
  return close_runtime();
}

Answer hsa_system_get_info(std::int32_t attribute, void* value) {
  STRAIT_HSA_OPEN(runtime);
  if (value == nullptr) return kInvalidArgument;
  switch (attribute) {
    case kSystemVersionMajor: return put_value<std::uint16_t>(value, 1);
    case kSystemVersionMinor: return put_value<std::uint16_t>(value, 1);
    case kSystemTimestamp: return put_value(value, static_cast<std::uint64_t>(sys::now_ns()));
    case kSystemTimestampFrequency: return put_value<std::uint64_t>(value, 1'000'000'000);
    case kSystemSignalMaxWait: return put_value<std::uint64_t>(value, UINT64_MAX);
    case kSystemEndianness: return put_value<std::int32_t>(value, 0);
    case kSystemMachineModel: return put_value<std::int32_t>(value, 1);
    case kSystemExtensions: std::memset(value, 0, 128); return kSuccess;
    case kSystemBuildVersion: return put_value<const char*>(value, "strait software runtime");
    case kSystemSvmSupported: return put_value(value, true);
    case kSystemSvmAccessibleByDefault: return put_value(value, false);
    case kSystemMwaitx: return put_value(value, false);
    case kSystemDmabufSupported: return put_value(value, true);
    case kSystemVirtualMemSupported: return put_value(value, true);
    case kSystemXnack: return put_value(value, false);
    case kSystemExtVersionMajor: return put_value<std::uint16_t>(value, 1);
    case kSystemExtVersionMinor: return put_value<std::uint16_t>(value, 12);
    default: return kInvalidArgument;
  }
}

Answer hsa_system_extension_supported(std::uint16_t, std::uint16_t, std::uint16_t, bool* result) {
  STRAIT_HSA_OPEN(runtime);
  if (result == nullptr) return kInvalidArgument;
  *result = false;
  return kSuccess;
}

Answer hsa_system_major_extension_supported(std::uint16_t, std::uint16_t, std::uint16_t* minor, bool* result) {
  STRAIT_HSA_OPEN(runtime);
  if (minor == nullptr || result == nullptr) return kInvalidArgument;
  *result = false;
  return kSuccess;
}

Answer hsa_iterate_agents(AgentCallback callback, void* data) {
  STRAIT_HSA_OPEN(runtime);
  if (callback == nullptr) return kInvalidArgument;
  Answer answer = callback(Runtime::agent_of(0), data);
  for (std::size_t i = 0; answer == kSuccess && i < runtime->gpu_count(); ++i)
    answer = callback(Runtime::agent_of(runtime->gpu(i).node), data);
  return answer;
}

Answer hsa_agent_get_info(Agent agent, std::int32_t attribute, void* value) {
  STRAIT_HSA_OPEN(runtime);
  if (value == nullptr) return kInvalidArgument;
  std::uint32_t node = 0;
  if (!runtime->node_of(agent, node)) return kInvalidAgent;
  const Answer own =
      node == 0 ? cpu_info(*runtime, attribute, value) : gpu_info(*runtime, *runtime->gpu_of(node), attribute, value);
  return own == kInvalidArgument ? common_info(node, attribute, value) : own;
}

Answer hsa_amd_agent_iterate_memory_pools(Agent agent, PoolCallback callback, void* data) {
  STRAIT_HSA_OPEN(runtime);
  if (callback == nullptr) return kInvalidArgument;
  std::uint32_t node = 0;
  if (!runtime->node_of(agent, node)) return kInvalidAgent;
  for (const MemoryPool& pool : runtime->pools_of(node)) {
    if (const Answer answer = callback(pool, data); answer != kSuccess) return answer;
  }
  return kSuccess;
}

Answer hsa_amd_memory_pool_get_info(MemoryPool pool, std::int32_t attribute, void* value) {
  STRAIT_HSA_OPEN(runtime);
  if (value == nullptr) return kInvalidArgument;
  PoolName name{};
  if (!runtime->pool_of(pool, name)) return kInvalidMemoryPool;
  const bool group = name.kind == PoolKind::gpu_group;
  const Gpu* gpu = runtime->gpu_of(name.node);
  const std::uint64_t whole = group ? 65536 : gpu == nullptr ? kCpuMemoryBytes : gpu->arena->memory_bytes();
  switch (attribute) {
    case kPoolSegment: return put_value(value, group ? kSegmentGroup : kSegmentGlobal);
    case kPoolGlobalFlags:
      return put_value(value, group                                ? 0u
                              : name.kind == PoolKind::cpu_kernarg ? kFlagKernarg | kFlagFineGrained
                              : name.kind == PoolKind::cpu_coarse || name.kind == PoolKind::gpu_coarse
                                  ? kFlagCoarseGrained
                                  : kFlagFineGrained);
    case kPoolSize: return put_value<std::size_t>(value, whole);
    case kPoolAllocAllowed: return put_value(value, !group);
    case kPoolAllocGranule:
    case kPoolAllocAlignment: return put_value<std::size_t>(value, group ? 0 : sys::page_bytes());
    case kPoolAllocRecGranule: return put_value<std::size_t>(value, group ? 0 : Blocks::kBlockBytes);
    case kPoolAccessibleByAll: return put_value(value, name.node == 0);
    case kPoolAllocMaxSize: return put_value<std::size_t>(value, group ? 0 : whole);
    case kPoolLocation: return put_value<std::int32_t>(value, name.node == 0 ? 0 : 1);
    default: return kInvalidArgument;
  }
}

Answer hsa_amd_agent_memory_pool_get_info(Agent agent, MemoryPool pool, std::int32_t attribute, void* value) {
  STRAIT_HSA_OPEN(runtime);
  if (value == nullptr) return kInvalidArgument;
  std::uint32_t node = 0;
  PoolName name{};
  if (!runtime->node_of(agent, node)) return kInvalidAgent;
  if (!runtime->pool_of(pool, name)) return kInvalidMemoryPool;
  const bool own = node == name.node;
  const bool never = name.kind == PoolKind::gpu_group || (node == 0 && !own && !runtime->large_bar());
  switch (attribute) {
    case kAgentPoolAccess:
      return put_value(value, never                                ? kAccessNeverAllowed
                              : own || node == 0 || name.node == 0 ? kAccessAllowedByDefault
                                                                   : kAccessDisallowedByDefault);
    case kAgentPoolLinkHops: return put_value<std::uint32_t>(value, own || never ? 0 : 1);
    case kAgentPoolLinkInfo: {
      if (own || never) return kSuccess;  // no hops, nothing to describe
      LinkInfo link{};
      link.atomic_32bit = link.atomic_64bit = link.coherent = true;
      link.link_type = node == 0 || name.node == 0 ? 2 : 4;
      link.numa_distance = node == 0 || name.node == 0 ? 20 : 15;
      return put_value(value, link);
    }
    default: return kInvalidArgument;
  }
}

Answer hsa_amd_memory_pool_can_migrate(MemoryPool from, MemoryPool to, bool* result) {
  STRAIT_HSA_OPEN(runtime);
  if (result == nullptr) return kInvalidArgument;
  PoolName name{};
  if (!runtime->pool_of(from, name) || !runtime->pool_of(to, name)) return kInvalidMemoryPool;
  *result = false;
  return kSuccess;
}

}  // namespace strait::soft::hsa
