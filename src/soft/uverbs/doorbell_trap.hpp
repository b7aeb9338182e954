// SPDX-License-Identifier: Apache-2.0
// Doorbells that are noticed when they ring (option trap_doorbells). The program's doorbell pages are made read-only
// under it: a store to one faults, the handler rings for it, and the program goes on behind the store. What is stored
// tells which queue pair; the rings and records say the rest, as always.
#pragma once

#include <cstdint>

#include "soft/uverbs/progress.hpp"

namespace strait::soft::uverbs {

// Every doorbell page of `file` that this process has mapped for writing by now, by whatever call. `owner` names them
// for release_doorbells. Pages that are not mapped any more are forgotten.
void trap_doorbells(int file, Progress& progress, const void* owner);

// Those that are still mapped can be written again. No store through them is under way when it returns.
void release_doorbells(int file, const void* owner);

// What a doorbell store of 8 bytes names, 0: none. The first half is the work request, the second number << 8 | size.
[[nodiscard]] std::uint32_t queue_in_doorbell(std::uint64_t stored);

// Between the two a thread is in a call that looks at the queue itself when its doorbells have rung.
class RingsItself {
 public:
  // Null: no queue of ours.
  explicit RingsItself(const Progress* progress) : on_(progress != nullptr && progress->traps()) {
    if (on_) change(1);
  }
  ~RingsItself() {
    if (on_) change(-1);
  }
  RingsItself(const RingsItself&) = delete;
  RingsItself& operator=(const RingsItself&) = delete;

 private:
  static void change(int by);
  const bool on_;
};

}  // namespace strait::soft::uverbs
