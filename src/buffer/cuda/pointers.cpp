// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/pointers.hpp"

#include <bit>

namespace strait::buffer::cuda {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e37'79b9'7f4a'7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51'afd7'ed55'8ccd;
  return hash ^ (hash >> 32);
}

constexpr int kMostMappings = 1 << 17;  // 2 MiB each: more than any device has

}  // namespace

Pointers::Pointers(const Driver& driver) : driver_(driver) {
  // Asked about memory that is not the driver's: known attributes are answered with zero, unknown ones with an error.
  int here = 0;
  const auto knows = [&](int name) {
    Batch<1> batch{{name}, {}, {}};
    return batch.ask(driver_, reinterpret_cast<Pointer>(&here));
  };
  knows_pools_ = knows(kPtrPool) && knows(kPtrAllowedHandles);
  knows_mappings_ = knows(kPtrMappingBase) && knows(kPtrMappingSize);
  knows_blocks_ = knows(kPtrBlockId);
}

bool Pointers::extent(Pointer pointer, Found& found, Extent& out) const {
  Batch<11> batch{
      {kPtrRangeStart, kPtrRangeSize, kPtrLegacyIpc, kPtrRdmaCapable, kPtrDeviceOrdinal, kPtrBufferId}, {}, {}};
  unsigned n = 6;
  const bool loose = found.device && !found.managed && found.context == nullptr;
  // Where the answer will be; nothing when the question is not asked.
  const auto also = [&](int name, bool known) -> const std::uint64_t* {
    static constexpr std::uint64_t kNothing = 0;
    if (!loose || !known) return &kNothing;
    batch.names[n] = name;
    return &batch.values[n++];
  };
  const std::uint64_t* const pool = also(kPtrPool, knows_pools_);
  const std::uint64_t* const allowed = also(kPtrAllowedHandles, knows_pools_);
  const std::uint64_t* const mapping = also(kPtrMappingBase, knows_mappings_);
  const std::uint64_t* const size = also(kPtrMappingSize, knows_mappings_);
  const std::uint64_t* const block = also(kPtrBlockId, knows_blocks_);
  if (!batch.ask(driver_, pointer, n)) return false;
  out.base = out.reservation = batch.values[0];
  out.length_bytes = batch.values[1];
  out.legacy_ipc = batch.flag(2);
  out.rdma_capable = batch.flag(3);
  found.ordinal = batch.number(4);
  found.buffer_id = batch.values[5];
  out.pool = std::bit_cast<Pool>(*pool);
  out.allowed_handles = *allowed;
  out.block_id = *block;
  if (out.pool == nullptr && *size != 0) {
    out.base = *mapping;
    out.length_bytes = *size;
  }
  return out.length_bytes != 0 && pointer - out.base < out.length_bytes;
}

// The mapping that begins or ends at the edge of `from`, in the same reservation of the same device.
bool Pointers::next_mapping(const Found& found, const Extent& from, Pointer at, Found& next_found, Extent& next) const {
  if (!look(at, next_found) || !extent(at, next_found, next) || !is_vmm(next_found, next)) return false;
  return next_found.ordinal == found.ordinal && next.reservation == from.reservation;
}

Extent Pointers::run_around(const Found& found, const Extent& own) const {
  Extent run = own;
  Found seen;
  Extent next;
  for (int i = 0; i < kMostMappings; ++i) {
    if (!next_mapping(found, own, run.end(), seen, next) || next.base != run.end()) break;
    run.length_bytes += next.length_bytes;
  }
  for (int i = 0; i < kMostMappings; ++i) {
    if (run.base <= run.reservation) break;
    if (!next_mapping(found, own, run.base - 1, seen, next) || next.end() != run.base) break;
    run.base = next.base;
    run.length_bytes += next.length_bytes;
  }
  return run;
}

bool Pointers::covers(Pointer pointer, std::uint64_t length_bytes, const Found& found, const Extent& own) const {
  if (length_bytes > UINT64_MAX - pointer) return false;
  const Pointer end = pointer + length_bytes;
  if (end <= own.end()) return true;
  if (!is_vmm(found, own)) return false;
  Pointer reached = own.end();
  Found seen;
  Extent next;
  for (int i = 0; i < kMostMappings && reached < end; ++i) {
    if (!next_mapping(found, own, reached, seen, next) || next.base != reached) return false;
    reached = next.end();
  }
  return reached >= end;
}

std::uint64_t Pointers::identity_of(const Found& found, const Extent& extent) {
  if (!is_vmm(found, extent)) return found.buffer_id;
  return mixed(mixed(mixed(found.buffer_id, extent.block_id), extent.base), extent.length_bytes) | 1;
}

std::uint64_t Pointers::identity(Pointer pointer, std::uint64_t length_bytes) const {
  Batch<2> batch{{kPtrBufferId, kPtrContext}, {}, {}};
  if (!batch.ask(driver_, pointer)) return 0;
  // An allocation with a context has one id for its whole life and never another length.
  if (batch.values[1] != 0 || batch.values[0] == 0) return batch.values[0];
  Found found;
  Extent own;
  if (!look(pointer, found) || !extent(pointer, found, own)) return 0;
  if (!is_vmm(found, own)) return found.buffer_id;
  std::uint64_t all = identity_of(found, own);
  if (length_bytes > UINT64_MAX - pointer) return 0;
  const Pointer end = pointer + length_bytes;
  Extent from = own;
  for (int i = 0; i < kMostMappings && from.end() < end; ++i) {
    Found seen;
    Extent next;
    if (!next_mapping(found, own, from.end(), seen, next) || next.base != from.end()) return 0;
    all = mixed(all, identity_of(seen, next)) | 1;
    from = next;
  }
  return from.end() >= end ? all : 0;
}

}  // namespace strait::buffer::cuda
