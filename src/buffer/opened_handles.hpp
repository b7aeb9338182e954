// SPDX-License-Identifier: Apache-2.0
// OpenedHandles: memory of other processes that is open here. Opening costs tens of microseconds and some vendors
// refuse to open one twice, so what was opened stays open, counted, and up to a bound also while nobody uses it.
//
// Threads: any. Opening runs under the lock: two threads that want the same memory open it once.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.hpp"

namespace strait::buffer {

// 16 random bytes per provider: process numbers are not unique across containers.
using ProcessToken = std::array<std::uint8_t, 16>;

class OpenedHandles {
 public:
  struct Key {
    ProcessToken peer{};
    std::uint64_t base = 0;
    std::uint64_t identity = 0;
    std::uint32_t device = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Opened {
    std::uint64_t base = 0;  // here
    std::uint64_t length_bytes = 0;
    std::function<void()> close;
  };

  explicit OpenedHandles(std::size_t idle_most) : idle_most_(idle_most) {}
  OpenedHandles(const OpenedHandles&) = delete;
  OpenedHandles& operator=(const OpenedHandles&) = delete;
  ~OpenedHandles() { clear(); }

  // The local address of `offset`. `open` is called when nobody has it open. An idle handle of the same peer and base
  // but another identity is closed first: that memory was freed.
  [[nodiscard]] Result<std::uint64_t> open(const Key& key, std::uint64_t offset, std::uint64_t length_bytes,
                                           const std::function<Result<Opened>()>& open);
  // `address`: any address that open gave. False: none did.
  [[nodiscard]] bool close(std::uint64_t address);
  // Closes everything, in use or not: for the end.
  void clear();
  // Forgets everything without closing it: for a child of fork.
  void forget();

  struct Counts {
    std::uint64_t opens = 0;
    std::uint64_t hits = 0;
    std::uint64_t closes = 0;
    std::uint64_t open_now = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Entry {
    Opened opened;
    std::uint64_t uses = 0;
    std::list<Key>::iterator idle{};  // valid while uses is 0
  };
  using Entries = std::map<Key, Entry>;
  void drop_locked(Entries::iterator entry);
  void trim_locked();

  const std::size_t idle_most_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::list<Key> idle_;                      // least recently used first
  std::multimap<std::uint64_t, Key> given_;  // address handed out -> whose
  Counts counts_;
};

}  // namespace strait::buffer
