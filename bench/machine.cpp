// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <thread>

#include "transfer.hpp"

namespace bench {
double memcpy_rate(const Workload& w) {
  double rate = 0;
  std::thread worker([&] {
    pin(w.cpu[0]);
    std::vector<std::vector<std::uint8_t>> from;
    std::vector<std::vector<std::uint8_t>> to;
    for (std::uint32_t r = 0; r < w.regions; ++r) {
      from.emplace_back(w.region_bytes, std::uint8_t{1});
      to.emplace_back(w.region_bytes, std::uint8_t{2});
    }
    std::uint64_t count = std::max<std::uint64_t>((16u << 20) / w.size_bytes, 2);
    for (std::uint32_t phase = 1; phase <= 3; ++phase) {
      PhasePlaces places(w, phase);
      const std::uint64_t start = now_ns();
      for (std::uint64_t i = 0; i < count; ++i) {
        const Place source = source_place(w, places, i);
        const Place target = places.to_owner.next();
        std::memcpy(to[target.region].data() + target.offset, from[source.region].data() + source.offset, w.size_bytes);
        asm volatile("" ::: "memory");  // the copy is the point, nobody reads it
      }
      const double ns = static_cast<double>(std::max<std::uint64_t>(now_ns() - start, 1));
      rate = static_cast<double>(count * w.size_bytes) / ns;
      count = std::max<std::uint64_t>(
          static_cast<std::uint64_t>(static_cast<double>(count) * w.seconds * 1e9 * (phase == 1 ? 0.1 : 1.0) / ns), 4);
      if (phase == 2) count = std::min<std::uint64_t>(count, 5'000'000);
    }
  });
  worker.join();
  return rate;
}

}  // namespace bench
