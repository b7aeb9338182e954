// SPDX-License-Identifier: Apache-2.0
// What a client makes on a CXI device, one owner each. They hold a reference to their Device and free themselves with
// one command; parents are freed after their children, so members are declared in the order in which they are made.
#pragma once

#include <cstdint>
#include <utility>

#include "rail/cxi/device.hpp"
#include "sys/mapping.hpp"

namespace strait::rail::cxi {

// A number that one command gives back. Empty ones own nothing.
template <class FreeCmd, std::uint32_t FreeCmd::*Number>
class Handle {
 public:
  Handle() = default;
  Handle(Device& device, std::uint32_t number) : device_(&device), number_(number) {}
  Handle(Handle&& other) noexcept : device_(std::exchange(other.device_, nullptr)), number_(other.number_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      device_ = std::exchange(other.device_, nullptr);
      number_ = other.number_;
    }
    return *this;
  }
  ~Handle() { reset(); }
  void reset() { (void)give_back(); }
  // As reset(), for who wants to hear that it is still in use: it is kept then.
  [[nodiscard]] Status give_back() {
    if (device_ == nullptr) return {};
    FreeCmd command{};
    command.*Number = number_;
    STRAIT_CHECK(device_->tell(command));
    device_ = nullptr;
    return {};
  }
  [[nodiscard]] bool valid() const { return device_ != nullptr; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] Device& device() const { return *device_; }

 private:
  Device* device_ = nullptr;
  std::uint32_t number_ = 0;
};

// The container of everything else.
class Lni {
 public:
  Lni() = default;
  [[nodiscard]] static Result<Lni> make(Device& device, std::uint32_t service = w::kDefaultService);
  [[nodiscard]] std::uint32_t number() const { return handle_.number(); }
  [[nodiscard]] Device& device() const { return handle_.device(); }

 private:
  Handle<w::LniFreeCmd, &w::LniFreeCmd::lni> handle_;
};

// A communication profile: the network and the traffic class that command queues with its LCID send by.
class Profile {
 public:
  Profile() = default;
  // For triggered queues too when `type` is triggered: they take LCID 0 and no other.
  [[nodiscard]] static Result<Profile> make(const Lni& lni, std::uint32_t vni,
                                            w::TrafficClass tc = w::TrafficClass::best_effort,
                                            w::CpType type = w::CpType::any);
  [[nodiscard]] std::uint32_t lcid() const { return lcid_; }

 private:
  Handle<w::CpFreeCmd, &w::CpFreeCmd::cp_hndl> handle_;
  std::uint32_t lcid_ = 0;
};

// A PID on a network: where others find the portal entries that are mapped to it.
class Domain {
 public:
  Domain() = default;
  [[nodiscard]] static Result<Domain> make(const Lni& lni, std::uint32_t vni, std::uint32_t pid = w::kPidAny);
  [[nodiscard]] std::uint32_t number() const { return handle_.number(); }
  [[nodiscard]] std::uint32_t vni() const { return vni_; }
  [[nodiscard]] std::uint32_t pid() const { return pid_; }

 private:
  Handle<w::DomainFreeCmd, &w::DomainFreeCmd::domain> handle_;
  std::uint32_t vni_ = 0;
  std::uint32_t pid_ = 0;
};

// A range that a software device was told how to reach, until the mapping is gone.
class Told {
 public:
  Told() = default;
  Told(Device& device, std::uint64_t address) : device_(&device), address_(address) {}
  Told(Told&& other) noexcept : device_(std::exchange(other.device_, nullptr)), address_(other.address_) {}
  Told& operator=(Told&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~Told() {
    if (device_ != nullptr) device_->unshare(address_);
  }

 private:
  Device* device_ = nullptr;
  std::uint64_t address_ = 0;
};

// Memory that the device reaches under an address of its own.
class Memory {
 public:
  struct Request {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t flags = 0;  // w::kMap...; PIN is added
    int dmabuf = -1;          // with w::kMapDevice
    std::uint64_t dmabuf_offset = 0;
    const strait_memory_port* port = nullptr;  // how a software device reaches it; there is no descriptor then
  };
  Memory() = default;
  [[nodiscard]] static Result<Memory> make(const Lni& lni, const Request& request);
  // Waits for what is under way; afterwards the device does not reach it. Kept when it is still in use.
  [[nodiscard]] Status give_back() { return handle_.give_back(); }
  [[nodiscard]] bool valid() const { return handle_.valid(); }
  [[nodiscard]] std::uint32_t number() const { return handle_.number(); }
  [[nodiscard]] std::uint32_t lac() const { return md_.lac; }
  [[nodiscard]] const w::Md& md() const { return md_; }
  // What commands call the byte at `address`.
  [[nodiscard]] std::uint64_t iova(std::uint64_t address) const { return md_.iova + (address - md_.va); }

 private:
  Told told_;  // outlives the handle
  Handle<w::AtuUnmapCmd, &w::AtuUnmapCmd::id> handle_;
  w::Md md_{};
};

// What makes a descriptor urgent when an event queue has something.
class Wait {
 public:
  Wait() = default;
  [[nodiscard]] static Result<Wait> make(const Lni& lni);
  [[nodiscard]] std::uint32_t number() const { return handle_.number(); }
  [[nodiscard]] int fd() const { return notifier_.get(); }

 private:
  Handle<w::WaitFreeCmd, &w::WaitFreeCmd::wait> handle_;
  sys::Fd notifier_;
};

// A counter with its doorbell page, and the word that the device writes it back to.
class Counter {
 public:
  Counter() = default;
  // `word`: 8 bytes aligned to 8, or null: it is never written back. It outlives the counter.
  [[nodiscard]] static Result<Counter> make(const Lni& lni, std::uint64_t* word);
  [[nodiscard]] std::uint32_t number() const { return handle_.number(); }
  [[nodiscard]] std::byte* doorbell() const { return doorbell_.data(); }
  [[nodiscard]] std::uint64_t doorbell_bytes() const { return doorbell_.size(); }
  // From now on it is written back to another word.
  [[nodiscard]] Status move_to(std::uint64_t* word);
  void add(std::uint64_t successes) { store(w::kCtAddSuccessOffset, successes); }
  void add_failures(std::uint64_t failures) { store(w::kCtAddFailureOffset, failures); }
  void reset_success() { store(w::kCtResetSuccessOffset, 0); }
  void reset_failure() { store(w::kCtResetFailureOffset, 0); }

 private:
  void store(std::uint32_t offset, std::uint64_t value);
  Handle<w::CtFreeCmd, &w::CtFreeCmd::ctn> handle_;
  Pages doorbell_;
};

// A portal entry at an index of a domain's PID. It is disabled until a target command enables it.
class Portal {
 public:
  Portal() = default;
  [[nodiscard]] static Result<Portal> make(const Lni& lni, const Domain& domain, std::uint32_t index,
                                           std::uint32_t event_queue, std::uint64_t options);
  [[nodiscard]] std::uint32_t number() const { return handle_.number(); }  // what target commands and events name
  [[nodiscard]] std::uint32_t index() const { return index_; }             // what senders name
  [[nodiscard]] Result<w::PteStatus> status() const;
  // Nothing arrives at it afterwards. What was done of this is not done again.
  [[nodiscard]] Status give_back();

 private:
  Handle<w::PteFreeCmd, &w::PteFreeCmd::pte_number> handle_;
  Handle<w::PteUnmapCmd, &w::PteUnmapCmd::pte_index> mapped_;
  std::uint32_t index_ = 0;
};

}  // namespace strait::rail::cxi
