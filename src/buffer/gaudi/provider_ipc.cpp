// SPDX-License-Identifier: Apache-2.0
// GaudiProvider: memory of another process's device, over the link.
#include <cstring>

#include "buffer/gaudi/provider.hpp"

namespace strait::buffer::gaudi {
namespace {

constexpr char kGaudiLetter = 'g';
constexpr std::uint64_t kTrialBytes = 64;

// The vendor's part of a handle.
struct FarDevice {
  char pci[32] = {};
  std::uint64_t pool_base = 0;
  std::uint64_t pool_bytes = 0;
};

std::uint64_t next_far_identity() {
  // Apart from the numbers of memory that was allocated here.
  static std::atomic<std::uint64_t> last{std::uint64_t{1} << 62};
  return ++last;
}

bool overlap(std::uint64_t base, std::uint64_t bytes, std::uint64_t other, std::uint64_t other_bytes) {
  return base < other + other_bytes && other < base + bytes;
}

}  // namespace

Result<strait_ipc_handle> GaudiProvider::ipc_export(std::uint64_t address, std::uint64_t length_bytes) {
  if (!linked_) {
    return with_remedy(
        fail(Code::unsupported, "the Gaudi memory at {:#x} cannot be opened by another process", address),
        "Links need SynapseAI, and two or more devices whose addresses differ.");
  }
  if (length_bytes == 0) return fail(Code::invalid, "cannot share 0 bytes at {:#x}", address);
  Found found;
  if (!find(address, found) || found.far || found.memory.pool)
    return fail(Code::invalid, "cannot share {:#x} with another process: it is not Gaudi memory that strait allocated",
                address);
  if (length_bytes > found.memory.base + found.memory.length_bytes - address)
    return fail(Code::invalid, "cannot share {} bytes at {:#x}: they end past the allocation of {} bytes at {:#x}",
                length_bytes, address, found.memory.length_bytes, found.memory.base);
  IpcRecord record;
  record.magic = IpcRecord::magic_of(kGaudiLetter);
  record.token = token_;
  record.base = found.memory.base;
  record.length_bytes = found.memory.length_bytes;
  record.offset = address - found.memory.base;
  record.identity = found.memory.identity;
  record.sort = STRAIT_SORT_DEVICE;
  FarDevice device;
  found.device->pci().copy(device.pci, sizeof device.pci - 1);
  device.pool_base = found.device->pool().base;
  device.pool_bytes = found.device->pool().length_bytes;
  static_assert(sizeof device <= sizeof record.vendor);
  std::memcpy(record.vendor.data(), &device, sizeof device);

  const std::lock_guard lock(mutex_);
  if (!allocations_.contains(found.memory.base))
    return fail(Code::gone, "the Gaudi memory at {:#x} was freed meanwhile", address);
  auto lease = leases_.find(found.memory.base);
  if (lease == leases_.end() || lease->second.identity() != found.memory.identity) {
    STRAIT_TRY(Lease granted, Lease::grant(found.memory.identity));
    leases_.erase(found.memory.base);
    lease = leases_.emplace(found.memory.base, std::move(granted)).first;
  }
  STRAIT_TRY(sys::Fd fd, lease->second.give());
  strait_ipc_handle out{};
  out.way = STRAIT_IPC_FD;
  out.length_bytes = length_bytes;
  out.fd = fd.release();
  record.write(out);
  fds_.insert_or_assign(out.fd, std::move(found.device));
  ipc_exports_.add();
  return out;
}

Result<std::uint64_t> GaudiProvider::ipc_open(std::uint32_t device, const strait_ipc_handle& handle) {
  STRAIT_CHECK(check_device(device));
  STRAIT_TRY(const IpcRecord record, IpcRecord::read(handle, kGaudiLetter, "Gaudi"));
  const bool own = record.token == token_;
  if (own && (record.identity == 0 || identity(record.base, record.length_bytes) != record.identity))
    return fail(Code::gone, "the Gaudi memory at {:#x} that this handle names was freed", record.base);
  {
    const std::lock_guard lock(mutex_);
    const auto known = far_.find(record.base);
    if (known != far_.end() && known->second.lease.identity() == record.identity && !known->second.lease.lasts())
      return fail(Code::gone, "the Gaudi memory at {:#x} that is open here was freed by its process", record.base);
  }
  const OpenedHandles::Key key{record.token, record.base, record.identity, 0};
  return opened_->open(key, record.offset, handle.length_bytes, [&]() -> Result<OpenedHandles::Opened> {
    if (own) return OpenedHandles::Opened{record.base, record.length_bytes, [] {}};
    return open_far(device, record, handle.fd);
  });
}

Result<OpenedHandles::Opened> GaudiProvider::open_far(std::uint32_t device, const IpcRecord& record, int fd) {
  FarDevice other;
  std::memcpy(&other, record.vendor.data(), sizeof other);
  other.pci[sizeof other.pci - 1] = '\0';
  if (other.pool_bytes > UINT64_MAX - other.pool_base || record.base < other.pool_base ||
      record.base + record.length_bytes > other.pool_base + other.pool_bytes)
    return fail(Code::invalid, "a Gaudi memory handle names {} bytes at {:#x}, which its device does not have",
                record.length_bytes, record.base);
  STRAIT_TRY(Lease lease, Lease::look(fd, record.identity));
  if (!lease.lasts())
    return fail(Code::gone, "the Gaudi memory at {:#x} that this handle names was freed by its process", record.base);
  STRAIT_TRY(const auto via, acquire(device));
  if (via->pci() == other.pci)
    return fail(Code::invalid, "a Gaudi memory handle names {}, which is this process's own device", via->name());
  if (const std::string own = own_device_at(other.pool_base, other.pool_bytes); !own.empty()) {
    return with_remedy(
        fail(Code::gone, "{:#x} of another process's Gaudi is an address of {} here, which is this process's",
             record.base, own),
        "The process that lent it may have ended. Where addresses do not tell devices apart there is no "
        "link: register the memory with a NIC.");
  }
  // Proof instead of belief: some bytes over the link, into memory of our own.
  const std::uint64_t trial = std::min(kTrialBytes, record.length_bytes);
  STRAIT_TRY(const std::uint64_t into, via->allocate(trial));
  Status reached = [&]() -> Status {
    STRAIT_TRY(const std::uint64_t ticket, copies_->start_far(via, into, record.base, trial, Copies::FarHost::none));
    return copies_->wait(ticket);
  }();
  (void)via->free(into);
  STRAIT_CHECK(std::move(reached));
  const std::uint64_t identity = next_far_identity();
  const std::lock_guard lock(mutex_);
  far_.erase(record.base);
  far_.emplace(record.base, Far{via, device, {record.base, record.length_bytes, identity, false}, std::move(lease)});
  return OpenedHandles::Opened{record.base, record.length_bytes, [this, identity, base = record.base] {
                                 const std::lock_guard inner(mutex_);
                                 const auto found = far_.find(base);
                                 if (found != far_.end() && found->second.memory.identity == identity)
                                   far_.erase(found);
                               }};
}

// Identity 0: its owner freed it.
bool GaudiProvider::find_far(std::uint64_t address, Found& out) const {
  const auto after = far_.upper_bound(address);
  if (after == far_.begin()) return false;
  const Far& far = std::prev(after)->second;
  if (address - far.memory.base >= far.memory.length_bytes) return false;
  out.device = far.via;
  out.index = far.device;
  out.memory = far.memory;
  out.far = true;
  // The owner's end makes the device free for others, this process among them.
  if (!far.lease.lasts() || !own_device_at_locked(far.memory.base, far.memory.length_bytes).empty())
    out.memory.identity = 0;
  return true;
}

std::string GaudiProvider::own_device_at_locked(std::uint64_t base, std::uint64_t length_bytes) const {
  for (const auto& device : acquired_) {
    if (!device) continue;
    const GaudiMemory pool = device->pool();
    if (overlap(pool.base, pool.length_bytes, base, length_bytes)) return device->name();
  }
  return "";
}

std::string GaudiProvider::own_device_at(std::uint64_t base, std::uint64_t length_bytes) const {
  const std::lock_guard lock(mutex_);
  return own_device_at_locked(base, length_bytes);
}

Status GaudiProvider::ipc_close(std::uint64_t address) {
  if (opened_->close(address)) return {};
  return fail(Code::invalid, "{:#x} is not memory of another process that is open here", address);
}

}  // namespace strait::buffer::gaudi
