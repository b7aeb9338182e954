// SPDX-License-Identifier: Apache-2.0
// Faults: what goes wrong on purpose with the operations of one client, by a plan (base/fault_plan.hpp).
//
// A Cassini resends what its network loses, and a daemon on the host goes on where it gives up. So a program sees
// losses as time, and as the return code `undeliverable` when nobody tries any more. What it can see is what there is
// here:
//
//   drop, down     lost and sent again after kResendNs; after kMostTries the operation fails with undeliverable
//   delay          the queue waits
//   reorder        puts that have no place in an order (restricted) are overtaken by those behind them
//   error          an operation fails with a return code, nothing having moved
//   stall          command queues are not looked at
//   overrun        that event finds its queue full
//
// Which request meets which fault is decided by the seed, the number of the transmit queue and the number of its tries.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "base/fault_plan.hpp"
#include "soft/cassini/objects.hpp"

namespace strait::soft::cassini {

// Code::unsupported names the part that a Cassini's program could never see, and why.
[[nodiscard]] Status check_cassini_faults(const FaultPlan& plan);

class Faults {
 public:
  static constexpr std::int64_t kResendNs = 1'000'000;
  static constexpr std::uint32_t kMostTries = 8;

  Faults(const FaultPlan& plan, Counter& injected);
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // A request is about to leave. ok: it does; resource_busy: not yet (only while the queue can wait); else it fails.
  [[nodiscard]] wire::ReturnCode on_request(const Cq& cq);
  // A DMA command of a ring. True: it was put aside, to be carried out behind others.
  [[nodiscard]] bool put_aside(Cq& cq, const std::uint64_t* words);
  // Before a look at the ring: what was put aside and is due; `all`: everything, as before a fence. The queue may have
  // failed afterwards.
  void bring_back(Card& card, Cq& cq, bool all);
  // One more command was carried out: it has overtaken those that were put aside.
  void carried_out(const Cq& cq);
  [[nodiscard]] bool stalled() const;
  // One more event; true: it finds its queue full.
  [[nodiscard]] bool loses_event();
  void forget(Cq& cq);

 private:
  struct Aside {
    std::array<std::uint64_t, 8> words{};
    std::uint64_t behind = 0;  // so many more commands
    std::int64_t until_ns = 0;
  };
  struct Flow {
    std::uint64_t operations = 0;
    std::uint64_t rolls = 0;    // requests, each try counted
    std::uint32_t tries = 0;    // of the one that is under way
    std::int64_t until_ns = 0;  // it waits; 0: it does not
    bool late = false;          // it waits for nothing but time
    std::deque<Aside> aside;
    bool bringing_back = false;
  };

  const FaultPlan plan_;
  Counter& injected_;
  const std::int64_t opened_ns_;
  std::uint64_t events_ = 0;
  std::unordered_map<std::uint32_t, Flow> flows_;  // by transmit queue
};

}  // namespace strait::soft::cassini
