// SPDX-License-Identifier: Apache-2.0
// Posting.
#include "post/lane.hpp"

#include <algorithm>
#include <bit>

namespace strait::post {
namespace {

using rail::kOwner;
namespace mlx5 = wire::mlx5;

constexpr std::uint32_t kWordBytes = 8;

const void* pointer(std::uint64_t address) {
  return reinterpret_cast<const void*>(address);
}

}  // namespace

Result<Lane> Lane::make(const rail::Nic& nic, std::uint32_t depth, std::uint32_t signal_every) {
  Lane lane;
  // Two blocks for an operation: a put with a signal, or an inline payload of the largest size.
  const std::uint32_t blocks = std::min(mlx5::kMaxBlocks, std::max(64u, depth * 2));
  lane.sends_ = std::make_unique<OpTable>(depth, 0);
  lane.receives_ = std::make_unique<OpTable>(depth, kReceiveTag);
  lane.results_ = std::make_unique<std::uint64_t[]>(depth);
  rail::MemoryRequest request;
  request.address = reinterpret_cast<std::uint64_t>(lane.results_.get());
  request.length_bytes = std::uint64_t{depth} * sizeof(std::uint64_t);
  request.access = STRAIT_NIC_LOCAL_WRITE;
  STRAIT_TRY(lane.results_key_, nic.register_memory(request));
  STRAIT_TRY(lane.queue_, rail::Queue::make(nic, {blocks, depth}));
  // At least four completions fall due while the lane fills up, so that places come back before it is full.
  lane.signal_every_ = std::clamp(signal_every, 1u, std::max(1u, depth / 4));
  lane.inline_limit_ = std::min(kInlineLimit, nic.info().max_inline_bytes);
  return lane;
}

// A place in the table and room in the ring, or neither.
inline Posted Lane::take(Record*& record, std::uint32_t blocks) {
  if (broken_) [[unlikely]]
    return Posted::broken;
  device::SendRing& ring = queue_->send();
  if (blocks > ring.slots.capacity) [[unlikely]]
    return Posted::too_long;
  if (sends_->room() == 0 || device::free_blocks<kOwner>(ring) < blocks) [[unlikely]] {
    // Detached operations may have completed unnoticed; nobody else reaps them.
    reap();
    if (broken_) return Posted::broken;
    if (sends_->room() == 0) return Posted::no_place;
    if (device::free_blocks<kOwner>(ring) < blocks) return Posted::ring_full;
  }
  record = sends_->take();
  return Posted::ok;
}

inline void Lane::begin(Record& record, Kind kind, const Local& local) {
  record.kind = kind;
  record.bytes = local.length_bytes;
  record.value = local.offset;
  if (local.unstage) record.flags |= kUnstage;
  // Before the doorbell: whoever drops the region must find it in use from the moment the NIC may touch it.
  record.holder.store(local.holder, std::memory_order_relaxed);
}

inline device::Flags Lane::last_flags(bool signaled) {
  if (signaled || ++unsignaled_ >= signal_every_) {
    unsignaled_ = 0;
    return device::kSignaled;
  }
  return device::kNoFlags;
}

inline void Lane::finish_posting(Record& record, std::uint64_t& id) {
  record.end = queue_->send().slots.reserved;
  if (unsignaled_ == 0) signaled_end_ = record.end;
  id = record.id;
  sends_->queue(record);
  queue_->ring();
}

inline std::uint64_t Lane::piece_for(std::uint64_t length_bytes) const {
  return length_bytes / kGoodPiece < queue_->send().slots.capacity / 4 ? kGoodPiece : kMaxPiece;
}

// Room was reserved by take(): none of the posts below can fail.
inline void Lane::write_pieces(const Local& from, const device::Remote& to, const Extras& extras, device::Flags first,
                               device::Flags last) {
  device::SendRing& ring = queue_->send();
  const std::uint64_t most = piece_for(from.length_bytes);
  std::uint64_t done = 0;
  device::Flags flags = first;
  while (from.length_bytes - done > most) {
    (void)device::post_write<kOwner>(ring, {to.addr + done, to.rkey},
                                     {from.address + done, static_cast<std::uint32_t>(most), from.lkey}, flags);
    flags = device::kNoFlags;
    done += most;
  }
  const auto length = static_cast<std::uint32_t>(from.length_bytes - done);
  const device::Remote at{to.addr + done, to.rkey};
  flags = static_cast<device::Flags>(flags | last);
  if (from.cpu_accessible && length <= inline_limit_) {
    const void* payload = pointer(from.address + done);
    if (extras.with_imm) {
      (void)device::post_write_imm_inline<kOwner>(ring, at, payload, length, wire::be32{extras.imm}, flags);
    } else {
      (void)device::post_write_inline<kOwner>(ring, at, payload, length, flags);
    }
    return;
  }
  const device::Piece piece{from.address + done, length, from.lkey};
  if (extras.with_imm) {
    (void)device::post_write_imm<kOwner>(ring, at, piece, wire::be32{extras.imm}, flags);
  } else {
    (void)device::post_write<kOwner>(ring, at, piece, flags);
  }
}

inline void Lane::read_pieces(const Local& into, const device::Remote& from, device::Flags first, device::Flags last) {
  device::SendRing& ring = queue_->send();
  const std::uint64_t most = piece_for(into.length_bytes);
  std::uint64_t done = 0;
  device::Flags flags = first;
  do {
    const std::uint64_t left = into.length_bytes - done;
    const auto length = static_cast<std::uint32_t>(std::min(left, most));
    if (left <= most) flags = static_cast<device::Flags>(flags | last);
    (void)device::post_read<kOwner>(ring, {from.addr + done, from.rkey}, {into.address + done, length, into.lkey},
                                    flags);
    flags = device::kNoFlags;
    done += length;
  } while (done < into.length_bytes);
}

inline device::Piece Lane::result_piece(const Record& record) const {
  return {reinterpret_cast<std::uint64_t>(&results_[sends_->slot_of(record)]), 8, results_key_.lkey()};
}

// The queue pair executes in order: the signal is raised after the bytes before it have landed.
inline void Lane::add_signal(Record& record, const Extras& extras, device::Flags last) {
  (void)device::post_fetch_add<kOwner>(queue_->send(), extras.signal, extras.signal_add, result_piece(record), last);
}

inline std::uint32_t Lane::blocks_for(Kind kind, const Local& local, bool with_signal) const {
  const std::uint64_t most = piece_for(local.length_bytes);
  const std::uint64_t pieces = local.length_bytes <= most ? 1 : (local.length_bytes - 1) / most + 1;
  const std::uint64_t last = local.length_bytes - (pieces - 1) * most;
  std::uint64_t blocks = pieces + (with_signal ? 1 : 0);
  if (kind == Kind::put && local.cpu_accessible && last <= inline_limit_) {
    blocks += mlx5::blocks_of(2 + mlx5::inline_segments(static_cast<std::uint32_t>(last))) - 1;
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, UINT32_MAX));
}

// A word on its way to somebody who waits for it: one block, and everything about it known here.
Posted Lane::put_word(const void* from, const void* holder, std::uint64_t offset, device::Remote to,
                      std::uint64_t& id) {
  Record* record = nullptr;
  if (const Posted taken = take(record, 1); taken != Posted::ok) return taken;
  record->kind = Kind::put;
  record->bytes = kWordBytes;
  record->value = offset;
  record->holder.store(holder, std::memory_order_relaxed);
  (void)device::post_write_inline<kOwner>(queue_->send(), to, from, kWordBytes, last_flags(false));
  finish_posting(*record, id);
  return Posted::ok;
}

Posted Lane::put(const Local& from, const device::Remote& to, const Extras& extras, std::uint64_t& id) {
  Record* record = nullptr;
  if (const Posted taken = take(record, blocks_for(Kind::put, from, extras.with_signal)); taken != Posted::ok)
    return taken;
  begin(*record, Kind::put, from);
  const device::Flags first = extras.fence ? device::kFenced : device::kNoFlags;
  const device::Flags last = last_flags(false);
  if (extras.with_signal) [[unlikely]] {
    write_pieces(from, to, extras, first, device::kNoFlags);
    add_signal(*record, extras, last);
  } else {
    write_pieces(from, to, extras, first, last);
  }
  finish_posting(*record, id);
  return Posted::ok;
}

Posted Lane::get(const Local& into, const device::Remote& from, const Extras& extras, std::uint64_t& id) {
  Record* record = nullptr;
  if (const Posted taken = take(record, blocks_for(Kind::get, into, false)); taken != Posted::ok) return taken;
  begin(*record, Kind::get, into);
  read_pieces(into, from, extras.fence ? device::kFenced : device::kNoFlags, last_flags(false));
  finish_posting(*record, id);
  return Posted::ok;
}

Posted Lane::atomic(Kind kind, const device::Remote& at, std::uint64_t operand, std::uint64_t compare, bool fence,
                    std::uint64_t& id) {
  Record* record = nullptr;
  if (const Posted taken = take(record, 1); taken != Posted::ok) return taken;
  begin(*record, kind, Local{});
  record->bytes = 8;
  const auto flags = static_cast<device::Flags>(last_flags(false) | (fence ? device::kFenced : device::kNoFlags));
  if (kind == Kind::fetch_add) {
    (void)device::post_fetch_add<kOwner>(queue_->send(), at, operand, result_piece(*record), flags);
  } else {
    (void)device::post_compare_swap<kOwner>(queue_->send(), at, compare, operand, result_piece(*record), flags);
  }
  finish_posting(*record, id);
  return Posted::ok;
}

Posted Lane::send(const Local& from, const Extras& extras, std::uint64_t& id) {
  if (from.length_bytes > kMaxPiece) return Posted::too_long;  // a message cannot be cut: the receiver has one buffer
  Record* record = nullptr;
  const auto length = static_cast<std::uint32_t>(from.length_bytes);
  const bool in_ring = from.cpu_accessible && length <= inline_limit_;
  if (const Posted taken = take(record, in_ring ? mlx5::blocks_of(1 + mlx5::inline_segments(length)) : 1);
      taken != Posted::ok)
    return taken;
  begin(*record, Kind::send, from);
  const auto flags =
      static_cast<device::Flags>(last_flags(false) | (extras.fence ? device::kFenced : device::kNoFlags));
  device::SendRing& ring = queue_->send();
  const device::Piece piece{from.address, length, from.lkey};
  const wire::be32 imm{extras.imm};
  if (in_ring && extras.with_imm) {
    (void)device::post_send_imm_inline<kOwner>(ring, pointer(from.address), length, imm, flags);
  } else if (in_ring) {
    (void)device::post_send_inline<kOwner>(ring, pointer(from.address), length, flags);
  } else if (extras.with_imm) {
    (void)device::post_send_imm<kOwner>(ring, piece, imm, flags);
  } else {
    (void)device::post_send<kOwner>(ring, piece, flags);
  }
  finish_posting(*record, id);
  return Posted::ok;
}

Posted Lane::receive(const Local& into, std::uint64_t& id) {
  if (broken_) return Posted::broken;
  if (receives_->room() == 0) {
    reap();
    if (receives_->room() == 0) return Posted::no_place;
  }
  // No message is longer than one piece, so a longer buffer need not be described further.
  const auto length = static_cast<std::uint32_t>(std::min(into.length_bytes, kMaxPiece));
  device::ReceiveRing& ring = queue_->receive();
  const device::Piece piece{into.address, length, into.lkey};
  const device::Pending pending = device::post_receive<kOwner>(ring, &piece, length == 0 ? 0u : 1u);
  if (!pending.ok()) return Posted::ring_full;
  Record* record = receives_->take();
  begin(*record, Kind::receive, into);
  record->end = pending.start + 1;
  id = record->id;
  receives_->queue(*record);
  queue_->show_receives();
  return Posted::ok;
}

Posted Lane::batch(std::span<const BatchItem> items, const Extras& extras, std::uint64_t& id) {
  if (broken_) return Posted::broken;
  std::uint64_t blocks = extras.with_signal ? 1 : 0;
  for (const BatchItem& item : items) {
    blocks += blocks_for(item.kind, item.local, false);
  }
  device::SendRing& ring = queue_->send();
  if (items.size() > sends_->depth() || blocks > ring.slots.capacity) return Posted::too_long;
  if (sends_->room() < items.size() || device::free_blocks<kOwner>(ring) < blocks) {
    reap();
    if (broken_) return Posted::broken;
    if (sends_->room() < items.size()) return Posted::no_place;
    if (device::free_blocks<kOwner>(ring) < blocks) return Posted::ring_full;
  }
  // One place per item, so that each holds its own region; only the last is known to the caller.
  Record* const whole = sends_->take();
  std::uint64_t bytes = 0;
  const Extras none;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const BatchItem& item = items[i];
    const bool is_last = i + 1 == items.size();
    Record* const record = is_last ? whole : sends_->take();
    begin(*record, item.kind, item.local);
    bytes += item.local.length_bytes;
    if (!is_last) {
      record->state = State::detached;
      record->owner = sends_->slot_of(*whole);
    }
    const device::Flags first = i == 0 && extras.fence ? device::kFenced : device::kNoFlags;
    const device::Flags last = is_last && !extras.with_signal ? last_flags(false) : device::kNoFlags;
    if (item.kind == Kind::put) {
      write_pieces(item.local, item.remote, is_last ? extras : none, first, last);
    } else {
      read_pieces(item.local, item.remote, first, last);
    }
    if (is_last) break;
    record->end = ring.slots.reserved;
    sends_->queue(*record);
  }
  if (extras.with_signal) add_signal(*whole, extras, last_flags(false));
  whole->batch_bytes = bytes;
  whole->flags |= kBatch;
  finish_posting(*whole, id);
  return Posted::ok;
}

void Lane::expect(std::uint64_t id) {
  if (signal_every_ == 1 || (id & kReceiveTag) != 0) return;
  const Record* record = sends_->find(id);
  if (record == nullptr || record->end <= signaled_end_ || broken_) return;
  (void)mark();
}

std::uint64_t Lane::mark() {
  device::SendRing& ring = queue_->send();
  if (ring.slots.reserved > signaled_end_ && !broken_) {
    // When the ring is full of unsignaled work this fails, and the caller comes again; signal_every keeps that from
    // happening for good.
    if (device::post_nop<kOwner>(ring, device::kSignaled).ok()) {
      signaled_end_ = ring.slots.reserved;
      unsignaled_ = 0;
      queue_->ring();
    }
  }
  return ring.slots.reserved;
}

}  // namespace strait::post
