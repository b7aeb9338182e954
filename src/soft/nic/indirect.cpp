// SPDX-License-Identifier: Apache-2.0
#include "soft/nic/indirect.hpp"

#include <algorithm>

#include "soft/nic/engine.hpp"
#include "soft/nic/strict.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {

constexpr std::uint32_t kMostDeep = 4;             // keys within keys; also what ends those that contain themselves
constexpr std::uint32_t kMostLookedAt = 1u << 16;  // parts for one check
constexpr std::int32_t kPortFailed = 1;

constexpr DecodeFault bad_layout(const char* reason) {
  return {m::Syndrome::local_qp_operation, reason, kVendorMalformed};
}

constexpr std::uint32_t inner_access(bool writes) {
  return writes ? std::uint32_t{STRAIT_NIC_LOCAL_WRITE} : 0u;
}

// Whether all that a range of an indirect key maps may be touched, by looking at every part once.
class Looking {
 public:
  Looking(MemoryTable& table, std::uint32_t pd, bool writes) : table_(table), pd_(pd), writes_(writes) {}
  [[nodiscard]] KeyFault look(const Registration& key, std::uint64_t address, std::uint64_t length_bytes,
                              std::uint32_t deep) {
    const Layout& layout = key.indirect->layout();
    const std::uint64_t at = address - key.address;
    if (key.indirect->is_free()) return KeyFault::unknown_key;
    if (deep == kMostDeep || !layout.reaches(at, length_bytes)) return KeyFault::out_of_bounds;
    for (std::size_t i = 0; i < layout.parts().size(); ++i) {
      const Layout::At piece = layout.hull(i, at, length_bytes);
      if (++looked_at_ > kMostLookedAt) return KeyFault::out_of_bounds;
      if (piece.length_bytes == 0) continue;
      Registration* const inner = table_.find(piece.key);
      if (inner == nullptr || (inner->kind != KeyKind::registration && inner->kind != KeyKind::indirect))
        return KeyFault::unknown_key;
      KeyFault fault = KeyFault::none;
      if (MemoryTable::check_entry(inner, pd_, piece.address, piece.length_bytes, inner_access(writes_), fault) ==
          nullptr)
        return fault;
      if (inner->kind == KeyKind::indirect) fault = look(*inner, piece.address, piece.length_bytes, deep + 1);
      if (fault != KeyFault::none) return fault;
    }
    return KeyFault::none;
  }

 private:
  MemoryTable& table_;
  std::uint32_t pd_;
  bool writes_;
  std::uint32_t looked_at_ = 0;
};

}  // namespace

// ---- Layout ---------------------------------------------------------------------------------------------------------

void Layout::add(std::uint32_t key, std::uint64_t address, std::uint64_t length_bytes, std::uint64_t stride) {
  parts_.push_back({round_bytes_, length_bytes, address, stride, key});
  round_bytes_ += length_bytes;
}

Layout::At Layout::find(std::uint64_t at, std::uint64_t length_bytes) const {
  const std::uint64_t round = at / round_bytes_;
  const std::uint64_t rest = at % round_bytes_;
  const auto after = std::upper_bound(parts_.begin(), parts_.end(), rest,
                                      [](std::uint64_t value, const Part& part) { return value < part.begin; });
  const Part& part = *std::prev(after);
  const std::uint64_t skip = rest - part.begin;
  return {part.key, part.address + round * part.stride + skip, std::min(length_bytes, part.length_bytes - skip)};
}

Layout::At Layout::hull(std::size_t i, std::uint64_t at, std::uint64_t length_bytes) const {
  const Part& part = parts_[i];
  const std::uint64_t end = part.begin + part.length_bytes;
  std::uint64_t first = at / round_bytes_;
  std::uint64_t last = (at + length_bytes - 1) / round_bytes_;
  const std::uint64_t from = at - first * round_bytes_;                 // in the first round
  const std::uint64_t until = at + length_bytes - last * round_bytes_;  // in the last
  std::uint64_t low = from > part.begin ? from - part.begin : 0;
  std::uint64_t high = std::min(until, end) - std::min(until, part.begin);
  // The range begins behind the part, or ends before it: in those rounds nothing of it is touched.
  if (from >= end) {
    ++first;
    low = 0;
  }
  if (until <= part.begin) {
    if (last == 0) return {};
    --last;
    high = part.length_bytes;
  }
  if (first > last || (first == last && low >= high)) return {};
  std::uint64_t begin = part.address + first * part.stride + low;
  std::uint64_t behind = part.address + last * part.stride + high;
  if (first != last) {  // parts of two rounds may overlap
    begin = std::min(begin, part.address + (first + 1) * part.stride);
    behind = std::max(behind, part.address + (last - 1) * part.stride + part.length_bytes);
  }
  // A part that wraps around the end of all addresses is longer than anything that is registered.
  return {part.key, begin, behind - begin};
}

DecodeFault decode_layout(const RingView& ring, std::uint64_t offset, std::uint32_t segments, Layout& out) {
  const auto read = [&](std::uint32_t i, auto& segment) {
    static_assert(sizeof segment == m::kSegmentBytes);
    ring.read(offset + std::uint64_t{i} * m::kSegmentBytes, &segment, sizeof segment);
  };
  m::RepeatBlockSeg block;
  if (segments == 0) return bad_layout("a key without parts");
  read(0, block);
  if (block.op.value() != m::kRepeatOp) {
    for (std::uint32_t i = 0; i < segments; ++i) {
      m::DataSeg part;
      read(i, part);
      const std::uint32_t length = part.byte_count.value();
      if (length == 0 && part.lkey.value() == 0) break;  // what fills up the block
      // To hardware 2^31 bytes, which no driver writes so.
      if (length == 0 || (length & m::kInlineFlag) != 0) return bad_layout("a part of 0 bytes, or of 2^31 and more");
      out.add(part.lkey.value(), part.addr.value(), length);
    }
    return out.parts().empty() ? bad_layout("a key without parts") : DecodeFault{};
  }
  const std::uint32_t entries = block.entries.value();
  if (entries == 0 || block.repeat_count.value() == 0) return bad_layout("a block of parts that never comes");
  if (entries >= segments) return bad_layout("a block of parts runs past the end of its work request");
  for (std::uint32_t i = 0; i < entries; ++i) {
    m::RepeatEntrySeg part;
    read(i + 1, part);
    if (part.byte_count.value() == 0) return bad_layout("a strided part of 0 bytes");
    out.add(part.key.value(), part.addr.value(), part.byte_count.value(), part.stride.value());
  }
  if (out.round_bytes() != block.byte_count.value()) return bad_layout("a block that is not as long as its parts");
  out.repeat(block.repeat_count.value());
  return {};
}

// ---- The key --------------------------------------------------------------------------------------------------------

IndirectKey::IndirectKey(MemoryTable& table, Registration& entry, IndirectRequest request, bool guarded)
    : table_(table), entry_(entry), now_(std::move(request)), guarded_(guarded) {
  port_.abi_version = STRAIT_PLUGIN_ABI;
  port_.struct_size = offsetof(strait_memory_port, prepare);
  port_.context = this;
  port_.read = [](void* context, std::uint64_t address, void* into, std::uint64_t length_bytes) {
    return static_cast<IndirectKey*>(context)->move(address, static_cast<std::byte*>(into), length_bytes, false);
  };
  port_.write = [](void* context, std::uint64_t address, const void* from, std::uint64_t length_bytes) {
    auto* const host = const_cast<std::byte*>(static_cast<const std::byte*>(from));  // only read, see move
    return static_cast<IndirectKey*>(context)->move(address, host, length_bytes, true);
  };
  port_.compare_swap = [](void* context, std::uint64_t address, std::uint32_t width, std::uint64_t compare,
                          std::uint64_t compare_mask, std::uint64_t swap, std::uint64_t swap_mask, std::uint64_t* old) {
    const AtomicRequest atomic{true, width, swap, compare, swap_mask, compare_mask};
    return static_cast<IndirectKey*>(context)->run(address, atomic, *old);
  };
  port_.fetch_add = [](void* context, std::uint64_t address, std::uint32_t width, std::uint64_t add,
                       std::uint64_t boundary, std::uint64_t* old) {
    AtomicRequest atomic;
    atomic.width = width;
    atomic.operand = add;
    atomic.compare_mask = boundary;
    return static_cast<IndirectKey*>(context)->run(address, atomic, *old);
  };
  port_.order = [](void*) { __atomic_thread_fence(__ATOMIC_RELEASE); };
  show();
}

void IndirectKey::show() {
  entry_.address = now_.start;
  entry_.length_bytes = now_.free ? 0 : now_.length_bytes;
  entry_.access = now_.free ? 0 : now_.access;
}

bool IndirectKey::invalidate() {
  if (!now_.peers_may_free || now_.free) return false;
  now_.free = true;
  show();
  return true;
}

const char* IndirectKey::change(const KeyChange& wanted, Layout&& layout) {
  if (now_.room == 0) return "the key is not for work requests";
  if (wanted.frees) {
    if (now_.free || entry_.key != wanted.old_key) return "the key is not in use under this name";
    now_.free = true;
    show();
    return nullptr;
  }
  const auto says = [&](std::uint64_t bits) { return (wanted.mask & bits) != 0; };
  constexpr std::uint64_t rights =
      m::kUmrMaskLocalWrite | m::kUmrMaskRemoteRead | m::kUmrMaskRemoteWrite | m::kUmrMaskAtomic;
  constexpr std::uint64_t known =
      rights | m::kUmrMaskLength | m::kUmrMaskStart | m::kUmrMaskVariant | m::kUmrMaskQpn | m::kUmrMaskFree;
  if (wanted.signature || says(m::kUmrMaskBsf | m::kUmrMaskSignatureError)) return "keys have no signatures here";
  if (says(~known)) return "a property of keys that cannot be changed";
  if (says(m::kUmrMaskQpn) && !wanted.any_qp) return "only windows belong to a queue pair";
  if (wanted.check_free && !now_.free) return "the key is in use; invalidate it first";
  const std::uint64_t start = says(m::kUmrMaskStart) ? wanted.start : now_.start;
  const std::uint64_t length = says(m::kUmrMaskLength) ? wanted.length_bytes : now_.length_bytes;
  if (start + length < start) return "the range wraps around";
  now_.start = start;
  now_.length_bytes = length;
  if (!layout.parts().empty()) now_.layout = std::move(layout);
  const auto take = [&](std::uint64_t bit, std::uint32_t right) {
    if (says(bit)) now_.access = (now_.access & ~right) | (wanted.access & right);
  };
  take(m::kUmrMaskLocalWrite, STRAIT_NIC_LOCAL_WRITE);
  take(m::kUmrMaskRemoteRead, STRAIT_NIC_REMOTE_READ);
  take(m::kUmrMaskRemoteWrite, STRAIT_NIC_REMOTE_WRITE);
  take(m::kUmrMaskAtomic, STRAIT_NIC_REMOTE_ATOMIC);
  if (says(m::kUmrMaskVariant)) entry_.key = (entry_.key & ~0xffu) | wanted.new_variant;
  if (says(m::kUmrMaskFree)) now_.free = false;
  show();
  return nullptr;
}

Registration* IndirectKey::resolve(std::uint64_t address, std::uint64_t length_bytes, bool writes, Layout::At& out) {
  const Registration* key = &entry_;
  out = {entry_.key, address, length_bytes};
  for (std::uint32_t deep = 0; deep < kMostDeep; ++deep) {
    const Layout& layout = key->indirect->layout();
    const std::uint64_t at = out.address - key->address;
    if (!layout.reaches(at, out.length_bytes)) return nullptr;
    out = layout.find(at, out.length_bytes);
    Registration* const inner = table_.find(out.key);
    KeyFault why = KeyFault::none;
    if (inner == nullptr ||
        MemoryTable::check_entry(inner, entry_.pd, out.address, out.length_bytes, inner_access(writes), why) == nullptr)
      return nullptr;
    if (inner->kind == KeyKind::registration) return inner;
    if (inner->kind != KeyKind::indirect) return nullptr;
    key = inner;
  }
  return nullptr;
}

std::int32_t IndirectKey::move(std::uint64_t address, std::byte* host, std::uint64_t length_bytes, bool writes) {
  const bool reached = length_bytes == 0 || now_.layout.reaches(address - entry_.address, length_bytes);
  if (!entry_.covers(address, length_bytes) || !reached) return kPortRevoked;
  while (length_bytes != 0) {
    Layout::At piece{};
    Registration* const inner = resolve(address, length_bytes, writes, piece);
    if (inner == nullptr) return kPortRevoked;
    if (guarded_ && inner->bytes != nullptr) Strict::open(inner->at(piece.address), piece.length_bytes);
    const bool moved = writes ? write_bytes(*inner, piece.address, host, piece.length_bytes)
                              : read_bytes(*inner, piece.address, host, piece.length_bytes);
    if (!moved) return inner->revoked ? kPortRevoked : kPortFailed;
    address += piece.length_bytes;
    host += piece.length_bytes;
    length_bytes -= piece.length_bytes;
  }
  return 0;
}

std::int32_t IndirectKey::run(std::uint64_t address, const AtomicRequest& request, std::uint64_t& old) {
  Layout::At piece{};
  if (!entry_.covers(address, request.width)) return kPortRevoked;
  Registration* const inner = resolve(address, request.width, true, piece);
  if (inner == nullptr) return kPortRevoked;
  // A word that is torn, or not aligned where it lies, is nothing that can be changed at once.
  if (piece.length_bytes != request.width) return kPortFailed;
  if (inner->bytes != nullptr) {
    if (reinterpret_cast<std::uintptr_t>(inner->at(piece.address)) % request.width != 0) return kPortFailed;
    if (guarded_) Strict::open(inner->at(piece.address), request.width);
  }
  if (run_atomic(*inner, piece.address, request, old)) return 0;
  return inner->revoked ? kPortRevoked : kPortFailed;
}

// ---- In the table, and in the engine --------------------------------------------------------------------------------

Result<std::uint32_t> MemoryTable::add_indirect(IndirectRequest request, bool guarded) {
  STRAIT_TRY(const std::uint32_t key, add_window(request.pd, KeyKind::indirect));
  Registration& made = *entry_of(key);
  made.indirect = std::make_shared<IndirectKey>(*this, made, std::move(request), guarded);
  made.port = &made.indirect->port();
  count_port(made.port, true);
  return key;
}

Registration* MemoryTable::check_indirect(Registration* entry, std::uint32_t pd, std::uint64_t address,
                                          std::uint64_t length_bytes, std::uint32_t access, KeyFault& fault) {
  if (entry == nullptr || entry->kind != KeyKind::indirect) {
    fault = KeyFault::unknown_key;
    return nullptr;
  }
  if (check_entry(entry, pd, address, length_bytes, access, fault) == nullptr) return nullptr;
  const bool writes = (access & (STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_ATOMIC)) != 0;
  const KeyFault within =
      length_bytes == 0 ? KeyFault::none : Looking(*this, pd, writes).look(*entry, address, length_bytes, 0);
  if (within != KeyFault::none) {
    fault = within;
    return nullptr;
  }
  entry->revoked = false;
  return entry;
}

Result<std::uint32_t> Engine::add_indirect(IndirectRequest request) {
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(there());
  const auto domain = pds_.find(request.pd);
  if (domain == pds_.end()) return fail(Code::invalid, "no protection domain has the number {}", request.pd);
  STRAIT_TRY(const std::uint32_t key, memory_.add_indirect(std::move(request), strict_ != nullptr));
  ++domain->second;
  return key;
}

bool Engine::change_indirect(QueuePair& qp, Registration& key, const KeyChange& change, DecodeFault& fault) {
  Layout layout;
  const auto refuse = [&](const char* reason) {
    fault = {m::Syndrome::memory_window_bind, reason, kVendorMalformed};
    return false;
  };
  if (change.list_segments != 0) {
    if (change.part_of_list) return refuse("parts of a list are not replaced");
    if (!change.inlined) return refuse("a list that does not lie in its work request");
    if (change.list_segments > key.indirect->room()) return refuse("more parts than the key has room for");
    if ((fault = decode_layout(qp.sq, change.list_offset, change.list_segments, layout))) return false;
  }
  if (const char* const reason = key.indirect->change(change, std::move(layout))) return refuse(reason);
  qp.keys_changed = qp.next + 1;
  return true;
}

}  // namespace strait::soft::nic
