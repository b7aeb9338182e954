// SPDX-License-Identifier: Apache-2.0
// A machine for lane_suite.hpp whose grids are threads of this process.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "strait/device/cpu_grid.hpp"

namespace suite {

class CpuMachine {
 public:
  CpuMachine() = default;
  CpuMachine(const CpuMachine&) = delete;
  CpuMachine& operator=(const CpuMachine&) = delete;

  std::uint8_t* shared(std::size_t bytes) {
    auto* const p = static_cast<std::uint8_t*>(::operator new(bytes, std::align_val_t{4096}));
    std::memset(p, 0, bytes);
    held_.emplace_back(p);
    return p;
  }
  void* state(std::size_t bytes) { return shared(bytes); }
  void store(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void load(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

  template <class Body>
  void run(unsigned blocks, unsigned threads, const Body& body) {
    strait::device::run_on_cpu({blocks, threads}, body);
  }

 private:
  struct Free {
    void operator()(std::uint8_t* p) const { ::operator delete(p, std::align_val_t{4096}); }
  };
  std::vector<std::unique_ptr<std::uint8_t, Free>> held_;
};

}  // namespace suite
