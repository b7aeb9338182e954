// SPDX-License-Identifier: Apache-2.0
// What it costs to find one of many regions: the registration cache (by allocation, with its identity compared) and the
// software NIC's key table (by rkey, with bounds, rights and protection domain checked), uniform random.
//
//   lookup REGIONS [CPU]    prints one line of JSON
//
// Cache misses are counted by the CPU where the kernel lets us; where not, they are estimated from time: what a lookup
// among many costs more than one in a single region, divided by what one dependent miss costs in memory of the table's
// size.
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "keys/cache.hpp"
#include "soft/nic/memory.hpp"
#include "workload.hpp"

namespace bench {
namespace {

constexpr std::uint64_t kFirstBase = 0x100000000;
constexpr std::uint64_t kStride = 65536;
constexpr std::uint32_t kRights = STRAIT_NIC_REMOTE_WRITE;

// Misses of the first-level data cache on loads, by this thread in user mode.
class MissCounter {
 public:
  MissCounter() {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_HW_CACHE;
    attr.config = PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
    attr.exclude_kernel = 1;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
  }
  ~MissCounter() {
    if (fd_ >= 0) close(fd_);
  }
  MissCounter(const MissCounter&) = delete;
  MissCounter& operator=(const MissCounter&) = delete;
  [[nodiscard]] bool works() const { return fd_ >= 0; }
  [[nodiscard]] std::uint64_t read_now() const {
    std::uint64_t value = 0;
    if (fd_ < 0 || ::read(fd_, &value, sizeof value) != sizeof value) return 0;
    return value;
  }

 private:
  int fd_ = -1;
};

struct Cost {
  double ns = 0;
  double misses = -1;  // -1: not counted
};

// The best of several rounds: what the lookup costs, not what the neighbours do.
template <class Lookup>
Cost measure(std::uint64_t rounds, std::uint64_t count, Lookup lookup) {
  MissCounter counter;
  Cost best;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t misses = counter.read_now();
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < count; ++i) lookup();
    const auto n = static_cast<double>(count);
    const double ns = static_cast<double>(now_ns() - start) / n;
    if (round != 0 && ns >= best.ns) continue;
    best.ns = ns;
    if (counter.works()) best.misses = static_cast<double>(counter.read_now() - misses) / n;
  }
  return best;
}

// One dependent load that misses what the table of `bytes` misses: a random cycle through its lines.
double miss_ns(std::uint64_t bytes) {
  struct alignas(64) Line {
    std::uint32_t next;
  };
  const std::size_t lines = std::max<std::size_t>(bytes / 64, 1);
  std::vector<Line> ring(lines);
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0u);
  Random random;
  for (std::size_t i = lines - 1; i > 0; --i) std::swap(order[i], order[random.below(i)]);
  for (std::size_t i = 0; i < lines; ++i) ring[order[i]].next = order[(i + 1) % lines];
  std::uint32_t at = 0;
  const Cost cost = measure(5, 200000, [&] { at = ring[at].next; });
  if (at == 0xffffffff) std::printf(" ");  // `at` is used
  return cost.ns;
}

strait::keys::Allocation allocation_of(std::uint64_t index) {
  return {kFirstBase + index * kStride, 4096, index + 1, false};
}

struct CacheCost {
  Cost cost;
  double lines = 0;
  double bytes_per_region = 0;
};

CacheCost measure_cache(std::uint64_t regions) {
  std::uint32_t next_key = 1;
  strait::keys::Cache cache(
      [&](const strait::keys::Allocation&, std::uint32_t) -> strait::Result<strait::keys::Registration> {
        const std::uint32_t key = next_key++;
        strait::keys::Registration made;
        made.rails[0] = {key, key};
        return made;
      },
      [](const strait::keys::Registration&) {}, {.entries = 2 * regions, .bytes = std::uint64_t{1} << 40});
  for (std::uint64_t i = 0; i < regions; ++i) {
    if (!cache.acquire(allocation_of(i), kRights)) give_up("the cache refused a registration");
  }
  CacheCost out;
  Random random;
  std::uint64_t carry = 0;  // always 0, but only the answer says so: each lookup waits for the one before
  out.cost = measure(5, 500000, [&] {
    const std::uint64_t index = random.below(regions) + carry;
    carry = cache.acquire(allocation_of(index), kRights)->lkey() - 1 - index;
  });
  if (carry != 0 || cache.stats().misses != regions) give_up("the cache was asked for what it has and did not have it");
  std::uint64_t lines = 0;
  for (int i = 0; i < 10000; ++i) lines += cache.lines_read(allocation_of(random.below(regions)), kRights);
  out.lines = static_cast<double>(lines) / 10000;
  out.bytes_per_region = static_cast<double>(cache.stats().memory_bytes) / static_cast<double>(regions);
  return out;
}

Cost measure_keys(std::uint64_t regions) {
  strait::soft::nic::MemoryTable table;
  std::vector<std::uint8_t> memory(4096);
  std::vector<std::uint32_t> keys;
  for (std::uint64_t i = 0; i < regions; ++i) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = 1;
    request.access = kRights;
    request.fd = -1;
    request.address = reinterpret_cast<std::uint64_t>(memory.data());
    request.length_bytes = memory.size();
    keys.push_back(table.add(request).value().rkey);
  }
  // Keys are handed out in order, index << 8; a stored list of them would be measured with the table.
  const std::uint32_t first = keys.front();
  for (std::uint64_t i = 0; i < regions; ++i) {
    if (keys[i] != first + (i << 8)) give_up("the key table no longer hands out keys in order");
  }
  Random random;
  std::uint32_t carry = 0;  // always 0: makes each lookup wait for the one before
  const auto at = reinterpret_cast<std::uint64_t>(memory.data());
  const Cost cost = measure(5, 500000, [&] {
    strait::soft::nic::KeyFault fault{};
    const std::uint32_t key = first + ((static_cast<std::uint32_t>(random.below(regions)) + carry) << 8);
    const auto* entry = table.check(key, 1, at + 8, 8, kRights, fault);
    if (entry == nullptr) give_up("a registered key was refused");
    carry = entry->key - key;
  });
  return cost;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const std::uint64_t regions = argc >= 2 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (regions == 0 || regions > 1'000'000) bench::give_up("usage: lookup REGIONS [CPU], with 1 to 1000000 regions");
  if (argc >= 3) bench::pin(std::atoi(argv[2]));
  const bench::CacheCost cache = bench::measure_cache(regions);
  const bench::Cost keys = bench::measure_keys(regions);
  const auto table_bytes = static_cast<std::uint64_t>(cache.bytes_per_region * static_cast<double>(regions));
  std::printf(
      "{\"regions\": %llu, \"cache_ns\": %.2f, \"cache_misses\": %.3f, \"cache_lines\": %.3f, "
      "\"cache_bytes_per_region\": %.1f, \"key_ns\": %.2f, \"key_misses\": %.3f, \"key_bytes_per_region\": %zu, "
      "\"miss_ns_cache\": %.2f, \"miss_ns_keys\": %.2f}\n",
      static_cast<unsigned long long>(regions), cache.cost.ns, cache.cost.misses, cache.lines, cache.bytes_per_region,
      keys.ns, keys.misses, sizeof(strait::soft::nic::Registration), bench::miss_ns(table_bytes),
      bench::miss_ns(regions * sizeof(strait::soft::nic::Registration)));
  return 0;
}
