// SPDX-License-Identifier: Apache-2.0
#include "cxi.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "kernels.hpp"
#include "strait/device/cxi/lane.hpp"

namespace bench::gpu {
namespace {

namespace ki = strait::device::cxi;
namespace cx = strait::wire::cxi;

constexpr std::uint32_t kTriggeredBlocks = 64;
constexpr std::uint64_t kRounds = 2000;
constexpr std::uint64_t kRoundPatienceNs = 5000000000;

struct BareCommands {
  std::uint8_t* blocks;
  std::uint64_t* write_pointer;
};

// Rings, launch pages and counter words in host memory, as a device has them; counts and marks in GPU memory.
class CommandRings {
 public:
  CommandRings(unsigned queues, std::uint32_t blocks, Sharing sharing, bool counted_on_gpu = false)
      : queues_(queues),
        blocks_(blocks),
        sharing_(sharing),
        host_(queues * each()),
        counters_(queues * sizeof(ki::CounterState)),
        marks_(queues * 8 * (std::size_t{blocks} + kTriggeredBlocks)),
        state_(queues * sizeof(ki::QueueState)),
        handles_(queues * sizeof(ki::Queue)),
        bare_(queues * sizeof(BareCommands)),
        counted_(counted_on_gpu ? DeviceMemory(queues * std::size_t{64}) : DeviceMemory()) {
    prepare();
  }

  const ki::Queue* handles() const { return handles_.as<ki::Queue>(); }
  const BareCommands* bare() const { return bare_.as<BareCommands>(); }
  std::uint64_t* counter() const { return marks_.as<std::uint64_t>(); }  // where bare posters share
  // Commands that fit, a multiple of 32: one block stays empty.
  std::uint64_t room() const { return (blocks_ - cx::kFirstBlock - 1) / 32 * 32; }

  // Everything as new, except the bytes of the commands.
  void reset() {
    marks_.clear();
    for (unsigned i = 0; i < queues_; ++i) {
      const std::uint64_t fresh = cx::initial_queue_status().word;
      std::memcpy(here(i), &fresh, 8);
      std::memcpy(here(i) + triggered_at(), &fresh, 8);
      std::memset(here(i) + pages_at(), 0, 192);
    }
    if (counted_.size() != 0) counted_.clear();
    check(cudaMemcpy(counters_.as<void>(), counter_image_.data(), counters_.size(), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(state_.as<void>(), image_.data(), state_.size(), cudaMemcpyHostToDevice), "copy");
  }
  void wipe() { host_.clear(); }
  std::vector<std::byte> commands() const {
    std::vector<std::byte> out;
    for (unsigned i = 0; i < queues_; ++i)
      out.insert(out.end(), here(i) + cx::kStatusAreaBytes, here(i) + std::size_t{64} * blocks_);
    return out;
  }
  std::uint64_t shown(unsigned queue) const { return __atomic_load_n(word(queue, 0), __ATOMIC_ACQUIRE); }
  // For who plays the device of queue 0.
  std::uint64_t* word(unsigned queue, unsigned which) const {  // transmit pointer, triggered pointer, counter
    return reinterpret_cast<std::uint64_t*>(here(queue) + pages_at() + 64 * which);
  }
  // The counter's word of queue 0 where it lies in GPU memory.
  std::uint64_t* counted_there() const { return counted_.as<std::uint64_t>(); }
  std::byte* triggered_here() const { return here(0) + triggered_at(); }

 private:
  std::size_t triggered_at() const { return std::size_t{64} * blocks_; }
  std::size_t pages_at() const { return triggered_at() + std::size_t{64} * kTriggeredBlocks; }
  std::size_t each() const { return (pages_at() + 4096 + 4095) / 4096 * 4096; }
  std::byte* here(unsigned i) const { return host_.here() + i * each(); }
  std::byte* there(unsigned i) const { return host_.there() + i * each(); }

  void prepare() {
    std::vector<ki::Queue> handles(queues_);
    std::vector<BareCommands> bare(queues_);
    image_.resize(queues_);
    counter_image_.resize(queues_);
    for (unsigned i = 0; i < queues_; ++i) {
      std::uint64_t* const marks = marks_.as<std::uint64_t>() + i * (std::size_t{blocks_} + kTriggeredBlocks);
      auto* const pages = reinterpret_cast<std::uint64_t*>(there(i) + pages_at());
      bare[i] = {reinterpret_cast<std::uint8_t*>(there(i)), pages};
      std::uint64_t* const word = counted_.size() != 0 ? counted_.as<std::uint64_t>() + 8 * i : pages + 16;
      counter_image_[i].counter = {sd::head_of<ki::Counter>(), word, nullptr, 5, 0};
      ki::QueueMemory memory;
      memory.sharing = sharing_;
      memory.transmit = {there(i), blocks_, pages, marks, ki::RingKind::transmit, sd::Reach::system};
      memory.triggered = {there(i) + triggered_at(), kTriggeredBlocks,        pages + 8,
                          marks + blocks_,           ki::RingKind::triggered, sd::Reach::system};
      memory.counter = counters_.as<ki::CounterState>() + i;
      memory.counters = 1;
      memory.event_queue = 9;
      memory.initiator = 77;
      if (!ki::open_queue(image_[i], memory)) throw std::runtime_error("the benchmark's own queue is refused");
      handles[i] = {sd::head_of<ki::Queue>(), sharing_, 0, state_.as<ki::QueueState>() + i};
    }
    check(cudaMemcpy(handles_.as<void>(), handles.data(), handles_.size(), cudaMemcpyHostToDevice), "copy");
    check(cudaMemcpy(bare_.as<void>(), bare.data(), bare_.size(), cudaMemcpyHostToDevice), "copy");
    reset();
  }

  unsigned queues_;
  std::uint32_t blocks_;
  Sharing sharing_;
  HostPages host_;
  DeviceMemory counters_;
  DeviceMemory marks_;
  DeviceMemory state_;
  DeviceMemory handles_;
  DeviceMemory bare_;
  DeviceMemory counted_;
  std::vector<ki::QueueState> image_;
  std::vector<ki::CounterState> counter_image_;
};

struct CxiWork {
  const BareCommands* bare;
  const ki::Queue* queues;
  ki::LocalMemory from;
  ki::RemoteMemory to;
  std::uint64_t count;
  std::uint64_t* taken;
};

__device__ __forceinline__ void bare_command(const BareCommands& ring, const CxiWork& work, std::uint64_t at,
                                             std::uint64_t item) {
  const ki::Telling tell{ki::kQuiet | cx::kEventCtAck, 77, ki::told_by_counter(ki::told_by_event(9), 5)};
  ki::store_command(ring.blocks + (cx::kFirstBlock + at) * 64,
                    ki::full_dma(cx::DmaOp::put, {work.to.dfa, work.to.index_ext, offset_of(item)},
                                 work.from.iova + offset_of(item), work.from.lac, 64, tell, 0, 0)
                        .words);
}
__device__ __forceinline__ void bare_pointer(const BareCommands& ring, std::uint64_t next) {
  sd::order_before_doorbell(sd::Reach::system);
  sd::store_doorbell(ring.write_pointer, cx::kFirstBlock + next);
}

struct CxiThreadBare {
  __device__ static std::uint64_t run(const CxiWork& work, Watch& watch) {
    const BareCommands ring = work.bare[blockIdx.x];
    watch.start();
    for (std::uint64_t i = 0; i < work.count; ++i) {
      bare_command(ring, work, i, i);
      bare_pointer(ring, i + 1);
    }
    watch.stop();
    return work.count;
  }
};
struct CxiThreadOurs {
  __device__ static std::uint64_t run(const CxiWork& work, Watch& watch) {
    ki::Lane<Sharing::one_thread> lane(work.queues[blockIdx.x]);
    std::uint64_t posted = 0;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; ++i)
      posted += lane.put(work.from, offset_of(i), work.to, offset_of(i), 64).ok();
    watch.stop();
    return posted;
  }
};

struct CxiWarpBare {
  __device__ static std::uint64_t run(const CxiWork& work, Watch& watch) {
    const BareCommands ring = work.bare[blockIdx.x];
    const unsigned rank = threadIdx.x;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += 32) {
      bare_command(ring, work, i + rank, i + rank);
      __syncwarp();
      if (rank == 0) bare_pointer(ring, i + 32);
    }
    __syncwarp();
    watch.stop();
    return work.count;
  }
};
struct CxiWarpOurs {
  __device__ static std::uint64_t run(const CxiWork& work, Watch& watch) {
    ki::Lane<Sharing::one_thread, sd::Warp> lane(work.queues[blockIdx.x]);
    const unsigned rank = threadIdx.x;
    std::uint64_t posted = 0;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += 32)
      posted += lane.put_each(work.from, offset_of(i + rank), work.to, offset_of(i + rank), 64).ok() ? 32 : 0;
    __syncwarp();
    watch.stop();
    return posted;
  }
};

struct CxiSharedBare {
  __device__ static std::uint64_t run(const CxiWork& work, Watch& watch) {
    const BareCommands ring = work.bare[0];
    const sd::Warp group;
    const unsigned rank = threadIdx.x;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += 32) {
      std::uint64_t first = 0;
      if (rank == 0) first = sd::fetch_add<sd::Scope::gpu>(work.taken, 32);
      first = group.share(first);
      bare_command(ring, work, first + rank, first + rank);
      __syncwarp();
      if (rank == 0) bare_pointer(ring, first + 32);
    }
    __syncwarp();
    watch.stop();
    return work.count;
  }
};
struct CxiSharedOurs {
  __device__ static std::uint64_t run(const CxiWork& work, Watch& watch) {
    ki::Lane<Sharing::many_threads, sd::Warp> lane(work.queues[0]);
    std::uint64_t posted = 0;
    watch.start();
    for (std::uint64_t i = 0; i < work.count; i += 32) {
      const std::uint64_t item = blockIdx.x * work.count + i + threadIdx.x;
      for (unsigned t = 0; t < kTries; ++t) {
        const bool ok = lane.put_each(work.from, offset_of(item), work.to, offset_of(item), 64).ok();
        posted += ok ? 32 : 0;
        if (ok) break;
      }
    }
    __syncwarp();
    watch.stop();
    return posted;
  }
};

template <class Kind>
__global__ void cxi_timed(CxiWork work, Span* spans, std::uint64_t* arrived) {
  meet(arrived, gridDim.x);
  Watch watch;
  const std::uint64_t posted = Kind::run(work, watch);
  if (threadIdx.x == 0) spans[blockIdx.x] = watch.span(posted);
}

class CxiBench {
 public:
  CxiBench(unsigned queues, std::uint32_t blocks, Sharing sharing, unsigned grid, unsigned threads)
      : rings(queues, blocks, sharing),
        grid_(grid),
        threads_(threads),
        spans_(grid * sizeof(Span)),
        arrived_(8),
        found_(grid) {
    work.bare = rings.bare();
    work.queues = rings.handles();
    work.from = {sd::head_of<ki::LocalMemory>(), 0x7f0000000000, 4096 + 64, 2, 0};
    work.to = {sd::head_of<ki::RemoteMemory>(), 0, 4096 + 64, 0, 0x12345, 3, 0, 0, 0, 0};
    work.count = rings.room();
    work.taken = rings.counter();
  }

  template <class Kind>
  double once() {
    rings.reset();
    arrived_.clear();
    check(cudaDeviceSynchronize(), "before a launch");
    cxi_timed<Kind><<<grid_, threads_>>>(work, spans_.as<Span>(), arrived_.as<std::uint64_t>());
    check(cudaGetLastError(), "launch");
    check(cudaMemcpy(found_.data(), spans_.as<void>(), spans_.size(), cudaMemcpyDeviceToHost), "the kernel");
    std::uint64_t begin = ~std::uint64_t{0}, end = 0, entries = 0;
    for (const Span& span : found_) {
      begin = std::min(begin, span.begin_ns);
      end = std::max(end, span.end_ns);
      entries += span.posted;
    }
    if (entries != work.count * grid_) throw std::runtime_error("a kernel posted less than its share");
    return static_cast<double>(end - begin) / static_cast<double>(entries);
  }
  // The bytes the two leave behind are the same, or they did not do the same work.
  template <class Bare, class Ours>
  void same_bytes() {
    rings.wipe();
    (void)once<Bare>();
    const std::vector<std::byte> bare = rings.commands();
    rings.wipe();
    (void)once<Ours>();
    if (bare != rings.commands()) throw std::runtime_error("ours and bare leave different rings");
  }
  template <class Ours>
  void whole_ring() {
    rings.wipe();
    (void)once<Ours>();
    const std::vector<std::byte> all = rings.commands();
    for (std::uint64_t i = 0; i < work.count * grid_; ++i)
      if (std::to_integer<unsigned>(all[64 * i]) != 0x15) throw std::runtime_error("a shared ring has a hole");
    if (rings.shown(0) != cx::kFirstBlock + work.count * grid_) throw std::runtime_error("a write pointer was lost");
  }
  template <class Bare, class Ours>
  Launches pairs(unsigned launches) {
    Launches out;
    (void)once<Bare>();
    (void)once<Ours>();
    for (unsigned i = 0; i < launches; ++i) {
      if (i % 2 == 0) out.bare.push_back(once<Bare>());
      out.ours.push_back(once<Ours>());
      out.ours_cycles.push_back(static_cast<double>(found_[0].cycles) / static_cast<double>(found_[0].posted));
      if (i % 2 != 0) out.bare.push_back(once<Bare>());
    }
    return out;
  }
  void share(unsigned posters) { work.count = rings.room() / posters / 32 * 32; }

  CommandRings rings;
  CxiWork work{};

 private:
  unsigned grid_, threads_;
  DeviceMemory spans_;
  DeviceMemory arrived_;
  std::vector<Span> found_;
};

// ---- Waiting --------------------------------------------------------------------------------------------------------

__global__ void wait_rounds(ki::Queue queue, std::uint64_t rounds, Span* span, unsigned* failed) {
  ki::Lane<Sharing::one_thread> lane(queue);
  Watch watch;
  watch.start();
  std::uint64_t i = 0;
  while (i < rounds && lane.wait_counter(0, i + 1, sd::Deadline::after_ns(kRoundPatienceNs)).waited == sd::Waited::ok)
    ++i;
  watch.stop();
  *failed = i == rounds ? 0 : 1;
  *span = watch.span(i);
}
__global__ void flag_rounds(std::uint64_t* out, const std::uint64_t* in, std::uint64_t rounds, Span* span,
                            unsigned* failed) {
  Watch watch;
  watch.start();
  const sd::Deadline deadline = sd::Deadline::after_ns(kRoundPatienceNs);
  std::uint64_t i = 0;
  for (; i < rounds && !deadline.passed(); ++i) {
    sd::store_relaxed<sd::Scope::system>(out, i + 1);
    for (std::uint32_t turns = 1; sd::peek(in) < i + 1; ++turns)
      if (turns % 4096 == 0 && deadline.passed()) break;
  }
  watch.stop();
  *failed = i == rounds ? 0 : 1;
  *span = watch.span(i);
}

// The device, as far as armed events go: looks at the write pointer, reads what is behind it, writes the counter back.
template <class WriteBack>
void serve_events(const CommandRings& rings, const std::atomic<bool>& stop, WriteBack&& write_back) {
  std::uint32_t next = cx::kFirstBlock;
  std::byte* const ring = rings.triggered_here();
  auto* const status = reinterpret_cast<std::uint64_t*>(ring);
  while (!stop.load(std::memory_order_relaxed)) {
    const std::uint64_t shown = __atomic_load_n(rings.word(0, 1), __ATOMIC_ACQUIRE);
    if (shown == 0 || shown == next) continue;
    while (next != shown) {
      std::uint64_t words[3];
      std::memcpy(words, ring + std::size_t{64} * next, sizeof words);
      if (++next == kTriggeredBlocks) next = cx::kFirstBlock;
      if ((words[0] & 0xff) == 0x86)  // TRIG_EVENT
        write_back(words[2] | std::uint64_t{1} << 63);
    }
    __atomic_store_n(status, std::uint64_t{1} << 48 | next, __ATOMIC_RELEASE);
  }
}
void serve_flags(std::uint64_t* in, std::uint64_t* out, const std::atomic<bool>& stop) {
  std::uint64_t seen = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    const std::uint64_t now = __atomic_load_n(in, __ATOMIC_ACQUIRE);
    if (now == seen) continue;
    seen = now;
    __atomic_store_n(out, now, __ATOMIC_RELEASE);
  }
}

// A word of GPU memory, written as a CPU can: by the copy engine.
class CopyEngine {
 public:
  CopyEngine() : words_(4096) { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;
  ~CopyEngine() { (void)cudaStreamDestroy(stream_); }
  void write(std::uint64_t* to, std::uint64_t value) {
    auto* const from = reinterpret_cast<std::uint64_t*>(words_.here()) + next_++ % 512;
    *from = value;
    check(cudaMemcpyAsync(to, from, 8, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
  }

 private:
  HostPages words_;
  cudaStream_t stream_ = nullptr;
  std::uint64_t next_ = 0;
};

template <class Launch, class Serve>
double round_trip(Launch&& launch, Serve&& serve) {
  DeviceMemory span(sizeof(Span)), failed(sizeof(unsigned));
  std::atomic<bool> stop{false};
  std::thread device([&] { serve(stop); });
  launch(span.as<Span>(), failed.as<unsigned>());
  const cudaError_t ended = cudaDeviceSynchronize();
  stop = true;
  device.join();
  check(ended, "the kernel");
  Span found{};
  unsigned missed = 0;
  check(cudaMemcpy(&found, span.as<void>(), sizeof found, cudaMemcpyDeviceToHost), "copy");
  check(cudaMemcpy(&missed, failed.as<void>(), sizeof missed, cudaMemcpyDeviceToHost), "copy");
  if (missed != 0) throw std::runtime_error("a round ended at its deadline");
  return static_cast<double>(found.end_ns - found.begin_ns) / static_cast<double>(found.posted);
}

}  // namespace

Launches cxi_by_thread(unsigned launches) {
  CxiBench bench(1, 4096, Sharing::one_thread, 1, 1);
  bench.same_bytes<CxiThreadBare, CxiThreadOurs>();
  return bench.pairs<CxiThreadBare, CxiThreadOurs>(launches);
}

Launches cxi_by_warps(unsigned warps, unsigned launches) {
  CxiBench bench(warps, 1024, Sharing::one_thread, warps, 32);
  bench.same_bytes<CxiWarpBare, CxiWarpOurs>();
  return bench.pairs<CxiWarpBare, CxiWarpOurs>(launches);
}

Launches cxi_shared_warps(unsigned warps, unsigned launches) {
  CxiBench bench(1, 32768, Sharing::many_threads, warps, 32);
  bench.share(warps);
  bench.whole_ring<CxiSharedOurs>();
  return bench.pairs<CxiSharedBare, CxiSharedOurs>(launches);
}

double flag_trip_ns() {
  HostPages flags(4096);
  auto* const here = reinterpret_cast<std::uint64_t*>(flags.here());
  auto* const there = reinterpret_cast<std::uint64_t*>(flags.there());
  return round_trip(
      [&](Span* span, unsigned* failed) { flag_rounds<<<1, 1>>>(there, there + 8, kRounds, span, failed); },
      [&](const std::atomic<bool>& stop) { serve_flags(here, here + 8, stop); });
}

Launches cxi_wait(bool on_gpu, unsigned launches) {
  Launches out;
  CopyEngine engine;
  for (unsigned i = 0; i <= launches; ++i) {
    const double bare = flag_trip_ns();
    CommandRings rings(1, 64, Sharing::one_thread, on_gpu);
    const auto write_back = [&](std::uint64_t word) {
      if (on_gpu)
        engine.write(rings.counted_there(), word);
      else
        __atomic_store_n(rings.word(0, 2), word, __ATOMIC_RELEASE);
    };
    ki::Queue queue{};
    check(cudaMemcpy(&queue, rings.handles(), sizeof queue, cudaMemcpyDeviceToHost), "copy");
    const double ours =
        round_trip([&](Span* span, unsigned* failed) { wait_rounds<<<1, 1>>>(queue, kRounds, span, failed); },
                   [&](const std::atomic<bool>& stop) { serve_events(rings, stop, write_back); });
    if (i == 0) continue;  // the first of each loads its kernel
    out.bare.push_back(bare);
    out.ours.push_back(ours);
  }
  return out;
}

}  // namespace bench::gpu
