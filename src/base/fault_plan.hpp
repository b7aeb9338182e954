// SPDX-License-Identifier: Apache-2.0
// FaultPlan: what a software device does wrong on purpose, as a text and as decisions.
//
//   drop=2%,dup=1%,reorder=1%,delay=1%:500us,corrupt=0.1%,rnr=5%,error=0.01%:0x13,down=1s..2s,stall=1s..1.2s,
//   overrun=1000,gone=50,seed=7
//
// Pure: what happens to message n of a flow depends on the seed, the flow and n alone, so that a failing run can be run
// again and its decisions printed without running it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace strait {

enum class Fault : std::uint8_t { none, drop, duplicate, reorder, delay, corrupt };
[[nodiscard]] const char* fault_name(Fault fault);

struct FaultPlan {
  static constexpr std::int64_t kReorderNs = 1'000'000;  // a late message that nobody overtakes leaves after all
  std::uint64_t seed = 1;
  // Probabilities, 0 to 1. Of the five that concern one message at most one happens to it.
  double drop = 0;
  double duplicate = 0;
  double reorder = 0;
  double delay = 0;
  double corrupt = 0;
  double rnr = 0;    // a posted receive is overlooked: "receiver not ready"
  double error = 0;  // a work request fails although nothing is wrong with it
  std::int64_t delay_ns = 500'000;
  std::uint8_t error_syndrome = 0x14;  // as the completion shows it; default: remote operation error
  // Since the device was opened; nothing leaves and nothing arrives, or: the engine does not run at all.
  std::int64_t down_from_ns = 0, down_until_ns = 0;
  std::int64_t stall_from_ns = 0, stall_until_ns = 0;
  std::uint64_t overrun = 0;  // the n-th completion finds its queue full; 0: never
  std::uint64_t gone = 0;     // the device is removed when it is to begin its n-th work request; 0: never

  // Code::invalid names the part that is wrong, and what it could be.
  [[nodiscard]] static Result<FaultPlan> parse(std::string_view text);
  // The same plan again, in one canonical form.
  [[nodiscard]] std::string text() const;

  [[nodiscard]] bool touches_messages() const { return drop + duplicate + reorder + delay + corrupt > 0; }
  [[nodiscard]] Fault on_message(std::uint64_t flow, std::uint64_t n) const;
  [[nodiscard]] bool on_receive(std::uint64_t flow, std::uint64_t n) const;  // true: pretend there is none
  [[nodiscard]] bool on_work(std::uint64_t flow, std::uint64_t n) const;     // true: it fails
  // How exactly: the bit that is damaged, and how many messages overtake a late one.
  [[nodiscard]] std::uint64_t damaged_bit(std::uint64_t flow, std::uint64_t n, std::uint64_t bits) const;
  [[nodiscard]] std::uint64_t overtaken_by(std::uint64_t flow, std::uint64_t n) const;
  // When a message that is overtaken or delayed leaves at the latest, counted from now.
  [[nodiscard]] std::int64_t late_by_ns(Fault fault) const { return fault == Fault::reorder ? kReorderNs : delay_ns; }
  [[nodiscard]] bool down(std::int64_t age_ns) const { return age_ns >= down_from_ns && age_ns < down_until_ns; }
  [[nodiscard]] bool stalled(std::int64_t age_ns) const { return age_ns >= stall_from_ns && age_ns < stall_until_ns; }

 private:
  [[nodiscard]] std::uint64_t dice(std::uint64_t flow, std::uint64_t n, std::uint64_t purpose) const;
};

}  // namespace strait
