// SPDX-License-Identifier: Apache-2.0
// Compiled, never linked, where the vendor's header is installed: api.h behind it, so that a prototype that differs is
// an error, and types.h beside it, so that a constant or a layout that differs is one.
#define __CUDA_API_VERSION_INTERNAL  // also the old forms of calls
#include <cuda.h>
#define STRAIT_SOFT_CUDA_VENDOR_TYPES
#include "soft/cuda/api.h"

// The same names once more, in a namespace.
#undef CUDA_CB
namespace ours {
#include "soft/cuda/types.h"
}

static_assert(CUDA_VERSION >= 13000, "the names and versions are those of 13.0");

#define SAME_VALUE(name) static_assert(static_cast<long long>(ours::name) == static_cast<long long>(::name), #name)
#define SAME_SIZE(name) \
  static_assert(sizeof(ours::name) == sizeof(::name) && alignof(ours::name) == alignof(::name), #name)
#define SAME_PLACE(type, member) static_assert(offsetof(ours::type, member) == offsetof(::type, member), #type #member)
#include "cuda_values.inc"

SAME_SIZE(CUdeviceptr);
SAME_SIZE(CUdevice);
SAME_SIZE(CUuuid);
SAME_SIZE(CUmemLocation);
SAME_SIZE(CUmemAccessDesc);
SAME_SIZE(CUmemAllocationProp);
SAME_SIZE(CUmemPoolProps);
SAME_SIZE(CUmemPoolPtrExportData);
SAME_SIZE(CUipcMemHandle);
SAME_SIZE(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
SAME_SIZE(CUstreamBatchMemOpParams);
SAME_SIZE(CUmemcpyAttributes);
SAME_PLACE(CUmemcpyAttributes, srcLocHint);
SAME_PLACE(CUmemcpyAttributes, dstLocHint);
SAME_PLACE(CUmemcpyAttributes, flags);
SAME_PLACE(CUmemAccessDesc, flags);
SAME_PLACE(CUmemAllocationProp, requestedHandleTypes);
SAME_PLACE(CUmemAllocationProp, location);
SAME_PLACE(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_PLACE(CUmemAllocationProp, allocFlags.usage);
SAME_PLACE(CUmemPoolProps, handleTypes);
SAME_PLACE(CUmemPoolProps, location);
SAME_PLACE(CUmemPoolProps, maxSize);
SAME_PLACE(CUstreamBatchMemOpParams, waitValue.address);
SAME_PLACE(CUstreamBatchMemOpParams, waitValue.value64);
SAME_PLACE(CUstreamBatchMemOpParams, waitValue.flags);
SAME_PLACE(CUstreamBatchMemOpParams, writeValue.address);
SAME_PLACE(CUstreamBatchMemOpParams, writeValue.value64);
SAME_PLACE(CUstreamBatchMemOpParams, writeValue.flags);
