// SPDX-License-Identifier: Apache-2.0
#include "buffer/gaudi/acquired.hpp"

#include <atomic>
#include <cerrno>

#include "sys/mapping.hpp"
#include "sys/pci.hpp"

namespace strait::buffer::gaudi {
namespace {

constexpr const char* kPoolName = "global_hbm";
constexpr std::uint32_t kExportFlags = 02 | 02000000;  // O_RDWR, O_CLOEXEC as the driver's interface has them
constexpr std::uint32_t kAcquiredDevice = UINT32_MAX;  // to SynapseAI: the one this process has

// Counted under one lock, so that a device is released before anybody tries to take it again.
struct Table {
  struct Entry {
    std::unique_ptr<Acquired> device;
    std::uint64_t users = 0;
  };
  std::mutex mutex;
  std::map<std::uint32_t, Entry> devices;  // by module

  std::shared_ptr<Acquired> share_locked(std::uint32_t module) {
    Entry& entry = devices[module];
    if (entry.device == nullptr) return nullptr;
    ++entry.users;
    return {entry.device.get(), [this, module](Acquired*) {
              const std::lock_guard lock(mutex);
              Entry& last = devices[module];
              if (--last.users == 0) last.device.reset();
            }};
  }
};
Table& table() {
  static auto* const one = new Table;
  return *one;
}

std::uint64_t next_identity() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

Error syn_failed(int status, const std::string& what, Code code = Code::device) {
  return fail(code, "cannot {}: SynapseAI answers {}", what, status);
}

}  // namespace

Result<std::shared_ptr<Acquired>> Acquired::take(const Libraries& libraries, const Slot& slot) {
  if (auto there = taken(libraries, slot)) return there;
  const std::lock_guard lock(table().mutex);
  std::unique_ptr<Acquired>& device = table().devices[slot.module].device;
  if (device == nullptr) {
    std::unique_ptr<Acquired> made(new Acquired(libraries, slot));
    STRAIT_CHECK(libraries.has_synapse ? made->take_by_synapse(slot) : made->take_by_thunk(slot));
    device = std::move(made);
  }
  return table().share_locked(slot.module);
}

std::shared_ptr<Acquired> Acquired::taken(const Libraries& libraries, const Slot& slot) {
  const std::lock_guard lock(table().mutex);
  std::unique_ptr<Acquired>& device = table().devices[slot.module].device;
  if (device == nullptr) device = adopted(libraries, slot);
  return table().share_locked(slot.module);
}

bool Acquired::somebody_has_one(const Libraries& libraries) {
  SynDeviceInfo info;
  return libraries.has_synapse && libraries.synapse.info(kAcquiredDevice, &info) == kSynOk;
}

// A framework of this process acquired it: its memory is recognised, the device stays the framework's.
std::unique_ptr<Acquired> Acquired::adopted(const Libraries& libraries, const Slot& slot) {
  if (!libraries.has_synapse) return nullptr;
  SynDeviceInfo info;
  if (libraries.synapse.info(kAcquiredDevice, &info) != kSynOk) return nullptr;
  char bus[64] = {};
  if (libraries.thunk.pci_bus_id(static_cast<int>(info.fd), bus, sizeof bus - 1) != 0) return nullptr;
  if (sys::pci_address(bus).value_or("") != slot.pci) return nullptr;
  std::unique_ptr<Acquired> device(new Acquired(libraries, slot));
  device->by_synapse_ = true;
  device->syn_id_ = info.device_id;
  device->fd_ = static_cast<int>(info.fd);
  return device->prepare() ? std::move(device) : nullptr;
}

Status Acquired::take_by_synapse(const Slot& slot) {
  const Synapse& synapse = libraries_.synapse;
  if (const int status = synapse.acquire_by_module(&syn_id_, slot.module); status != kSynOk) {
    return with_remedy(syn_failed(status, "acquire " + name_, Code::limit),
                       "A Gaudi has one owner process; a dma-buf that leaked keeps it busy too.");
  }
  by_synapse_ = own_device_ = true;
  SynDeviceInfo info;
  if (const int status = synapse.info(syn_id_, &info); status != kSynOk)
    return syn_failed(status, "ask for the descriptor of " + name_);
  fd_ = static_cast<int>(info.fd);
  return prepare();
}

Status Acquired::take_by_thunk(const Slot& slot) {
  const HlThunk& thunk = libraries_.thunk;
  // Negative: an errno.
  int fd = -ENODEV;
  if (!slot.pci.empty()) fd = thunk.open(kAnyDevice, slot.pci.c_str());
  if (fd < 0 && thunk.open_by_module != nullptr) fd = thunk.open_by_module(slot.module);
  if (fd < 0) {
    Error error = fail_errno(fd == -1 ? errno : -fd, fmt::format("hl-thunk cannot open {}", name_));
    error.remedy = "A Gaudi has one owner process; a dma-buf that leaked keeps it busy too.";
    return error;
  }
  fd_ = fd;
  own_device_ = true;
  return {};
}

Status Acquired::prepare() {
  const Scal& scal = libraries_.scal;
  void* handle = nullptr;
  if (scal.handle_from_fd(fd_, &handle) != 0) {
    if (const int status = scal.init(fd_, "", &handle, nullptr); status != 0)
      return fail(Code::device, "scal cannot open {}: {}", name_, status);
    own_scal_ = handle;
  }
  void* pool = nullptr;
  ScalPoolInfo info;
  if (scal.pool_by_name(handle, kPoolName, &pool) != 0 || scal.pool_info(pool, &info) != 0)
    return fail(Code::device, "scal knows no pool {} of {}", kPoolName, name_);
  pool_base_ = info.device_base;
  pool_bytes_ = info.total_bytes;
  pool_allocated_base_ = info.allocated_base;
  pool_identity_ = next_identity();
  for (void*& stream : streams_) {
    if (const int status = libraries_.synapse.stream_create(&stream, syn_id_, 0); status != kSynOk)
      return syn_failed(status, "make a stream on " + name_);
  }
  return {};
}

Acquired::~Acquired() {
  const Synapse& synapse = libraries_.synapse;
  for (const auto& [address, allocation] : allocations_) {
    if (by_synapse_) {
      (void)synapse.free(syn_id_, address, 0);
    } else {
      (void)libraries_.thunk.unmap(fd_, address);
      (void)libraries_.thunk.free(fd_, allocation.handle);
    }
  }
  for (void* const stream : streams_) {
    if (stream == nullptr) continue;
    (void)synapse.stream_wait(stream);
    (void)synapse.stream_destroy(stream);
  }
  pool_fd_.reset();  // first: it holds the device
  if (own_scal_ != nullptr && libraries_.scal.destroy != nullptr) libraries_.scal.destroy(own_scal_);
  if (!own_device_) return;
  (void)(by_synapse_ ? synapse.release(syn_id_) : libraries_.thunk.close(fd_));
}

bool Acquired::find(std::uint64_t address, GaudiMemory& out) const {
  const std::shared_lock lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin()) {
    const auto& [base, allocation] = *std::prev(after);
    if (address - base < allocation.length_bytes) {
      out = {base, allocation.length_bytes, allocation.identity, false};
      return true;
    }
  }
  // On a device of ours nobody else allocates; on a framework's everything in the pool is its.
  if (own_device_ || address - pool_base_ >= pool_bytes_) return false;
  out = pool();
  return true;
}

Result<std::uint64_t> Acquired::allocate(std::uint64_t length_bytes) {
  if (length_bytes > memory_bytes_)
    return fail(Code::limit, "cannot allocate {} bytes on {}: it has {}", length_bytes, name_, memory_bytes_);
  Allocation made;
  made.length_bytes = length_bytes;
  std::uint64_t address = 0;
  if (by_synapse_) {
    if (const int status = libraries_.synapse.malloc(syn_id_, length_bytes, 0, 0, &address); status != kSynOk)
      return syn_failed(status, fmt::format("allocate {} bytes on {}", length_bytes, name_),
                        status == kSynOutOfDeviceMemory ? Code::limit : Code::device);
  } else {
    const HlThunk& thunk = libraries_.thunk;
    made.handle =
        thunk.current ? thunk.alloc(fd_, length_bytes, 0, true, true) : thunk.alloc_2021(fd_, length_bytes, true, true);
    if (made.handle == 0) return fail(Code::limit, "hl-thunk cannot allocate {} bytes on {}", length_bytes, name_);
    address = thunk.map(fd_, made.handle, 0);
    if (address == 0) {
      (void)thunk.free(fd_, made.handle);
      return fail(Code::device, "hl-thunk cannot map {} bytes on {}", length_bytes, name_);
    }
  }
  const std::unique_lock lock(mutex_);
  made.identity = next_identity();
  allocations_[address] = made;
  return address;
}

Status Acquired::free(std::uint64_t address) {
  Allocation last;
  {
    const std::unique_lock lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end())
      return fail(Code::invalid, "{:#x} is not Gaudi memory that strait allocated: freed already, or somebody else's",
                  address);
    last = found->second;
    allocations_.erase(found);
  }
  if (by_synapse_) {
    if (const int status = libraries_.synapse.free(syn_id_, address, 0); status != kSynOk)
      return syn_failed(status, fmt::format("free {:#x}", address));
    return {};
  }
  // While a dma-buf of it is open the mapping cannot go: the driver says so.
  if (const int status = libraries_.thunk.unmap(fd_, address); status != 0)
    return fail_errno(status == -1 ? errno : -status, fmt::format("hl-thunk cannot unmap {:#x}", address));
  if (const int status = libraries_.thunk.free(fd_, last.handle); status != 0)
    return fail_errno(status == -1 ? errno : -status, fmt::format("hl-thunk cannot free {:#x}", address));
  return {};
}

Result<ExportedRange> Acquired::export_range(const GaudiMemory& memory, std::uint64_t address,
                                             std::uint64_t length_bytes) {
  const HlThunk& thunk = libraries_.thunk;
  // The pool's descriptor outlives a reset, the memory in it does not.
  if (thunk.status != nullptr && thunk.status(fd_) != 0) {
    return with_remedy(fail(Code::gone, "{} was reset: what was allocated on it is gone", name_),
                       "Free it, close the Node and open it again.");
  }
  const auto owned = [&](int raw, const char* what) -> Result<sys::Fd> {
    if (raw >= 0) return sys::Fd(raw);
    return fail_errno(raw == -1 ? errno : -raw, fmt::format("hl-thunk cannot export {} of {}", what, name_));
  };
  if (!by_synapse_) {
    std::uint64_t handle = 0;
    {
      const std::shared_lock lock(mutex_);
      const auto found = allocations_.find(memory.base);
      if (found != allocations_.end()) handle = found->second.handle;
    }
    const std::uint64_t whole = sys::round_up(memory.length_bytes, sys::page_bytes());
    int raw = -EOPNOTSUPP;
    if (thunk.current && thunk.export_mapped != nullptr) {
      raw = thunk.export_mapped(fd_, memory.base, whole, 0, kExportFlags);
    } else if (!thunk.current && thunk.export_by_handle != nullptr) {
      raw = thunk.export_by_handle(fd_, handle, whole, kExportFlags);
    }
    STRAIT_TRY(sys::Fd fd, owned(raw, "an allocation"));
    (void)length_bytes;
    return ExportedRange{fd.release(), address - memory.base};
  }
  const std::lock_guard lock(export_mutex_);
  if (!pool_fd_.valid()) {
    if (thunk.export_mapped == nullptr) return fail(Code::unsupported, "this hl-thunk cannot export mapped memory");
    // `addr` must be exactly what the driver mapped; where the program's part begins is an offset in it.
    STRAIT_TRY(pool_fd_, owned(thunk.export_mapped(fd_, pool_allocated_base_, pool_bytes_,
                                                   pool_base_ - pool_allocated_base_, kExportFlags),
                               "the pool"));
    ++pool_exports_;
  }
  STRAIT_TRY(sys::Fd fd, pool_fd_.duplicate());
  return ExportedRange{fd.release(), address - pool_base_};
}

Status Acquired::flush() const {
  if (libraries_.thunk.flush_writes == nullptr) return fail(Code::unsupported, "this hl-thunk has no flush");
  if (const int status = libraries_.thunk.flush_writes(fd_); status != 0)
    return fail_errno(status == -1 ? errno : -status, "hl-thunk cannot flush peers' writes to " + name_);
  return {};
}

std::uint64_t Acquired::free_bytes() const {
  std::uint64_t free_now = 0;
  std::uint64_t total = 0;
  if (!by_synapse_ || libraries_.synapse.memory_info(syn_id_, &free_now, &total) != kSynOk) return 0;
  return free_now;
}

}  // namespace strait::buffer::gaudi
