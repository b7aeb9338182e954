// SPDX-License-Identifier: Apache-2.0
// Region: memory a NIC can reach. Two registrations: one this process's own operations name (from the cache, so that
// sharing again is cheap), one that peers name. The peers' one ends the moment the region is revoked; the local one
// stays until the last operation under way has drained.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "buffer/claim.hpp"
#include "export/reach.hpp"
#include "export/staging.hpp"
#include "keys/cache.hpp"
#include "rail/mlx5/nic.hpp"
#include "strait/c.h"

namespace strait::node {

class Core;
inline constexpr std::size_t kMaxRails = 4;

enum class RegionState : std::uint32_t { live, revoked };

// STRAIT_SIGNALS words of plain host memory, on their own cache lines.
struct alignas(64) SignalWords {
  std::array<std::atomic<std::uint64_t>, STRAIT_SIGNALS> words{};
};

struct RemoteKeys {
  rail::MemoryKey data;
  rail::MemoryKey signals;
};

// What a ticket that narrows the region was redeemed for: a key of its own, so that the NIC holds the holder to it.
struct GrantedKey {
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
  std::uint32_t access = 0;
  rail::MemoryKey key;
};

}  // namespace strait::node

struct strait_region {
  // What a post reads, in the first cache line.
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t local_address = 0;  // what the local key calls the first byte: the bounce buffer when staged
  std::array<std::uint32_t, strait::node::kMaxRails> lkeys{};
  std::atomic<strait::node::RegionState> state{strait::node::RegionState::live};
  bool cpu_accessible = false;
  bool writable = true;
  bool staged = false;

  std::uint32_t access = 0;  // STRAIT_REMOTE_*
  std::uint64_t id = 0;
  std::atomic<std::uint64_t> epoch{1};
  std::shared_ptr<strait::node::Core> core;
  struct strait_memory* memory = nullptr;  // allocated by the Node, else null

  std::vector<strait::keys::Lease> local;  // one per rail; empty once drained
  strait::rail::MemoryKey bounce_key;      // staged: of the bounce buffer
  std::mutex staging_mutex;
  std::unique_ptr<strait::exports::Staging> staging;
  std::vector<strait::node::RemoteKeys> remote;   // one per rail; empty once revoked
  std::vector<strait::node::GrantedKey> granted;  // of the first rail
  std::unique_ptr<strait::node::SignalWords> signals;
  std::shared_ptr<strait::exports::Exported> exported;

  // For people.
  strait::buffer::Claim claim;
  std::int64_t recognise_ns = 0;
};

struct strait_published {
  std::shared_ptr<strait::node::Core> core;
  std::string name;
  std::uint64_t region_id = 0;
};
