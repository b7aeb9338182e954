// SPDX-License-Identifier: Apache-2.0
// The public face of AMD's HSA runtime as numbers and shapes: what a program compiled against its headers passes in.
// Written from documentation; check_headers.cpp compares it with the headers where they are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strait::soft::hsa {

using Answer = std::int32_t;  // hsa_status_t

inline constexpr Answer kSuccess = 0x0;
inline constexpr Answer kInfoBreak = 0x1;
inline constexpr Answer kInvalidMemoryPool = 40;
inline constexpr Answer kResourceBusy = 46;
inline constexpr Answer kError = 0x1000;  // also: "this runtime does not have that"
inline constexpr Answer kInvalidArgument = 0x1001;
inline constexpr Answer kInvalidQueueCreation = 0x1002;
inline constexpr Answer kInvalidAllocation = 0x1003;
inline constexpr Answer kInvalidAgent = 0x1004;
inline constexpr Answer kInvalidRegion = 0x1005;
inline constexpr Answer kInvalidSignal = 0x1006;
inline constexpr Answer kOutOfResources = 0x1008;
inline constexpr Answer kResourceFree = 0x100A;
inline constexpr Answer kNotInitialized = 0x100B;
inline constexpr Answer kRefcountOverflow = 0x100C;

struct Agent {
  std::uint64_t handle;
};
struct Signal {
  std::uint64_t handle;
};
struct MemoryPool {
  std::uint64_t handle;
};
struct VmemHandle {
  std::uint64_t handle;
};
using SignalValue = std::int64_t;

struct PointerInfo {
  std::uint32_t size;  // set by the caller: the struct grew over the releases
  std::int32_t type;
  void* agent_base;
  void* host_base;
  std::size_t size_in_bytes;
  void* user_data;
  Agent agent_owner;
  std::uint32_t global_flags;
  bool registered;  // newer than Debian's 5.2.3; lies in what was padding
};

inline constexpr std::int32_t kPointerUnknown = 0;
inline constexpr std::int32_t kPointerHsa = 1;
inline constexpr std::int32_t kPointerLocked = 2;
inline constexpr std::int32_t kPointerGraphics = 3;
inline constexpr std::int32_t kPointerIpc = 4;
inline constexpr std::int32_t kPointerReserved = 5;
inline constexpr std::int32_t kPointerVmem = 6;

struct IpcMemory {
  std::uint32_t handle[8];
};

struct SvmPair {
  std::uint64_t attribute;
  std::uint64_t value;
};

struct AccessDesc {
  std::int32_t permissions;
  Agent agent;
};
inline constexpr std::int32_t kAccessNone = 0;
inline constexpr std::int32_t kAccessRead = 1;
inline constexpr std::int32_t kAccessWrite = 2;
inline constexpr std::int32_t kAccessReadWrite = 3;

struct LinkInfo {
  std::uint32_t min_latency, max_latency, min_bandwidth, max_bandwidth;
  bool atomic_32bit, atomic_64bit, coherent;
  std::int32_t link_type;  // 2 PCIe, 4 XGMI
  std::uint32_t numa_distance;
};

// System attributes.
inline constexpr std::int32_t kSystemVersionMajor = 0, kSystemVersionMinor = 1, kSystemTimestamp = 2,
                              kSystemTimestampFrequency = 3, kSystemSignalMaxWait = 4, kSystemEndianness = 5,
                              kSystemMachineModel = 6, kSystemExtensions = 7, kSystemBuildVersion = 0x200,
                              kSystemSvmSupported = 0x201, kSystemSvmAccessibleByDefault = 0x202, kSystemMwaitx = 0x203,
                              kSystemDmabufSupported = 0x204, kSystemVirtualMemSupported = 0x205, kSystemXnack = 0x206,
                              kSystemExtVersionMajor = 0x207, kSystemExtVersionMinor = 0x208;

// Agent attributes.
inline constexpr std::int32_t kAgentName = 0, kAgentVendorName = 1, kAgentFeature = 2, kAgentMachineModel = 3,
                              kAgentProfile = 4, kAgentWavefrontSize = 6, kAgentQueuesMax = 12, kAgentQueueMinSize = 13,
                              kAgentQueueMaxSize = 14, kAgentQueueType = 15, kAgentNode = 16, kAgentDevice = 17,
                              kAgentCacheSize = 18, kAgentExtensions = 20, kAgentVersionMajor = 21,
                              kAgentVersionMinor = 22, kAgentChipId = 0xA000, kAgentCachelineSize = 0xA001,
                              kAgentComputeUnits = 0xA002, kAgentMaxClock = 0xA003, kAgentDriverNode = 0xA004,
                              kAgentBdfId = 0xA006, kAgentMemoryWidth = 0xA007, kAgentProductName = 0xA009,
                              kAgentHdpFlush = 0xA00E, kAgentDomain = 0xA00F, kAgentUuid = 0xA011,
                              kAgentAsicRevision = 0xA012, kAgentSvmDirectHostAccess = 0xA013,
                              kAgentMemoryAvail = 0xA015, kAgentNumSdmaEngines = 0xA10A, kAgentDriverUid = 0xA112,
                              kAgentNearestCpu = 0xA113, kAgentMemoryProperties = 0xA114;
inline constexpr std::uint32_t kDeviceCpu = 0, kDeviceGpu = 1;

// Pool attributes.
inline constexpr std::int32_t kPoolSegment = 0, kPoolGlobalFlags = 1, kPoolSize = 2, kPoolAllocAllowed = 5,
                              kPoolAllocGranule = 6, kPoolAllocAlignment = 7, kPoolAccessibleByAll = 15,
                              kPoolAllocMaxSize = 16, kPoolLocation = 17, kPoolAllocRecGranule = 18;
inline constexpr std::uint32_t kSegmentGlobal = 0, kSegmentGroup = 3;
inline constexpr std::uint32_t kFlagKernarg = 1, kFlagFineGrained = 2, kFlagCoarseGrained = 4;
inline constexpr std::int32_t kAgentPoolAccess = 0, kAgentPoolLinkHops = 1, kAgentPoolLinkInfo = 2;
inline constexpr std::int32_t kAccessNeverAllowed = 0, kAccessAllowedByDefault = 1, kAccessDisallowedByDefault = 2;

// Signal conditions.
inline constexpr std::int32_t kConditionEq = 0, kConditionNe = 1, kConditionLt = 2, kConditionGte = 3;

using AgentCallback = Answer (*)(Agent, void*);
using PoolCallback = Answer (*)(MemoryPool, void*);
using Allocator = void* (*)(std::size_t);
using DeallocationCallback = void (*)(void*, void*);
using SignalHandler = bool (*)(SignalValue, void*);

}  // namespace strait::soft::hsa
