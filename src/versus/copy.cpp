// SPDX-License-Identifier: Apache-2.0
#include "versus/copy.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "sys/affinity.hpp"
#include "sys/clock.hpp"

namespace strait::versus {
namespace {

double copies_s(std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes, std::uint64_t count) {
  const std::int64_t start = sys::now_ns();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(to, from, bytes);
    asm volatile("" ::: "memory");  // the copy is the point, nobody reads it
  }
  return static_cast<double>(std::max<std::int64_t>(sys::now_ns() - start, 1)) * 1e-9;
}

}  // namespace

double copy_seconds(std::uint64_t bytes, double seconds, int cpu) {
  double each = 0;
  std::thread worker([&] {
    (void)sys::pin_thread_to_cpu(cpu);  // where that is refused it is still a memcpy
    const std::vector<std::uint8_t> from(bytes, std::uint8_t{1});
    std::vector<std::uint8_t> to(bytes, std::uint8_t{2});
    // Warm, then a tenth to see how many it takes, then the ones that count.
    std::uint64_t count = std::max<std::uint64_t>((std::uint64_t{4} << 20) / bytes, 2);
    for (const double share : {0.1, 1.0, 0.0}) {
      each = copies_s(to.data(), from.data(), bytes, count) / static_cast<double>(count);
      count = static_cast<std::uint64_t>(std::clamp(seconds * share / each, 2.0, 1e9));
    }
  });
  worker.join();
  return each;
}

}  // namespace strait::versus
