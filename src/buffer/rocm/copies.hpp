// SPDX-License-Identifier: Apache-2.0
// Copies by the runtime's copy engines; a signal says when one is done. Host memory that the runtime does not know is
// locked for the time of the copy.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "buffer/cpu_limits.hpp"
#include "buffer/rocm/blocks.hpp"

namespace strait::buffer::rocm {

class Copies {
 public:
  // `pools`: the device memory of every agent that copies are for, by its handle.
  Copies(const Hsa& hsa, Blocks& blocks, Agent cpu, const std::map<std::uint64_t, MemoryPool>& pools,
         const CpuCopies& config);
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  [[nodiscard]] Result<std::uint64_t> start(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes);
  [[nodiscard]] std::int32_t done(std::uint64_t ticket);
  [[nodiscard]] Status run(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes);
  [[nodiscard]] std::string counters() const;

 private:
  struct Side {
    Block block;
    bool known = false;  // to the runtime
    bool device = false;
  };
  struct Running {
    Signal signal;
    void* locked = nullptr;  // host memory to unlock at the end
  };
  [[nodiscard]] Result<Side> look_at(std::uint64_t address, std::uint64_t length_bytes);
  [[nodiscard]] bool copy_small(std::uint64_t to, const Side& target, std::uint64_t from, const Side& source,
                                std::uint64_t length_bytes);
  void end(const Running& running);
  [[nodiscard]] Result<Running> queue(std::uint64_t to, const Side& target, std::uint64_t from, const Side& source,
                                      std::uint64_t length_bytes);
  [[nodiscard]] std::uint64_t cpu_limit(const Block& block, bool to_device);
  struct Device {
    Device(MemoryPool its_pool, const CpuCopies& config) : pool(its_pool), limits(config) {}
    const MemoryPool pool;
    DeviceCpuLimits limits;
  };
  void time_window(Device& device);

  const Hsa& hsa_;
  Blocks& blocks_;
  const Agent cpu_;
  std::map<std::uint64_t, Device> devices_;  // by agent; not changed after the constructor
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Running> running_;
  std::uint64_t last_ticket_ = 0;
  Counter started_, finished_, failed_, by_cpu_, bytes_;
};

}  // namespace strait::buffer::rocm
