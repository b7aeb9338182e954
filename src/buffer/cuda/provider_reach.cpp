// SPDX-License-Identifier: Apache-2.0
// CudaProvider: export, IPC, CPU mapping, advice, flush; what lets others reach the memory.
#include <algorithm>

#include "base/plugin_requirement.hpp"
#include "buffer/cuda/provider.hpp"
#include "sys/fd.hpp"
#include "sys/files.hpp"
#include "sys/mapping.hpp"

namespace strait::buffer::cuda {

Result<ExportedRange> CudaProvider::export_fd(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t flags) {
  if ((flags & ~STRAIT_EXPORT_PCIE_MAPPING) != 0)
    return fail(Code::unsupported, "CUDA memory: no export flags {:#x}", flags);
  STRAIT_TRY(const Held held, hold(address, length_bytes, "export"));
  if (held.found.managed) {
    return with_remedy(fail(Code::unsupported, "managed CUDA memory at {:#x} cannot be exported: it moves", address),
                       "Use cudaMalloc, or copy.");
  }
  if (!held.gpu->exports()) {
    return with_remedy(fail(Code::unsupported, "{} cannot export dma-bufs ({})", held.gpu->name(),
                            driver_.range_handle == nullptr ? "its driver is older than 11.7" : "attribute 124 is 0"),
                       "The open flavour of the NVIDIA kernel module and Linux 5.12 or later are needed.");
  }
  STRAIT_TRY(const Context context, context_for(held));
  const Pushed pushed(driver_, context);
  make_synchronous(held);
  // The driver takes whole pages only. What the pages hold beyond the range is in the descriptor but never registered.
  const Pointer first = address / page_bytes_ * page_bytes_;
  const std::uint64_t whole = sys::round_up(address + length_bytes - first, page_bytes_);
  int raw = -1;
  CuResult result = pushed.result();
  if (result == kOk) {
    result = driver_.range_handle(&raw, first, whole, kRangeDmaBuf,
                                  (flags & STRAIT_EXPORT_PCIE_MAPPING) != 0 ? kRangePcieMapping : 0);
  }
  if (result != kOk) {
    Error error = driver_.failed(result, fmt::format("export {} bytes at {:#x} of {}", whole, first, held.gpu->name()));
    if ((flags & STRAIT_EXPORT_PCIE_MAPPING) != 0 && (result == kNotSupported || result == kInvalidValue)) {
      error.code = Code::unsupported;
      error.remedy = "PCIe mappings are for coherent parts with a data-direct NIC: export without the flag.";
    }
    return error;
  }
  sys::Fd fd(raw);
  sys::close_on_exec(fd.get());
  const std::lock_guard lock(mutex_);
  fds_.insert_or_assign(fd.get(), whole);
  counts_.exports.add();
  return ExportedRange{fd.release(), address - first};
}

// Before a peer may read it: a synchronous copy must not return while its bytes are still on the way. Contexts that
// strait uses have that as a flag, which is also for memory of no context; memory of the program's own contexts, and
// drivers without the flag, are told of each allocation. One that refuses exports all the same.
void CudaProvider::make_synchronous(const Held& held) const {
  const bool by_context = held.gpu->context() != nullptr && held.gpu->sync_by_context() &&
                          (held.found.context == nullptr || held.found.context == held.gpu->context());
  if (by_context || driver_.set_attribute == nullptr) return;
  const unsigned yes = 1;
  (void)driver_.set_attribute(&yes, kPtrSyncMemops, held.extent.base);
}

void CudaProvider::close_fd(std::int32_t fd) {
  sys::Fd closed;  // after the lock
  const std::lock_guard lock(mutex_);
  if (fds_.erase(fd) == 0) {
    counts_.bad_fd_closes.add();  // not one of ours, or given back twice: closing it could close somebody else's file
    return;
  }
  closed = sys::Fd(fd);
  counts_.fd_closes.add();
}

Result<strait_ipc_handle> CudaProvider::ipc_export(std::uint64_t address, std::uint64_t length_bytes) {
  STRAIT_TRY(const Held held, hold(address, length_bytes, "share with another process"));
  STRAIT_TRY(const Context context, context_for(held));
  const Pushed pushed(driver_, context);
  if (pushed.result() != kOk) return driver_.failed(pushed.result(), "use a context of " + held.gpu->name());
  STRAIT_TRY(strait_ipc_handle handle, ipc_->make(address, length_bytes, held.found, held.extent));
  if (handle.fd >= 0) {
    sys::close_on_exec(handle.fd);
    const std::lock_guard lock(mutex_);
    fds_.insert_or_assign(handle.fd, length_bytes);
  }
  counts_.ipc_exports.add();
  return handle;
}

Result<std::uint64_t> CudaProvider::ipc_open(std::uint32_t device, const strait_ipc_handle& handle) {
  STRAIT_TRY(Gpu* const gpu, gpu_at(device));
  STRAIT_CHECK(gpu->attach(true));  // asked for by name
  return ipc_->open(*gpu, handle);
}

Status CudaProvider::ipc_close(std::uint64_t address) {
  return ipc_->close(address);
}

Result<void*> CudaProvider::map_cpu(std::uint64_t address, std::uint64_t length_bytes) {
  STRAIT_TRY(const Held held, hold(address, length_bytes, "map"));
  if (held.found.managed) return reinterpret_cast<void*>(address);
  STRAIT_TRY(const Context context, context_for(held));
  const Pushed pushed(driver_, context);
  if (pushed.result() != kOk) return driver_.failed(pushed.result(), "use a context of " + held.gpu->name());
  const bool remappable = Pointers::is_vmm(held.found, held.extent);
  return maps_->map(*held.gpu, address, length_bytes, remappable ? 0 : held.found.buffer_id, held.extent.rdma_capable);
}

void CudaProvider::unmap_cpu(void* cpu_address) {
  (void)maps_->unmap(cpu_address);
}

Result<std::uint32_t> CudaProvider::advise(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t advice,
                                           std::uint32_t place) {
  if (advice == 0 || advice > STRAIT_ADVICE_LAST) return fail(Code::invalid, "there is no memory advice {}", advice);
  if (advice == STRAIT_ADVICE_OWN_PAGES) return STRAIT_ADVICE_UNSUPPORTED;
  if (place != STRAIT_HOST_PLACE && place >= gpus_.size())
    return fail(Code::invalid, "there is no device {} to give advice about: cuda has {}", place, gpus_.size());
  STRAIT_TRY(const Held held, hold(address, length_bytes, "advise on"));
  // Device memory stays where it is, whatever is said about it.
  if (!held.found.managed) return STRAIT_ADVICE_IGNORED;
  const CuDevice device = place == STRAIT_HOST_PLACE ? kCpu : gpus_[place]->device();
  STRAIT_TRY(const Context context, context_for(held));
  const Pushed pushed(driver_, context);
  CuResult result = pushed.result();
  if (advice == STRAIT_ADVICE_WILL_NEED) {
    if (driver_.prefetch == nullptr || held.gpu->context() == nullptr) return STRAIT_ADVICE_UNSUPPORTED;
    if (result == kOk) result = driver_.prefetch(address, length_bytes, device, held.gpu->stream(Direction::in));
  } else {
    if (driver_.advise == nullptr) return STRAIT_ADVICE_UNSUPPORTED;
    // The driver's numbers are ours.
    if (result == kOk) result = driver_.advise(address, length_bytes, static_cast<int>(advice), device);
  }
  constexpr CuResult kInvalidDevice = 101;  // a part without concurrent managed access takes no place
  if (result == kNotSupported || result == kInvalidDevice) return STRAIT_ADVICE_UNSUPPORTED;
  if (result != kOk) return driver_.failed(result, fmt::format("take advice {} on {:#x}", advice, address));
  counts_.advice.add();
  return STRAIT_ADVICE_DONE;
}

Result<strait_flush_need> CudaProvider::flush(std::uint32_t device, bool perform) {
  STRAIT_TRY(Gpu* const gpu, gpu_at(device));
  strait_flush_need out{};
  gpu->flush_rule(out);
  if (!perform || out.need != STRAIT_FLUSH_BY_CALL) return out;
  STRAIT_CHECK(gpu->attach(false));
  const Pushed pushed(driver_, gpu->context());
  CuResult result = pushed.result();
  if (result == kOk) result = driver_.flush_writes(kFlushCurrentContext, kFlushToOwner);
  if (result != kOk) return driver_.failed(result, "flush peers' writes to " + gpu->name());
  out.done = 1;
  return out;
}

Result<std::uint64_t> CudaProvider::reach_host(std::uint32_t device, void* host, std::uint64_t length_bytes,
                                               std::uint32_t flags) {
  if ((flags & ~STRAIT_HOST_IO_MEMORY) != 0)
    return fail(Code::unsupported, "CUDA knows no way {:#x} to register host memory", flags);
  if (driver_.host_register == nullptr || driver_.host_unregister == nullptr || driver_.host_pointer == nullptr)
    return fail(Code::unsupported, "this driver registers no host memory");
  STRAIT_TRY(Gpu* const gpu, gpu_at(device));
  STRAIT_CHECK(gpu->attach(true));  // asked for by name, as an allocation is
  const bool registers = (flags & STRAIT_HOST_IO_MEMORY) != 0;
  const std::string what = fmt::format("register {} bytes of {} at {} for {}", length_bytes,
                                       registers ? "I/O memory" : "host memory", host, gpu->name());
  const Pushed pushed(driver_, gpu->context());
  CuResult result = pushed.result();
  // Memory of cuMemHostAlloc, or registered by the program: it is reached already, and stays its owner's to undo.
  if (const auto known = result == kOk && !registers ? known_host(host, length_bytes) : std::nullopt) {
    const std::lock_guard lock(mutex_);
    borrowed_hosts_.insert(host);
    return *known;
  }
  if (result == kOk)
    result =
        driver_.host_register(host, length_bytes, kHostPortable | kHostDeviceMap | (registers ? kHostIoMemory : 0u));
  if (result == kAlreadyRegistered) {
    return with_remedy(driver_.failed(result, what),
                       "Somebody else registered a page of it (cudaHostRegister, cuMemHostAlloc): keep what is handed "
                       "to strait on pages of its own.");
  }
  if (result != kOk && registers) {
    return with_remedy(driver_.failed(result, what),
                       "Registering a NIC's doorbell page needs an NVIDIA driver that allows it (PeerMappingOverride=1 "
                       "for older ones), and a process that may.");
  }
  if (result != kOk) return driver_.failed(result, what);
  Pointer seen = 0;
  result = driver_.host_pointer(&seen, host, 0);
  if (result != kOk) {
    (void)driver_.host_unregister(host);
    return driver_.failed(result, fmt::format("find {} on {}", host, gpu->name()));
  }
  counts_.host_registered.add();
  return seen;
}

// Where devices see host memory that the driver knows, all of it as one piece; nothing: it does not. In a context.
std::optional<std::uint64_t> CudaProvider::known_host(void* host, std::uint64_t length_bytes) {
  Pointer first = 0, last = 0;
  if (driver_.host_pointer(&first, host, 0) != kOk) return std::nullopt;
  if (driver_.host_pointer(&last, static_cast<char*>(host) + length_bytes - 1, 0) != kOk) return std::nullopt;
  return last - first == length_bytes - 1 ? std::optional(first) : std::nullopt;
}

// Registered for all contexts, so any of them may undo it.
Status CudaProvider::release_host(void* host) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto borrowed = borrowed_hosts_.find(host); borrowed != borrowed_hosts_.end()) {
      borrowed_hosts_.erase(borrowed);
      return {};
    }
  }
  if (driver_.host_unregister == nullptr) return fail(Code::unsupported, "this driver registers no host memory");
  const auto attached =
      std::find_if(gpus_.begin(), gpus_.end(), [](const auto& gpu) { return gpu->context() != nullptr; });
  if (attached == gpus_.end())
    return fail(Code::gone, "no context is left that could let go of host memory at {}", host);
  const Pushed pushed(driver_, (*attached)->context());
  CuResult result = pushed.result();
  if (result == kOk) result = driver_.host_unregister(host);
  if (result != kOk) return driver_.failed(result, fmt::format("let go of host memory at {}", host));
  counts_.host_released.add();
  return {};
}

std::string CudaProvider::counters() const {
  const OpenedHandles::Counts handles = ipc_->counts();
  const Copies::Counts& copies = copies_->counts();
  std::size_t live = 0;
  std::size_t live_fds = 0;
  {
    const std::lock_guard lock(mutex_);
    live = allocations_.size();
    live_fds = fds_.size();
  }
  const CpuMaps::Timed timed = maps_->timed();
  const auto attached =
      std::count_if(gpus_.begin(), gpus_.end(), [](const auto& gpu) { return gpu->context() != nullptr; });
  return fmt::format(
      "opens={},attached={},allocations={},frees={},live_allocations={},exports={},fd_closes={},live_fds={},"
      "bad_fd_closes={},copies={},copies_done={},copies_failed={},copies_by_cpu={},bytes_copied={},ipc_exports={},"
      "ipc_opens={},ipc_hits={},ipc_closes={},ipc_open_now={},cpu_maps={},cpu_windows={},cpu_timed={},cpu_in_most={},"
      "cpu_out_most={},"
      "advice={},port_copies={},host_registered={},"
      "host_released={}",
      gpus_.size(), attached, counts_.allocations.load(), counts_.frees.load(), live, counts_.exports.load(),
      counts_.fd_closes.load(), live_fds, counts_.bad_fd_closes.load(), copies.started.load(), copies.finished.load(),
      copies.failed.load(), copies.by_cpu.load(), copies.bytes.load(), counts_.ipc_exports.load(), handles.opens,
      handles.hits, handles.closes, handles.open_now, maps_->live(), maps_->windows(), timed.devices, timed.most.in,
      timed.most.out, counts_.advice.load(), port_.used(), counts_.host_registered.load(),
      counts_.host_released.load());
}

bool CudaProvider::requirement(CudaProvider* open, std::uint32_t index, strait_requirement& out) {
  using plugin::met;
  const auto driver = Driver::get();
  if (index == 0) {
    return plugin::say(out, "libcuda.so.1, and a device", met(driver.has_value()), 0,
                       driver ? (*driver)->version_text() : driver.error().text);
  }
  if (!driver) return false;
  switch (index) {
    case 1: {
      const bool there = (*driver)->range_handle != nullptr;
      return plugin::say(out, "cuMemGetHandleForAddressRange (driver 11.7 or later)", met(there),
                         STRAIT_CAN_EXPORT_DMABUF, there ? "present" : "the driver is older");
    }
    case 2: {
      bool all = true;
      std::string text = "no provider is open";
      if (open != nullptr) {
        text = "attribute 124 is 1 on all devices";
        for (const auto& gpu : open->gpus_) {
          if (gpu->exports()) continue;
          all = false;
          text = fmt::format("attribute 124 is 0 on {}: closed kernel module, or Linux before 5.12", gpu->name());
        }
      }
      return plugin::say(out, "dma-buf export by the kernel module",
                         open == nullptr ? std::uint32_t{STRAIT_REQUIREMENT_UNKNOWN} : met(all),
                         STRAIT_CAN_EXPORT_DMABUF, text);
    }
    case 3: {
      const std::string version = sys::read_small_file("/sys/module/nvidia_peermem/version");
      return plugin::say(out, "nvidia_peermem kernel module", met(!version.empty()), STRAIT_CAN_PEER_MEMORY,
                         version.empty() ? "not loaded; dma-buf does not need it"
                                         : "loaded, which does not yet mean registered with ib_core");
    }
    case 4: {
      if (open == nullptr) return false;
      bool maps = false;
      std::string text;
      for (const auto& gpu : open->gpus_) {
        maps = maps || gpu->maps_dmabuf();
        if (text.empty()) text = gpu->no_map_because();
      }
      const std::string no_module = open->maps_->no_gdrcopy_because();
      return plugin::say(
          out, "CPU mapping: driver 13.3 or later, or gdrcopy", met(maps || no_module.empty()), STRAIT_CAN_MAP_CPU,
          maps || no_module.empty()
              ? fmt::format("{}; {}", maps ? "dma-bufs can be mapped" : "by gdrcopy", open->maps_->limits_text(0))
              : fmt::format("by dma-buf: {}; by gdrcopy: {}", text, no_module));
    }
    default: return false;
  }
}

}  // namespace strait::buffer::cuda
