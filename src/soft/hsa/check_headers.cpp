// SPDX-License-Identifier: Apache-2.0
// Compiled where AMD's headers are installed (Debian: libhsa-runtime-dev): every function, struct and number of ours
// against theirs. Nothing here runs.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <type_traits>

#include "soft/hsa/abi.hpp"

namespace strait::soft::hsa {
namespace {

// The same to a caller: as many arguments, each of the same sort and size. Their enums are our integers, their structs
// ours of equal size.
template <class Ours, class Theirs>
struct SameCall : std::false_type {};

template <class Ours, class Theirs>
constexpr bool same_word() {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using A = std::remove_pointer_t<Ours>;
    using B = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_function_v<A> || std::is_function_v<B>)
      return SameCall<A, B>::value;
    else if constexpr (std::is_void_v<A> || std::is_void_v<B>)
      return std::is_void_v<A> == std::is_void_v<B> && std::is_const_v<A> == std::is_const_v<B>;
    else
      return sizeof(A) == sizeof(B) && std::is_const_v<A> == std::is_const_v<B>;
  } else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>) {
    return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
  } else {
    constexpr bool numbers =
        (std::is_integral_v<Ours> || std::is_enum_v<Ours>)&&(std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
    return numbers && sizeof(Ours) == sizeof(Theirs);
  }
}

template <class R1, class... A1, class R2, class... A2>
struct SameCall<R1(A1...), R2(A2...)> : std::bool_constant<[] {
  if constexpr (sizeof...(A1) != sizeof...(A2))
    return false;
  else
    return same_word<R1, R2>() && (same_word<A1, A2>() && ...);
}()> {};

#define HSA_FUNCTION(returns, name, arguments) \
  static_assert(SameCall<returns arguments, std::remove_pointer_t<decltype(&::name)>>::value, #name);
#define HSA_NEWER(returns, name, arguments)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "soft/hsa/functions.inc"
#pragma GCC diagnostic pop

static_assert(kSuccess == HSA_STATUS_SUCCESS && kInfoBreak == HSA_STATUS_INFO_BREAK && kError == HSA_STATUS_ERROR);
static_assert(kInvalidMemoryPool == static_cast<int>(HSA_STATUS_ERROR_INVALID_MEMORY_POOL));
static_assert(kInvalidArgument == HSA_STATUS_ERROR_INVALID_ARGUMENT);
static_assert(kInvalidQueueCreation == HSA_STATUS_ERROR_INVALID_QUEUE_CREATION);
static_assert(kInvalidAllocation == HSA_STATUS_ERROR_INVALID_ALLOCATION);
static_assert(kInvalidAgent == HSA_STATUS_ERROR_INVALID_AGENT && kInvalidSignal == HSA_STATUS_ERROR_INVALID_SIGNAL);
static_assert(kInvalidRegion == HSA_STATUS_ERROR_INVALID_REGION);
static_assert(kOutOfResources == HSA_STATUS_ERROR_OUT_OF_RESOURCES && kResourceFree == HSA_STATUS_ERROR_RESOURCE_FREE);
static_assert(kNotInitialized == HSA_STATUS_ERROR_NOT_INITIALIZED);
static_assert(kRefcountOverflow == HSA_STATUS_ERROR_REFCOUNT_OVERFLOW);

static_assert(sizeof(PointerInfo) == sizeof(hsa_amd_pointer_info_t));
static_assert(offsetof(PointerInfo, agent_base) == offsetof(hsa_amd_pointer_info_t, agentBaseAddress));
static_assert(offsetof(PointerInfo, host_base) == offsetof(hsa_amd_pointer_info_t, hostBaseAddress));
static_assert(offsetof(PointerInfo, size_in_bytes) == offsetof(hsa_amd_pointer_info_t, sizeInBytes));
static_assert(offsetof(PointerInfo, user_data) == offsetof(hsa_amd_pointer_info_t, userData));
static_assert(offsetof(PointerInfo, agent_owner) == offsetof(hsa_amd_pointer_info_t, agentOwner));
static_assert(offsetof(PointerInfo, global_flags) == offsetof(hsa_amd_pointer_info_t, global_flags));
static_assert(offsetof(LinkInfo, atomic_32bit) == offsetof(hsa_amd_memory_pool_link_info_t, atomic_support_32bit));
static_assert(offsetof(LinkInfo, link_type) == offsetof(hsa_amd_memory_pool_link_info_t, link_type));
static_assert(sizeof(LinkInfo) == sizeof(hsa_amd_memory_pool_link_info_t));

static_assert(kPointerUnknown == HSA_EXT_POINTER_TYPE_UNKNOWN && kPointerHsa == HSA_EXT_POINTER_TYPE_HSA);
static_assert(kPointerLocked == HSA_EXT_POINTER_TYPE_LOCKED && kPointerGraphics == HSA_EXT_POINTER_TYPE_GRAPHICS);
static_assert(kPointerIpc == HSA_EXT_POINTER_TYPE_IPC);

static_assert(kSystemTimestamp == HSA_SYSTEM_INFO_TIMESTAMP && kSystemExtensions == HSA_SYSTEM_INFO_EXTENSIONS);
static_assert(kSystemSvmSupported == HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED);
static_assert(kAgentName == HSA_AGENT_INFO_NAME && kAgentVendorName == HSA_AGENT_INFO_VENDOR_NAME);
static_assert(kAgentNode == HSA_AGENT_INFO_NODE && kAgentDevice == HSA_AGENT_INFO_DEVICE);
static_assert(kDeviceCpu == HSA_DEVICE_TYPE_CPU && kDeviceGpu == HSA_DEVICE_TYPE_GPU);
static_assert(kAgentChipId == static_cast<int>(HSA_AMD_AGENT_INFO_CHIP_ID));
static_assert(kAgentBdfId == static_cast<int>(HSA_AMD_AGENT_INFO_BDFID));
static_assert(kAgentDomain == static_cast<int>(HSA_AMD_AGENT_INFO_DOMAIN));
static_assert(kAgentUuid == static_cast<int>(HSA_AMD_AGENT_INFO_UUID));
static_assert(kAgentProductName == static_cast<int>(HSA_AMD_AGENT_INFO_PRODUCT_NAME));
static_assert(kAgentHdpFlush == static_cast<int>(HSA_AMD_AGENT_INFO_HDP_FLUSH));
static_assert(kPoolSegment == HSA_AMD_MEMORY_POOL_INFO_SEGMENT && kPoolSize == HSA_AMD_MEMORY_POOL_INFO_SIZE);
static_assert(kPoolGlobalFlags == HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS);
static_assert(kPoolAllocAllowed == HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED);
static_assert(kPoolAllocGranule == HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE);
static_assert(kPoolAllocAlignment == HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT);
static_assert(kPoolAccessibleByAll == HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL);
static_assert(kPoolAllocMaxSize == HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE);
static_assert(kSegmentGlobal == HSA_AMD_SEGMENT_GLOBAL && kSegmentGroup == HSA_AMD_SEGMENT_GROUP);
static_assert(kFlagKernarg == HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT);
static_assert(kFlagFineGrained == HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED);
static_assert(kFlagCoarseGrained == HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
static_assert(kAccessNeverAllowed == HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED);
static_assert(kAccessAllowedByDefault == HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT);
static_assert(kAccessDisallowedByDefault == HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT);
static_assert(kAgentPoolLinkInfo == HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO);
static_assert(kAccessRead == HSA_ACCESS_PERMISSION_RO && kAccessReadWrite == HSA_ACCESS_PERMISSION_RW);
static_assert(kConditionEq == HSA_SIGNAL_CONDITION_EQ && kConditionNe == HSA_SIGNAL_CONDITION_NE);
static_assert(kConditionLt == HSA_SIGNAL_CONDITION_LT && kConditionGte == HSA_SIGNAL_CONDITION_GTE);

}  // namespace
}  // namespace strait::soft::hsa
