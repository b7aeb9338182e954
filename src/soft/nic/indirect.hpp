// SPDX-License-Identifier: Apache-2.0
// Keys that are made of parts of other keys: lists, and blocks of strided parts that repeat.
//
// Such a key has no bytes of its own. The engine reaches it through a port, as it reaches an accelerator's memory; this
// port finds the parts, checks each against the key it lies in, and copies there. Nothing is remembered between two
// copies, so a part whose key goes stops working at once.
#pragma once

#include <cstdint>
#include <vector>

#include "soft/nic/decode.hpp"
#include "soft/nic/memory.hpp"

namespace strait::soft::nic {

// The bytes of an indirect key, from the first to the last: its parts in turn, `rounds` times.
class Layout {
 public:
  struct Part {
    std::uint64_t begin;  // of its bytes within a round
    std::uint64_t length_bytes;
    std::uint64_t address;
    std::uint64_t stride;  // from one round to the next
    std::uint32_t key;
  };

  void add(std::uint32_t key, std::uint64_t address, std::uint64_t length_bytes, std::uint64_t stride = 0);
  void repeat(std::uint64_t rounds) { rounds_ = rounds; }
  [[nodiscard]] bool reaches(std::uint64_t at, std::uint64_t length_bytes) const {
    const std::uint64_t all = round_bytes_ * rounds_;
    return length_bytes <= all && at <= all - length_bytes;
  }
  [[nodiscard]] std::uint64_t round_bytes() const { return round_bytes_; }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

  // The one contiguous piece at `at`; `length_bytes` is cut to what it has.
  struct At {
    std::uint32_t key;
    std::uint64_t address;
    std::uint64_t length_bytes;
  };
  [[nodiscard]] At find(std::uint64_t at, std::uint64_t length_bytes) const;
  // From the first to the last byte of part `i` that [at, at + length_bytes) touches, in whichever rounds; 0 bytes:
  // none.
  [[nodiscard]] At hull(std::size_t i, std::uint64_t at, std::uint64_t length_bytes) const;

 private:
  std::vector<Part> parts_;
  std::uint64_t round_bytes_ = 0;
  std::uint64_t rounds_ = 1;
};

// What lies in `segments` of a ring behind the key of a UMR work request. Keys and bounds are not looked at.
[[nodiscard]] DecodeFault decode_layout(const RingView& ring, std::uint64_t offset, std::uint32_t segments,
                                        Layout& out);

struct IndirectRequest {
  std::uint32_t pd = 0;
  std::uint32_t access = 0;
  std::uint64_t start = 0;  // what requests call the first byte
  std::uint64_t length_bytes = 0;
  Layout layout;
  std::uint32_t room = 0;  // segments that work requests may give it; 0: it stays as it is
  bool free = false;       // it maps nothing until a work request says what
  bool peers_may_free = false;
};

class IndirectKey {
 public:
  IndirectKey(MemoryTable& table, Registration& entry, IndirectRequest request, bool guarded);
  IndirectKey(const IndirectKey&) = delete;
  IndirectKey& operator=(const IndirectKey&) = delete;

  [[nodiscard]] const strait_memory_port& port() const { return port_; }
  [[nodiscard]] bool is_free() const { return now_.free; }
  [[nodiscard]] const Layout& layout() const { return now_.layout; }
  [[nodiscard]] std::uint32_t room() const { return now_.room; }
  // By a peer's message, if they may.
  [[nodiscard]] bool invalidate();
  // By a work request. Null: done; otherwise why not, and nothing has changed.
  [[nodiscard]] const char* change(const KeyChange& wanted, Layout&& layout);

 private:
  void show();  // in the entry, which checks look at
  // 0, or what a port says.
  [[nodiscard]] std::int32_t move(std::uint64_t address, std::byte* host, std::uint64_t length_bytes, bool writes);
  [[nodiscard]] std::int32_t run(std::uint64_t address, const AtomicRequest& request, std::uint64_t& old);
  // The registration behind one byte and those after it, through keys within keys; null: there is none that allows it.
  [[nodiscard]] Registration* resolve(std::uint64_t address, std::uint64_t length_bytes, bool writes, Layout::At& out);

  MemoryTable& table_;
  Registration& entry_;
  IndirectRequest now_;
  bool guarded_;  // strict: pages of the program may be closed to it, and to the NIC
  strait_memory_port port_{};
};

}  // namespace strait::soft::nic
