// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/device_memory.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "soft/kernel/drivers.hpp"
#include "sys/files.hpp"

namespace strait::soft::cassini {

// Whatever holds device memory for a command. Destroyed: nothing of it is used any more.
class DeviceMemories::Hold {
 public:
  virtual ~Hold() = default;
  // The descriptor that was made of it; it may be torn down from now on.
  virtual void became(std::uint32_t /*md*/) {}
};

namespace {

constexpr std::int64_t kFencePatienceNs = 10'000'000'000;

// One that others look after: it stays where it is, or is asked for through its port.
class KeptHold final : public DeviceMemories::Hold {
 public:
  KeptHold(std::shared_ptr<const void> kept, Channel& channel, std::uint32_t number)
      : kept_(std::move(kept)), channel_(channel), number_(number) {}
  ~KeptHold() override {
    if (number_ != 0) channel_.end_port(number_);
  }

 private:
  std::shared_ptr<const void> kept_;
  Channel& channel_;
  std::uint32_t number_;  // of the lent port; 0: a file went along
};

// A dma-buf in one file that may move, as the driver has it: before the move its descriptor is torn down, for good.
class MovingHold final : public DeviceMemories::Hold {
 public:
  MovingHold(std::shared_ptr<kernel::DmaBuf> buffer, Channel& channel)
      : buffer_(std::move(buffer)), channel_(channel) {}
  int begin(const kernel::DmaDevice& device) {
    kernel::ImporterOps ops;
    ops.allow_peer2peer = true;
    ops.move_notify = [this](kernel::Attachment&) { on_move(); };
    if (const int failed = buffer_->attach(device, &ops, attachment_)) return failed;
    const std::lock_guard lock(buffer_->reservation());
    if (const int failed = buffer_->map(*attachment_, list_)) return failed;
    mapped_ = true;  // its end is the destructor's, also when the fences do not come
    return buffer_->reservation().wait_kernel_fences(sys::Deadline::after_ns(kFencePatienceNs)) ? 0 : -ETIMEDOUT;
  }
  ~MovingHold() override {
    if (attachment_ == nullptr) return;
    {
      const std::lock_guard lock(buffer_->reservation());
      if (mapped_) buffer_->unmap(*attachment_, list_);
    }
    buffer_->detach(*attachment_);
  }
  void became(std::uint32_t md) override {
    const std::lock_guard lock(buffer_->reservation());
    md_ = md;
    if (!mapped_) channel_.tear_down(md_);  // it was quicker
  }

 private:
  // With the reservation lock held.
  void on_move() {
    if (!mapped_) return;
    if (md_ != 0) channel_.tear_down(md_);
    buffer_->unmap(*attachment_, list_);
    mapped_ = false;
  }
  const std::shared_ptr<kernel::DmaBuf> buffer_;
  Channel& channel_;
  kernel::Attachment* attachment_ = nullptr;
  kernel::DmaList list_;
  bool mapped_ = false;
  std::uint32_t md_ = 0;
};

// NVIDIA's pages that survive the free.
class PersistentHold final : public DeviceMemories::Hold {
 public:
  explicit PersistentHold(kernel::P2p& p2p) : p2p_(p2p) {}
  int begin(const kernel::DmaDevice& device, std::uint64_t first, std::uint64_t bytes, std::uint64_t token) {
    first_ = first;
    if (const int failed = p2p_.get_pages_persistent(first, bytes, table_, 0, token)) return failed;
    return p2p_.dma_map_pages(device, table_, mapping_);
  }
  ~PersistentHold() override {
    if (mapping_) (void)p2p_.dma_unmap_pages(table_, mapping_);
    if (table_) (void)p2p_.put_pages_persistent(first_, table_, 0);
  }
  [[nodiscard]] const kernel::DeviceMemory& memory() const { return *table_->memory; }

 private:
  kernel::P2p& p2p_;
  std::uint64_t first_ = 0;
  kernel::P2pTable table_;
  kernel::P2pMapping mapping_;
};

kernel::DmaDevice cxi_device(bool follows = true) {
  kernel::DmaDevice device;
  device.name = "cxi";
  device.follows = follows;
  return device;
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The command, if it is one of these.
template <class Command>
bool take_command(std::span<const std::byte> bytes, Command& out) {
  if (bytes.size() != sizeof out) return false;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out.op == Command::kOp;
}

}  // namespace

DeviceMemoryWords DeviceMemoryWords::from_environment() {
  return {variable("STRAIT_PEER_MEMORY"), variable("STRAIT_KERNEL_FAULTS"), variable("STRAIT_CASSINI_MOVES")};
}

Result<DeviceMemorySettings> DeviceMemorySettings::from_environment() {
  return DeviceMemoryWords::from_environment().settings();
}

Result<DeviceMemorySettings> DeviceMemoryWords::settings() const {
  using Pages = DeviceMemorySettings::Pages;
  DeviceMemorySettings out;
  STRAIT_TRY(out.kernel, kernel::KernelSettings::parse(ways, faults));
  // Said nothing: as on a machine with both vendors' drivers, and the module parameters as they come.
  if (ways.empty()) {
    out.kernel.amd = true;
  } else if (out.kernel.persistent) {
    out.pages = Pages::persistent;
  } else {
    out.pages = out.kernel.nvidia || out.kernel.p2p ? Pages::callback : Pages::none;
  }
  if (!moves.empty() && moves != "tear_down" && moves != "remap")
    return fail(Code::invalid, "cassini_moves: \"{}\" is neither tear_down nor remap", moves);
  out.remap = moves == "remap";
  return out;
}

DeviceMemories::DeviceMemories(DeviceMemorySettings settings, Channel& channel)
    : settings_(std::move(settings)), channel_(channel), kernel_(kernel::machine_drivers(), settings_.kernel) {}

DeviceMemories::~DeviceMemories() {
  if (!mark_.in_child()) return;
  // The parent's: a lock that another thread held there stays held here.
  for (auto& [of, hold] : held_) (void)new std::shared_ptr<Hold>(std::move(hold));
}

void DeviceMemories::keep(NamedMemory named, std::shared_ptr<Hold> hold, Found& found) {
  found.memory.push_back(named);
  if (hold) found.holds.push_back(std::move(hold));
}

void DeviceMemories::by_descriptor(int fd, Found& found) {
  NamedMemory named;
  named.said.fd = fd;
  const auto buffer = kernel_.get(fd);
  if (!buffer) {
    named.said.error = !sys::is_open_fd(fd) ? EBADF : sys::is_dmabuf(fd) ? EOPNOTSUPP : EINVAL;
    return keep(named, nullptr, found);
  }
  named.said.bytes = buffer->size_bytes();
  const kernel::Exporter::Whole whole = buffer->whole();
  // A move that comes at a certain byte needs a port that counts them.
  if (buffer->moves() && !settings_.remap && whole.file >= 0 && !settings_.kernel.faults.move_at) {
    auto hold = std::make_shared<MovingHold>(buffer, channel_);
    named.said.error = -hold->begin(cxi_device());
    named.file = whole.file;
    named.said.offset = whole.offset;
    return keep(named, std::move(hold), found);
  }
  kernel::NicMemoryOwner memory;
  named.said.error = -kernel_.import_dmabuf(cxi_device(settings_.remap), fd, 0, named.said.bytes, 0, memory);
  if (named.said.error != 0) return keep(named, nullptr, found);
  if (!memory->stays()) {
    const strait_memory_port* const port = memory->port();
    return lend_for(named, port, std::move(memory), found);
  }
  named.file = memory->file().fd;
  named.said.offset = memory->file().offset;
  keep(named, std::make_shared<KeptHold>(std::move(memory), channel_, 0), found);
}

void DeviceMemories::lend_for(NamedMemory named, const strait_memory_port* port, std::shared_ptr<const void> kept,
                              Found& found) {
  named.said.memory = next_memory_++;
  named.port = port;
  channel_.lend_port(named.said.memory, port);
  keep(named, std::make_shared<KeptHold>(std::move(kept), channel_, named.said.memory), found);
}

int DeviceMemories::lend(std::uint64_t address, std::uint64_t bytes, const strait_memory_port* port) {
  if (mark_.in_child()) return -EIO;
  const std::lock_guard lock(mutex_);
  return lent_.add(address, bytes, port);
}

int DeviceMemories::take_back(std::uint64_t address) {
  if (mark_.in_child()) return -EIO;
  std::unique_lock lock(mutex_);
  const std::shared_ptr<LentPort> lent = lent_.remove(address);
  lock.unlock();
  if (!lent) return -ENOENT;
  lent->take_back();
  return 0;
}

bool DeviceMemories::is_device_memory(std::uint64_t address, std::uint64_t bytes) {
  return lent_.find(address, bytes) != nullptr || kernel_.drivers().find(address) != nullptr;
}

void DeviceMemories::by_address(std::uint64_t address, std::uint64_t bytes, Found& found) {
  using Pages = DeviceMemorySettings::Pages;
  NamedMemory named;
  named.said.by_address = 1;
  named.said.address = address;
  named.said.bytes = bytes;
  if (std::shared_ptr<LentPort> lent = lent_.find(address, bytes)) {
    named.said.address = lent->address();
    named.said.bytes = lent->bytes();
    const strait_memory_port* const port = lent->port();
    return lend_for(named, port, std::move(lent), found);
  }
  const auto memory = kernel_.drivers().find(address);
  if (!memory || bytes == 0 || address + bytes < address || address + bytes > UINT64_MAX - kernel::kP2pPageBytes) {
    named.said.error = EOPNOTSUPP;
    return keep(named, nullptr, found);
  }
  const bool amd = memory->said().vendor == STRAIT_SOFT_VENDOR_ROCM;
  if (amd ? !settings_.kernel.amd : settings_.pages == Pages::none) {
    named.said.error = EOPNOTSUPP;
    return keep(named, nullptr, found);
  }
  // NVIDIA's pages are whole ones: what surrounds the memory in its last belongs to it.
  const std::uint64_t last = amd ? memory->end() : sys::round_up(memory->end(), kernel::kP2pPageBytes);
  if (address + bytes > last) {
    named.said.error = EINVAL;
    return keep(named, nullptr, found);
  }
  const std::uint64_t first = address / kernel::kP2pPageBytes * kernel::kP2pPageBytes;
  const std::uint64_t end = sys::round_up(address + bytes, kernel::kP2pPageBytes);
  // What of those pages there really is.
  named.said.address = std::max(first, memory->said().base);
  named.said.bytes = std::min(end, memory->end()) - std::min(named.said.address, std::min(end, memory->end()));
  if (!amd && settings_.pages == Pages::persistent) {
    auto hold = std::make_shared<PersistentHold>(kernel_.p2p());
    named.said.error = -hold->begin(cxi_device(), first, end - first, address);
    if (named.said.error == 0) {
      named.file = hold->memory().file();
      named.said.offset = hold->memory().file_offset(named.said.address);
    }
    return keep(named, std::move(hold), found);
  }
  kernel::NicMemoryOwner imported;
  const int failed =
      amd ? kernel_.import_address(cxi_device(), named.said.address, named.said.bytes, 0, true, imported)
          : kernel::make_p2p_memory(kernel_, cxi_device(), named.said.address, named.said.bytes, 0, imported);
  named.said.error = failed == 1 ? EOPNOTSUPP : -failed;
  if (named.said.error != 0) return keep(named, nullptr, found);
  const strait_memory_port* const port = imported->port();
  lend_for(named, port, std::move(imported), found);
}

DeviceMemories::Found DeviceMemories::find(std::span<const std::byte> command) {
  Found found;
  const std::lock_guard lock(mutex_);
  wire::AtuMapCmd map{};
  wire::CqAllocBufCmd ring{};
  wire::CtAllocCmd counter{};
  wire::CtWbUpdateCmd moved{};
  if (take_command(command, map) && (map.flags & wire::kMapDevice) != 0) {
    if (map.hints.dmabuf_valid != 0 && map.hints.dmabuf_fd != wire::kNoDmabufFd) {
      by_descriptor(map.hints.dmabuf_fd, found);
    } else {
      by_address(map.va, map.len, found);
    }
  } else if (take_command(command, ring) && ring.opts.buf != 0 && ring.opts.is_host_mem == 0) {
    if (ring.opts.dmabuf_fd == wire::kNoDmabufFd) {
      // As many blocks as the queue will have.
      const std::uint32_t asked = std::clamp(ring.opts.opts.count, wire::kMinCqBlocks, wire::kMaxCqBlocks);
      by_address(ring.opts.buf, std::uint64_t{std::bit_ceil(asked)} * wire::kBlockBytes, found);
    } else {
      by_descriptor(ring.opts.dmabuf_fd, found);
    }
  } else if (take_command(command, counter) && counter.wb != 0 && is_device_memory(counter.wb, sizeof(std::uint64_t))) {
    by_address(counter.wb, sizeof(std::uint64_t), found);
  } else if (take_command(command, moved) && moved.wb != 0 && is_device_memory(moved.wb, sizeof(std::uint64_t))) {
    by_address(moved.wb, sizeof(std::uint64_t), found);
  }
  return found;
}

void DeviceMemories::done(std::span<const std::byte> command, Found found, std::uint32_t made) {
  wire::AtuMapCmd map{};
  wire::AtuUnmapCmd unmap{};
  wire::CqAllocBufCmd ring{};
  wire::CqFreeCmd ring_free{};
  wire::CtAllocCmd counter{};
  wire::CtFreeCmd counter_free{};
  wire::CtWbUpdateCmd moved{};
  std::vector<std::shared_ptr<Hold>> let_go;  // outside the lock: a hold may call back
  const auto release = [&](Kind kind, std::uint32_t id) {
    const auto [first, last] = held_.equal_range({kind, id});
    for (auto at = first; at != last; ++at) let_go.push_back(std::move(at->second));
    held_.erase(first, last);
  };
  const auto hold = [&](Kind kind, std::uint32_t id) {
    for (const auto& each : found.holds) held_.emplace(std::pair(kind, id), each);
  };
  {
    const std::lock_guard lock(mutex_);
    if (take_command(command, unmap)) release(Kind::md, unmap.id);
    if (take_command(command, ring_free)) release(Kind::cq, ring_free.cq);
    if (take_command(command, counter_free)) release(Kind::ct, counter_free.ctn);
    if (take_command(command, moved)) {
      release(Kind::ct, moved.ctn);
      hold(Kind::ct, moved.ctn);
    }
    if (found.holds.empty()) return;
    if (take_command(command, map)) hold(Kind::md, made);
    if (take_command(command, ring)) hold(Kind::cq, made);
    if (take_command(command, counter)) hold(Kind::ct, made);
  }
  if (take_command(command, map)) {
    for (const auto& each : found.holds) each->became(made);
  }
}

}  // namespace strait::soft::cassini
