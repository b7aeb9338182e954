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

OpTable::OpTable(std::uint32_t depth, std::uint64_t tag) : records_(new Record[depth]), mask_(depth - 1) {
  for (std::uint32_t slot = 0; slot < depth; ++slot) {
    // Generation 1 and up: an id of 0 is never good.
    records_[slot].id = kGeneration | tag | slot;
    records_[slot].next = slot + 1 < depth ? slot + 1 : kNone;
  }
}

bool OpTable::holds(const void* region) const {
  for (std::uint32_t slot = 0; slot <= mask_; ++slot) {
    if (records_[slot].holder.load(std::memory_order_acquire) == region) return true;
  }
  return false;
}

}  // namespace strait::post
