// SPDX-License-Identifier: Apache-2.0
// Copies: asynchronous copies on the devices' warmed streams, each followed by an event that says when it is done.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "buffer/cuda/cpu_maps.hpp"
#include "buffer/cuda/gpu.hpp"
#include "buffer/cuda/pointers.hpp"

namespace strait::buffer::cuda {

class Copies {
 public:
  Copies(const Driver& driver, const Pointers& pointers, std::vector<std::unique_ptr<Gpu>>& gpus, CpuMaps& maps)
      : driver_(driver), pointers_(pointers), gpus_(gpus), maps_(maps) {}
  // Waits for what is still queued.
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  static constexpr std::uint64_t kFinished = 0;  // the ticket of a copy that was complete when it returned

  [[nodiscard]] Result<std::uint64_t> start(Pointer to, Pointer from, std::uint64_t length_bytes);
  // 1, 0, or a negative code.
  [[nodiscard]] std::int32_t done(std::uint64_t ticket);
  // Starts it and waits: for a memory port.
  [[nodiscard]] Status run(Pointer to, Pointer from, std::uint64_t length_bytes);

  struct Counts {
    Counter started, finished, failed, bytes, by_cpu;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Side {
    Found found;
    Extent extent;  // only where it is mine
    bool mine = false;
  };
  struct Slot {
    std::uint64_t ticket = 0;  // 0: free
    Event event = nullptr;
    Gpu* gpu = nullptr;
  };
  [[nodiscard]] Result<Side> look_at(Pointer pointer, std::uint64_t length_bytes) const;
  [[nodiscard]] CuResult queue(Pointer to, const Side& target, Pointer from, const Side& source,
                               std::uint64_t length_bytes, Context context, Stream stream);
  [[nodiscard]] Result<std::uint64_t> start_on(Gpu& gpu, Pointer to, const Side& target, Pointer from,
                                               const Side& source, std::uint64_t length_bytes);
  [[nodiscard]] Status run_in(Context context, Pointer to, const Side& target, Pointer from, const Side& source,
                              std::uint64_t length_bytes);
  // By the CPU, through a window that there is or that is opened for it.
  [[nodiscard]] bool copy_small(Pointer to, const Side& target, Pointer from, const Side& source,
                                std::uint64_t length_bytes);
  [[nodiscard]] std::uint64_t remember(Event event, Gpu& gpu);

  const Driver& driver_;
  const Pointers& pointers_;
  std::vector<std::unique_ptr<Gpu>>& gpus_;
  CpuMaps& maps_;
  std::mutex mutex_;
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t next_turn_ = 1;
  Counts counts_;
};

}  // namespace strait::buffer::cuda
