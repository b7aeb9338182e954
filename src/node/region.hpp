// SPDX-License-Identifier: Apache-2.0
// Region: memory a NIC can reach. Two registrations: one this process's own operations name (from the cache, so that
// sharing again is cheap), one that peers name; of host pages the latter is made when they first can, with the region's
// first name or ticket. It ends the moment the region is revoked; the local one stays until the last operation under
// way has drained.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "buffer/claim.hpp"
#include "export/staging.hpp"
#include "grant/format.hpp"
#include "keys/cache.hpp"
#include "node/export_book.hpp"
#include "rail/mlx5/nic.hpp"
#include "strait/c.h"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::node {

class Core;
inline constexpr std::size_t kMaxRails = keys::kMaxRails;
using keys::kNoKey;
[[nodiscard]] constexpr std::array<std::uint32_t, kMaxRails> no_keys() {
  std::array<std::uint32_t, kMaxRails> none{};
  none.fill(kNoKey);
  return none;
}

enum class RegionState : std::uint32_t { live, revoked };

// The signals of a region: STRAIT_SIGNALS words of host memory. In a memory file of their own where peers of this host
// may be given them.
class Signals {
 public:
  Signals() = default;
  [[nodiscard]] static Result<Signals> make(bool for_peers);

  [[nodiscard]] explicit operator bool() const { return page_ != nullptr; }
  [[nodiscard]] grant::SignalPage* operator->() const { return page_; }
  [[nodiscard]] grant::SignalPage* get() const { return page_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  static constexpr std::size_t kWordBytes = sizeof(std::uint64_t) * STRAIT_SIGNALS;

 private:
  grant::SignalPage* page_ = nullptr;
  std::unique_ptr<std::byte[]> own_;
  sys::Fd fd_;
  sys::Mapping mapping_;
};
static_assert(grant::kSignals == STRAIT_SIGNALS);

struct RemoteKeys {
  rail::MemoryKey data;  // not valid: this NIC refused
  rail::MemoryKey signals;
  [[nodiscard]] std::uint32_t rkey() const { return data.valid() ? data.rkey() : kNoKey; }
  [[nodiscard]] std::uint32_t signal_rkey() const { return signals.valid() ? signals.rkey() : kNoKey; }
};

// What a ticket that narrows the region was redeemed for: a key of its own, so that the NIC holds the holder to it.
struct GrantedKey {
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
  std::uint32_t access = 0;
  std::vector<rail::MemoryKey> keys;  // one per rail
};

}  // namespace strait::node

struct strait_region {
  // What a post reads, in the first cache line.
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t local_address = 0;  // what the local key calls the first byte: the bounce buffer when staged
  std::array<std::uint32_t, strait::node::kMaxRails> lkeys = strait::node::no_keys();  // kNoKey: that NIC refused
  std::atomic<strait::node::RegionState> state{strait::node::RegionState::live};
  std::atomic<bool> quarantine_told{false};  // in the log, once
  bool cpu_accessible = false;
  bool writable = true;
  bool staged = false;
  std::atomic<bool> viewless{false};      // ... and nowhere, as was found out: not to be looked for again
  std::atomic<std::byte*> view{nullptr};  // where this CPU finds the first byte; null: not known

  std::uint32_t access = 0;  // STRAIT_REMOTE_*
  std::uint64_t id = 0;
  std::atomic<std::uint64_t> epoch{1};
  std::shared_ptr<strait::node::Core> core;
  struct strait_memory* memory = nullptr;  // allocated by the Node, else null

  strait::keys::Lease local;      // for every rail; ended once drained
  strait::sys::Mapping reserved;  // of a descriptor: addresses to call it by
  std::vector<strait::rail::MemoryKey>
      own_keys;  // local ones that no cache holds: of descriptors, bounce buffers, slices
  std::mutex staging_mutex;
  std::unique_ptr<strait::exports::Staging> staging;
  std::mutex naming_mutex;                       // held by who makes it known to peers
  bool named = true;                             // false: `remote` waits for that; under naming_mutex
  std::vector<strait::node::RemoteKeys> remote;  // one per rail; empty once revoked
  std::vector<strait::node::GrantedKey> granted;
  strait::node::Signals signals;
  strait::sys::Mapping view_mapping;     // of accelerator memory that lies in a file
  std::atomic<bool> left_behind{false};  // its pages were left to a peer that would not let go
  std::shared_ptr<strait::node::Reached> exported;
  strait::node::Reached::Files files;  // only where they could not be opened again for what is registered later

  // For people.
  strait::buffer::Claim claim;
  std::int64_t recognise_ns = 0;

  // Null: this CPU does not reach it.
  [[nodiscard]] std::byte* view_at(std::uint64_t offset) {
    std::byte* const first = view.load(std::memory_order_acquire);
    if (first != nullptr) return first + offset;
    return viewless.load(std::memory_order_relaxed) ? nullptr : find_view(offset);
  }
  [[nodiscard]] std::byte* find_view(std::uint64_t offset);  // grants.cpp
};

struct strait_published {
  std::shared_ptr<strait::node::Core> core;
  std::string name;
  std::uint64_t region_id = 0;
};
