// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <strait/c.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "process.hpp"
#include "transfer.hpp"

namespace bench {
namespace {

// `count` hand-overs between two pinned threads; the time of one.
double bounce(int cpu_a, int cpu_b, std::uint64_t count) {
  alignas(128) std::atomic<std::uint64_t> line{0};
  std::thread other([&] {
    pin(cpu_b);
    for (std::uint64_t turn = 1; turn < 2 * count; turn += 2) {
      while (line.load(std::memory_order_acquire) != turn) {
      }
      line.store(turn + 1, std::memory_order_release);
    }
  });
  double ns = 0;
  std::thread self([&] {
    pin(cpu_a);
    const std::uint64_t start = now_ns();
    for (std::uint64_t turn = 0; turn < 2 * count; turn += 2) {
      line.store(turn + 1, std::memory_order_release);
      while (line.load(std::memory_order_acquire) != turn + 2) {
      }
    }
    ns = static_cast<double>(now_ns() - start) / static_cast<double>(2 * count);
  });
  self.join();
  other.join();
  return ns;
}

std::string line_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find_first_not_of(" \t", line.find(':') + 1);
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}

std::string package_version(const std::string& package) {
  const Ran ran = run({"dpkg-query", "-W", "-f=${Version}", package}, 10);
  return ran.ok ? ran.out : "not installed";
}

}  // namespace

double line_ns(int cpu_a, int cpu_b) {
  // The median of short rounds: one interruption must not look like another machine.
  std::vector<double> rounds;
  bounce(cpu_a, cpu_b, 2000);
  for (int i = 0; i < 7; ++i) rounds.push_back(bounce(cpu_a, cpu_b, 20000));
  std::nth_element(rounds.begin(), rounds.begin() + 3, rounds.end());
  return rounds[3];
}

double load_average() {
  std::ifstream in("/proc/loadavg");
  double load = -1;
  in >> load;
  return load;
}

nlohmann::json describe_machine() {
  utsname names{};
  uname(&names);
  return {{"cpu", line_of("/proc/cpuinfo", "model name")},
          {"cpus", std::thread::hardware_concurrency()},
          {"memory", line_of("/proc/meminfo", "MemTotal")},
          {"kernel", std::string(names.sysname) + " " + names.release + " " + names.machine},
          {"hypervisor", line_of("/proc/cpuinfo", "flags").find(" hypervisor") != std::string::npos},
          {"compiler", __VERSION__},
          {"strait", strait_version()},
          {"libfabric", package_version("libfabric1")},
          {"ucx", package_version("libucx0")},
          {"valgrind", package_version("valgrind")}};
}

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
