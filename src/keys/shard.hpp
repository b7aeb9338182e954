// SPDX-License-Identifier: Apache-2.0
// What one thread writes when it hits: its own lines, so that sixteen threads that use the same entries do not take
// each other's, and with plain stores, because nobody else writes there.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "keys/entry.hpp"
#include "sys/thread_fence.hpp"

namespace strait::keys {

// Threads are numbered; a number is used again when its thread has ended. The last one is for all that are too many.
inline constexpr std::uint32_t kThreads = 64;
inline constexpr std::uint32_t kCrowd = kThreads - 1;

namespace detail {
inline constexpr std::uint32_t kNoNumber = UINT32_MAX;
// One word, initial-exec: a plain load also in a shared library.
extern thread_local constinit std::uint32_t thread_number __attribute__((tls_model("initial-exec")));
std::uint32_t number_thread();

// What this thread used last, and where it counts that: programs use the same memory again and again.
struct LastUse {
  std::uint64_t cache = 0;  // its number; 0: none
  Entry* entry = nullptr;
  std::atomic<std::uint32_t>* leases = nullptr;
  std::atomic<std::uint32_t>* tick = nullptr;
  std::atomic<std::uint64_t>* hits = nullptr;
};
extern thread_local constinit LastUse last_use __attribute__((tls_model("initial-exec")));
std::uint64_t number_cache();
}  // namespace detail

[[nodiscard]] inline std::uint32_t thread_number() {
  const std::uint32_t known = detail::thread_number;
  return known != detail::kNoNumber ? known : detail::number_thread();
}

// One lease more or fewer, by the only thread that writes this counter; then the entry's state may be looked at.
// release: what was done under the lease comes before its end.
inline void count_lease(std::atomic<std::uint32_t>& leases, std::uint32_t change) {
  if (sys::fenced_by_others()) [[likely]] {
    leases.store(leases.load(std::memory_order_relaxed) + change, std::memory_order_release);
    sys::keep_order_for_others();
  } else {
    leases.fetch_add(change, std::memory_order_seq_cst);
  }
}
inline constexpr std::uint32_t kOneLess = UINT32_MAX;

// Of one entry, by one thread.
struct Use {
  std::atomic<std::uint32_t> leases{0};  // taken by this thread, less what it ended itself
  std::atomic<std::uint32_t> tick{0};
};

struct alignas(128) Shard {
  std::atomic<std::uint64_t> hits{0};
  std::array<std::atomic<Use*>, kChunks> chunks{};  // by chunk_of(number); null until this thread used one of it
  // Of the same leases, those that ended on other threads: counted down from 0. Present where the chunk is.
  std::array<std::atomic<std::atomic<std::uint32_t>*>, kChunks> aways{};

  ~Shard() {
    for (auto& chunk : chunks) delete[] chunk.load();
    for (auto& away : aways) delete[] away.load();
  }
  Shard() = default;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  [[nodiscard]] Use* use_of(const Entry& e) const {
    const std::uint32_t chunk = chunk_of(e.number);
    Use* const uses = chunks[chunk].load(std::memory_order_acquire);
    return uses == nullptr ? nullptr : uses + (e.number - first_of(chunk));
  }
  // Only where use_of() is not null.
  [[nodiscard]] std::atomic<std::uint32_t>& away_of(const Entry& e) const {
    const std::uint32_t chunk = chunk_of(e.number);
    return aways[chunk].load(std::memory_order_acquire)[e.number - first_of(chunk)];
  }
  // Under the cache's lock.
  void make_use_of(const Entry& e) {
    const std::uint32_t chunk = chunk_of(e.number);
    if (chunks[chunk].load(std::memory_order_relaxed) != nullptr) return;
    aways[chunk].store(new std::atomic<std::uint32_t>[kFirstChunk << chunk], std::memory_order_release);
    chunks[chunk].store(new Use[kFirstChunk << chunk], std::memory_order_release);
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    std::size_t bytes = sizeof(Shard);
    for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk) {
      if (chunks[chunk].load(std::memory_order_relaxed) != nullptr)
        bytes += (kFirstChunk << chunk) * (sizeof(Use) + sizeof(std::uint32_t));
    }
    return bytes;
  }
};

}  // namespace strait::keys
