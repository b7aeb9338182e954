// SPDX-License-Identifier: Apache-2.0
// Registered memory: keys, bounds, rights, and how the engine reaches the bytes behind them.
//
// A key is index << 8 | variant. The variant changes each time an index is reused, so a key that was revoked does not
// come to life again with the next registration. Looking a key up touches one 64-byte entry.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "strait/plugin.h"
#include "sys/mapping.hpp"

namespace strait::soft::nic {

class IndirectKey;
struct IndirectRequest;

// An alias is another key for bytes of a registration, for peers only. An indirect key is made of parts of others
// (indirect.hpp).
enum class KeyKind : std::uint8_t { registration, window_1, window_2, alias, indirect };

// One registration, or a memory window. Everything a check needs lies in its first cache line.
struct alignas(64) Registration {
  std::uint32_t key = 0;  // 0: this entry is free
  std::uint32_t pd = 0;
  std::uint32_t access = 0;     // STRAIT_NIC_*
  std::uint32_t in_flight = 0;  // requests of this side that a peer may still be reading from or writing to
  std::uint64_t address = 0;    // what work requests call the first byte
  std::uint64_t length_bytes = 0;
  std::byte* bytes = nullptr;  // where the engine finds it; null: through the port
  const strait_memory_port* port = nullptr;
  std::uint32_t parent = 0;    // window, alias: the registration it lies in; 0: it is not bound
  std::uint32_t qpn : 24 = 0;  // window: the one queue pair that may use it; 0: any
  KeyKind kind : 8 = KeyKind::registration;
  sys::Mapping mapping;          // of the imported descriptor, when there is one
  sys::Fd held;                  // the descriptor of memory that only the port reaches: an open one keeps the memory
  mutable bool revoked = false;  // the port said so: the key maps nothing any more
  bool closing = false;          // being deregistered: no copy begins any more
  // process_vm calls find no pages behind the mapping of a dma-buf: a peer cannot copy from here or to here by itself.
  bool peers_copy = true;
  std::shared_ptr<IndirectKey> indirect;

  [[nodiscard]] bool covers(std::uint64_t at, std::uint64_t length) const {
    // Written so that neither side of a comparison can overflow.
    return at >= address && length <= length_bytes && at - address <= length_bytes - length;
  }
  [[nodiscard]] std::byte* at(std::uint64_t where) const { return bytes + (where - address); }
};

enum class KeyFault { none, unknown_key, wrong_pd, out_of_bounds, not_allowed };
[[nodiscard]] const char* fault_text(KeyFault fault);

class MemoryTable {
 public:
  [[nodiscard]] Result<strait_nic_mr> add(const strait_nic_mr_request& request,
                                          const sys::Calls& calls = sys::real_calls());
  // Code::again while requests in flight use it.
  [[nodiscard]] Status remove(std::uint32_t key);

  [[nodiscard]] Registration* find(std::uint32_t key) {
    Registration* const entry = entry_of(key);
    return entry != nullptr && entry->key == key ? entry : nullptr;
  }
  // The registration behind `key` if this access is allowed, else null and the reason.
  [[nodiscard]] Registration* check(std::uint32_t key, std::uint32_t pd, std::uint64_t address,
                                    std::uint64_t length_bytes, std::uint32_t access, KeyFault& fault) {
    Registration* entry = find(key);
    if (entry == nullptr || entry->kind != KeyKind::registration) [[unlikely]]
      return check_indirect(entry, pd, address, length_bytes, access, fault);
    return check_entry(entry, pd, address, length_bytes, access, fault);
  }
  // The same for a peer's access through queue pair `qpn`, who may also have been given the key of a window.
  [[nodiscard]] Registration* check_remote(std::uint32_t key, std::uint32_t pd, std::uint32_t qpn,
                                           std::uint64_t address, std::uint64_t length_bytes, std::uint32_t access,
                                           KeyFault& fault) {
    Registration* entry = find(key);
    if (entry == nullptr) {
      fault = KeyFault::unknown_key;
      return nullptr;
    }
    if (entry->kind != KeyKind::registration && !window_holds(*entry, qpn)) [[unlikely]]
      return check_indirect(entry, pd, address, length_bytes, access, fault);
    return check_entry(entry, pd, address, length_bytes, access, fault);
  }

  // Another low byte; 0: there is no such key.
  [[nodiscard]] std::uint32_t rename(std::uint32_t key, std::uint8_t low_byte) {
    Registration* const entry = find(key);
    if (entry == nullptr) return 0;
    entry->key = (key & ~0xffu) | low_byte;
    return entry->key;
  }

  // Gives the bytes another name, other rights, another domain; whatever `what` says (kRereg*). The key stays.
  [[nodiscard]] Status change(std::uint32_t key, std::uint32_t what, const strait_nic_mr_request& request,
                              const sys::Calls& calls = sys::real_calls());

  // Another key for what `of` maps: `inner_address` there is `address` here. Bytes outside the registration are
  // outside.
  struct AliasRequest {
    std::uint32_t of = 0;
    std::uint32_t pd = 0;
    std::uint32_t access = 0;
    std::uint64_t inner_address = 0;
    std::uint64_t address = 0;
    std::uint64_t length_bytes = 0;
  };
  [[nodiscard]] Result<std::uint32_t> add_alias(const AliasRequest& request);
  // `guarded`: pages are opened before they are touched (strict.hpp).
  [[nodiscard]] Result<std::uint32_t> add_indirect(IndirectRequest request, bool guarded);
  // Whatever its low byte is by now.
  [[nodiscard]] Registration* find_indirect(std::uint32_t key);
  // Windows: a key that maps nothing until it is bound.
  [[nodiscard]] Result<std::uint32_t> add_window(std::uint32_t pd, KeyKind kind);
  // Whatever its low byte is by now.
  [[nodiscard]] Registration* find_window(std::uint32_t key);
  [[nodiscard]] Status remove_window(std::uint32_t key);
  static void unbind(Registration& window) {
    window.access = 0;
    window.length_bytes = 0;
    window.bytes = nullptr;
    window.parent = 0;
    window.qpn = 0;
  }

  // What the entry itself says, whatever it is made of.
  [[nodiscard]] static Registration* check_entry(Registration* entry, std::uint32_t pd, std::uint64_t address,
                                                 std::uint64_t length_bytes, std::uint32_t access, KeyFault& fault) {
    if (entry->pd != pd) {
      fault = KeyFault::wrong_pd;
    } else if ((entry->access & access) != access) {
      fault = KeyFault::not_allowed;
    } else if (!entry->covers(address, length_bytes)) {
      fault = KeyFault::out_of_bounds;
    } else {
      return entry;
    }
    return nullptr;
  }

 private:
  // Of a key that is no registration: what it is made of too. Null and unknown_key if it is not indirect either.
  [[nodiscard]] Registration* check_indirect(Registration* entry, std::uint32_t pd, std::uint64_t address,
                                             std::uint64_t length_bytes, std::uint32_t access, KeyFault& fault);
  // Bound, by this queue pair if it is one's own, to memory that is still registered.
  [[nodiscard]] bool window_holds(const Registration& window, std::uint32_t qpn) {
    return window.parent != 0 && (window.qpn == 0 || window.qpn == qpn) && find(window.parent) != nullptr;
  }

 public:
  [[nodiscard]] std::size_t live() const { return live_; }
  [[nodiscard]] bool any_behind_ports() const { return !behind_.empty(); }
  // Registrations whose bytes this port reaches. A port without any may be gone by now.
  [[nodiscard]] std::size_t behind(const strait_memory_port* port) const {
    const auto found = behind_.find(port);
    return found == behind_.end() ? 0 : found->second;
  }

 private:
  // Chunks, so that entries never move and the few chunk pointers stay in the nearest cache.
  static constexpr std::uint32_t kChunk = 4096;
  // No key is 0, and some low ones are no keys where they lie: 0x100 ends receives, 0x400 begins a repeated block.
  static constexpr std::uint32_t kFirstIndex = 16;
  [[nodiscard]] Registration& slot(std::uint32_t i) { return chunks_[i / kChunk][i % kChunk]; }
  // Whatever its low byte is, and whether or not it is in use.
  [[nodiscard]] Registration* entry_of(std::uint32_t key) {
    const std::uint32_t i = (key >> 8) - kFirstIndex;
    return i < size_ ? &slot(i) : nullptr;
  }
  [[nodiscard]] std::uint32_t take_key();
  [[nodiscard]] Status translate(Registration& made, const strait_nic_mr_request& request, const sys::Calls& calls);

  std::vector<std::unique_ptr<Registration[]>> chunks_;
  std::uint32_t size_ = 0;
  std::deque<std::uint32_t> free_;  // keys that were removed
  std::size_t live_ = 0;
  void count_port(const strait_memory_port* port, bool one_more);
  std::unordered_map<const strait_memory_port*, std::size_t> behind_;
  const strait_memory_port* unmappable_ = nullptr;  // whose descriptors cannot be mapped; only ever compared
};

// What a port answers when its memory was taken away for good. Requests then end as with a key that maps nothing.
inline constexpr std::int32_t kPortRevoked = 128;  // EKEYREVOKED

// Its copies can go on while the engine does something else.
[[nodiscard]] inline bool copies_by_itself(const strait_memory_port& port) {
  return port.struct_size >= offsetof(strait_memory_port, done) + sizeof port.done && port.start_read != nullptr &&
         port.start_write != nullptr && port.done != nullptr;
}

// The bytes of one registration that an operation touches.
struct Piece {
  Registration* registration = nullptr;
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
};

// Copies out of and into pieces; false when a port refused. Eight aligned bytes are stored at once, so that a CPU that
// polls a word never sees half of it.
[[nodiscard]] bool read_bytes(const Registration& from, std::uint64_t address, std::byte* into,
                              std::uint64_t length_bytes);
[[nodiscard]] bool write_far_bytes(const Registration& into, std::uint64_t address, const std::byte* from,
                                   std::uint64_t length_bytes);
[[nodiscard]] inline bool write_bytes(const Registration& into, std::uint64_t address, const std::byte* from,
                                      std::uint64_t length_bytes) {
  if (length_bytes == 8 && into.bytes != nullptr && reinterpret_cast<std::uintptr_t>(into.at(address)) % 8 == 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, 8);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(into.at(address)), word, __ATOMIC_RELEASE);
    return true;
  }
  return write_far_bytes(into, address, from, length_bytes);
}

struct AtomicRequest {
  bool swap = false;          // compare-and-swap, else fetch-and-add
  std::uint32_t width = 8;    // 4 or 8
  std::uint64_t operand = 0;  // swap value, or addend
  std::uint64_t compare = 0;
  std::uint64_t swap_mask = ~std::uint64_t{0};
  std::uint64_t compare_mask = ~std::uint64_t{0};  // fetch-and-add: the field boundaries, 0 for a plain add
};
[[nodiscard]] bool run_atomic(const Registration& on, std::uint64_t address, const AtomicRequest& request,
                              std::uint64_t& old);

// Adds field by field: no carry leaves a field, whose top bits are the set bits of `boundary`.
[[nodiscard]] constexpr std::uint64_t add_fields(std::uint64_t a, std::uint64_t b, std::uint64_t boundary) {
  return ((a & ~boundary) + (b & ~boundary)) ^ ((a ^ b) & boundary);
}

}  // namespace strait::soft::nic
