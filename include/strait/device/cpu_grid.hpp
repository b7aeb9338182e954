// SPDX-License-Identifier: Apache-2.0
// Runs the body of a kernel on CPU threads: blocks one after another or side by side, every thread of a block a thread
// of the system, so that the same source is tested, and debugged, without a GPU. Host only.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "strait/device/cpu_member.hpp"

namespace strait::device {

struct CpuGrid {
  unsigned blocks = 1;
  unsigned threads = 1;     // of a block
  unsigned warp_size = 32;  // the last warp of a block may be smaller
};

// Calls body(block, thread) once for every thread of the grid, all side by side, and returns when all have.
template <class Body>
void run_on_cpu(const CpuGrid& grid, Body&& body) {
  std::deque<CpuCompany> companies;
  std::vector<CpuMember> members;
  for (unsigned b = 0; b < grid.blocks; ++b) {
    CpuCompany& block = companies.emplace_back(grid.threads);
    CpuCompany* warp = nullptr;
    for (unsigned t = 0; t < grid.threads; ++t) {
      const unsigned lane = t % grid.warp_size;
      if (lane == 0) {
        const unsigned left = grid.threads - t;
        warp = &companies.emplace_back(left < grid.warp_size ? left : grid.warp_size);
      }
      members.push_back({b, t, lane, &block, warp});
    }
  }
  std::vector<std::thread> threads;
  threads.reserve(members.size());
  for (const CpuMember& member : members) {
    threads.emplace_back([&member, &body] {
      CpuMember::slot() = &member;
      body(member.block_index, member.thread);
      CpuMember::slot() = nullptr;
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace strait::device
