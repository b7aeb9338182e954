// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/provider.hpp"

#include "buffer/config.hpp"
#include "sys/fd.hpp"
#include "sys/process.hpp"

namespace strait::buffer::cuda {

CudaProvider::CudaProvider(const Driver& driver, const ProviderConfig& config, ProcessToken token)
    : driver_(driver),
      pointers_(driver),
      page_bytes_(sys::page_bytes()),
      maps_(std::make_unique<CpuMaps>(driver, page_bytes_, config.cpu_map, config.cpu_copies)),
      ipc_(std::make_unique<Ipc>(driver, pointers_, config.ipc_cache, token)),
      copies_(std::make_unique<Copies>(driver, pointers_, gpus_, *maps_)),
      port_(*this) {}

Result<std::unique_ptr<CudaProvider>> CudaProvider::open(std::string_view config) {
  STRAIT_TRY(const ProviderConfig parsed, ProviderConfig::parse(config, "cuda"));
  STRAIT_TRY(const Driver* driver, Driver::get());
  ProcessToken token{};
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(token))));
  std::unique_ptr<CudaProvider> made(new CudaProvider(*driver, parsed, token));
  int count = 0;
  if (const CuResult result = driver->device_count(&count); result != kOk)
    return driver->failed(result, "count CUDA devices");
  for (int i = 0; i < count; ++i) {
    STRAIT_TRY(auto gpu, Gpu::open(*driver, i));
    made->gpus_.push_back(std::move(gpu));
  }
  return made;
}

CudaProvider::~CudaProvider() {
  if (in_child()) {
    (void)copies_.release();
    (void)ipc_.release();
    (void)maps_.release();
    for (auto& gpu : gpus_) (void)gpu.release();
    return;
  }
  copies_.reset();  // waits for what is queued
  ipc_.reset();
  maps_.reset();
  for (const auto& [base, device] : allocations_) (void)give_back(base, device);
}

Result<Gpu*> CudaProvider::gpu_at(std::uint32_t device) const {
  if (device >= gpus_.size()) return fail(Code::invalid, "there is no device {}: cuda has {}", device, gpus_.size());
  return gpus_[device].get();
}

Status CudaProvider::device_info(std::uint32_t device, strait_device_info& out) const {
  STRAIT_TRY(const Gpu* gpu, gpu_at(device));
  out = {};
  gpu->info(out);
  if (maps_->can_map(*gpu, (out.capabilities & STRAIT_CAN_PEER_MEMORY) != 0)) out.capabilities |= STRAIT_CAN_MAP_CPU;
  return {};
}

std::uint32_t CudaProvider::capabilities_of(const Found& found, const Extent& extent) const {
  const Gpu& gpu = *gpus_[static_cast<std::size_t>(found.ordinal)];
  std::uint32_t can = STRAIT_CAN_COPY;
  if (found.buffer_id != 0) can |= STRAIT_CAN_IDENTIFY;
  // Managed memory migrates: what is exported or pinned today is elsewhere tomorrow.
  if (found.managed) return can | STRAIT_CPU_ACCESSIBLE | STRAIT_CAN_ADVISE;
  // Whether a dma-buf can be made is not asked of attribute 15: pools and plain VMM export although it says 0.
  if (gpu.exports()) can |= STRAIT_CAN_EXPORT_DMABUF;
  if (maps_->can_map(gpu, extent.rdma_capable)) can |= STRAIT_CAN_MAP_CPU;
  if (extent.rdma_capable) can |= STRAIT_CAN_PEER_MEMORY;
  if (Ipc::ways(found, extent) != 0) can |= STRAIT_CAN_IPC;
  return can;
}

bool CudaProvider::claim(std::uint64_t address, Found& found, strait_claim& out) const {
  Extent extent;
  if (!pointers_.extent(address, found, extent)) return false;
  if (found.ordinal < 0 || static_cast<std::size_t>(found.ordinal) >= gpus_.size()) return false;
  out = {};
  out.base = extent.base;
  out.length_bytes = extent.length_bytes;
  out.device = static_cast<std::uint32_t>(found.ordinal);
  if (found.pinned) {
    out.sort = STRAIT_SORT_PINNED_HOST;
    out.identity = found.buffer_id;
    out.capabilities = STRAIT_CAN_COPY | STRAIT_CPU_ACCESSIBLE;
    out.cpu_address = extent.base;
    return true;
  }
  const bool vmm = Pointers::is_vmm(found, extent);
  out.identity = Pointers::identity_of(found, extent);
  out.block_identity = extent.block_id;
  out.capabilities = capabilities_of(found, extent);
  out.ipc_ways = Ipc::ways(found, extent);
  out.sort = found.managed            ? STRAIT_SORT_MANAGED
             : extent.pool != nullptr ? STRAIT_SORT_POOL
             : vmm                    ? STRAIT_SORT_VMM
                                      : STRAIT_SORT_DEVICE;
  if (found.managed) out.cpu_address = extent.base;
  return true;
}

bool CudaProvider::range(std::uint64_t address, strait_range& out) const {
  Found found;
  Extent extent;
  if (!pointers_.look(address, found) || !found.device || !pointers_.extent(address, found, extent)) return false;
  if (Pointers::is_vmm(found, extent)) extent = pointers_.run_around(found, extent);
  out = {extent.base, extent.length_bytes, pointers_.identity(extent.base, extent.length_bytes)};
  return true;
}

std::uint64_t CudaProvider::identity(std::uint64_t address, std::uint64_t length_bytes) const {
  return pointers_.identity(address, length_bytes);
}

Result<CudaProvider::Held> CudaProvider::hold(std::uint64_t address, std::uint64_t length_bytes,
                                              const char* what) const {
  if (length_bytes == 0) return fail(Code::invalid, "cannot {} 0 bytes at {:#x}", what, address);
  Held held;
  if (!pointers_.look(address, held.found) || !held.found.device ||
      !pointers_.extent(address, held.found, held.extent) || held.found.ordinal < 0 ||
      static_cast<std::size_t>(held.found.ordinal) >= gpus_.size()) {
    return fail(Code::invalid, "cannot {} {:#x}: it is not CUDA memory, freed or never allocated", what, address);
  }
  if (!pointers_.covers(address, length_bytes, held.found, held.extent)) {
    return fail(Code::invalid, "cannot {} {} bytes at {:#x}: they end past the allocation of {} bytes at {:#x}", what,
                length_bytes, address, held.extent.length_bytes, held.extent.base);
  }
  held.gpu = gpus_[static_cast<std::size_t>(held.found.ordinal)].get();
  return held;
}

Result<Context> CudaProvider::context_for(const Held& held) const {
  const Status attached = held.gpu->attach(false);
  if (attached) return held.gpu->context();
  if (held.found.context != nullptr) return held.found.context;
  Context current = nullptr;
  CuDevice device = -1;
  if (driver_.current(&current) == kOk && current != nullptr && driver_.current_device(&device) == kOk &&
      device == held.gpu->device()) {
    return current;
  }
  return attached.error();
}

// Pinned: a copy engine reads and writes it at full speed, where pageable memory goes through buffers of the driver.
Result<std::uint64_t> CudaProvider::allocate_pinned(std::uint64_t length_bytes) {
  if (driver_.host_alloc == nullptr || driver_.host_free == nullptr)
    return fail(Code::unsupported, "this driver pins no host memory");
  STRAIT_TRY(Gpu* const gpu, gpu_at(0));
  STRAIT_CHECK(gpu->attach(true));
  const Pushed pushed(driver_, gpu->context());
  CuResult result = pushed.result();
  void* memory = nullptr;
  if (result == kOk) result = driver_.host_alloc(&memory, length_bytes, kHostPortable);
  if (result != kOk) return driver_.failed(result, fmt::format("pin {} bytes of host memory", length_bytes));
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  const std::lock_guard lock(mutex_);
  allocations_.emplace(address, STRAIT_HOST_PLACE);
  counts_.allocations.add();
  return address;
}

Result<std::uint64_t> CudaProvider::allocate(std::uint32_t device, std::uint64_t length_bytes) {
  if (device == STRAIT_HOST_PLACE && length_bytes != 0) return allocate_pinned(length_bytes);
  STRAIT_TRY(Gpu* const gpu, gpu_at(device));
  if (length_bytes == 0) return fail(Code::invalid, "cannot allocate 0 bytes on {}", gpu->name());
  STRAIT_CHECK(gpu->attach(true));  // asked for by name: this is no side effect
  const Pushed pushed(driver_, gpu->context());
  CuResult result = pushed.result();
  Pointer address = 0;
  if (result == kOk) result = driver_.alloc(&address, length_bytes);
  if (result != kOk) return driver_.failed(result, fmt::format("allocate {} bytes on {}", length_bytes, gpu->name()));
  if (!gpu->sync_by_context() && driver_.set_attribute != nullptr) {
    const unsigned yes = 1;
    (void)driver_.set_attribute(&yes, kPtrSyncMemops, address);
  }
  maps_->owns(address);
  const std::lock_guard lock(mutex_);
  allocations_.emplace(address, device);
  counts_.allocations.add();
  return address;
}

CuResult CudaProvider::give_back(std::uint64_t address, std::uint32_t device) const {
  const bool pinned = device == STRAIT_HOST_PLACE;
  const Pushed pushed(driver_, gpus_[pinned ? 0 : device]->context());
  if (pushed.result() != kOk) return pushed.result();
  return pinned ? driver_.host_free(reinterpret_cast<void*>(address)) : driver_.free(address);
}

Status CudaProvider::free(std::uint64_t address) {
  std::uint32_t device = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end())
      return fail(Code::invalid, "{:#x} is not CUDA memory that strait allocated: freed already, or somebody else's",
                  address);
    device = found->second;
    allocations_.erase(found);
  }
  if (device != STRAIT_HOST_PLACE) {
    // Its windows first: a mapped dma-buf would keep the memory.
    Found found;
    Extent extent;
    const bool live = pointers_.look(address, found) && pointers_.extent(address, found, extent);
    maps_->disowns(address, live ? extent.length_bytes : 1);
  }
  const CuResult result = give_back(address, device);
  if (result != kOk) return driver_.failed(result, fmt::format("free {:#x}", address));
  counts_.frees.add();
  return {};
}

Result<std::uint64_t> CudaProvider::copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  return copies_->start(to, from, length_bytes);
}

std::int32_t CudaProvider::copy_done(std::uint64_t ticket) {
  return copies_->done(ticket);
}

Status CudaProvider::Port::read(std::uint64_t address, void* into, std::uint64_t length_bytes) {
  return owner_.copies_->run(reinterpret_cast<Pointer>(into), address, length_bytes);
}

// For all contexts, by any that is there: none is made for this alone.
Result<std::uint64_t> CudaProvider::Port::pin(Range pages) {
  for (std::uint32_t i = 0; i < owner_.device_count(); ++i) {
    if (!owner_.gpus_[i]->attach(false)) continue;
    return owner_.reach_host(i, reinterpret_cast<void*>(pages.address), pages.length_bytes, 0);
  }
  return fail(Code::unsupported, "no CUDA context is active yet");
}

Status CudaProvider::Port::write(std::uint64_t address, const void* from, std::uint64_t length_bytes) {
  return owner_.copies_->run(address, reinterpret_cast<Pointer>(from), length_bytes);
}

}  // namespace strait::buffer::cuda
