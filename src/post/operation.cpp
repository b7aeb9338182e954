// SPDX-License-Identifier: Apache-2.0
// The slow half of the operation table.
#include "post/operation.hpp"

namespace strait::post {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::put: return "put";
    case Kind::get: return "get";
    case Kind::fetch_add: return "fetch_add";
    case Kind::compare_swap: return "compare_swap";
    case Kind::send: return "send";
    case Kind::receive: return "receive";
    case Kind::batch: return "batch";
  }
  return "operation";
}

OpTable::OpTable(std::uint32_t depth, std::uint64_t tag)
    : memory_(static_cast<std::byte*>(::operator new(depth * sizeof(Record), std::align_val_t{alignof(Record)}))),
      tag_(tag),
      mask_(depth - 1) {}

bool OpTable::make_one() {
  const std::uint32_t slot = made_.load(std::memory_order_relaxed);
  if (slot > mask_) return false;
  auto* const record = new (memory_.get() + slot * sizeof(Record)) Record;
  record->id = kGeneration | tag_ | slot;  // generation 1 and up: an id of 0 is never good
  record->next = kNone;
  free_ = slot;
  made_.store(slot + 1, std::memory_order_release);  // holds() may look at it
  return true;
}

bool OpTable::holds(const void* region) const {
  const std::uint32_t made = made_.load(std::memory_order_acquire);
  for (std::uint32_t slot = 0; slot < made; ++slot) {
    if (at(slot).holder.load(std::memory_order_acquire) == region) return true;
  }
  return false;
}

}  // namespace strait::post
