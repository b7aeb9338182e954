// SPDX-License-Identifier: Apache-2.0
// A CXI device, asked as its driver is: by the commands of the kernel's interface, with rings written by hand. The
// software one of this process, or what the first argument names ("cxi0", "soft0").
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "strait/c.h"
#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"

namespace cassini {

namespace w = strait::wire::cxi;
inline constexpr std::uint32_t kVni = 1;

class Card {
 public:
  Card(int count, char** words) {
    check(strait_cxi_open(count > 1 ? words[1] : "local0", &raw_, error()));
    w::LniAllocCmd group{};
    group.svc_id = w::kDefaultService;
    lni = ask<w::LniAllocResp>(group).lni;
  }
  ~Card() { strait_cxi_close(raw_); }
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  template <class Answer, class Command>
  Answer ask(Command command) {
    Answer answer{};
    command.resp = reinterpret_cast<std::uint64_t>(&answer);
    tell(command);
    return answer;
  }
  template <class Command>
  void tell(Command command) {
    command.op = Command::kOp;
    check(strait_cxi_command(raw_, &command, sizeof command, error()));
  }
  // VNI and traffic class, as queues name them.
  w::CpAllocResp profile() {
    w::TrigCpAllocCmd command{};
    command.lni = lni;
    command.vni = kVni;
    command.tc = w::TrafficClass::best_effort;
    command.cp_type = w::CpType::triggered;
    return ask<w::CpAllocResp>(command);
  }
  std::byte* map(const w::MmInfo& pages) {
    void* at = nullptr;
    check(strait_cxi_map(raw_, pages.offset, pages.size, &at, error()));
    return static_cast<std::byte*>(at);
  }
  void unmap(std::byte* at, std::uint64_t bytes) { strait_cxi_unmap(raw_, at, bytes); }

  std::uint32_t lni = 0;

 private:
  strait_error* error() { return &error_; }
  void check(std::int32_t code) const {
    if (code == STRAIT_OK) return;
    std::fprintf(stderr, "%s\n", error_.text);
    std::exit(1);
  }
  strait_cxi_device* raw_ = nullptr;
  strait_error error_{};
};

// A command queue: whole blocks, far fewer than it has.
class Queue {
 public:
  Queue(Card& card, std::uint32_t flags, std::uint32_t lcid) : card_(card) {
    w::CqAllocCmd command{};
    command.lni = card.lni;
    command.opts.count = 64;
    command.opts.flags = flags;
    command.opts.lcid = lcid;
    made_ = card.ask<w::CqAllocResp>(command);
    ring_ = card.map(made_.cmds);
    launch_ = card.map(made_.wp_addr);
  }
  ~Queue() { free(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void free() {
    if (ring_ == nullptr) return;
    card_.unmap(ring_, made_.cmds.size);
    card_.unmap(launch_, made_.wp_addr.size);
    ring_ = nullptr;
    w::CqFreeCmd command{};
    command.cq = made_.cq;
    card_.tell(command);
  }
  // Written, rung, and waited for until the card has taken it.
  template <class Command>
  void run(const Command& command) {
    std::memcpy(ring_ + std::size_t{next_} * w::kBlockBytes, &command, sizeof command);
    ++next_;
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(launch_), next_, __ATOMIC_RELEASE);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (status().rd_ptr() != next_ && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    if (status().rd_ptr() == next_) return;
    std::fprintf(stderr, "the card has not taken a command\n");
    std::exit(1);
  }

 private:
  [[nodiscard]] w::QueueStatus status() const {
    return {__atomic_load_n(reinterpret_cast<const std::uint64_t*>(ring_), __ATOMIC_ACQUIRE)};
  }
  Card& card_;
  w::CqAllocResp made_{};
  std::byte* ring_ = nullptr;
  std::byte* launch_ = nullptr;
  std::uint32_t next_ = w::kFirstBlock;
};

}  // namespace cassini
