// SPDX-License-Identifier: Apache-2.0
// abi.hpp against cuda.h, where a toolkit is installed: every function has as many arguments, each as wide and as much
// a pointer, and every constant the same value. Nothing of cuda.h is called.
#include <cuda.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "buffer/cuda/abi.hpp"

namespace strait::buffer::cuda {
namespace {

template <class A, class B>
constexpr bool same_argument() {
  return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
         std::is_class_v<A> == std::is_class_v<B>;
}
template <class A, class B>
struct SameShape : std::false_type {};
template <class R, class... A, class S, class... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameShape<R(A...), S(B...)> : std::bool_constant<sizeof(R) == sizeof(S) && (same_argument<A, B>() && ...)> {};

// What the header calls each in the shape that strait asks for.
#define STRAIT_THEIRS(ours, theirs) \
  static_assert(SameShape<std::remove_pointer_t<decltype(Shapes::ours)>, decltype(theirs)>::value, #theirs);

struct Shapes {
#define STRAIT_SHAPE(member, name, version, symbol, required, signature) CuResult(*member) signature;
  STRAIT_CUDA_FUNCTIONS(STRAIT_SHAPE)
#undef STRAIT_SHAPE
};

STRAIT_THEIRS(init, cuInit)
STRAIT_THEIRS(driver_version, cuDriverGetVersion)
STRAIT_THEIRS(error_name, cuGetErrorName)
STRAIT_THEIRS(device_count, cuDeviceGetCount)
STRAIT_THEIRS(device_get, cuDeviceGet)
STRAIT_THEIRS(device_name, cuDeviceGetName)
STRAIT_THEIRS(device_attribute, cuDeviceGetAttribute)
STRAIT_THEIRS(device_pci, cuDeviceGetPCIBusId)
STRAIT_THEIRS(device_memory, cuDeviceTotalMem)
STRAIT_THEIRS(memory_info, cuMemGetInfo)
STRAIT_THEIRS(primary_retain, cuDevicePrimaryCtxRetain)
STRAIT_THEIRS(primary_release, cuDevicePrimaryCtxRelease)
STRAIT_THEIRS(primary_state, cuDevicePrimaryCtxGetState)
STRAIT_THEIRS(push, cuCtxPushCurrent)
STRAIT_THEIRS(pop, cuCtxPopCurrent)
STRAIT_THEIRS(current, cuCtxGetCurrent)
STRAIT_THEIRS(current_device, cuCtxGetDevice)
STRAIT_THEIRS(context_flags, cuCtxGetFlags)
STRAIT_THEIRS(set_context_flags, cuCtxSetFlags)
STRAIT_THEIRS(attribute, cuPointerGetAttribute)
STRAIT_THEIRS(attributes, cuPointerGetAttributes)
STRAIT_THEIRS(set_attribute, cuPointerSetAttribute)
STRAIT_THEIRS(address_range, cuMemGetAddressRange)
STRAIT_THEIRS(range_handle, cuMemGetHandleForAddressRange)
STRAIT_THEIRS(alloc, cuMemAlloc)
STRAIT_THEIRS(free, cuMemFree)
STRAIT_THEIRS(host_alloc, cuMemHostAlloc)
STRAIT_THEIRS(host_free, cuMemFreeHost)
STRAIT_THEIRS(host_register, cuMemHostRegister)
STRAIT_THEIRS(host_unregister, cuMemHostUnregister)
STRAIT_THEIRS(host_pointer, cuMemHostGetDevicePointer)
STRAIT_THEIRS(ipc_get, cuIpcGetMemHandle)
STRAIT_THEIRS(ipc_open, cuIpcOpenMemHandle)
STRAIT_THEIRS(ipc_close, cuIpcCloseMemHandle)
STRAIT_THEIRS(retain_handle, cuMemRetainAllocationHandle)
STRAIT_THEIRS(release_handle, cuMemRelease)
STRAIT_THEIRS(export_handle, cuMemExportToShareableHandle)
STRAIT_THEIRS(import_handle, cuMemImportFromShareableHandle)
STRAIT_THEIRS(reserve, cuMemAddressReserve)
STRAIT_THEIRS(unreserve, cuMemAddressFree)
STRAIT_THEIRS(map, cuMemMap)
STRAIT_THEIRS(unmap, cuMemUnmap)
STRAIT_THEIRS(set_access, cuMemSetAccess)
STRAIT_THEIRS(pool_export, cuMemPoolExportToShareableHandle)
STRAIT_THEIRS(pool_import, cuMemPoolImportFromShareableHandle)
STRAIT_THEIRS(pool_export_pointer, cuMemPoolExportPointer)
STRAIT_THEIRS(pool_import_pointer, cuMemPoolImportPointer)
STRAIT_THEIRS(pool_destroy, cuMemPoolDestroy)
STRAIT_THEIRS(copy_in, cuMemcpyHtoDAsync)
STRAIT_THEIRS(copy_out, cuMemcpyDtoHAsync)
STRAIT_THEIRS(copy_inside, cuMemcpyDtoDAsync)
STRAIT_THEIRS(copy_any, cuMemcpyAsync)
STRAIT_THEIRS(copy_peer, cuMemcpyPeerAsync)
STRAIT_THEIRS(stream_create, cuStreamCreate)
STRAIT_THEIRS(stream_wait, cuStreamSynchronize)
STRAIT_THEIRS(stream_destroy, cuStreamDestroy)
STRAIT_THEIRS(event_create, cuEventCreate)
STRAIT_THEIRS(event_record, cuEventRecord)
STRAIT_THEIRS(event_query, cuEventQuery)
STRAIT_THEIRS(event_destroy, cuEventDestroy)
STRAIT_THEIRS(flush_writes, cuFlushGPUDirectRDMAWrites)
// cuMemAdvise and cuMemPrefetchAsync are asked for in the shape of CUDA 8, which headers since 13.0 no longer show.
static_assert(std::is_same_v<decltype(Shapes::advise), CuResult (*)(Pointer, std::size_t, int, CuDevice)>);
static_assert(std::is_same_v<decltype(Shapes::prefetch), CuResult (*)(Pointer, std::size_t, CuDevice, Stream)>);

static_assert(sizeof(IpcHandle) == sizeof(CUipcMemHandle) && sizeof(PoolExport) == sizeof(CUmemPoolPtrExportData));
static_assert(sizeof(Location) == sizeof(CUmemLocation) && sizeof(AccessDesc) == sizeof(CUmemAccessDesc));

TEST(CudaSignatures, ConstantsAreTheHeaders) {
  EXPECT_EQ(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(kOperatingSystem, CUDA_ERROR_OPERATING_SYSTEM);
  EXPECT_EQ(kNotFound, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(kNotReady, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(kContextDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(kPtrContext, CU_POINTER_ATTRIBUTE_CONTEXT);
  EXPECT_EQ(kPtrMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
  EXPECT_EQ(kPtrSyncMemops, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
  EXPECT_EQ(kPtrBufferId, CU_POINTER_ATTRIBUTE_BUFFER_ID);
  EXPECT_EQ(kPtrIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
  EXPECT_EQ(kPtrDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  EXPECT_EQ(kPtrLegacyIpc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
  EXPECT_EQ(kPtrRangeStart, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
  EXPECT_EQ(kPtrRangeSize, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
  EXPECT_EQ(kPtrAllowedHandles, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
  EXPECT_EQ(kPtrRdmaCapable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
  EXPECT_EQ(kPtrPool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
  EXPECT_EQ(kPtrMappingSize, CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
  EXPECT_EQ(kPtrMappingBase, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
  EXPECT_EQ(kPtrBlockId, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);
  EXPECT_EQ(kDevHostPageTables, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
  EXPECT_EQ(kDevRdmaSupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
  EXPECT_EQ(kDevFlushOptions, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
  EXPECT_EQ(kDevWritesOrdering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
  EXPECT_EQ(kDevDmaBuf, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
  EXPECT_EQ(kDevHostNuma, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
  EXPECT_EQ(kContextSyncMemops, CU_CTX_SYNC_MEMOPS);
  EXPECT_EQ(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(kEventNoTiming, CU_EVENT_DISABLE_TIMING);
  EXPECT_EQ(kHandlePosixFd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  EXPECT_EQ(kHandleFabric, CU_MEM_HANDLE_TYPE_FABRIC);
  EXPECT_EQ(kRangeDmaBuf, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
  EXPECT_EQ(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EXPECT_EQ(kHostPortable, static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE));
  EXPECT_EQ(kIpcLazyPeer, static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT_EQ(kFlushToOwner, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
  EXPECT_EQ(kFlushCurrentContext, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
}

}  // namespace
}  // namespace strait::buffer::cuda
