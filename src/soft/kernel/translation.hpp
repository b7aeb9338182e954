// SPDX-License-Identifier: Apache-2.0
// Translation: a NIC's table of DMA addresses for one registration of device memory, and how its engine uses it.
//
// Three states. Ready: every access goes where the table says. Away: the table was zapped before a move; the next
// access brings it back, as a NIC with page faults does. Revoked: for good; every access is refused with kRevoked. Who
// drops the table waits for accesses that are under way, so that afterwards no DMA is active.
//
// Threads: any. An access holds no lock but this table's while it copies, and none at all while it brings the table
// back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <shared_mutex>
#include <vector>

#include "soft/kernel/dma_buf.hpp"
#include "strait/plugin.h"

namespace strait::soft::kernel {

// What a memory port answers when its memory was taken away: an engine treats the key as one that maps nothing.
inline constexpr std::int32_t kRevoked = 128;  // EKEYREVOKED

class Translation {
 public:
  // Work requests call the first byte `iova`.
  Translation(std::uint64_t iova, std::uint64_t length_bytes);
  Translation(const Translation&) = delete;
  Translation& operator=(const Translation&) = delete;

  [[nodiscard]] const strait_memory_port* port() const { return &port_; }
  void set(const std::vector<Segment>& segments);
  void zap();     // ready becomes away
  void revoke();  // for good
  [[nodiscard]] bool revoked() const;
  // One segment: where the bytes are.
  [[nodiscard]] std::byte* together() const;

  // Called when an access finds the table away; 0, or an errno that the access then fails with.
  void on_fault(std::function<int()> fault) { fault_ = std::move(fault); }
  // Called once, in the middle of the access in which this many bytes have been moved.
  void at_bytes(std::uint64_t bytes, std::function<void()> happens);

 private:
  enum class State { away, ready, revoked };
  struct Entry {
    std::uint64_t first;  // of the registration
    Segment segment;
  };
  template <class Use>
  std::int32_t access(std::uint64_t address, std::uint64_t length_bytes, bool divisible, Use use);
  template <class Use>
  std::int32_t access_part(std::uint64_t offset, std::uint64_t length_bytes, Use use);
  template <class Change>
  std::int32_t update(std::uint64_t address, std::uint32_t width, std::uint64_t* old, Change change);

  static std::int32_t read(void* context, std::uint64_t address, void* into, std::uint64_t length_bytes);
  static std::int32_t write(void* context, std::uint64_t address, const void* from, std::uint64_t length_bytes);
  static std::int32_t compare_swap(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t compare,
                                   std::uint64_t compare_mask, std::uint64_t swap, std::uint64_t swap_mask,
                                   std::uint64_t* old);
  static std::int32_t fetch_add(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t add,
                                std::uint64_t boundary, std::uint64_t* old);

  const std::uint64_t iova_;
  const std::uint64_t length_bytes_;
  strait_memory_port port_{};
  std::function<int()> fault_;
  std::uint64_t happens_at_ = ~std::uint64_t{0};
  std::function<void()> happens_;
  std::atomic<std::uint64_t> moved_{0};

  // Takes the table away from accesses. They come one after the other on several threads, and would never all be out of
  // it: while somebody waits for that, no new one begins.
  class TableChange;
  mutable std::shared_mutex mutex_;
  std::atomic<int> changes_wait_{0};
  State state_ = State::away;
  std::vector<Entry> table_;
};

}  // namespace strait::soft::kernel
