// SPDX-License-Identifier: Apache-2.0
#include "node/near.hpp"

#include <atomic>

#include "node/core.hpp"
#include "node/near_word.hpp"
#include "sys/copy.hpp"
#include "sys/process.hpp"

namespace strait::node {

const grant::Window* look_up(Near& near, const strait_target& target) {
  const std::uint64_t now = near.mark->generation.load(std::memory_order_acquire);
  if (near.generation != now) near.found.fill({});
  near.generation = now;
  const grant::Window* const window = near.host->find(target.region_id, target.address, target.rkey);
  if (window != nullptr && window->memory != nullptr)
    near.found[target.region_id % std::size(near.found)] = {target.region_id, window};
  return window;
}

namespace {

using grant::Way;
using grant::Window;

// Inside only.
const Window* window_of(Near& near, const strait_target& target) {
  const Window* const before = near.found_before(*near.mark, target.region_id);
  if (before != nullptr && before->subject.address == target.address && before->subject.rkey == target.rkey)
    return before;
  return look_up(near, target);
}

// Held while an operation looks for a window and uses it.
class Reaching {
 public:
  Reaching(strait_lane& lane, Near& near)
      : use_(lane),
        lane_(lane),
        near_(near),
        drives_(is_turn_to_drive(near.mark->word.load(std::memory_order_relaxed) + 2)),
        inside_(*near.mark, near.needs_fence) {
    if (drives_) lane.core.queue().drive();
  }
  // Null: not granted, not any more, or not for this.
  [[nodiscard]] const Window* find(const strait_target& target, std::uint64_t offset, std::uint64_t length_bytes,
                                   std::uint32_t right) const {
    if (lane_.core.broken()) return nullptr;
    const Window* const window = window_of(near_, target);
    if (window == nullptr || !window->is_good() || window->subject.epoch != target.epoch) return nullptr;
    return window->allows(offset, length_bytes, right) ? window : nullptr;
  }

 private:
  const Using use_;
  strait_lane& lane_;
  Near& near_;
  const bool drives_;
  const grant::Inside inside_;
};

// Whether there is nothing to look up: a copy grant does not serve what is short.
bool goes_by_nic(const Near& near, std::uint64_t length_bytes) {
  return length_bytes < kCopyAtLeast && !near.host->has_maps();
}

struct Sides {
  std::byte* local;
  const Window* window;
  std::uint64_t offset;
  std::uint64_t length_bytes;
};

[[gnu::noinline]] bool can_call(const Near& near, const Sides& sides) {
  // A process number may be somebody else's by now; the socket's other end tells.
  return sides.length_bytes >= kCopyAtLeast && near.host->is_there();
}

bool can_move(const Near& near, const Sides& sides) {
  return sides.local != nullptr && (sides.window->way == Way::map || can_call(near, sides));
}

[[gnu::noinline]] bool move_by_call(const Near& near, const Sides& sides, bool put) {
  const iovec here{sides.local, sides.length_bytes};
  const iovec there{reinterpret_cast<void*>(sides.window->subject.address + sides.offset), sides.length_bytes};
  const auto copy = put ? sys::write_process : sys::read_process;
  // What failed half-way is done again by the NIC, whose answer is then the right one.
  return static_cast<bool>(copy(near.host->pid(), std::span(&here, 1), std::span(&there, 1), sys::real_calls()));
}

bool move(const Near& near, const Sides& sides, bool put) {
  if (sides.window->way != Way::map) [[unlikely]]
    return move_by_call(near, sides, put);
  std::byte* const there = sides.window->memory + sides.offset;
  std::byte* const to = put ? there : sides.local;
  const std::byte* const from = put ? sides.local : there;
  if (sides.length_bytes == sizeof(std::uint64_t)) {  // flags and counters: no call
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else {
    sys::copy_bytes(to, from, sides.length_bytes);
  }
  return true;
}

void raise(const Near& near, const Window& window, const strait_op_options& options) {
  // Sequentially consistent, as the sleeper's own store is: one of the two sees the other.
  window.signals->words[options.signal].fetch_add(options.signal_add);
  near.host->wake_sleepers();
}

// Whether the options ask for something that only the NIC can do.
bool is_for_nic(strait_lane& lane, const strait_op_options* options) {
  if (options == nullptr || options->flags == 0) return false;
  if ((options->flags & STRAIT_WITH_IMM) != 0) return true;
  return (options->flags & STRAIT_FENCE) != 0 && lane.core.under_way() != 0;
}

bool wants_signal(const strait_op_options* options) {
  return options != nullptr && (options->flags & STRAIT_WITH_SIGNAL) != 0;
}

std::uint64_t complete(std::uint64_t bytes, Way way) {
  return STRAIT_OP_COMPLETE | (way == Way::copy ? STRAIT_OP_BY_COPY : 0) | (bytes & STRAIT_OP_BYTES);
}

}  // namespace

Way way_to(strait_lane& lane, Near& near, const strait_target& target) {
  const Reaching reaching(lane, near);
  const Window* const window = reaching.find(target, 0, 0, 0);
  return window == nullptr ? Way::none : window->way;
}

bool put_near(strait_lane& lane, Near& near, const strait_slice& from, const strait_target& to, std::uint64_t to_offset,
              const strait_op_options* options, std::uint64_t& id) {
  if (goes_by_nic(near, from.length_bytes)) return false;
  const Reaching reaching(lane, near);
  if (is_for_nic(lane, options)) return false;
  const Window* const window = reaching.find(to, to_offset, from.length_bytes, STRAIT_REMOTE_WRITE);
  if (window == nullptr) return false;
  const bool signal = wants_signal(options);
  if (signal && window->signals == nullptr) return false;
  const Sides sides{from.region->view_at(from.offset), window, to_offset, from.length_bytes};
  if (!can_move(near, sides) || !move(near, sides, true)) return false;
  if (signal) raise(near, *window, *options);
  id = complete(from.length_bytes, window->way);
  return true;
}

bool get_near(strait_lane& lane, Near& near, const strait_slice& into, const strait_target& from,
              std::uint64_t from_offset, const strait_op_options* options, std::uint64_t& id) {
  if (goes_by_nic(near, into.length_bytes)) return false;
  const Reaching reaching(lane, near);
  if (is_for_nic(lane, options)) return false;
  const Window* const window = reaching.find(from, from_offset, into.length_bytes, STRAIT_REMOTE_READ);
  if (window == nullptr) return false;
  const Sides sides{into.region->view_at(into.offset), window, from_offset, into.length_bytes};
  if (!can_move(near, sides) || !move(near, sides, false)) return false;
  id = complete(into.length_bytes, window->way);
  return true;
}

bool atomic_near(strait_lane& lane, Near& near, post::Kind kind, const strait_target& at, std::uint64_t offset,
                 std::uint64_t operand, std::uint64_t compare, const strait_op_options* options, std::uint64_t& id) {
  const Reaching reaching(lane, near);
  if (is_for_nic(lane, options)) return false;
  const Window* const window = reaching.find(at, offset, sizeof(std::uint64_t), STRAIT_REMOTE_ATOMIC);
  if (window == nullptr || window->way != Way::map) return false;
  auto* const place = reinterpret_cast<std::uint64_t*>(window->memory + offset);
  if (reinterpret_cast<std::uintptr_t>(place) % sizeof *place != 0) return false;
  if (lane.core.room() == 0) return false;
  std::uint64_t before = compare;
  const std::atomic_ref word(*place);
  if (kind == post::Kind::fetch_add) {
    before = word.fetch_add(operand);
  } else {
    (void)word.compare_exchange_strong(before, operand);
  }
  id = lane.core.completed(kind, sizeof before, before) | STRAIT_OP_BY_MAP;
  return true;
}

bool batch_near(strait_lane& lane, Near& near, const strait_item* items, std::uint32_t n_items,
                const strait_op_options* options, std::uint64_t& id) {
  const Reaching reaching(lane, near);
  if (is_for_nic(lane, options)) return false;
  const auto sides_of = [&](const strait_item& item) {
    const std::uint32_t right = item.kind == STRAIT_PUT ? STRAIT_REMOTE_WRITE : STRAIT_REMOTE_READ;
    return Sides{item.local.region->view_at(item.local.offset),
                 reaching.find(*item.remote, item.remote_offset, item.local.length_bytes, right), item.remote_offset,
                 item.local.length_bytes};
  };
  for (std::uint32_t i = 0; i < n_items; ++i) {
    const Sides sides = sides_of(items[i]);
    if (sides.window == nullptr || !can_move(near, sides)) return false;
    if (i + 1 == n_items && wants_signal(options) && sides.window->signals == nullptr) return false;
  }
  std::uint64_t bytes = 0;
  Way way = Way::map;
  for (std::uint32_t i = 0; i < n_items; ++i) {
    const Sides sides = sides_of(items[i]);
    // Revoked in between, or a copy failed: the NIC does all of it, those that were done once more.
    if (sides.window == nullptr || !move(near, sides, items[i].kind == STRAIT_PUT)) return false;
    bytes += sides.length_bytes;
    if (sides.window->way == Way::copy) way = Way::copy;
    if (i + 1 == n_items && wants_signal(options)) raise(near, *sides.window, *options);
  }
  id = complete(bytes, way);
  return true;
}

}  // namespace strait::node
