// SPDX-License-Identifier: Apache-2.0
// NICs that are a map in this process, and memory with known walls: for tests and for the fuzz target of commands.
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "soft/cm/device.hpp"

namespace strait::soft::cm::testing {

// Hands every datagram to everybody on the address, as ports that several processes share do.
class Fabric {
 public:
  void attach(const void* who, std::vector<GidInfo> gids, Device::Receiver receiver) {
    const std::scoped_lock lock(mutex_);
    members_.push_back({who, std::move(gids), std::move(receiver)});
  }
  void detach(const void* who) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(members_, [&](const Member& m) { return m.who == who; });
  }
  void send(const IpAddress& from, const IpAddress& to, const Mad& mad) {
    const std::scoped_lock lock(mutex_);
    if (lose > 0) {
      --lose;
      return;
    }
    for (const Member& member : members_) {
      for (const GidInfo& gid : member.gids) {
        if (gid.address == to) member.receiver(from, to, mad);
      }
    }
  }
  int lose = 0;  // so many of the next

 private:
  struct Member {
    const void* who;
    std::vector<GidInfo> gids;
    Device::Receiver receiver;
  };
  std::mutex mutex_;
  std::vector<Member> members_;
};

class FakeDevice final : public Device {
 public:
  FakeDevice(Fabric& fabric, std::vector<GidInfo> gids) : fabric_(fabric), gids_(std::move(gids)) {}
  [[nodiscard]] std::uint64_t node_guid() const override { return 0x0102030405060708; }
  [[nodiscard]] const std::vector<GidInfo>& gids() const override { return gids_; }
  [[nodiscard]] Status start(Receiver receiver) override {
    fabric_.attach(this, gids_, std::move(receiver));
    return {};
  }
  void stop() override { fabric_.detach(this); }
  void send(std::uint8_t sgid_index, const IpAddress& to, const Mad& mad) override {
    fabric_.send(gids_.at(sgid_index).address, to, mad);
  }

 private:
  Fabric& fabric_;
  std::vector<GidInfo> gids_;
};

// Of this process; the first 64 KiB are nobody's, and addresses with the top bit are the kernel's.
class OwnMemory final : public Memory {
 public:
  [[nodiscard]] bool copy_in(std::uint64_t from, void* into, std::size_t bytes) const override {
    if (bad(from, bytes)) return false;
    std::memcpy(into, pointer(from), bytes);
    return true;
  }
  [[nodiscard]] bool copy_out(std::uint64_t to, const void* from, std::size_t bytes) const override {
    if (bad(to, bytes)) return false;
    std::memcpy(pointer(to), from, bytes);
    return true;
  }

 private:
  static bool bad(std::uint64_t at, std::size_t bytes) { return at < 65536 || (at + bytes) >> 63 != 0; }
  static void* pointer(std::uint64_t at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }
};

// Two ranges, and nothing else exists.
class WalledMemory final : public Memory {
 public:
  void allow(int which, const void* from, std::size_t bytes) {
    walls_[which] = {reinterpret_cast<std::uintptr_t>(from), bytes};
  }
  [[nodiscard]] bool copy_in(std::uint64_t from, void* into, std::size_t bytes) const override {
    if (!inside(from, bytes)) return false;
    std::memcpy(into, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(from)), bytes);
    return true;
  }
  [[nodiscard]] bool copy_out(std::uint64_t to, const void* from, std::size_t bytes) const override {
    if (!inside(to, bytes)) return false;
    std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(to)), from, bytes);
    return true;
  }

 private:
  struct Wall {
    std::uint64_t at = 0;
    std::size_t bytes = 0;
  };
  [[nodiscard]] bool inside(std::uint64_t at, std::size_t bytes) const {
    for (const Wall& wall : walls_) {
      if (at >= wall.at && bytes <= wall.bytes && at - wall.at <= wall.bytes - bytes) return true;
    }
    return false;
  }
  Wall walls_[2];
};

}  // namespace strait::soft::cm::testing
