// SPDX-License-Identifier: Apache-2.0
#include "explore/world.hpp"

#include <cstring>

namespace explore {

namespace {

std::uint64_t image_of(std::uint32_t first, std::uint32_t second) {
  return sw::be64{static_cast<std::uint64_t>(first) << 32 | second}.raw();
}
std::uint32_t value_of(std::uint64_t raw) {
  return sw::be32::from_raw(static_cast<std::uint32_t>(raw)).value();
}
std::uint64_t later(std::uint64_t raw, unsigned bytes) {
  return raw >> (8 * bytes);
}

}  // namespace

// ---- Memory -------------------------------------------------------------------------------------------------------

void World::make(Machine& m) {
  blocks_memory_.fill(0);
  cqe_memory_.fill(0);
  marks_memory_.fill(0);
  landing_memory_.fill(0);
  number_.fill(0);
  counter_of_.fill(0);
  counter_ = {};
  state = sd::QueueState{};
  record_memory_ = {};
  consumer_memory_ = {};
  doorbell_memory_ = 0;
  executed_ = shape_.first;
  produced_ = polled_ = 0;
  const std::uint32_t blocks = 1u << shape_.log_blocks;
  const auto cell = [&m](auto* at, Kind kind, unsigned index = 0) {
    return m.memory.add(at, sizeof(*at), kind, index, false);
  };

  bool opened = false;
  if (shape_.receives) {
    sd::ReceiveRingMemory memory;
    memory.entries = blocks_memory_.data();
    memory.log_entries = shape_.log_blocks;
    memory.record = &record_memory_;
    memory.marks = marks_memory_.data();
    memory.first_index = shape_.first;
    opened = sd::open_receive_ring(receive, memory);
    record_ = cell(receive.record, Kind::record);
  } else {
    sd::SendRingMemory memory;
    memory.blocks = blocks_memory_.data();
    memory.log_blocks = shape_.log_blocks;
    memory.qpn = kQpn;
    memory.record = &record_memory_;
    memory.doorbell = &doorbell_memory_;
    memory.marks = marks_memory_.data();
    memory.first_index = shape_.first;
    opened = sd::open_send_ring(send, memory);
    record_ = cell(send.record, Kind::record);
    doorbell_ = cell(send.doorbell, Kind::doorbell);
  }
  // A receive of one piece is one segment; the inline write of 8 bytes is three of a block's four.
  const unsigned words = shape_.receives ? 2 : 6;
  for (unsigned i = 0; i < blocks; ++i)
    for (unsigned w = 0; w < words; ++w)
      wqe_[i * 8 + w] =
          m.memory.add(blocks_memory_.data() + i * (shape_.receives ? 16 : 64) + w * 8, 8, Kind::wqe, i * 10 + w, true);
  if (shape_.shared) {
    auto& s = shape_.receives ? receive.slots : send.slots;
    reserved_ = cell(&s.reserved, Kind::reserved);
    cell(&s.ready, Kind::ready);
    rung_ = cell(&s.rung, Kind::rung);
    cell(&s.requests, Kind::requests);
    completed_ = cell(&s.completed, Kind::completed);
    for (unsigned i = 0; i < blocks; ++i) marks_[i] = cell(&marks_memory_[i], Kind::mark, i);
  }
  if (shape_.lands)
    for (unsigned i = 0; i < blocks; ++i) landing_[i] = m.memory.add(&landing_memory_[i], 8, Kind::landing, i, true);

  if (shape_.cq == Cq::none) {
    if (!opened) __builtin_trap();
    return;
  }
  const std::uint32_t entries = 1u << shape_.log_cqes;
  for (unsigned i = 0; i < entries; ++i) cqe_memory_[i * 64 + 63] = mlx5::kCqeInvalid;
  sd::CompletionRingMemory memory;
  memory.entries = cqe_memory_.data();
  memory.log_entries = shape_.log_cqes;
  memory.record = &consumer_memory_;
  opened = opened && sd::open_completion_ring(completions, memory);
  if (!opened) __builtin_trap();
  if (shape_.lanes) {
    state.head = sd::head_of<sd::QueueState>();
    state.sharing = shape_.shared ? sd::Sharing::many_threads : sd::Sharing::one_thread;
    state.counters = 1;
    state.counter_words = &counter_;
    state.counter_of = counter_of_.data();
    if (shape_.shared) {
      reaper_ = cell(&state.send_reaper, Kind::reaper);
      cell(&state.failure, Kind::failure);
      counted_ = cell(&counter_.succeeded, Kind::counter);
      failed_ = cell(&counter_.failed, Kind::counter, 1);
    }
  }
  if (shape_.cq == Cq::collapsed) {
    tail_ = m.memory.add(cqe_memory_.data() + 60, 4, Kind::op_own, 0, false);
    return;
  }
  for (unsigned i = 0; i < entries; ++i) {
    std::uint8_t* const cqe = cqe_memory_.data() + i * 64;
    cqes_[i].user = m.memory.add(cqe + 32, 8, Kind::cqe, i * 100 + 32, true, i + 1);
    cqes_[i].bytes = m.memory.add(cqe + 40, 8, Kind::cqe, i * 100 + 40, true, i + 1);
    cqes_[i].qpn = m.memory.add(cqe + 56, 4, Kind::cqe, i * 100 + 56, true, i + 1);
    cqes_[i].counter = m.memory.add(cqe + 60, 2, Kind::cqe, i * 100 + 60, true, i + 1);
    cqes_[i].own = m.memory.add(cqe + 63, 1, Kind::op_own, i, false, i + 1);
  }
  consumer_ = cell(completions.record, Kind::consumer);
}

void World::committed(std::uint64_t start, std::uint32_t number) {
  const std::uint64_t at = start - shape_.first;
  if (at >= kMostEntries || number_[at] != 0) machine().violation("entry %llu was given out twice", at + 0ull);
  number_[at] = number;
}

// ---- What must hold after every store ------------------------------------------------------------------------------

// What a doorbell says, as the index behind the newest WQE. One owner names that WQE, posters who share the next one.
std::uint64_t World::rung_by(std::uint64_t doorbell) const {
  return widened(value_of(doorbell) >> 8) + (shape_.shared ? 0 : 1);
}

// In the order that the device sees, not in that of execution.
void World::forward_only(Machine& m, unsigned cell) {
  const auto& history = m.memory.cell(cell).history;
  std::uint64_t last = shape_.first;
  for (std::size_t i = 1; i < history.size(); ++i) {
    const std::uint64_t raw = m.memory.messages[history[i]].value;
    const bool is_record = cell == record_;
    const std::uint64_t now = is_record ? widened(value_of(raw)) : rung_by(raw);
    if (now <= last)
      m.violation("the %s goes from %llu to %llu", is_record ? "record" : "doorbell", last + 0ull, now + 0ull);
    for (std::uint64_t at = last; at < now; ++at)
      if (at - shape_.first >= kMostEntries || number_of(at) == 0)
        m.violation("entry %llu is shown to the device before it is committed", at + 0ull);
    last = now;
  }
}

void World::stored(Machine& m, unsigned cell) {
  const Kind kind = m.memory.cell(cell).kind;
  if (kind == Kind::record || kind == Kind::doorbell) forward_only(m, cell);
  if (kind == Kind::completed && m.memory.newest(cell).value > executed_)
    m.violation("completions are counted up to %llu, executed up to %llu", m.memory.newest(cell).value + 0ull,
                executed_ + 0ull);
  if (kind == Kind::reserved && m.memory.newest(cell).value > m.memory.newest(completed_).value + slots().capacity)
    m.violation("more is reserved than the ring has room for");
}

void World::finish(Machine& m) {
  std::uint64_t end = shape_.first;
  while (end - shape_.first < kMostEntries && number_of(end) != 0) ++end;
  const std::uint64_t reserved = shape_.shared ? m.memory.newest(reserved_).value : slots().reserved;
  if (reserved != end) m.violation("reserved %llu, committed %llu", reserved + 0ull, end + 0ull);
  const std::uint64_t shown = widened(value_of(m.memory.newest(record_).value));
  if (shown != end) m.violation("everybody has rung, but the record says %llu of %llu", shown + 0ull, end + 0ull);
  if (!shape_.receives && end != shape_.first) {
    const std::uint64_t rung = rung_by(m.memory.newest(doorbell_).value);
    if (rung != end) m.violation("everybody has rung, but the doorbell says %llu of %llu", rung + 0ull, end + 0ull);
  }
  if (executed_ != end) m.violation("%llu of %llu were executed", executed_ + 0ull, end + 0ull);
  if (!shape_.lanes) return;
  const std::uint64_t good = (end < shape_.fails_at ? end : shape_.fails_at) - shape_.first;
  const std::uint64_t counted = shape_.shared ? m.memory.newest(counted_).value : counter_.succeeded;
  if (counted != good) m.violation("%llu ended, the counter says %llu", good + 0ull, counted + 0ull);
  const std::uint64_t failed = shape_.shared ? m.memory.newest(failed_).value : counter_.failed;
  if (failed != end - shape_.first - good)
    m.violation("%llu failed, the counter says %llu", end - shape_.first - good + 0ull, failed + 0ull);
}

// ---- The device ---------------------------------------------------------------------------------------------------

void World::serve() {
  Machine& m = machine();
  for (;;) {
    m.settle(0, mix(executed_, produced_));
    if (!shape_.receives && m.await({doorbell_, record_}) == doorbell_) {
      const std::uint64_t raw = m.load(Leaf::device_read, doorbell_);
      const std::uint64_t end = rung_by(raw);
      // It may have dropped the contents and go by the record alone.
      const std::uint64_t published = widened(value_of(m.load(Leaf::device_read, record_)));
      if (published < end)
        m.violation("a doorbell for %llu arrived, the record still says %llu", end + 0ull, published + 0ull);
      while (executed_ < published) execute(executed_);
      continue;
    }
    if (shape_.receives) m.await({record_});
    const std::uint64_t published = widened(value_of(m.load(Leaf::device_read, record_)));
    while (executed_ < published) execute(executed_);
  }
}

// Reads the entry and compares it with what its poster meant.
void World::execute(std::uint64_t index) {
  Machine& m = machine();
  const std::uint32_t number = number_of(index);
  if (number == 0) m.violation("the device was shown entry %llu, which nobody committed", index + 0ull);
  const std::uint64_t slot = index & (slots().capacity - 1);
  std::array<std::uint64_t, 6> w{};
  for (unsigned i = 0; i < (shape_.receives ? 2u : 6u); ++i) w[i] = m.read_data(wqe_[slot * 8 + i]);
  const std::uint64_t payload = ~std::uint64_t{number};
  const bool whole = shape_.receives
                         ? w[0] == image_of(number, number) && w[1] == image_of(0, number)
                         : w[0] == image_of(mlx5::control_word0(0, index, mlx5::Opcode::rdma_write), kQpn << 8 | 3) &&
                               w[1] == std::uint64_t{sd::kSignaled} << 24 && w[2] == image_of(0, number) &&
                               value_of(w[3]) == number && value_of(w[4]) == (mlx5::kInlineFlag | 8) &&
                               later(w[4], 4) == (payload & 0xffffffffu) && w[5] == payload >> 32;
  if (!whole) m.violation("entry %llu is published but not whole", index + 0ull);
  if (shape_.lands) m.store(Leaf::device_write, landing_[slot], number);
  ++executed_;
  complete(index, number);
}

void World::complete(std::uint64_t index, std::uint32_t number) {
  Machine& m = machine();
  const auto counter = sw::be16{static_cast<std::uint16_t>(index)}.raw();
  if (shape_.cq == Cq::collapsed) {
    const std::uint32_t own = mlx5::make_op_own(mlx5::CqeOpcode::requester, 0);
    m.store(Leaf::device_write, tail_, counter | own << 24);
  } else if (shape_.cq == Cq::normal) {
    const std::uint64_t entries = std::uint64_t{1} << shape_.log_cqes;
    // An entry is used again only once its reader has said so.
    while (!shape_.lanes && produced_ - value_of(m.load(Leaf::device_read, consumer_)) >= entries) m.await({consumer_});
    const CqeCells& c = cqes_[produced_ & (entries - 1)];
    m.store(Leaf::device_write, c.user, image_of(number, number));
    m.store(Leaf::device_write, c.bytes, image_of(0, number));
    m.store(Leaf::device_write, c.qpn, sw::be32{0x08u << 24 | kQpn}.raw());
    m.store(Leaf::device_write, c.counter, counter);
    auto opcode = shape_.receives ? mlx5::CqeOpcode::responder_send : mlx5::CqeOpcode::requester;
    if (index >= shape_.fails_at) {
      opcode = mlx5::CqeOpcode::requester_error;
      const auto why = index == shape_.fails_at ? mlx5::Syndrome::remote_access : mlx5::Syndrome::flushed;
      cqe_memory_[(produced_ & (entries - 1)) * 64 + 55] = static_cast<std::uint8_t>(why);  // read in errors only
    }
    const auto owner = static_cast<unsigned>(produced_ >> shape_.log_cqes & 1);
    ++produced_;
    m.store(Leaf::device_write, c.own, mlx5::make_op_own(opcode, owner));
  }
}

// ---- Readers ------------------------------------------------------------------------------------------------------

void World::check(sd::Polled polled, const sd::Completion& c) {
  Machine& m = machine();
  const std::uint64_t index = shape_.first + polled_++;
  const std::uint32_t number = number_of(index);
  if (polled != sd::Polled::done) m.violation("completion %llu is an error", index + 0ull);
  if (c.wqe_counter != static_cast<std::uint16_t>(index) || c.qpn != kQpn || c.user_index != number ||
      c.byte_count != number || c.imm.value() != number)
    m.violation("completion %llu was read as counter %u, qpn %x, user %u, bytes %u, immediate %u, should be %u",
                index + 0ull, c.wqe_counter, c.qpn, c.user_index, c.byte_count, c.imm.value(), number);
}

void World::check_landed(std::uint64_t start) {
  Machine& m = machine();
  const std::uint64_t landed = m.read_data(landing_[start & (slots().capacity - 1)]);
  if (landed != number_of(start))
    m.violation("request %llu is done, but its payload reads %llx", start + 0ull, landed + 0ull);
}

}  // namespace explore
