// SPDX-License-Identifier: Apache-2.0
// Reaping: completions become finished operations.
#include "post/lane.hpp"

namespace strait::post {
namespace {

using rail::kOwner;
namespace mlx5 = wire::mlx5;

}  // namespace

std::uint32_t Lane::reap() {
  device::CompletionRing& ring = queue_->completions();
  for (std::uint32_t taken = 0;; ++taken) {
    const device::Entry entry = device::next_entry(ring);
    if (entry.cqe == nullptr) return taken;
    if (entry.is_plain_success()) [[likely]] {
      const std::uint16_t counter = entry.cqe->wqe_counter.value();
      device::take_entry(ring);
      const device::Finished finished = device::complete_up_to<kOwner>(queue_->send(), counter);
      if (finished.known) finish_up_to(finished.end);
    } else {
      reap_unusual(entry);
    }
  }
}

// Receives and failures.
void Lane::reap_unusual(const device::Entry& entry) {
  device::Completion completion;
  const device::Polled polled = device::read_cqe(*entry.cqe, entry.op_own, completion);
  device::take_entry(queue_->completions());
  if (completion.is_requester()) {
    on_error(completion);
  } else {
    on_receive(completion, polled == device::Polled::error);
  }
}

// The record leaves the queue order: the region is free, the outcome stays until somebody asks for it.
void Lane::finish(OpTable& table, Record& record) {
  if ((record.kind == Kind::fetch_add || record.kind == Kind::compare_swap) && record.syndrome == 0) {
    record.value = results_[table.slot_of(record)];
  }
  if ((record.flags & kUnstage) != 0 && record.syndrome == 0) [[unlikely]] {
    if (!unstage_(record.holder.load(std::memory_order_relaxed), record.value, record.bytes))
      record.flags |= kUnstageFailed;
  }
  table.pop();
  const bool failed = record.syndrome != 0 || (record.flags & kUnstageFailed) != 0;
  if (record.state == State::in_flight) {
    record.state = failed ? State::failed : State::done;
    return;
  }
  if (failed) {
    if (record.owner != kNone) {  // a part: the whole fails with the first part that did
      Record& whole = table.at(record.owner);
      if (whole.syndrome == 0) whole.syndrome = record.syndrome;
      whole.flags |= record.flags & kUnstageFailed;
    } else if (!detached_failed_) {
      detached_failed_ = true;
      detached_failure_ = outcome_of(record);
    }
  }
  table.give_back(record);
}

void Lane::on_error(const device::Completion& completion) {
  const device::Finished finished = device::complete_up_to<kOwner>(queue_->send(), completion.wqe_counter);
  if (!finished.known) return;
  finish_up_to(finished.start);  // what lies before the failed WQE was executed
  Record* record = sends_->first();
  const auto syndrome = static_cast<std::uint8_t>(completion.syndrome);
  if (!broken_) {
    broken_ = true;
    first_error_ = {syndrome, completion.vendor_syndrome, record != nullptr ? record->kind : Kind::put};
  }
  if (record == nullptr) return;  // a NOP of ours
  if (record->syndrome == 0) record->syndrome = syndrome;
  finish_up_to(finished.end);
}

void Lane::on_receive(const device::Completion& completion, bool failed) {
  const device::Taken taken = device::take_receive<kOwner>(queue_->receive(), completion.wqe_counter);
  if (!taken.known) return;
  Record* record = receives_->first();
  if (record == nullptr) return;
  record->bytes = completion.byte_count;
  if (failed) {
    record->syndrome = static_cast<std::uint8_t>(completion.syndrome);
    if (!broken_) {
      broken_ = true;
      first_error_ = {record->syndrome, completion.vendor_syndrome, Kind::receive};
    }
  } else if (completion.opcode == mlx5::CqeOpcode::responder_write_imm) {
    // The bytes went where the put said, not into this buffer.
    record->flags = static_cast<std::uint8_t>((record->flags & ~kUnstage) | kHasImm);
    record->imm = completion.imm.value();
  } else if (completion.opcode == mlx5::CqeOpcode::responder_send_imm) {
    record->flags |= kHasImm;
    record->imm = completion.imm.value();
  }
  finish(*receives_, *record);
}

Outcome Lane::outcome_of(const Record& record) {
  Outcome out;
  out.kind = record.kind;
  out.failed = record.syndrome != 0 || (record.flags & kUnstageFailed) != 0;
  out.has_imm = (record.flags & kHasImm) != 0;
  out.unstaging_failed = (record.flags & kUnstageFailed) != 0;
  out.syndrome = record.syndrome;
  out.imm = record.imm;
  out.bytes = (record.flags & kBatch) != 0 ? record.batch_bytes : record.bytes;
  out.value = record.kind == Kind::fetch_add || record.kind == Kind::compare_swap ? record.value : 0;
  return out;
}

Asked Lane::ask(std::uint64_t id, Outcome& outcome) {
  OpTable& table = table_of(id);
  Record* record = table.find(id);
  if (record == nullptr || record->state == State::detached) return Asked::unknown;
  if (record->state == State::in_flight) return Asked::pending;
  if (record->state == State::done && record->kind == Kind::put && (record->flags & kBatch) == 0) [[likely]]
    outcome.bytes = record->bytes;
  else
    outcome = outcome_of(*record);
  table.give_back(*record);
  return Asked::finished;
}

bool Lane::detach(std::uint64_t id) {
  OpTable& table = table_of(id);
  Record* record = table.find(id);
  if (record == nullptr || record->state == State::detached) return false;
  if (record->state == State::in_flight) {
    record->state = State::detached;
    return true;
  }
  if (record->state == State::failed && !detached_failed_) {
    detached_failed_ = true;
    detached_failure_ = outcome_of(*record);
  }
  table.give_back(*record);
  return true;
}

void Lane::stands_for(std::uint64_t id, std::uint64_t bytes) {
  Record* record = table_of(id).find(id);
  if (record == nullptr) return;
  record->batch_bytes = bytes;
  record->flags |= kBatch;
}

bool Lane::take_detached_failure(Outcome& outcome) {
  if (!detached_failed_) return false;
  detached_failed_ = false;
  outcome = detached_failure_;
  return true;
}

void Lane::close() {
  if (!queue_) return;
  queue_.reset();
  results_key_.reset();
  broken_ = true;
  for (OpTable* table : {sends_.get(), receives_.get()}) {
    while (Record* record = table->first()) {
      record->syndrome = static_cast<std::uint8_t>(mlx5::Syndrome::flushed);
      finish(*table, *record);
    }
  }
}

}  // namespace strait::post
