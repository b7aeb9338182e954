// SPDX-License-Identifier: Apache-2.0
// A CPU thread that plays a thread of a grid: which one it is, and the company it keeps. cpu_grid.hpp sets it up.
#pragma once

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstring>

namespace strait::device {

// The threads of one warp or block: a barrier, and a box through which rank 0 hands something to the others.
struct CpuCompany {
  explicit CpuCompany(unsigned members) : size(members), barrier(static_cast<std::ptrdiff_t>(members)) {}

  void arrive_and_wait() { barrier.arrive_and_wait(); }
  template <class T>
  T share(unsigned rank, const T& value) {
    static_assert(sizeof(T) <= sizeof box);
    arrive_and_wait();  // the box may still be read by a slower member of the share before this one
    if (rank == 0) std::memcpy(box, static_cast<const void*>(&value), sizeof(T));
    arrive_and_wait();
    T out = value;
    std::memcpy(static_cast<void*>(&out), box, sizeof(T));
    return out;
  }

  // How many members said yes.
  unsigned count(bool yes) {
    if (yes) ++said;
    arrive_and_wait();
    const unsigned all = said;
    arrive_and_wait();
    if (yes) --said;  // nobody adds for the next count before all have read this one, and it takes back what is its own
    arrive_and_wait();
    return all;
  }

  const unsigned size;
  std::barrier<> barrier;
  std::atomic<unsigned> said{0};
  alignas(16) unsigned char box[256];
};

struct CpuMember {
  unsigned block_index;
  unsigned thread;  // in the block
  unsigned lane;    // in the warp
  CpuCompany* block;
  CpuCompany* warp;

  // Null outside a grid.
  static const CpuMember* current() { return slot(); }
  static const CpuMember*& slot() {
    static thread_local const CpuMember* member = nullptr;
    return member;
  }
};

}  // namespace strait::device
