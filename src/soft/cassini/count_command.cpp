// SPDX-License-Identifier: Apache-2.0
// Commands of a queue for counters: at once, or when another counter has reached a number.
#include <algorithm>
#include <cstring>
#include <utility>

#include "soft/cassini/engine.hpp"
#include "soft/cassini/strict.hpp"
#include "sys/clock.hpp"

namespace strait::soft::cassini {

using wire::CtOp;
using wire::ReturnCode;

namespace {

wire::CtCmd ct_command(const std::uint64_t* words) {
  wire::CtCmd command;
  std::memcpy(&command, words, sizeof command);
  return command;
}

// Each half is counted if it is marked; with neither marked, both are: the marks say "set" and are a setting's.
void increment(Card& card, Ct& ct, const wire::CtCmd& command) {
  const bool neither = !command.with_success() && !command.with_failure();
  card.count(ct, command.with_success() || neither ? command.ct_success() : 0,
             command.with_failure() || neither ? command.ct_failure() : 0);
}

void set_both(Card& card, Ct& ct, const wire::CtCmd& command) {
  set_counter(card, ct, command.with_success(), command.ct_success(), command.with_failure(), command.ct_failure());
}

// What waits in the trigger is looked at when it is armed: later there is no command left to refuse.
bool can_embed(const std::uint64_t* words) {
  const auto header = static_cast<std::uint8_t>(words[0]);
  if (wire::type_of_header(header) != wire::CmdType::dma) return false;
  const wire::CmdSize size = wire::size_of_header(header);
  switch (static_cast<wire::DmaOp>(wire::opcode_of_header(header))) {
    case wire::DmaOp::put:
    case wire::DmaOp::get:
    case wire::DmaOp::rendezvous_put: return size == wire::CmdSize::b64;
    case wire::DmaOp::nomatch_put:
    case wire::DmaOp::nomatch_get: return size == wire::CmdSize::b32;
    case wire::DmaOp::atomic:
    case wire::DmaOp::fetching_atomic: return size == wire::CmdSize::b128;
    default: return false;
  }
}

// A service with limits has only as many entries as it may have; the device has 2048.
bool has_entry(const Card& card, const Lni& lni) {
  if (card.tles_in_use >= wire::kNumTles) return false;
  if (lni.service == nullptr || (lni.service->desc.flags & wire::kSvcResourceLimits) == 0) return true;
  // Who says nothing of them has no pool, and takes from the common one.
  const std::uint32_t most = lni.service->desc.limits[static_cast<std::size_t>(Resource::tle)].max;
  return most == 0 || lni.service->tles < most;
}

ReturnCode arm(Card& card, Cq& cq, const std::uint64_t* words, CtOp op) {
  const wire::CtCmd command = ct_command(words);
  Ct* const watched = find_ct(card, cq, command.trig_ct());
  if (watched == nullptr) return ReturnCode::cmd_invalid_arg;
  if (!has_entry(card, *cq.lni)) return ReturnCode::no_space;
  take_doorbells(card, *watched);
  Trigger& trigger = card.wait_for(*watched, command.threshold());
  trigger.op = op;
  trigger.cq = &cq;
  const bool wide = op == CtOp::trig_dma;
  std::copy_n(words, wide ? 16u : 8u, trigger.command.begin());
  ++card.tles_in_use;
  ++cq.unacknowledged;
  if (Service* const service = cq.lni->service) {
    ++service->tles;
    if (service->tle_pool) card.registers.triggers(*service->tle_pool, service->tles);
  }
  card.settle(*watched, false);
  return ReturnCode::ok;
}

template <class Event>
void post_triggered(Card& card, Eq& eq, const wire::CtCmd& command, wire::EventSize size) {
  Event event{};
  event.set_threshold(command.threshold());
  event.set_ct_handle(command.trig_ct());
  event.set_event_size(size);
  event.set_event_type(wire::EventType::triggered_op);
  event.set_return_code(ReturnCode::ok);
  if constexpr (sizeof(Event) == sizeof(wire::TriggeredLong)) {
    const auto now = static_cast<std::uint64_t>(sys::wall_ns());
    event.set_timestamp_ns(static_cast<std::uint32_t>(now % 1'000'000'000));
    event.set_timestamp_sec(now / 1'000'000'000);
  }
  card.post(eq, &event, sizeof event);
}

}  // namespace

ReturnCode counter_command(Card& card, Cq& cq, const std::uint64_t* words) {
  const wire::CtCmd command = ct_command(words);
  const wire::CmdSize size = command.cmd_size();
  const auto op = static_cast<CtOp>(command.opcode());
  if (size != (op == CtOp::trig_dma ? wire::CmdSize::b128 : wire::CmdSize::b64)) return ReturnCode::cmd_invalid_arg;
  if (op == CtOp::noop) return ReturnCode::ok;
  if (op > CtOp::trig_event) return ReturnCode::illegal_op;

  if (op == CtOp::trig_dma) {
    return can_embed(words + wire::kEmbeddedDmaOffset / 8) ? arm(card, cq, words, op) : ReturnCode::illegal_op;
  }
  if (op == CtOp::trig_event) {
    if (command.eq() != wire::kEqNone && find_eq(card, cq, command.eq()) == nullptr) return ReturnCode::invalid_event;
    return arm(card, cq, words, op);
  }

  Ct* const ct = find_ct(card, cq, command.ct());
  if (ct == nullptr) return ReturnCode::cmd_invalid_arg;
  if (op == CtOp::trig_set || op == CtOp::trig_inc) return arm(card, cq, words, op);
  // A client that rang the doorbell before it rang the queue has done so in that order.
  take_doorbells(card, *ct);
  switch (op) {
    case CtOp::set: set_both(card, *ct, command); break;
    case CtOp::get: store_counter(*ct); break;
    case CtOp::inc: increment(card, *ct, command); break;
    case CtOp::cancel: card.cancel(*ct); break;
    default: break;
  }
  return ReturnCode::ok;
}

void fire(Card& card, const Trigger& trigger) {
  const wire::CtCmd command = ct_command(trigger.command.data());
  switch (trigger.op) {
    case CtOp::trig_dma: {
      // There is no ring that could hold it back.
      const bool may_wait = std::exchange(trigger.cq->may_wait, false);
      const ReturnCode code = dma_command(card, *trigger.cq, trigger.command.data() + wire::kEmbeddedDmaOffset / 8);
      trigger.cq->may_wait = may_wait;
      if (code != ReturnCode::ok) fail_queue(card, *trigger.cq, code, command.header());
      return;
    }
    case CtOp::trig_event:
      if (const Ct* const watched = find_ct(card, *trigger.cq, command.trig_ct())) store_counter(*watched);
      if (Eq* const eq = find_eq(card, *trigger.cq, command.eq())) {
        if ((eq->flags & wire::kEqInitLong) != 0) {
          post_triggered<wire::TriggeredLong>(card, *eq, command, wire::EventSize::b32);
        } else {
          post_triggered<wire::TriggeredShort>(card, *eq, command, wire::EventSize::b16);
        }
      }
      return;
    default: break;
  }
  Ct* const ct = find_ct(card, *trigger.cq, command.ct());
  if (ct == nullptr) {  // freed meanwhile
    if (trigger.cq->strict != nullptr) trigger.cq->strict->counter_missing(trigger, command.ct());
    return;
  }
  if (trigger.op == CtOp::trig_set) {
    set_both(card, *ct, command);
  } else {
    increment(card, *ct, command);
  }
}

}  // namespace strait::soft::cassini
