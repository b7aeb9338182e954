// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/ipc.hpp"

#include <cstring>
#include <utility>

#include "sys/fd.hpp"

namespace strait::buffer::cuda {
namespace {

constexpr char kLetter = 'c';

// The 64 bytes the driver makes lie at the front of the record's vendor part.
template <class Bytes>
void put_vendor(IpcRecord& record, const Bytes& bytes) {
  static_assert(sizeof bytes == 64);
  std::memcpy(record.vendor.data(), &bytes, sizeof bytes);
}
template <class Bytes>
Bytes get_vendor(const IpcRecord& record) {
  Bytes bytes{};
  static_assert(sizeof bytes == 64);
  std::memcpy(&bytes, record.vendor.data(), sizeof bytes);
  return bytes;
}
struct FabricHandle {
  unsigned char bytes[64];
};

// The driver has one word for a handle that was damaged and for one whose memory is no more.
Error perhaps_gone(Error error) {
  if (error.code == Code::invalid)
    error.remedy = "The process that made the handle may have ended, or freed the memory.";
  return error;
}

}  // namespace

std::uint32_t Ipc::ways(const Found& found, const Extent& extent) {
  if (!found.device || found.managed) return 0;
  if (extent.legacy_ipc) return STRAIT_IPC_BYTES;
  std::uint32_t all = 0;
  if (extent.pool == nullptr && (extent.allowed_handles & kHandleFabric) != 0) all |= STRAIT_IPC_FABRIC;
  if ((extent.allowed_handles & kHandlePosixFd) != 0) all |= STRAIT_IPC_FD;
  return all;
}

Result<strait_ipc_handle> Ipc::make(Pointer address, std::uint64_t length_bytes, const Found& found,
                                    const Extent& extent) {
  strait_ipc_handle out{};
  out.fd = -1;
  out.length_bytes = length_bytes;
  IpcRecord record;
  record.magic = IpcRecord::magic_of(kLetter);
  record.token = token_;
  record.base = extent.base;
  record.length_bytes = extent.length_bytes;
  record.offset = address - extent.base;
  record.identity = Pointers::identity_of(found, extent);
  const std::uint32_t can = ways(found, extent);
  const auto refused = [&](CuResult result) {
    return driver_.failed(result, fmt::format("make a handle of {} bytes at {:#x} for another process",
                                              extent.length_bytes, extent.base));
  };
  if ((can & STRAIT_IPC_BYTES) != 0 && driver_.ipc_get != nullptr) {
    IpcHandle raw{};
    if (const CuResult result = driver_.ipc_get(&raw, extent.base); result != kOk) return refused(result);
    record.sort = STRAIT_SORT_DEVICE;
    put_vendor(record, raw);
    out.way = STRAIT_IPC_BYTES;
  } else if (extent.pool != nullptr && (can & STRAIT_IPC_FD) != 0 && driver_.pool_export != nullptr) {
    // In this order: only memory of a pool that has been shared has a handle.
    if (const CuResult result = driver_.pool_export(&out.fd, extent.pool, kHandlePosixFd, 0); result != kOk)
      return refused(result);
    PoolExport raw{};
    if (const CuResult result = driver_.pool_export_pointer(&raw, extent.base); result != kOk) {
      const sys::Fd unused(std::exchange(out.fd, -1));
      return refused(result);
    }
    record.sort = STRAIT_SORT_POOL;
    put_vendor(record, raw);
    out.way = STRAIT_IPC_FD;
  } else if (extent.pool == nullptr && can != 0 && driver_.retain_handle != nullptr &&
             driver_.export_handle != nullptr) {
    if (address + length_bytes > extent.end()) {
      return with_remedy(
          fail(Code::unsupported,
               "{} bytes at {:#x} lie in several CUDA handles; a handle for another process names one", length_bytes,
               address),
          fmt::format("Make one for each mapping; this one is {} bytes at {:#x}.", extent.length_bytes, extent.base));
    }
    Handle handle = 0;
    if (const CuResult result = driver_.retain_handle(&handle, reinterpret_cast<void*>(address)); result != kOk)
      return refused(result);
    FabricHandle fabric{};
    const bool wide = (can & STRAIT_IPC_FABRIC) != 0 &&
                      driver_.export_handle(&fabric, handle, kHandleFabric, 0) == kOk;  // needs an IMEX channel
    const CuResult result = wide                         ? kOk
                            : (can & STRAIT_IPC_FD) == 0 ? kNotSupported
                                                         : driver_.export_handle(&out.fd, handle, kHandlePosixFd, 0);
    (void)driver_.release_handle(handle);
    if (result != kOk) return refused(result);
    record.sort = STRAIT_SORT_VMM;
    put_vendor(record, fabric);
    out.way = wide ? STRAIT_IPC_FABRIC : STRAIT_IPC_FD;
  } else {
    return with_remedy(
        fail(Code::unsupported, "the CUDA memory at {:#x} cannot be opened by another process", extent.base),
        found.managed            ? "Managed memory has no handle; use cudaMalloc."
        : extent.pool != nullptr ? "Make the pool with cudaMemHandleTypePosixFileDescriptor."
                                 : "Make the handle with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.");
  }
  record.write(out);
  return out;
}

Result<std::uint64_t> Ipc::open(Gpu& gpu, const strait_ipc_handle& handle) {
  STRAIT_TRY(const IpcRecord record, IpcRecord::read(handle, kLetter, "CUDA"));
  if (record.token == token_) {
    if (pointers_.identity(record.base, record.length_bytes) != record.identity)
      return fail(Code::gone, "the CUDA memory at {:#x} that this handle names was freed", record.base);
    const auto here = [&]() -> Result<OpenedHandles::Opened> {
      return OpenedHandles::Opened{record.base, record.length_bytes, [] {}};
    };
    return opened_.open({record.token, record.base, record.identity, 0}, record.offset, handle.length_bytes, here);
  }
  const OpenedHandles::Key key{record.token, record.base, record.identity, static_cast<std::uint32_t>(gpu.ordinal())};
  return opened_.open(key, record.offset, handle.length_bytes, [&]() -> Result<OpenedHandles::Opened> {
    const Pushed pushed(driver_, gpu.context());
    if (pushed.result() != kOk) return driver_.failed(pushed.result(), "use the context of " + gpu.name());
    if (record.sort == STRAIT_SORT_DEVICE && handle.way == STRAIT_IPC_BYTES) return open_legacy(gpu, record);
    if (record.sort == STRAIT_SORT_VMM) return open_handle(gpu, record, handle);
    if (record.sort == STRAIT_SORT_POOL && handle.way == STRAIT_IPC_FD) return open_pool(gpu, record, handle.fd);
    return fail(Code::invalid, "a CUDA memory handle of sort {} and way {} makes no sense", record.sort, handle.way);
  });
}

Result<OpenedHandles::Opened> Ipc::open_legacy(Gpu& gpu, const IpcRecord& record) {
  if (driver_.ipc_open == nullptr || driver_.ipc_close == nullptr)
    return fail(Code::unsupported, "this CUDA driver has no IPC");
  Pointer base = 0;
  if (const CuResult result = driver_.ipc_open(&base, get_vendor<IpcHandle>(record), kIpcLazyPeer); result != kOk)
    return perhaps_gone(driver_.failed(result, fmt::format("open memory of another process on {}", gpu.name())));
  return OpenedHandles::Opened{base, record.length_bytes, [this, &gpu, base] {
                                 const Pushed pushed(driver_, gpu.context());
                                 (void)driver_.ipc_close(base);
                               }};
}

Result<OpenedHandles::Opened> Ipc::open_handle(Gpu& gpu, const IpcRecord& record, const strait_ipc_handle& from) {
  if (driver_.import_handle == nullptr || driver_.map == nullptr || driver_.set_access == nullptr)
    return fail(Code::unsupported, "this CUDA driver has no virtual memory management");
  const auto refused = [&](CuResult result) {
    return perhaps_gone(driver_.failed(result, fmt::format("open a CUDA handle of another process on {}", gpu.name())));
  };
  Handle handle = 0;
  CuResult result = kInvalidValue;
  FabricHandle fabric = get_vendor<FabricHandle>(record);
  if (from.way == STRAIT_IPC_FABRIC) {
    result = driver_.import_handle(&handle, &fabric, kHandleFabric);
  } else if (from.way == STRAIT_IPC_FD && from.fd >= 0) {
    result =
        driver_.import_handle(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(from.fd)), kHandlePosixFd);
  }
  if (result != kOk) return refused(result);
  const std::uint64_t length = record.length_bytes;
  Pointer base = 0;
  result = driver_.reserve(&base, length, 0, 0, 0);
  bool mapped = false;
  if (result == kOk) {
    result = driver_.map(base, length, 0, handle, 0);
    mapped = result == kOk;
    const AccessDesc access{{kLocationDevice, gpu.device()}, kAccessReadWrite};
    if (mapped) result = driver_.set_access(base, length, &access, 1);
    if (result != kOk) {
      if (mapped) (void)driver_.unmap(base, length);
      (void)driver_.unreserve(base, length);
    }
  }
  (void)driver_.release_handle(handle);  // the mapping keeps it
  if (result != kOk) return refused(result);
  return OpenedHandles::Opened{base, length, [this, &gpu, base, length] {
                                 const Pushed pushed(driver_, gpu.context());
                                 (void)driver_.unmap(base, length);
                                 (void)driver_.unreserve(base, length);
                               }};
}

Result<OpenedHandles::Opened> Ipc::open_pool(Gpu& gpu, const IpcRecord& record, int fd) {
  if (driver_.pool_import == nullptr || driver_.pool_import_pointer == nullptr || driver_.pool_destroy == nullptr)
    return fail(Code::unsupported, "this CUDA driver has no memory pools across processes");
  if (fd < 0) return fail(Code::invalid, "a CUDA pool's handle came without its descriptor");
  Pool pool = nullptr;
  CuResult result =
      driver_.pool_import(&pool, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)), kHandlePosixFd, 0);
  Pointer base = 0;
  PoolExport data = get_vendor<PoolExport>(record);
  if (result == kOk) {
    result = driver_.pool_import_pointer(&base, pool, &data);
    if (result != kOk) (void)driver_.pool_destroy(pool);
  }
  if (result != kOk)
    return perhaps_gone(driver_.failed(result, "open a CUDA pool of another process on " + gpu.name()));
  return OpenedHandles::Opened{base, record.length_bytes, [this, &gpu, base, pool] {
                                 const Pushed pushed(driver_, gpu.context());
                                 (void)driver_.free(base);
                                 (void)driver_.pool_destroy(pool);
                               }};
}

Status Ipc::close(std::uint64_t address) {
  if (opened_.close(address)) return {};
  return fail(Code::invalid, "{:#x} is not memory of another process that is open here", address);
}

}  // namespace strait::buffer::cuda
