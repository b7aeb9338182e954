// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver interface that strait calls, written down here so that it builds without a toolkit.
// Checked against cuda.h by signatures_test.cpp where there is one.
//
// Names are the driver's. Functions with several shapes are taken in the one named by the version beside them: from the
// library's export table the plain name is the *oldest* shape (cuMemAlloc is the 32-bit one).
#pragma once

#include <cstddef>
#include <cstdint>

namespace strait::buffer::cuda {

using CuResult = int;
using CuDevice = int;
using Pointer = std::uint64_t;
using Context = struct ContextOpaque*;
using Stream = struct StreamOpaque*;
using Event = struct EventOpaque*;
using Pool = struct PoolOpaque*;
using Handle = std::uint64_t;  // CUmemGenericAllocationHandle

struct IpcHandle {
  char bytes[64];
};
struct PoolExport {
  unsigned char bytes[64];
};
struct Location {
  int type;
  int id;
};
struct AccessDesc {
  Location location;
  int flags;
};

// CUresult
inline constexpr int kOk = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidContext = 201;
inline constexpr int kOperatingSystem = 304;
inline constexpr int kNotFound = 500;
inline constexpr int kInvalidHandle = 400;
inline constexpr int kNotReady = 600;
inline constexpr int kContextDestroyed = 709;
inline constexpr int kAlreadyRegistered = 712;
inline constexpr int kNotSupported = 801;

// CUpointer_attribute
inline constexpr int kPtrContext = 1;
inline constexpr int kPtrMemoryType = 2;
inline constexpr int kPtrSyncMemops = 6;
inline constexpr int kPtrBufferId = 7;
inline constexpr int kPtrIsManaged = 8;
inline constexpr int kPtrDeviceOrdinal = 9;
inline constexpr int kPtrLegacyIpc = 10;
inline constexpr int kPtrRangeStart = 11;
inline constexpr int kPtrRangeSize = 12;
inline constexpr int kPtrAllowedHandles = 14;
inline constexpr int kPtrRdmaCapable = 15;
inline constexpr int kPtrPool = 17;
inline constexpr int kPtrMappingSize = 18;
inline constexpr int kPtrMappingBase = 19;
inline constexpr int kPtrBlockId = 20;

inline constexpr unsigned kTypeHost = 1;
inline constexpr unsigned kTypeDevice = 2;

// CUdevice_attribute
inline constexpr int kDevHostPageTables = 100;  // the GPU walks the CPU's page tables: a coherent part
inline constexpr int kDevRdmaSupported = 116;
inline constexpr int kDevFlushOptions = 117;
inline constexpr int kDevWritesOrdering = 118;
inline constexpr int kDevDmaBuf = 124;
inline constexpr int kDevHostNuma = 134;

inline constexpr unsigned kContextSyncMemops = 0x80;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventNoTiming = 2;
inline constexpr unsigned kHostPortable = 1;  // pinned for every context
inline constexpr unsigned kHostDeviceMap = 2;
inline constexpr unsigned kHostIoMemory = 4;
inline constexpr int kHandlePosixFd = 1;
inline constexpr int kHandleFabric = 8;
inline constexpr int kRangeDmaBuf = 1;
inline constexpr unsigned long long kRangePcieMapping = 1;
inline constexpr int kLocationDevice = 1;
inline constexpr int kAccessReadWrite = 3;
inline constexpr unsigned kIpcLazyPeer = 1;
inline constexpr CuDevice kCpu = -1;
inline constexpr int kFlushCurrentContext = 0;
inline constexpr int kFlushToOwner = 100;

// X(member, name, version, symbol, required, signature). `version`: the driver interface in which that shape came.
// `symbol`: what dlsym calls that shape, for drivers without cuGetProcAddress_v2.
#define STRAIT_CUDA_FUNCTIONS(X)                                                                                     \
  X(init, "cuInit", 2000, "cuInit", true, (unsigned))                                                                \
  X(driver_version, "cuDriverGetVersion", 2020, "cuDriverGetVersion", true, (int*))                                  \
  X(error_name, "cuGetErrorName", 6000, "cuGetErrorName", false, (CuResult, const char**))                           \
  X(device_count, "cuDeviceGetCount", 2000, "cuDeviceGetCount", true, (int*))                                        \
  X(device_get, "cuDeviceGet", 2000, "cuDeviceGet", true, (CuDevice*, int))                                          \
  X(device_name, "cuDeviceGetName", 2000, "cuDeviceGetName", false, (char*, int, CuDevice))                          \
  X(device_attribute, "cuDeviceGetAttribute", 2000, "cuDeviceGetAttribute", true, (int*, int, CuDevice))             \
  X(device_pci, "cuDeviceGetPCIBusId", 4010, "cuDeviceGetPCIBusId", true, (char*, int, CuDevice))                    \
  X(device_memory, "cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2", false, (std::size_t*, CuDevice))                 \
  X(memory_info, "cuMemGetInfo", 3020, "cuMemGetInfo_v2", false, (std::size_t*, std::size_t*))                       \
  X(primary_retain, "cuDevicePrimaryCtxRetain", 7000, "cuDevicePrimaryCtxRetain", true, (Context*, CuDevice))        \
  X(primary_release, "cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2", true, (CuDevice))           \
  X(primary_state, "cuDevicePrimaryCtxGetState", 7000, "cuDevicePrimaryCtxGetState", true,                           \
    (CuDevice, unsigned*, int*))                                                                                     \
  X(push, "cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2", true, (Context))                                          \
  X(pop, "cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2", true, (Context*))                                            \
  X(current, "cuCtxGetCurrent", 4000, "cuCtxGetCurrent", true, (Context*))                                           \
  X(current_device, "cuCtxGetDevice", 2000, "cuCtxGetDevice", true, (CuDevice*))                                     \
  X(context_flags, "cuCtxGetFlags", 7000, "cuCtxGetFlags", false, (unsigned*))                                       \
  X(set_context_flags, "cuCtxSetFlags", 12010, "cuCtxSetFlags", false, (unsigned))                                   \
  X(context_id, "cuCtxGetId", 12000, "cuCtxGetId", false, (Context, unsigned long long*))                            \
  X(attribute, "cuPointerGetAttribute", 4000, "cuPointerGetAttribute", true, (void*, int, Pointer))                  \
  X(attributes, "cuPointerGetAttributes", 7000, "cuPointerGetAttributes", true, (unsigned, int*, void**, Pointer))   \
  X(set_attribute, "cuPointerSetAttribute", 6000, "cuPointerSetAttribute", false, (const void*, int, Pointer))       \
  X(address_range, "cuMemGetAddressRange", 3020, "cuMemGetAddressRange_v2", true, (Pointer*, std::size_t*, Pointer)) \
  X(range_handle, "cuMemGetHandleForAddressRange", 11070, "cuMemGetHandleForAddressRange", false,                    \
    (void*, Pointer, std::size_t, int, unsigned long long))                                                          \
  X(alloc, "cuMemAlloc", 3020, "cuMemAlloc_v2", true, (Pointer*, std::size_t))                                       \
  X(free, "cuMemFree", 3020, "cuMemFree_v2", true, (Pointer))                                                        \
  X(host_alloc, "cuMemHostAlloc", 2020, "cuMemHostAlloc", false, (void**, std::size_t, unsigned))                    \
  X(host_free, "cuMemFreeHost", 2000, "cuMemFreeHost", false, (void*))                                               \
  X(host_register, "cuMemHostRegister", 6050, "cuMemHostRegister_v2", false, (void*, std::size_t, unsigned))         \
  X(host_unregister, "cuMemHostUnregister", 4000, "cuMemHostUnregister", false, (void*))                             \
  X(host_pointer, "cuMemHostGetDevicePointer", 3020, "cuMemHostGetDevicePointer_v2", false,                          \
    (Pointer*, void*, unsigned))                                                                                     \
  X(ipc_get, "cuIpcGetMemHandle", 4010, "cuIpcGetMemHandle", false, (IpcHandle*, Pointer))                           \
  X(ipc_open, "cuIpcOpenMemHandle", 11000, "cuIpcOpenMemHandle_v2", false, (Pointer*, IpcHandle, unsigned))          \
  X(ipc_close, "cuIpcCloseMemHandle", 4010, "cuIpcCloseMemHandle", false, (Pointer))                                 \
  X(retain_handle, "cuMemRetainAllocationHandle", 11000, "cuMemRetainAllocationHandle", false, (Handle*, void*))     \
  X(release_handle, "cuMemRelease", 10020, "cuMemRelease", false, (Handle))                                          \
  X(export_handle, "cuMemExportToShareableHandle", 10020, "cuMemExportToShareableHandle", false,                     \
    (void*, Handle, int, unsigned long long))                                                                        \
  X(import_handle, "cuMemImportFromShareableHandle", 10020, "cuMemImportFromShareableHandle", false,                 \
    (Handle*, void*, int))                                                                                           \
  X(reserve, "cuMemAddressReserve", 10020, "cuMemAddressReserve", false,                                             \
    (Pointer*, std::size_t, std::size_t, Pointer, unsigned long long))                                               \
  X(unreserve, "cuMemAddressFree", 10020, "cuMemAddressFree", false, (Pointer, std::size_t))                         \
  X(map, "cuMemMap", 10020, "cuMemMap", false, (Pointer, std::size_t, std::size_t, Handle, unsigned long long))      \
  X(unmap, "cuMemUnmap", 10020, "cuMemUnmap", false, (Pointer, std::size_t))                                         \
  X(set_access, "cuMemSetAccess", 10020, "cuMemSetAccess", false,                                                    \
    (Pointer, std::size_t, const AccessDesc*, std::size_t))                                                          \
  X(pool_export, "cuMemPoolExportToShareableHandle", 11020, "cuMemPoolExportToShareableHandle", false,               \
    (void*, Pool, int, unsigned long long))                                                                          \
  X(pool_import, "cuMemPoolImportFromShareableHandle", 11020, "cuMemPoolImportFromShareableHandle", false,           \
    (Pool*, void*, int, unsigned long long))                                                                         \
  X(pool_export_pointer, "cuMemPoolExportPointer", 11020, "cuMemPoolExportPointer", false, (PoolExport*, Pointer))   \
  X(pool_import_pointer, "cuMemPoolImportPointer", 11020, "cuMemPoolImportPointer", false,                           \
    (Pointer*, Pool, PoolExport*))                                                                                   \
  X(pool_destroy, "cuMemPoolDestroy", 11020, "cuMemPoolDestroy", false, (Pool))                                      \
  X(copy_in, "cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2", true, (Pointer, const void*, std::size_t, Stream))   \
  X(copy_out, "cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2", true, (void*, Pointer, std::size_t, Stream))        \
  X(copy_inside, "cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2", true, (Pointer, Pointer, std::size_t, Stream))   \
  X(copy_any, "cuMemcpyAsync", 4000, "cuMemcpyAsync", true, (Pointer, Pointer, std::size_t, Stream))                 \
  X(copy_peer, "cuMemcpyPeerAsync", 4000, "cuMemcpyPeerAsync", true,                                                 \
    (Pointer, Context, Pointer, Context, std::size_t, Stream))                                                       \
  X(stream_create, "cuStreamCreate", 2000, "cuStreamCreate", true, (Stream*, unsigned))                              \
  X(stream_wait, "cuStreamSynchronize", 2000, "cuStreamSynchronize", true, (Stream))                                 \
  X(stream_destroy, "cuStreamDestroy", 4000, "cuStreamDestroy_v2", true, (Stream))                                   \
  X(event_create, "cuEventCreate", 2000, "cuEventCreate", true, (Event*, unsigned))                                  \
  X(event_record, "cuEventRecord", 2000, "cuEventRecord", true, (Event, Stream))                                     \
  X(event_query, "cuEventQuery", 2000, "cuEventQuery", true, (Event))                                                \
  X(event_destroy, "cuEventDestroy", 4000, "cuEventDestroy_v2", true, (Event))                                       \
  X(advise, "cuMemAdvise", 8000, "cuMemAdvise", false, (Pointer, std::size_t, int, CuDevice))                        \
  X(prefetch, "cuMemPrefetchAsync", 8000, "cuMemPrefetchAsync", false, (Pointer, std::size_t, CuDevice, Stream))     \
  X(flush_writes, "cuFlushGPUDirectRDMAWrites", 11030, "cuFlushGPUDirectRDMAWrites", false, (int, int))

}  // namespace strait::buffer::cuda
