// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/family.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "soft/cassini_host/connection.hpp"
#include "soft/cassini_host/open_device.hpp"
#include "soft/cassini_host/places.hpp"
#include "soft/cassini_host/server.hpp"
#include "soft/host/path.hpp"
#include "soft/host/report.hpp"
#include "sys/clock.hpp"
#include "sys/fork.hpp"
#include "sys/note.hpp"
#include "sys/urgent.hpp"

namespace strait::soft::cassini {
namespace {

namespace fs = std::filesystem;

// The clients of this process, for their wait objects.
class Clients {
 public:
  void add(std::uint32_t card, std::uint32_t id, const std::shared_ptr<OpenDevice>& device) {
    const std::lock_guard lock(mutex_);
    all_[{card, id}] = device;
  }
  void remove(std::uint32_t card, std::uint32_t id) {
    const std::lock_guard lock(mutex_);
    all_.erase({card, id});
  }
  [[nodiscard]] std::shared_ptr<OpenDevice> find(std::uint32_t card, std::uint32_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find({card, id});
    return found == all_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::weak_ptr<OpenDevice>> all_;
};

// The node itself.
class CxiFile final : public host::File {
 public:
  CxiFile(std::string root, std::uint32_t card, std::shared_ptr<OpenDevice> device, std::shared_ptr<Clients> clients)
      : root_(std::move(root)), card_(card), device_(std::move(device)), clients_(std::move(clients)) {}
  ~CxiFile() override {
    clients_->remove(card_, device_->channel().id());
    std::error_code ignored;
    fs::remove_all(fmt::format("{}{}/clients/{}", root_, user_folder(card_), device_->channel().id()), ignored);
  }

  long write(const void* bytes, std::size_t length) override {
    const long result = device_->write(bytes, length);
    if (result == static_cast<long>(sizeof(wire::WaitAllocCmd)) ||
        result == static_cast<long>(sizeof(wire::WaitFreeCmd)))
      after_wait(bytes);
    return result;
  }
  long map(void* address, std::size_t length, int protect, int flags, std::uint64_t offset) override {
    return device_->map(address, length, protect, flags, offset, true);
  }
  void unmapped(void* address, std::size_t length) override { device_->unmapped(address, length); }

 private:
  // Wait objects are files: they come and go with the command that made them, which was read and carried out.
  void after_wait(const void* bytes) const {
    wire::CmdHead head{};
    OwnMemory memory;
    if (!memory.read(reinterpret_cast<std::uint64_t>(bytes), &head, sizeof head)) return;
    std::error_code ignored;
    if (head.op == wire::WaitAllocCmd::kOp) {
      wire::WaitAllocResp made{};
      if (!memory.read(head.resp, &made, sizeof made)) return;
      const fs::path file = root_ + wait_file(card_, device_->channel().id(), made.wait);
      fs::create_directories(file.parent_path(), ignored);
      // Another name of a live file: a program that may open no more descriptors has its wait object all the same.
      fs::create_hard_link(root_ + pci_folder(card_) + "/properties/rgids_avail", file, ignored);
      if (ignored) std::ofstream(file) << host::kLiveMark;
    } else if (head.op == wire::WaitFreeCmd::kOp) {
      wire::WaitFreeCmd gone{};
      if (!memory.read(reinterpret_cast<std::uint64_t>(bytes), &gone, sizeof gone)) return;
      const fs::path file = root_ + wait_file(card_, device_->channel().id(), gone.wait);
      fs::remove_all(file.parent_path(), ignored);
    }
  }
  const std::string root_;
  const std::uint32_t card_;
  const std::shared_ptr<OpenDevice> device_;
  const std::shared_ptr<Clients> clients_;
};

// An `intr` file: urgent from an interrupt until it is read, at whatever place.
class WaitFile final : public host::File {
 public:
  explicit WaitFile(sys::Fd watch) : watch_(std::move(watch)) {}
  long read(void* bytes, std::size_t length) override {
    sys::Urgent::clear(watch_.get());
    if (length == 0) return 0;
    const char text = '1';
    OwnMemory memory;
    return memory.write(reinterpret_cast<std::uint64_t>(bytes), &text, 1) ? 1 : -EFAULT;
  }
  long read_at(void* bytes, std::size_t length, std::uint64_t /*offset*/) override { return read(bytes, length); }

 private:
  const sys::Fd watch_;
};

class CxiFamily final : public host::Family {
 public:
  explicit CxiFamily(std::string root) : root_(std::move(root)) {}
  [[nodiscard]] bool owns(std::string_view node) const override { return parse_live(node).has_value(); }
  [[nodiscard]] std::uint64_t device_number(std::string_view node) const override {
    const auto live = parse_live(node);
    return live && live->kind == LiveFile::Kind::node ? cxi_device_number(live->card) : 0;
  }
  [[nodiscard]] Result<host::Opened> open(std::string_view node, int /*flags*/) override {
    const auto live = parse_live(node);
    if (!live) return fail_errno(ENOENT, fmt::format("there is no device behind {}", node));
    switch (live->kind) {
      case LiveFile::Kind::node: return open_card(live->card);
      case LiveFile::Kind::wait: return open_wait(*live);
      case LiveFile::Kind::rgids: {
        STRAIT_TRY(const std::uint64_t free, number(protocol::Number::rgids_free, live->card));
        return text_file(fmt::format("{}\n", free));
      }
      case LiveFile::Kind::telemetry: return telemetry(*live);
    }
    return fail_errno(ENOENT, "no such file");
  }

 private:
  // What is known of this process; a forked child begins anew.
  [[nodiscard]] std::shared_ptr<Clients> clients() {
    const std::lock_guard lock(mutex_);
    if (!clients_ || mark_.in_child()) {
      clients_ = std::make_shared<Clients>();
      mark_ = sys::ForkMark();
    }
    return clients_;
  }

  [[nodiscard]] Result<host::Opened> open_card(std::uint32_t card) {
    OpenSettings settings;
    settings.device = card;
    STRAIT_TRY(settings.memory, DeviceMemorySettings::from_environment());
    STRAIT_TRY(settings.trial, TrialSettings::from_environment());
    // For the last line of `strait run`: that the device was opened, and what was found. One file for each open.
    const std::string name = fmt::format("cxi{}-{}", card, opens_.fetch_add(1, std::memory_order_relaxed));
    settings.told = [root = root_, name](std::uint64_t findings) {
      host::leave_report(root, name, fmt::format("strict_findings={}", findings));
    };
    STRAIT_TRY(std::shared_ptr<OpenDevice> device, OpenDevice::open(std::move(settings)));
    host::leave_report(root_, name, "");
    STRAIT_TRY(sys::Fd fd, sys::Fd::copy_of(device->channel().pages()));
    const auto known = clients();
    known->add(card, device->channel().id(), device);
    return host::Opened{std::move(fd), std::make_shared<CxiFile>(root_, card, std::move(device), known)};
  }

  [[nodiscard]] Result<host::Opened> open_wait(const LiveFile& live) {
    const auto device = clients()->find(live.card, live.client);
    if (!device) return fail_errno(ENOENT, "that client is another process's");
    STRAIT_TRY(sys::Fd watch, device->channel().wait(live.wait));
    STRAIT_TRY(sys::Fd kept, watch.duplicate());
    return host::Opened{std::move(watch), std::make_shared<WaitFile>(std::move(kept))};
  }

  [[nodiscard]] static Result<host::Opened> text_file(const std::string& text) {
    STRAIT_TRY(sys::Fd fd, sys::make_note("strait-sysfs", text.size(), text.data(), text.size()));
    return host::Opened{std::move(fd), nullptr};
  }

  [[nodiscard]] static Result<host::Opened> telemetry(const LiveFile& live) {
    static const std::map<std::string_view, protocol::Number> counted = {
        {"atu_odp_requests_0", protocol::Number::odp_requests},
        {"ixe_dmawr_flush_reqs", protocol::Number::flushes},
        {"ixe_rx_ptl_restricted_pkt", protocol::Number::restricted},
        {"lpe_success_cntr", protocol::Number::landed},
    };
    std::uint64_t value = 0;
    if (const auto which = counted.find(live.name); which != counted.end()) {
      STRAIT_TRY(value, number(which->second, live.card));
    }
    const std::int64_t now = sys::wall_ns();
    return text_file(fmt::format("{}@{}.{:09}\n", value, now / 1'000'000'000, now % 1'000'000'000));
  }

  [[nodiscard]] static Result<std::uint64_t> number(protocol::Number which, std::uint32_t card) {
    ServerPlace place;
    place.name = server_name();
    STRAIT_TRY(const sys::Fd server, reach_server(place, sys::Deadline::after_ns(10'000'000'000)));
    return ask_number(server.get(), which, card);
  }

  const std::string root_;
  std::atomic<std::uint32_t> opens_{0};
  std::mutex mutex_;
  sys::ForkMark mark_;
  std::shared_ptr<Clients> clients_;
};

}  // namespace

std::unique_ptr<host::Family> make_cxi_family(std::string root) {
  return std::make_unique<CxiFamily>(std::move(root));
}

}  // namespace strait::soft::cassini
