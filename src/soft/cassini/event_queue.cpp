// SPDX-License-Identifier: Apache-2.0
// Event queues, the device's half. Events lie in blocks of 64 bytes and never cross from one to the next; the first
// block is the status. One block stays empty, so that full and empty differ.
#include <algorithm>
#include <bit>
#include <cstring>

#include "soft/cassini/card.hpp"
#include "soft/cassini/faults.hpp"
#include "soft/cassini/strict.hpp"
#include "soft/cassini/translation.hpp"
#include "sys/clock.hpp"

namespace strait::soft::cassini {

namespace {

constexpr std::uint32_t kEventBlock = wire::kEventBlockBytes;

wire::EqSwState consumer_state(const Eq& eq) {
  return {eq.state_page == nullptr ? 0 : __atomic_load_n(eq.state_page, __ATOMIC_ACQUIRE)};
}

// How far the consumer has read. What it says of the buffer before the switch does not count, nor does what cannot be.
std::uint32_t read_slot(Eq& eq, wire::EqSwState state) {
  if (state.reading_buffer_b() != eq.on_buffer_b || state.rd_ptr() == eq.read_slot) return eq.read_slot;
  if (eq.lni != nullptr && eq.lni->strict != nullptr)
    eq.lni->strict->acknowledged(eq, state.rd_ptr(), static_cast<std::uint32_t>(eq.write_byte / kEventBlock));
  if (state.rd_ptr() >= 1 && state.rd_ptr() < eq.slots) eq.read_slot = state.rd_ptr();
  return eq.read_slot;
}

// Blocks without an event of the consumer's, the one that stays empty not counted.
std::uint32_t free_slots(Eq& eq, wire::EqSwState state) {
  const std::uint32_t ring = eq.slots - 1;
  const auto end = static_cast<std::uint32_t>((eq.write_byte + kEventBlock - 1) / kEventBlock);
  const std::uint32_t used = (end + ring - read_slot(eq, state)) % ring;
  return ring - 1 - used;
}

// The last word last: it holds the return code, which is what a consumer looks at.
void store_event(const Eq& eq, std::uint64_t at, const void* event, std::uint32_t bytes) {
  const auto* const from = static_cast<const std::byte*>(event);
  if (eq.buffer.direct != nullptr) {
    std::byte* const to = eq.buffer.direct + at;
    std::memcpy(to, from, bytes - 8);
    store_bytes(to + bytes - 8, from + bytes - 8, 8);
    return;
  }
  // A client whose memory is gone has no use for events either.
  if (write(eq.buffer, at, from, bytes - 8) && write(eq.buffer, at + bytes - 8, from + bytes - 8, 8)) return;
  if (eq.lni != nullptr && eq.lni->strict != nullptr) eq.lni->strict->not_stored(eq.buffer, Thing::event_queue, eq.id);
}

template <std::size_t Words>
std::uint64_t store_null(const Eq& eq, std::uint64_t at) {
  wire::EventWords<Words> filler{};
  filler.set_event_size(Words == 2 ? wire::EventSize::b16 : wire::EventSize::b32);
  filler.set_event_type(wire::EventType::null_event);
  filler.set_return_code(wire::ReturnCode::ok);
  store_event(eq, at, &filler, sizeof filler);
  return sizeof filler;
}

void advance_event(Eq& eq, std::uint64_t bytes) {
  eq.write_byte += bytes;
  if (eq.write_byte >= std::uint64_t{eq.slots} * kEventBlock) eq.write_byte = kEventBlock;
}

// Nothing is written unless there is room, `spare` blocks of those that stay empty counted in.
bool append_event(Eq& eq, wire::EqSwState state, const void* event, std::uint32_t bytes, std::uint32_t spare) {
  const auto inside = static_cast<std::uint32_t>(eq.write_byte % kEventBlock);
  const bool alone = (eq.flags & wire::kEqCombiningDisable) != 0;
  const bool new_block = inside == 0 || alone || inside + bytes > kEventBlock;
  if (new_block && free_slots(eq, state) + spare == 0) return false;
  if (new_block && inside != 0) {
    if ((kEventBlock - inside) % 32 != 0) eq.write_byte += store_null<2>(eq, eq.write_byte);
    while (eq.write_byte % kEventBlock != 0) eq.write_byte += store_null<4>(eq, eq.write_byte);
    advance_event(eq, 0);
  }
  const std::uint64_t at = eq.write_byte;
  std::uint64_t taken = bytes;
  // The card writes whole blocks, and consumers know: they look for a return code at the end of a block whose only
  // event is a short one of the target's. So that half is there first, and no other event comes into it.
  if (bytes == kEventBlock / 2 && at % kEventBlock == 0) taken += store_null<4>(eq, at + bytes);
  store_event(eq, at, event, bytes);
  advance_event(eq, taken);
  return true;
}

// How many fill levels are reached, as the driver programs them: from free slots, of which six bits are kept.
std::uint32_t levels_reached(const Eq& eq, std::uint32_t free) {
  if (eq.threshold_count == 0) return 0;
  const std::uint64_t slots = eq.slots - 1;
  const std::uint64_t base = slots * (100 - std::min(eq.threshold_base, 100u)) / 100;
  const std::uint64_t delta = slots * eq.threshold_delta / 100;
  const auto width = static_cast<int>(std::bit_width(std::max(base, delta)));
  const int shift = width > 6 ? width - 6 : 0;
  std::uint32_t reached = 0;
  for (std::uint32_t i = 0; i < eq.threshold_count; ++i) {
    const std::uint64_t level = ((base >> shift) << shift) + i * ((delta >> shift) << shift);
    if (free <= level) ++reached;
  }
  return reached;
}

void store_status(Eq& eq, wire::EqSwState state, bool by_level, std::uint32_t level) {
  wire::EqStatus status{};
  const auto now = static_cast<std::uint64_t>(sys::wall_ns());
  const auto ns = static_cast<std::uint32_t>(now % 1'000'000'000);
  status.set_timestamp_ns_copy(ns);
  status.set_timestamp_ns(ns);
  status.set_timestamp_sec_copy(now / 1'000'000'000);
  status.set_timestamp_sec(now / 1'000'000'000);
  status.set_thld_sts(by_level);
  status.set_thld_id(level);
  status.set_unackd_dropped_event(eq.drop_number != state.event_drop_seq_no());
  status.set_event_drop_seq_no(eq.drop_number);
  status.set_event_slots_free(free_slots(eq, state));
  status.set_event_slots_rsrvd(eq.reserved_fc);
  status.set_wr_ptr(static_cast<std::uint32_t>(eq.write_byte / kEventBlock));
  status.set_using_buffer_b(eq.on_buffer_b);
  if (eq.buffer.direct == nullptr) {
    (void)write(eq.buffer, 0, status.words, sizeof status);
  } else {
    for (std::size_t i = 0; i < std::size(status.words); ++i) {
      store_bytes(eq.buffer.direct + i * 8, &status.words[i], 8);
    }
  }
  if (!state.eq_sts_int_disable() && eq.status_wait != nullptr && eq.status_wait->raise) eq.status_wait->raise();
}

}  // namespace

void Card::wake(Eq& eq, wire::EqSwState state) {
  if (eq.event_wait == nullptr) return;
  if (!state.event_int_disable()) {
    if (eq.event_wait->raise) eq.event_wait->raise();
    return;
  }
  // The consumer enables them by a store that nobody tells us of; an event of before must wake it then.
  if (!std::exchange(eq.watched, true)) watched_.push_back(eq.id);
}

bool Card::has_room(Eq& eq, std::uint32_t events) {
  const std::uint32_t free = free_slots(eq, consumer_state(eq));
  return free >= eq.reserved_fc && free - eq.reserved_fc >= events;
}

bool Card::post(Eq& eq, const void* event, std::uint32_t bytes) {
  if (eq.next) switch_buffer(eq);
  const wire::EqSwState state = consumer_state(eq);
  const bool loses = eq.lni != nullptr && eq.lni->faults != nullptr && eq.lni->faults->loses_event();
  if (loses || !append_event(eq, state, event, bytes, 0)) {
    if (!loses && eq.lni != nullptr && eq.lni->strict != nullptr) eq.lni->strict->event_dropped(eq, event, bytes);
    tally.dropped_events.add_owner_thread();
    const bool known = eq.drop_number == state.event_drop_seq_no();
    if (!known) return false;  // it was told already and has not answered
    eq.drop_number = !state.event_drop_seq_no();
    if ((eq.flags & wire::kEqDropStatusDisable) == 0) store_status(eq, state, false, 0);
    return false;
  }
  tally.events.add_owner_thread();
  if (eq.threshold_count != 0) {
    const std::uint32_t reached = levels_reached(eq, free_slots(eq, state));
    if (reached > eq.last_threshold) store_status(eq, state, true, eq.threshold_count - reached);
    eq.last_threshold = reached;
  }
  wake(eq, state);
  return true;
}

void Card::switch_buffer(Eq& eq) {
  if (!eq.next) return;
  const wire::EqSwState state = consumer_state(eq);
  wire::EventHead last{};
  last.set_event_size(wire::EventSize::b16);
  last.set_event_type(wire::EventType::eq_switch);
  last.set_return_code(wire::ReturnCode::ok);
  append_event(eq, state, &last, sizeof last, 1);  // the block that stays empty is for this one
  eq.buffer = eq.next->buffer;
  eq.slots = eq.next->slots;
  eq.next.reset();
  eq.on_buffer_b = !eq.on_buffer_b;
  eq.write_byte = kEventBlock;
  eq.read_slot = 1;
  eq.last_threshold = 0;
  wake(eq, state);
}

// What a consumer's stores or time alone bring about.
void Card::look_at_event_queues() {
  for (std::size_t i = 0; i < watched_.size();) {
    Eq* const eq = event_queues.find(watched_[i]);
    bool done = eq == nullptr || !eq->watched || eq->event_wait == nullptr;
    if (!done) {
      const wire::EqSwState state = consumer_state(*eq);
      const bool unread = read_slot(*eq, state) != eq->write_byte / kEventBlock;
      // Within one block the pointers do not tell read from unread: woken once too often is the safe side.
      const bool in_block = eq->write_byte % kEventBlock != 0;
      if (!unread && !in_block) {
        done = true;
      } else if (!state.event_int_disable()) {
        if (eq->event_wait->raise) eq->event_wait->raise();
        done = true;
      }
    }
    if (!done) {
      ++i;
      continue;
    }
    if (eq != nullptr) eq->watched = false;
    watched_[i] = watched_.back();
    watched_.pop_back();
  }

  if (++passes_ % 256 != 0) return;
  const std::int64_t now = sys::now_ns();
  const bool tick = now >= next_timestamp_ns_;
  if (tick) next_timestamp_ns_ = now + 1'000'000'000;  // the driver's default period
  event_queues.each([&](Eq& eq) {
    if (eq.next) switch_buffer(eq);
    if (!tick || (eq.flags & wire::kEqTimestampEvents) == 0) return;
    wire::TimestampEvent event{};
    const auto wall = static_cast<std::uint64_t>(sys::wall_ns());
    event.set_timestamp_ns(static_cast<std::uint32_t>(wall % 1'000'000'000));
    event.set_timestamp_sec(wall / 1'000'000'000);
    event.set_event_size(wire::EventSize::b16);
    event.set_event_type(wire::EventType::timestamp);
    event.set_return_code(wire::ReturnCode::ok);
    post(eq, &event, sizeof event);
  });
}

}  // namespace strait::soft::cassini
