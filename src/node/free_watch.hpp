// SPDX-License-Identifier: Apache-2.0
// FreeWatch: while a registration lives, its provider tells when the memory is freed, and the cache forgets it.
//
// The provider calls from inside the free, with locks of its own: the cache's lock is waited for (nobody calls a
// provider or a NIC with it), and deregistering is left to whoever sweeps next.
#pragma once

#include <atomic>
#include <cstdint>

#include "buffer/provider.hpp"
#include "keys/cache.hpp"
#include "node/sleeper.hpp"

namespace strait::node {

// Something was forgotten that nobody has deregistered yet.
struct FreedMemory {
  std::atomic<bool> some{false};
  Sleeper* sleeper = nullptr;
};

class FreeWatch {
 public:
  // Of a provider that cannot tell, or memory that has gone already, nothing is watched: identities still tell.
  FreeWatch(const buffer::Claim& claim, keys::Cache* cache, FreedMemory* freed)
      : whole_(claim.whole), cache_(cache), freed_(freed) {
    if ((claim.device->capabilities & STRAIT_CAN_WATCH) == 0 || claim.cpu_accessible()) return;
    auto watch = claim.provider->watch(claim.whole.address, told, this);
    if (!watch) return;
    provider_ = claim.provider;
    watch_ = *watch;
  }
  ~FreeWatch() {
    if (provider_ != nullptr) provider_->unwatch(watch_);
  }
  FreeWatch(const FreeWatch&) = delete;
  FreeWatch& operator=(const FreeWatch&) = delete;

 private:
  static void told(void* self, std::uint64_t) {
    const FreeWatch& mine = *static_cast<const FreeWatch*>(self);
    mine.cache_->forget(mine.whole_.address, mine.whole_.length_bytes);
    mine.freed_->some.store(true);
    mine.freed_->sleeper->rouse_now();
  }

  const buffer::Range whole_;
  keys::Cache* const cache_;
  FreedMemory* const freed_;
  buffer::Provider* provider_ = nullptr;
  std::uint64_t watch_ = 0;
};

}  // namespace strait::node
