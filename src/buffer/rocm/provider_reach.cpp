// SPDX-License-Identifier: Apache-2.0
// RocmProvider: export, IPC, CPU mapping, advice, flush; what lets others reach the memory.
#include <cerrno>
#include <cstring>

#include "base/plugin_requirement.hpp"
#include "buffer/ipc_record.hpp"
#include "buffer/kernel_driver.hpp"
#include "buffer/rocm/provider.hpp"
#include "sys/fd.hpp"

namespace strait::buffer::rocm {
namespace {

constexpr char kRocmLetter = 'r';

}  // namespace

Result<ExportedRange> RocmProvider::export_fd(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t flags) {
  if ((flags & ~STRAIT_EXPORT_PCIE_MAPPING) != 0)
    return fail(Code::unsupported, "ROCm memory: no export flags {:#x}", flags);
  const bool pcie = (flags & STRAIT_EXPORT_PCIE_MAPPING) != 0;
  if (pcie && hsa_.export_dmabuf_v2 == nullptr)
    return fail(Code::unsupported, "this HSA runtime has no PCIe mappings: they come with ROCm 7");
  STRAIT_TRY(const Held held, hold(address, length_bytes, "export"));
  if (!exports_) {
    return with_remedy(fail(Code::unsupported, "this HSA runtime cannot export dma-bufs"),
                       "ROCm 5.6 or later and a kernel with P2PDMA are needed.");
  }
  int raw = -1;
  // Small allocations are carved from blocks: the offset is the runtime's to say, and is rarely 0.
  std::uint64_t offset = 0;
  const auto* const pointer = reinterpret_cast<const void*>(address);
  const HsaStatus status = pcie ? hsa_.export_dmabuf_v2(pointer, length_bytes, &raw, &offset, kExportPcieMapping)
                                : hsa_.export_dmabuf(pointer, length_bytes, &raw, &offset);
  if (status != kOk) {
    Error error = hsa_.failed(
        status, fmt::format("export {} bytes at {:#x} of {}", length_bytes, address, gpus_[held.device].name));
    // The runtime has one status for every failed system call.
    if (const auto spare = sys::Fd::copy_of(2); !spare) {
      error.code = Code::limit;
      error.sys_errno = EMFILE;
      error.remedy = "Out of file descriptors: look at ulimit -n.";
    }
    return error;
  }
  sys::close_on_exec(raw);
  const std::lock_guard lock(mutex_);
  fds_.insert_or_assign(raw, length_bytes);
  exported_.add();
  return ExportedRange{raw, offset};
}

void RocmProvider::close_fd(std::int32_t fd) {
  {
    const std::lock_guard lock(mutex_);
    if (fds_.erase(fd) == 0) {
      bad_fd_closes_.add();
      return;
    }
  }
  (void)hsa_.close_dmabuf(fd);  // the vendor's own closer
  fd_closes_.add();
}

Result<strait_ipc_handle> RocmProvider::ipc_export(std::uint64_t address, std::uint64_t length_bytes) {
  STRAIT_TRY(const Held held, hold(address, length_bytes, "share with another process"));
  if (hsa_.ipc_create == nullptr || hsa_.ipc_attach == nullptr || hsa_.ipc_detach == nullptr)
    return fail(Code::unsupported, "this HSA runtime has no IPC");
  IpcMemory raw;
  const HsaStatus status = hsa_.ipc_create(reinterpret_cast<void*>(held.block.base), held.block.length_bytes, &raw);
  if (status != kOk)
    return hsa_.failed(status, fmt::format("make a handle of {} bytes at {:#x} for another process",
                                           held.block.length_bytes, held.block.base));
  IpcRecord record;
  record.magic = IpcRecord::magic_of(kRocmLetter);
  record.token = token_;
  record.base = held.block.base;
  record.length_bytes = held.block.length_bytes;
  record.offset = address - held.block.base;
  record.identity = held.block.identity;
  record.sort = STRAIT_SORT_DEVICE;
  std::memcpy(record.vendor.data(), &raw, sizeof raw);
  strait_ipc_handle out{};
  out.way = STRAIT_IPC_BYTES;
  out.fd = -1;
  out.length_bytes = length_bytes;
  record.write(out);
  ipc_exports_.add();
  return out;
}

Result<std::uint64_t> RocmProvider::ipc_open(std::uint32_t device, const strait_ipc_handle& handle) {
  STRAIT_TRY(const Gpu* gpu, gpu_at(device));
  STRAIT_TRY(const IpcRecord record, IpcRecord::read(handle, kRocmLetter, "ROCm"));
  if (hsa_.ipc_attach == nullptr || hsa_.ipc_detach == nullptr)
    return fail(Code::unsupported, "this HSA runtime has no IPC");
  const bool own = record.token == token_;
  if (own && (record.identity == 0 || blocks_.identity(record.base, record.length_bytes) != record.identity))
    return fail(Code::gone, "the ROCm memory at {:#x} that this handle names was freed", record.base);
  const OpenedHandles::Key key{record.token, record.base, record.identity, own ? 0 : device};
  return opened_->open(key, record.offset, handle.length_bytes, [&]() -> Result<OpenedHandles::Opened> {
    if (own) return OpenedHandles::Opened{record.base, record.length_bytes, [] {}};
    IpcMemory raw;
    std::memcpy(&raw, record.vendor.data(), sizeof raw);
    void* base = nullptr;
    const HsaStatus status = hsa_.ipc_attach(&raw, record.length_bytes, 1, &gpu->agent, &base);
    if (status != kOk) {
      Error error = hsa_.failed(status, "open memory of another process on " + gpu->name);
      // One word for a handle that was damaged and for one whose memory is no more.
      if (error.code == Code::invalid)
        error.remedy = "The process that made the handle may have ended, or freed the memory.";
      return error;
    }
    return OpenedHandles::Opened{reinterpret_cast<std::uint64_t>(base), record.length_bytes,
                                 [this, base] { (void)hsa_.ipc_detach(base); }};
  });
}

Status RocmProvider::ipc_close(std::uint64_t address) {
  if (opened_->close(address)) return {};
  return fail(Code::invalid, "{:#x} is not memory of another process that is open here", address);
}

Result<void*> RocmProvider::map_cpu(std::uint64_t address, std::uint64_t length_bytes) const {
  STRAIT_TRY(const Held held, hold(address, length_bytes, "map"));
  if (held.block.host_base == 0) {
    return with_remedy(fail(Code::unsupported, "memory of {} has no address for the CPU", gpus_[held.device].name),
                       "A large BAR (Above 4G Decoding, resizable BAR) gives it one.");
  }
  return reinterpret_cast<void*>(held.block.host_base + (address - held.block.base));
}

Result<std::uint32_t> RocmProvider::advise(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t advice,
                                           std::uint32_t place) const {
  if (advice == 0 || advice > STRAIT_ADVICE_LAST) return fail(Code::invalid, "there is no memory advice {}", advice);
  if (advice == STRAIT_ADVICE_OWN_PAGES) return STRAIT_ADVICE_UNSUPPORTED;
  if (place != STRAIT_HOST_PLACE && place >= gpus_.size())
    return fail(Code::invalid, "there is no device {} to give advice about: rocm has {}", place, gpus_.size());
  STRAIT_CHECK(hold(address, length_bytes, "advise on"));
  return STRAIT_ADVICE_IGNORED;  // device memory stays where it is; managed memory is not the runtime's to recognise
}

Result<strait_flush_need> RocmProvider::flush(std::uint32_t device, bool) const {
  STRAIT_TRY(const Gpu* gpu, gpu_at(device));
  (void)gpu;
  strait_flush_need out{};
  out.need = STRAIT_FLUSH_BY_READ;
  plugin::put_text("writes wait in the HDP until it is flushed: read back through the NIC that wrote", out.text,
                   sizeof out.text);
  return out;
}

Result<std::uint64_t> RocmProvider::reach_host(std::uint32_t device, void* host, std::uint64_t length_bytes,
                                               std::uint32_t flags) {
  STRAIT_TRY(const Gpu* const gpu, gpu_at(device));
  if (flags != 0) {
    return fail(Code::unsupported, "HSA locks memory, not I/O memory: {} cannot be let at the registers of a device",
                gpu->name);
  }
  void* seen = nullptr;
  if (const HsaStatus status = hsa_.lock(host, length_bytes, nullptr, 0, &seen); status != kOk)  // none named: all
    return hsa_.failed(status, fmt::format("lock {} bytes of host memory at {}", length_bytes, host));
  host_registered_.add();
  return reinterpret_cast<std::uint64_t>(seen);
}

Status RocmProvider::release_host(void* host) {
  if (const HsaStatus status = hsa_.unlock(host); status != kOk)
    return hsa_.failed(status, fmt::format("unlock host memory at {}", host));
  host_released_.add();
  return {};
}

// Asked of the runtime, which answers between hsa_init and hsa_shut_down.
std::string RocmProvider::runtime_version() const {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::string text;
  if (hsa_.system_info(kSystemVersionMajor, &major) == kOk && hsa_.system_info(kSystemVersionMinor, &minor) == kOk)
    text = fmt::format("interface {}.{}", major, minor);
  const char* build = nullptr;
  if (hsa_.system_info(kSystemBuildVersion, &build) == kOk && build != nullptr)
    text += fmt::format("{}build {}", text.empty() ? "" : ", ", build);
  return text.empty() ? "it does not say" : text;
}

bool RocmProvider::requirement(RocmProvider* open, std::uint32_t index, strait_requirement& out) {
  using plugin::met;
  const auto hsa = Hsa::get();
  switch (index) {
    case 0:
      return plugin::say(out, "libhsa-runtime64.so.1", met(hsa.has_value()), 0,
                         !hsa              ? hsa.error().text
                         : open == nullptr ? "loaded"
                                           : open->runtime_version());
    case 1: {
      if (!hsa) return false;
      const bool there = (*hsa)->export_dmabuf != nullptr;
      return plugin::say(out, "hsa_amd_portable_export_dmabuf (ROCm 5.6 or later)", met(there),
                         STRAIT_CAN_EXPORT_DMABUF, there ? "present" : "this runtime is older");
    }
    case 2:
      if (!hsa) return false;
      return plugin::say(out, "a kernel that exports (system attribute 0x204)",
                         open == nullptr ? std::uint32_t{STRAIT_REQUIREMENT_UNKNOWN} : met(open->exports_),
                         STRAIT_CAN_EXPORT_DMABUF,
                         open == nullptr  ? "no provider is open"
                         : open->exports_ ? "it says yes; only a registration proves it"
                                          : "it says no: CONFIG_PCI_P2PDMA and CONFIG_DMABUF_MOVE_NOTIFY");
    case 3: {
      if (!hsa) return false;
      const bool there = (*hsa)->watch_free != nullptr && (*hsa)->unwatch_free != nullptr;
      return plugin::say(out, "hsa_amd_register_deallocation_callback", met(there),
                         STRAIT_CAN_IDENTIFY | STRAIT_CAN_WATCH, there ? "present" : "this runtime is older");
    }
    case 4:
      if (!hsa) return false;
      return plugin::say(
          out, "amdgpu kernel driver", open == nullptr ? std::uint32_t{STRAIT_REQUIREMENT_UNKNOWN} : met(true), 0,
          open == nullptr ? "no provider is open" : "the runtime has its devices; " + kernel_driver_text("amdgpu"));
    default: return false;
  }
}

std::string RocmProvider::counters() const {
  const OpenedHandles::Counts handles = opened_->counts();
  const std::lock_guard lock(mutex_);
  return fmt::format(
      "opens={},allocations={},frees={},live_allocations={},exports={},fd_closes={},live_fds={},bad_fd_closes={},"
      "ipc_exports={},ipc_opens={},ipc_hits={},ipc_closes={},ipc_open_now={},port_copies={},host_registered={},"
      "host_released={},{}",
      gpus_.size(), allocated_.load(), freed_.load(), allocations_.size(), exported_.load(), fd_closes_.load(),
      fds_.size(), bad_fd_closes_.load(), ipc_exports_.load(), handles.opens, handles.hits, handles.closes,
      handles.open_now, port_.used(), host_registered_.load(), host_released_.load(), copies_->counters());
}

}  // namespace strait::buffer::rocm
