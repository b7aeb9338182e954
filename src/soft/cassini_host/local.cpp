// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/local.hpp"

#include <cerrno>
#include <cstring>

#include "soft/cassini_host/carried_files.hpp"
#include "soft/cassini_host/file_memory.hpp"
#include "soft/cassini_host/pace.hpp"
#include "soft/cassini_host/session.hpp"
#include "sys/clock.hpp"
#include "sys/event_set.hpp"
#include "sys/pause.hpp"
#include "sys/quiet_thread.hpp"

namespace strait::soft::cassini {
namespace {

Who who_of_caller(const sys::Caller& caller) {
  Who who;
  who.uid = caller.uid;
  who.gid = caller.gid;
  who.netns = caller.network;
  who.admin = caller.admin;
  who.net_raw = caller.net_raw;
  return who;
}

// Device memory through the port of whoever registered it, from address 0 on.
class PortMemory final : public UserMemory {
 public:
  PortMemory(const strait_memory_port* port, std::uint64_t start, std::uint64_t bytes)
      : port_(port), start_(start), bytes_(bytes) {}
  [[nodiscard]] bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    return reaches(address, bytes, false) && port_->read(port_->context, start_ + address, into, bytes) == 0;
  }
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    return reaches(address, bytes, true) && port_->write(port_->context, start_ + address, from, bytes) == 0;
  }
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t bytes, bool /*writable*/) override {
    return bytes <= bytes_ && address <= bytes_ - bytes;
  }
  [[nodiscard]] std::byte* direct(std::uint64_t /*address*/, std::uint64_t /*bytes*/) override { return nullptr; }

 private:
  const strait_memory_port* port_;
  std::uint64_t start_;
  std::uint64_t bytes_;
};

class LocalFiles final : public CommandFiles {
 public:
  explicit LocalFiles(std::span<const NamedMemory> memory) : memory_(memory) {}
  int dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) override {
    for (const NamedMemory& each : memory_) {
      if (each.said.by_address != 0 || each.said.fd != fd) continue;
      if (each.said.error != 0) return each.said.error;
      if (offset + bytes < offset) return EINVAL;
      if (offset + bytes > each.said.bytes) return EFAULT;
      return open(each, {0, offset, bytes}, out);
    }
    return EBADF;
  }
  int device_pages(std::uint64_t address, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) override {
    for (const NamedMemory& each : memory_) {
      if (each.said.by_address == 0) continue;
      if (each.said.error != 0) return each.said.error;
      PartOf part;
      if (part_of(each.said.address, each.said.bytes, address, bytes, part)) return open(each, part, out);
    }
    return EOPNOTSUPP;
  }

 private:
  static int open(const NamedMemory& named, const PartOf& part, std::unique_ptr<UserMemory>& out) {
    if (named.port != nullptr) {
      out = std::make_unique<PortMemory>(named.port, part.start - part.gap, part.gap + part.bytes);
      return 0;
    }
    auto mapped = FileBytes::map(named.file, named.said.offset + part.start, part.bytes);
    if (!mapped) return mapped.error().sys_errno != 0 ? mapped.error().sys_errno : EINVAL;
    out = std::make_unique<FileMemory>(std::move(*mapped), part.gap);
    return 0;
  }
  std::span<const NamedMemory> memory_;
};

}  // namespace

// ---- Fabric ---------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<LocalFabric>> LocalFabric::get() {
  static std::mutex making;
  static std::weak_ptr<LocalFabric> current;
  const std::lock_guard lock(making);
  if (auto alive = current.lock(); alive && !alive->in_child()) return alive;
  STRAIT_TRY(sys::Event wake, sys::Event::make());
  std::shared_ptr<LocalFabric> made(new LocalFabric(std::move(wake)));
  STRAIT_TRY(made->thread_, sys::start_quiet_thread([self = made.get()] { self->drive(); }));
  current = made;
  return made;
}

LocalFabric::~LocalFabric() {
  if (in_child()) {
    thread_.detach();  // there is no such thread here
    return;
  }
  stop_.store(true, std::memory_order_release);
  wake_.raise();
  if (thread_.joinable()) thread_.join();
}

void LocalFabric::drive() {
  Pace pace;
  while (!stop_.load(std::memory_order_acquire)) {
    bool worked = false;
    {
      const std::lock_guard lock(mutex_);
      worked = fabric_.drive() != 0;
    }
    // A mutex is not fair: who waits for it gets a turn.
    while (waiting_.load(std::memory_order_relaxed) != 0 && !stop_.load(std::memory_order_relaxed))
      std::this_thread::yield();
    switch (pace.after(worked, sys::now_ns())) {
      case Pace::Rest::spin: sys::pause_turn(0); break;
      case Pace::Rest::yield: std::this_thread::yield(); break;
      case Pace::Rest::sleep:
        if (sys::nap_on(wake_.fd(), pace.sleep_ns())) {
          wake_.clear();
          (void)pace.after(true, sys::now_ns());
        }
        break;
    }
  }
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

bool LocalMemory::stays(std::uint64_t address, std::uint64_t bytes) const {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return false;
  --after;
  const std::uint64_t skip = address - after->first;
  return bytes <= after->second && skip <= after->second - bytes;
}

bool LocalMemory::reaches(std::uint64_t address, std::uint64_t bytes, bool writable) {
  return stays(address, bytes) || OwnMemory::reaches(address, bytes, writable);
}

std::byte* LocalMemory::direct(std::uint64_t address, std::uint64_t bytes) {
  if (!stays(address, bytes)) return nullptr;
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

int LocalMemory::add(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || address + bytes < address) return -EINVAL;
  const auto after = ranges_.lower_bound(address);
  if (after != ranges_.end() && after->first < address + bytes) return -EEXIST;
  if (after != ranges_.begin() && std::prev(after)->first + std::prev(after)->second > address) return -EEXIST;
  ranges_.emplace(address, bytes);
  return 0;
}

int LocalMemory::remove(std::uint64_t address) {
  return ranges_.erase(address) == 1 ? 0 : -ENOENT;
}

// ---- Channel --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<LocalChannel>> LocalChannel::open(std::uint32_t device, const sys::Caller& caller,
                                                         const ClientOptions& options) {
  if (device >= LocalFabric::kCards)
    return fail_errno(ENODEV, fmt::format("there is no device cxi{} in this process", device));
  STRAIT_TRY(std::shared_ptr<LocalFabric> fabric, LocalFabric::get());
  STRAIT_TRY(sys::Fd pages, sys::make_sealed_memfd("strait-cxi", Client::kPagesBytes));
  std::unique_ptr<LocalChannel> made(new LocalChannel(std::move(fabric)));
  STRAIT_TRY(made->pages_, pages.duplicate());
  made->id_ = made->fabric_->next_id();
  made->fabric_->with([&](Fabric& cards) {
    made->client_ = std::make_unique<Client>(*cards.card(device), made->id_, who_of_caller(caller), made->memory_,
                                             std::move(pages), made->waits_);
    made->client_->use(options);
  });
  return made;
}

LocalChannel::~LocalChannel() {
  close();
}

void LocalChannel::close() {
  if (fabric_->in_child()) {
    (void)client_.release();  // the parent's; its lock may be held for ever
    return;
  }
  fabric_->with([&](Fabric&) { client_.reset(); });
}

long LocalChannel::write(std::span<const std::byte> command, const sys::Caller& caller,
                         std::span<const NamedMemory> memory) {
  if (fabric_->in_child()) return -EIO;
  return fabric_->with([&](Fabric&) {
    LocalFiles files(memory);
    client_->become(who_of_caller(caller));
    const long result = client_->write(command, files);
    wire::WaitFreeCmd free{};
    if (result > 0 && command.size() == sizeof free) {
      std::memcpy(&free, command.data(), sizeof free);
      if (free.op == wire::WaitFreeCmd::kOp) waits_.forget(free.wait);
    }
    return result;
  });
}

int LocalChannel::map(std::uint64_t offset, std::uint64_t bytes, Client::Page& page) {
  if (fabric_->in_child()) return -EIO;
  return fabric_->with([&](Fabric&) {
    page = client_->page(offset);
    return client_->map(offset, bytes);
  });
}

void LocalChannel::unmap(std::uint64_t offset) {
  if (!fabric_->in_child()) fabric_->with([&](Fabric&) { client_->unmap(offset); });
}

Result<sys::Fd> LocalChannel::wait(std::uint32_t wait) {
  if (fabric_->in_child()) return fail_errno(EIO, "this device belongs to the process that opened it");
  return fabric_->with([&](Fabric&) { return waits_.open(wait); });
}

int LocalChannel::share(std::uint64_t address, std::uint64_t bytes, int /*fd*/, std::uint64_t /*offset*/) {
  if (fabric_->in_child()) return -EIO;
  return fabric_->with([&](Fabric&) { return memory_.add(address, bytes); });
}

int LocalChannel::unshare(std::uint64_t address) {
  if (fabric_->in_child()) return -EIO;
  return fabric_->with([&](Fabric&) { return memory_.remove(address); });
}

void LocalChannel::tear_down(std::uint32_t md) {
  if (fabric_->in_child()) return;
  fabric_->with([&](Fabric&) {
    if (client_) client_->tear_down(md);  // memory may move while the device is closed
  });
}

std::string LocalChannel::counters() {
  if (fabric_->in_child()) return {};
  return fabric_->with([&](Fabric& cards) { return counters_of(cards); });
}

std::vector<Finding> LocalChannel::findings() {
  if (fabric_->in_child()) return {};
  return fabric_->with_patience(
      kEndPatienceNs,
      [&](Fabric& cards) {
        settle(cards);
        return client_->take_findings(Strict::kMostKept);
      },
      std::vector<Finding>());
}

}  // namespace strait::soft::cassini
