// SPDX-License-Identifier: Apache-2.0
// The registration cache beside UCX's (ucs_rcache, where libucs is installed) and libfabric's, in one process, in turn.
//
//   rcache hit REGIONS [CPU]       finds one of REGIONS at random, takes it and gives it back
//   rcache fabric REGIONS [CPU]    the same beside libfabric, whose cache is asked by its verbs provider: fi_mr_reg and
//                                  fi_close of what it remembers. Needs a device: strait run -- rcache fabric REGIONS
//   rcache miss REGIONS [CPU]      registers REGIONS, in random order, with a function that does nothing; the cache had
//                                  them before and forgot them
//   rcache threads THREADS REGIONS hits by THREADS threads and by one
//   rcache remembered REGIONS      "this is host memory", remembered because a monitor would tell otherwise
//   rcache identity                CUDA memory: its buffer id asked for, alone and before every hit; and a hit as a
//   Node
//                                  makes it, which asks the provider for the identity of the claim (needs a GPU)
//
// Prints one line of JSON: nanoseconds of both, and the ratio of each pair of turns. Host memory throughout: UCX is
// asked by address, length and protection; ours by the allocation that its provider named, with `stable` in place of an
// identity. UCX gets no event hooks, which a hit does not call.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "buffer/built_in.hpp"
#include "buffer/providers.hpp"
#include "keys/cache.hpp"
#include "keys/monitor.hpp"
#include "workload.hpp"
#ifdef STRAIT_BENCH_UCX
extern "C" {
#include <ucs/memory/rcache.h>
}
#endif
#ifdef STRAIT_BENCH_FABRIC
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#endif

namespace bench {
namespace {

constexpr std::uint64_t kFirstBase = 0x7e0000000000;
constexpr std::uint64_t kStride = 65536;
constexpr std::uint64_t kLength = 4096;
constexpr std::uint32_t kRights = 1;

class Ours {
 public:
  explicit Ours(std::uint64_t regions)
      : cache_(
            [](const strait::keys::Allocation& a, std::uint32_t) -> strait::Result<strait::keys::Registration> {
              strait::keys::Registration made;
              made.rails[0].lkey = static_cast<std::uint32_t>((a.base - kFirstBase) / kStride);
              return made;
            },
            [](const strait::keys::Registration&) {}, {.entries = 2 * regions}) {}
  // What the cache says it is, which is `index`.
  std::uint64_t use(std::uint64_t index) {
    const auto lease = cache_.acquire({kFirstBase + index * kStride, kLength, 0, true}, kRights);
    return lease->lkey();
  }
  void forget(std::uint64_t) { cache_.invalidate(0, UINT64_MAX); }

 private:
  strait::keys::Cache cache_;
};

#ifdef STRAIT_BENCH_UCX
class Theirs {
 public:
  explicit Theirs(std::uint64_t) {
    static const ucs_rcache_ops_t ops = {
        .mem_reg = [](void*, ucs_rcache_t*, void*, ucs_rcache_region_t*, std::uint16_t) { return UCS_OK; },
        .mem_dereg = [](void*, ucs_rcache_t*, ucs_rcache_region_t*) {},
        .dump_region =
            [](void*, ucs_rcache_t*, ucs_rcache_region_t*, char* text, std::size_t room) {
              if (room != 0) *text = '\0';
            }};
    ucs_rcache_params_t params{};
    params.region_struct_size = sizeof(ucs_rcache_region_t);
    params.alignment = UCS_RCACHE_MIN_ALIGNMENT;
    params.max_alignment = 4096;
    params.ops = &ops;
    params.flags = UCS_RCACHE_FLAG_NO_PFN_CHECK;
    params.max_regions = ~0ul;
    params.max_size = ~std::size_t{0};
    params.max_unreleased = ~std::size_t{0};
    if (ucs_rcache_create(&params, "bench", nullptr, &cache_) != UCS_OK) give_up("ucs_rcache_create failed");
  }
  ~Theirs() { ucs_rcache_destroy(cache_); }
  Theirs(const Theirs&) = delete;
  Theirs& operator=(const Theirs&) = delete;
  std::uint64_t use(std::uint64_t index) {
    ucs_rcache_region_t* region = nullptr;
    if (ucs_rcache_get(cache_, reinterpret_cast<void*>(kFirstBase + index * kStride), kLength, PROT_READ | PROT_WRITE,
                       nullptr, &region) != UCS_OK)
      give_up("ucs_rcache_get failed");
    const std::uint64_t found = (region->super.start - kFirstBase) / kStride;
    ucs_rcache_region_put(cache_, region);
    return found;
  }
  void forget(std::uint64_t regions) {
    for (std::uint64_t i = 0; i < regions; ++i) {
      ucs_rcache_region_t* region = nullptr;
      if (ucs_rcache_get(cache_, reinterpret_cast<void*>(kFirstBase + i * kStride), kLength, PROT_READ | PROT_WRITE,
                         nullptr, &region) != UCS_OK)
        give_up("ucs_rcache_get failed");
      ucs_rcache_region_invalidate(
          cache_, region, [](void*) {}, nullptr);
      ucs_rcache_region_put(cache_, region);
    }
  }

 private:
  ucs_rcache_t* cache_ = nullptr;
};
#endif

#ifdef STRAIT_BENCH_FABRIC
// Its cache is no interface of its own: this is what a program pays for it, a short way through the provider included.
// Memory is watched by userfaultfd, which costs nothing where nothing is unmapped.
class Fabric {
 public:
  explicit Fabric(std::uint64_t regions) : keys_(regions) {
    setenv("FI_MR_CACHE_MONITOR", "userfaultfd", 1);
    setenv("FI_MR_CACHE_MAX_COUNT", std::to_string(2 * regions).c_str(), 1);
    setenv("FI_MR_CACHE_MAX_SIZE", std::to_string(2 * regions * kLength).c_str(), 1);
    fi_info* const hints = fi_allocinfo();
    hints->fabric_attr->prov_name = strdup("verbs");
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    fi_info* found = nullptr;
    fid_fabric* fabric = nullptr;
    if (fi_getinfo(FI_VERSION(1, 11), nullptr, nullptr, 0, hints, &found) != 0)
      give_up("libfabric's verbs provider finds no device: run it under `strait run`");
    if (fi_fabric(found->fabric_attr, &fabric, nullptr) != 0 || fi_domain(fabric, found, &domain_, nullptr) != 0)
      give_up("libfabric does not open the verbs device");
    base_ = static_cast<char*>(
        mmap(nullptr, regions * kStride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED) give_up("no memory");
    for (std::uint64_t i = 0; i < regions; ++i) keys_[i] = key_of(i);
    for (std::uint64_t i = 0; i < regions; ++i)
      if (key_of(i) != keys_[i]) give_up("libfabric registers anew: it has no cache here");
  }
  // A key that is not remembered is another region's, or a new one.
  std::uint64_t use(std::uint64_t index) { return key_of(index) == keys_[index] ? index : ~index; }

 private:
  std::uint64_t key_of(std::uint64_t index) const {
    fid_mr* region = nullptr;
    if (fi_mr_reg(domain_, base_ + index * kStride, kLength, FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, 0, 0, &region,
                  nullptr) != 0)
      give_up("fi_mr_reg failed");
    const std::uint64_t key = fi_mr_key(region);
    if (fi_close(&region->fid) != 0) give_up("fi_close failed");
    return key;
  }
  fid_domain* domain_ = nullptr;  // the process ends with it
  char* base_ = nullptr;
  std::vector<std::uint64_t> keys_;
};
#endif

// What this thread has computed: its neighbours' turns on the processor are not ours.
std::uint64_t cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// `count` uses at random; each waits for the one before.
template <class Cache>
double hits_ns(Cache& cache, std::uint64_t regions, std::uint64_t count, std::uint64_t seed) {
  Random random(seed);
  std::uint64_t carry = 0;  // always 0, but only the answer says so
  const std::uint64_t start = cpu_ns();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = random.below(regions) + carry;
    carry = cache.use(index) - index;
  }
  const auto ns = static_cast<double>(cpu_ns() - start);
  if (carry != 0) give_up("the cache found another region");
  return ns / static_cast<double>(count);
}

// Registers all of `order`, which the cache has had before and was made to forget: its own memory is there already.
template <class Cache>
double misses_ns(Cache& cache, const std::vector<std::uint32_t>& order) {
  cache.forget(order.size());
  const std::uint64_t start = cpu_ns();
  for (const std::uint32_t index : order) {
    if (cache.use(index) != index) give_up("the cache registered another region");
  }
  return static_cast<double>(cpu_ns() - start) / static_cast<double>(order.size());
}

template <class Cache>
void fill(Cache& cache, std::uint64_t regions) {
  for (std::uint64_t i = 0; i < regions; ++i) (void)cache.use(i);
}

// Million hits a second of `threads` together.
template <class Cache>
double rate(Cache& cache, std::uint64_t regions, unsigned threads, std::uint64_t count) {
  std::atomic<unsigned> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      (void)hits_ns(cache, regions, count / 10 + 1, t);
      ++ready;
      while (!go) std::this_thread::yield();
      (void)hits_ns(cache, regions, count, t + 100);
    });
  }
  while (ready != threads) std::this_thread::yield();
  const std::uint64_t start = now_ns();
  go = true;
  for (std::thread& each : all) each.join();
  return static_cast<double>(count * threads) * 1e3 / static_cast<double>(now_ns() - start);
}

struct Spread {
  double p10, median, p90;
};
Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

// Both in turn, each first as often as the other.
template <class First, class Second>
void in_turn(int rounds, std::vector<double>& ours, std::vector<double>& theirs, First first, Second second) {
  for (int round = 0; round < rounds; ++round) {
    if (round % 2 == 0) ours.push_back(first());
    if constexpr (!std::is_same_v<Second, std::nullptr_t>) theirs.push_back(second());
    if (round % 2 == 1) ours.push_back(first());
  }
}

void print(const char* what, std::uint64_t regions, const std::vector<double>& ours, const std::vector<double>& theirs,
           const char* peer = "ucx") {
  std::printf("{\"what\": \"%s\", \"regions\": %llu, \"strait\": %.2f", what, static_cast<unsigned long long>(regions),
              spread(ours).median);
  if (!theirs.empty()) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / theirs[i]);
    const Spread ratio = spread(ratios);
    std::printf(", \"%s\": %.2f, \"ratio\": %.3f, \"p10\": %.3f, \"p90\": %.3f", peer, spread(theirs).median,
                ratio.median, ratio.p10, ratio.p90);
  } else {
    std::printf(", \"no_peer\": \"libucs was not there when this was built (libucx-dev)\"");
  }
  std::printf("}\n");
}

void measure_hits(std::uint64_t regions) {
  constexpr std::uint64_t kCount = 300'000;
  Ours ours(regions);
  fill(ours, regions);
  std::vector<double> a;
  std::vector<double> b;
#ifdef STRAIT_BENCH_UCX
  Theirs theirs(regions);
  fill(theirs, regions);
  in_turn(
      30, a, b, [&] { return hits_ns(ours, regions, kCount, 1); }, [&] { return hits_ns(theirs, regions, kCount, 1); });
#else
  in_turn(
      30, a, b, [&] { return hits_ns(ours, regions, kCount, 1); }, nullptr);
#endif
  print("hit", regions, a, b);
}

void measure_beside_fabric(std::uint64_t regions) {
#ifdef STRAIT_BENCH_FABRIC
  constexpr std::uint64_t kCount = 100'000;
  Ours ours(regions);
  fill(ours, regions);
  Fabric theirs(regions);
  std::vector<double> a;
  std::vector<double> b;
  in_turn(
      30, a, b, [&] { return hits_ns(ours, regions, kCount, 1); }, [&] { return hits_ns(theirs, regions, kCount, 1); });
  print("hit", regions, a, b, "libfabric");
#else
  (void)regions;
  give_up("libfabric was not there when this was built (libfabric-dev)");
#endif
}

void measure_misses(std::uint64_t regions) {
  std::vector<std::uint32_t> order(regions);
  for (std::size_t i = 0; i < regions; ++i) order[i] = static_cast<std::uint32_t>(i);
  Random random(3);
  for (std::size_t i = regions; i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
  Ours ours(regions);
  fill(ours, regions);
  std::vector<double> a;
  std::vector<double> b;
#ifdef STRAIT_BENCH_UCX
  Theirs theirs(regions);
  fill(theirs, regions);
  in_turn(
      30, a, b, [&] { return misses_ns(ours, order); }, [&] { return misses_ns(theirs, order); });
#else
  in_turn(
      30, a, b, [&] { return misses_ns(ours, order); }, nullptr);
#endif
  print("miss", regions, a, b);
}

// Rates and what `threads` reach above one.
template <class Cache>
void print_threads(const char* name, unsigned threads, std::uint64_t regions) {
  Cache cache(regions);
  fill(cache, regions);
  std::vector<double> one;
  std::vector<double> many;
  std::vector<double> times;
  constexpr std::uint64_t kCount = 500'000;
  for (int round = 0; round < 7; ++round) {
    one.push_back(rate(cache, regions, 1, kCount));
    many.push_back(rate(cache, regions, threads, kCount));
    times.push_back(many.back() / one.back());
  }
  const Spread ratio = spread(times);
  std::printf("\"%s_one\": %.1f, \"%s_all\": %.1f, \"%s_times\": %.2f, \"%s_p10\": %.2f, \"%s_p90\": %.2f", name,
              spread(one).median, name, spread(many).median, name, ratio.median, name, ratio.p10, name, ratio.p90);
}

void measure_threads(unsigned threads, std::uint64_t regions) {
  std::printf("{\"what\": \"threads\", \"threads\": %u, \"cpus\": %u, \"regions\": %llu, \"unit\": \"M/s\", ", threads,
              std::thread::hardware_concurrency(), static_cast<unsigned long long>(regions));
  print_threads<Ours>("strait", threads, regions);
#ifdef STRAIT_BENCH_UCX
  std::printf(", ");
  print_threads<Theirs>("ucx", threads, regions);
#endif
  std::printf("}\n");
}

// What a Node does before it asks the vendors whose memory this is.
void measure_remembered(std::uint64_t regions) {
  strait::keys::Cache cache(
      [](const strait::keys::Allocation&, std::uint32_t) -> strait::Result<strait::keys::Registration> {
        return strait::keys::Registration{};
      },
      [](const strait::keys::Registration&) {}, {.entries = 2 * regions});
  const auto monitor = strait::keys::Monitor::start(
      [&](std::uint64_t address, std::uint64_t length_bytes) { return cache.try_forget(address, length_bytes); },
      [&] { cache.reap(); });
  if (!monitor) give_up(monitor.error().explain());
  void* const memory = mmap(nullptr, regions * kStride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("no memory");
  const auto base = reinterpret_cast<std::uint64_t>(memory);
  if (const auto watched = (*monitor)->watch(base, regions * kStride); !watched) give_up(watched.error().explain());
  const auto known = [&](std::uint64_t index) {
    return strait::keys::Allocation{base + index * kStride, kLength, 0, true, true};
  };
  for (std::uint64_t i = 0; i < regions; ++i)
    if (!cache.acquire(known(i), kRights)) give_up("no lease");
  constexpr std::uint64_t kCount = 300'000;
  std::vector<double> ours;
  for (int round = 0; round < 30; ++round) {
    Random random(static_cast<std::uint64_t>(round));
    std::uint64_t unknown = 0;  // always 0, but only the answer says so
    const std::uint64_t start = cpu_ns();
    for (std::uint64_t i = 0; i < kCount; ++i) {
      (*monitor)->settle();
      unknown += cache.knows(known(random.below(regions) + unknown), kRights) ? 0u : 1u;
    }
    ours.push_back(static_cast<double>(cpu_ns() - start) / static_cast<double>(kCount));
    if (unknown != 0) give_up("the cache had forgotten it");
  }
  const Spread all = spread(ours);
  std::printf(
      "{\"what\": \"remembered\", \"regions\": %llu, \"unit\": \"ns\", \"strait\": %.2f, \"p10\": %.2f, \"p90\": "
      "%.2f}\n",
      static_cast<unsigned long long>(regions), all.median, all.p10, all.p90);
  (void)munmap(memory, regions * kStride);
}

// The driver's answer to "which allocation is this?", alone and with the lookup that it guards; and the library's way
// to that answer.
void measure_identity() {
  void* const cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) give_up("libcuda.so.1 is not there");
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(cuda, "cuInit"));
  const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(cuda, "cuDevicePrimaryCtxRetain"));
  const auto set = reinterpret_cast<int (*)(void*)>(dlsym(cuda, "cuCtxSetCurrent"));
  const auto allocate = reinterpret_cast<int (*)(std::uint64_t*, std::size_t)>(dlsym(cuda, "cuMemAlloc_v2"));
  const auto attribute = reinterpret_cast<int (*)(void*, int, std::uint64_t)>(dlsym(cuda, "cuPointerGetAttribute"));
  constexpr std::uint64_t kBytes = 64u << 20;
  void* context = nullptr;
  std::uint64_t memory = 0;
  if (init == nullptr || retain == nullptr || set == nullptr || allocate == nullptr || attribute == nullptr ||
      init(0) != 0 || retain(&context, 0) != 0 || set(context) != 0 || allocate(&memory, kBytes) != 0)
    give_up("CUDA memory cannot be had");
  constexpr int kBufferId = 7;
  constexpr std::uint64_t kCount = 200'000;
  strait::keys::Cache cache(
      [](const strait::keys::Allocation&, std::uint32_t) -> strait::Result<strait::keys::Registration> {
        return strait::keys::Registration{};
      },
      [](const strait::keys::Registration&) {});
  const auto asked = [&] {
    std::uint64_t id = 0;
    if (attribute(&id, kBufferId, memory) != 0 || id == 0) give_up("CUDA gives no buffer id");
    return id;
  };
  const auto timed = [&](auto body) {
    const std::uint64_t start = now_ns();
    for (std::uint64_t i = 0; i < kCount; ++i) body();
    return static_cast<double>(now_ns() - start) / static_cast<double>(kCount);
  };
  auto providers = strait::buffer::Providers::open([] {
    std::vector<strait::buffer::Plugin> all;
    all.push_back(std::move(strait::buffer::use_plugin(strait::buffer::built_in_provider("cuda")).value()));
    return all;
  }());
  if (!providers) give_up(providers.error().explain());
  const auto claim = (*providers)->classify(reinterpret_cast<const void*>(memory), kBytes);
  if (!claim || claim->identity == 0) give_up("the provider does not recognise CUDA memory");
  const auto bare = [&] { return timed([&] { (void)asked(); }); };
  const auto compare = [&](const char* what, auto body) {
    std::vector<double> hit;
    std::vector<double> call;
    in_turn(
        30, hit, call, [&] { return timed(body); }, bare);
    std::vector<double> more;
    for (std::size_t i = 0; i < hit.size(); ++i) more.push_back(hit[i] - call[i]);
    const Spread extra = spread(more);
    std::printf("{\"what\": \"%s\", \"hit\": %.1f, \"call\": %.1f, \"more_ns\": %.1f, \"p10\": %.1f, \"p90\": %.1f}\n",
                what, spread(hit).median, spread(call).median, extra.median, extra.p10, extra.p90);
  };
  compare("identity", [&] {
    if (!cache.acquire({memory, kBytes, asked(), false}, kRights)) give_up("no lease");
  });
  compare("identity_by_provider", [&] {
    const std::uint64_t identity = claim->provider->identity(claim->whole);
    if (!cache.acquire({claim->whole.address, claim->whole.length_bytes, identity, false}, kRights))
      give_up("no lease");
  });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const std::string what = argc >= 2 ? argv[1] : "";
  const auto number = [&](int i) { return argc > i ? std::strtoull(argv[i], nullptr, 10) : 0; };
  const auto in_range = [](std::uint64_t n) { return n >= 1 && n <= 1'000'000; };
  if ((what == "hit" || what == "miss") && in_range(number(2))) {
    if (argc >= 4) bench::pin(std::atoi(argv[3]));
    what == "hit" ? bench::measure_hits(number(2)) : bench::measure_misses(number(2));
  } else if (what == "fabric" && in_range(number(2))) {
    if (argc >= 4) bench::pin(std::atoi(argv[3]));
    bench::measure_beside_fabric(number(2));
  } else if (what == "threads" && number(2) >= 1 && number(2) <= 256 && in_range(number(3))) {
    bench::measure_threads(static_cast<unsigned>(number(2)), number(3));
  } else if (what == "remembered" && in_range(number(2))) {
    bench::measure_remembered(number(2));
  } else if (what == "identity") {
    bench::measure_identity();
  } else {
    bench::give_up(
        "usage: rcache hit|miss|fabric REGIONS [CPU], threads THREADS REGIONS, remembered REGIONS, identity");
  }
  return 0;
}
