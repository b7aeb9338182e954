// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/faults.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "soft/cassini/engine.hpp"
#include "sys/clock.hpp"

namespace strait::soft::cassini {

using wire::ReturnCode;

namespace {

// Failures that an operation can end with: those that have a name, but for the ones that mean success or "later".
bool is_failure(std::uint8_t code) {
  constexpr std::uint8_t kLast = static_cast<std::uint8_t>(ReturnCode::trs_pend_rsp);
  constexpr std::uint8_t kNoNames[] = {0, 1, 7, 11, 12, 13, 14, 15, 17};
  return code <= kLast && std::find(std::begin(kNoNames), std::end(kNoNames), code) == std::end(kNoNames) &&
         code != static_cast<std::uint8_t>(ReturnCode::delayed) &&
         code != static_cast<std::uint8_t>(ReturnCode::resource_busy);
}

Status does_not_fit(std::string_view part, std::string_view why) {
  return with_remedy(fail(Code::unsupported, "faults: {} does not fit a Cassini: {}", part, why),
                     "A Cassini knows drop, delay, reorder, error=RATE:CODE, down, stall and overrun; for NICs and "
                     "Cassinis together use only these.");
}

// Without a place in an order, and with one block or less.
bool may_be_overtaken(const std::uint64_t* words) {
  const auto header = static_cast<std::uint8_t>(words[0]);
  if (wire::type_of_header(header) != wire::CmdType::dma) return false;
  const auto op = static_cast<wire::DmaOp>(wire::opcode_of_header(header));
  if (op == wire::DmaOp::nomatch_put) return wire::size_of_header(header) == wire::CmdSize::b32;
  if (op != wire::DmaOp::put || wire::size_of_header(header) != wire::CmdSize::b64) return false;
  wire::FullDmaCmd command;
  std::memcpy(&command, words, sizeof command);
  return command.restricted();
}

}  // namespace

Status check_cassini_faults(const FaultPlan& plan) {
  if (plan.duplicate > 0) return does_not_fit("dup", "the card takes every request once, however often it comes");
  if (plan.corrupt > 0)
    return does_not_fit("corrupt", "its links find what is damaged and send it again, which drop shows");
  if (plan.rnr > 0)
    return does_not_fit("rnr", "nothing is posted to a queue pair there; a message without a list entry is told so");
  if (plan.gone != 0) return does_not_fit("gone", "no way is known in which its programs would learn of it");
  if (plan.error > 0 && !is_failure(plan.error_syndrome))
    return does_not_fit(fmt::format("error with code {:#x}", plan.error_syndrome),
                        "no operation ends with that return code; 2 is undeliverable, 36 no translation");
  return {};
}

Faults::Faults(const FaultPlan& plan, Counter& injected)
    : plan_(plan), injected_(injected), opened_ns_(sys::now_ns()) {}

ReturnCode Faults::on_request(const Cq& cq) {
  Flow& flow = flows_[cq.id];
  if (flow.bringing_back) return ReturnCode::ok;  // it had its share
  const std::int64_t now = sys::now_ns();
  if (flow.until_ns != 0) {
    if (cq.may_wait && now < flow.until_ns) return ReturnCode::resource_busy;
    flow.until_ns = 0;
    if (std::exchange(flow.late, false)) return ReturnCode::ok;
  }
  if (flow.tries == 0 && plan_.on_work(cq.id, flow.operations++)) {
    injected_.add_owner_thread();
    return static_cast<ReturnCode>(plan_.error_syndrome);
  }
  for (;;) {
    const Fault fault = plan_.on_message(cq.id, flow.rolls++);
    if (fault == Fault::delay && cq.may_wait && flow.tries == 0) {
      injected_.add_owner_thread();
      flow.late = true;
      flow.until_ns = now + plan_.delay_ns;
      return ReturnCode::resource_busy;
    }
    if (fault != Fault::drop && !plan_.down(now - opened_ns_)) {
      flow.tries = 0;
      return ReturnCode::ok;
    }
    injected_.add_owner_thread();
    if (++flow.tries >= kMostTries) {
      flow.tries = 0;
      return ReturnCode::undeliverable;
    }
    // What a trigger sends has no ring to wait in: its tries follow each other.
    if (!cq.may_wait) continue;
    flow.until_ns = now + kResendNs;
    return ReturnCode::resource_busy;
  }
}

bool Faults::put_aside(Cq& cq, const std::uint64_t* words) {
  if (plan_.reorder == 0 || !cq.may_wait || !may_be_overtaken(words)) return false;
  Flow& flow = flows_[cq.id];
  if (flow.bringing_back || flow.tries != 0 || flow.until_ns != 0) return false;
  if (plan_.on_message(cq.id, flow.rolls) != Fault::reorder) return false;
  Aside aside;
  const bool small = wire::size_of_header(static_cast<std::uint8_t>(words[0])) == wire::CmdSize::b32;
  std::copy_n(words, small ? 4 : 8, aside.words.begin());
  aside.behind = plan_.overtaken_by(cq.id, flow.rolls++) + 1;  // its own step is counted too
  aside.until_ns = sys::now_ns() + FaultPlan::kReorderNs;
  flow.aside.push_back(aside);
  ++cq.unacknowledged;
  injected_.add_owner_thread();
  return true;
}

void Faults::carried_out(const Cq& cq) {
  if (plan_.reorder == 0) return;
  for (Aside& each : flows_[cq.id].aside) {
    if (each.behind != 0) --each.behind;
  }
}

void Faults::bring_back(Card& card, Cq& cq, bool all) {
  if (plan_.reorder == 0) return;
  Flow& flow = flows_[cq.id];
  if (flow.aside.empty() || flow.bringing_back) return;
  const std::int64_t now = sys::now_ns();
  flow.bringing_back = true;
  const bool may_wait = std::exchange(cq.may_wait, false);
  for (std::size_t i = 0; i < flow.aside.size() && !cq.failed;) {
    if (!all && flow.aside[i].behind != 0 && now < flow.aside[i].until_ns) {
      ++i;
      continue;
    }
    const Aside aside = flow.aside[i];
    flow.aside.erase(flow.aside.begin() + static_cast<std::ptrdiff_t>(i));
    --cq.unacknowledged;
    const ReturnCode code = dma_command(card, cq, aside.words.data());
    if (code != ReturnCode::ok) fail_queue(card, cq, code, static_cast<std::uint8_t>(aside.words[0]));
  }
  cq.may_wait = may_wait;
  flow.bringing_back = false;
}

bool Faults::stalled() const {
  return plan_.stall_until_ns != 0 && plan_.stalled(sys::now_ns() - opened_ns_);
}

bool Faults::loses_event() {
  if (plan_.overrun == 0 || ++events_ != plan_.overrun) return false;
  injected_.add_owner_thread();
  return true;
}

void Faults::forget(Cq& cq) {
  flows_.erase(cq.id);
}

}  // namespace strait::soft::cassini
