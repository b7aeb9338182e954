// SPDX-License-Identifier: Apache-2.0
// Kernels of two processes, played by CPU threads: what tests/device/gpu/queue_gpu_test.cu does on a GPU.
#include <sys/mman.h>

#include <cstring>
#include <future>
#include <utility>
#include <vector>

// g++ 12 does not follow that a lane which is not usable owns nothing.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "far_sides.hpp"
#include "strait/device/cpu_grid.hpp"

namespace far {
namespace {

class CpuMachine {
 public:
  static constexpr const char* kNear = "host";
  static constexpr unsigned kThreads = 4;
  static constexpr std::uint64_t kPatienceNs = 30'000'000'000;

  CpuMachine() = default;
  CpuMachine(const CpuMachine&) = delete;
  CpuMachine& operator=(const CpuMachine&) = delete;
  ~CpuMachine() {
    for (const auto& [address, bytes] : held_) (void)::munmap(address, bytes);
  }
  void* own(std::size_t bytes) { return host(bytes); }
  void* host(std::size_t bytes) {
    void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) throw std::runtime_error("mmap failed");
    held_.emplace_back(address, bytes);
    return address;
  }
  void load(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  template <class Body>
  void start(const Body& body) {
    done_ = std::async(std::launch::async, [body] { strait::device::run_on_cpu({1, kThreads}, body); });
  }
  void finish() {
    if (done_.valid()) done_.get();
  }

 private:
  std::vector<std::pair<void*, std::size_t>> held_;
  std::future<void> done_;
};

TEST_P(Far, EveryRoundIsSeenByPlainLoads) {
  play<CpuMachine>(GetParam());
}

}  // namespace
}  // namespace far

int main(int argc, char** argv) {
  return far::run<far::CpuMachine>(argc, argv);
}
