// SPDX-License-Identifier: Apache-2.0
#include "across.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <sstream>

#include "far.hpp"
#include "runner.hpp"
#include "strait/device_queue.hpp"

namespace bench::gpu {
namespace {

using std::chrono::seconds;

constexpr std::size_t kHostBytes = 1 << 20;
constexpr std::size_t kOwnBytes = 64 << 20;
constexpr std::uint64_t kPiece = 1 << 20;
constexpr std::uint32_t kDepth = 1024;
constexpr std::uint64_t kRounds = 1000;
constexpr unsigned kMostBlocks = 256;

Near parse_near(const std::string& word) {
  if (word == "gpu") return Near::gpu;
  if (word == "host") return Near::host;
  throw std::invalid_argument("near is gpu or host, not " + word);
}

std::vector<std::uint64_t> pattern(std::uint64_t seed) {
  std::vector<std::uint64_t> words(kOwnBytes / 8);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = (seed + i) * 0x9e3779b97f4a7c15u;
  return words;
}

// A region with its handles; both processes have the same two.
struct Shared {
  Shared(strait::Node& node, const std::string& given_name, void* address, std::size_t bytes)
      : name(given_name),
        region(node.share(address, bytes, strait::access::all).value()),
        published(node.publish(name, region).value()) {}
  void meet(strait::Peer& peer, const strait::DeviceQueue& queue) {
    from = queue.local(region).value();
    to = queue.remote(peer.lookup(name, seconds(20)).value()).value();
    signal = queue.signal(region, 0).value();
  }
  std::string name;
  strait::Region region;
  strait::Published published;
  strait::device::LocalRegion from{};
  strait::device::RemoteRegion to{};
  strait::device::Signal signal{};
};

// What either process has.
class Side {
 public:
  Side(Near given_near, int shared_memory)
      : near(given_near),
        runner(near, kMostBlocks),
        flags(near, 4096, shared_memory),
        host_memory(near, kHostBytes),
        own_memory(near, kOwnBytes),
        node(strait::Node::open().value()),
        host(node, "host", host_memory.here(), host_memory.size()),
        own(node, "own", own_memory.address(), own_memory.size()) {}

  std::string device() const { return near == Near::gpu ? "cuda:0" : "host"; }
  void meet(strait::Peer&& connected) {
    peer.emplace(std::move(connected));
    queue.emplace(strait::DeviceQueue::open(*peer, {.near = device(), .depth_blocks = kDepth}).value());
    host.meet(*peer, *queue);
    own.meet(*peer, *queue);
    lease.emplace(queue->lease().value());
  }

  void start_flags(std::uint64_t base, bool first) {
    std::uint64_t* const words = flags.there<std::uint64_t>();
    std::uint64_t* const a = words;
    std::uint64_t* const b = words + 64;
    runner.start(FlagRounds{first ? a : b, first ? b : a, base, kRounds, first}, 1, 1);
  }
  void start_signals(bool in_own_memory, std::uint64_t base, bool first) {
    Shared& shared = in_own_memory ? own : host;
    auto* const words =
        in_own_memory ? static_cast<std::uint64_t*>(own_memory.address()) : host_memory.there<std::uint64_t>();
    const SignalRounds rounds{
        queue->handle().value(), shared.from, shared.to, shared.signal, words, words + 1, base, kRounds, first};
    runner.start(rounds, 1, 1);
  }
  bool holds(std::uint64_t seed) const {
    std::vector<std::uint64_t> found(kOwnBytes / 8);
    own_memory.read(found.data());
    return found == pattern(seed);
  }

  Near near;
  Runner runner;
  Pages flags;
  Pages host_memory;
  Own own_memory;
  strait::Node node;
  Shared host, own;
  std::optional<strait::Peer> peer;
  std::optional<strait::DeviceQueue> queue;
  std::optional<strait::GpuLease> lease;
};

// Copies of pieces one after another in one stream, as quick as they go: GB/s.
double copy_rate(Side& side, void* to, const void* from, std::size_t bytes, std::uint64_t count,
                 cudaMemcpyKind direction, cudaStream_t stream) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = i % (bytes / kPiece) * kPiece;
    if (side.near == Near::gpu)
      check(
          cudaMemcpyAsync(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, kPiece, direction, stream),
          "cudaMemcpyAsync");
    else
      std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, kPiece);
  }
  if (side.near == Near::gpu) check(cudaStreamSynchronize(stream), "copies");
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(count * kPiece) / passed.count();
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

struct Across::Parts {
  explicit Parts(const std::string& near)
      : shared_memory(make_shared_memory(4096)), far(shared_memory, near), side(parse_near(near), shared_memory) {
    side.meet(side.node.connect(far.line().hear(), {.deadline = seconds(20)}).value());
    far.line().expect("met");
  }

  // Rounds on both sides: the far one is up before ours begins. Nanoseconds of one.
  template <class Start>
  double rounds(const std::string& kind, std::uint64_t base, Start&& start) {
    std::ostringstream command;
    command << kind << " " << base;
    far.line().say(command.str());
    far.line().expect("up");
    start();
    const double ns = Runner::elapsed_ns(side.runner.finish(kRounds));
    far.line().expect("done");
    return ns / static_cast<double>(kRounds);
  }

  int shared_memory;
  FarProcess far;
  Side side;
  std::uint64_t flag_base = 0;
  std::uint64_t signal_base[2] = {0, 0};
  std::uint64_t seed = 1;
};

Across::Across(const std::string& near) : parts_(std::make_unique<Parts>(near)) {}
Across::~Across() = default;

Beside Across::round_trip(bool own_memory, unsigned launches) {
  Parts& p = *parts_;
  Beside out;
  out.other_name = "two flags";
  const auto flags = [&] {
    const double ns = p.rounds("flags", p.flag_base, [&] { p.side.start_flags(p.flag_base, true); });
    p.flag_base += kRounds;
    return ns / 1000;
  };
  std::uint64_t& base = p.signal_base[own_memory ? 1 : 0];
  const auto signals = [&] {
    const double ns =
        p.rounds(own_memory ? "own" : "host", base, [&] { p.side.start_signals(own_memory, base, true); });
    base += kRounds;
    return ns / 1000;
  };
  // In turns the rest would take minutes, and say nothing about queues.
  if (flags() > 500 && p.side.near == Near::gpu)
    throw std::runtime_error("kernels of the two processes take turns on the GPU: MPS is not running");
  (void)signals();
  for (unsigned i = 0; i < launches; ++i) {
    out.other.push_back(flags());
    out.ours.push_back(signals());
  }
  out.note = p.side.queue->path();
  return out;
}

Beside Across::stream(unsigned launches) {
  Parts& p = *parts_;
  constexpr std::uint64_t kCount = 256, kInFlight = 16;
  const std::vector<std::uint64_t> words = pattern(++p.seed);
  p.side.own_memory.write(words.data());
  Pages bounce(p.side.near, kInFlight * kPiece);
  cudaStream_t stream = nullptr;
  if (p.side.near == Near::gpu) check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  Own aside(p.side.near, kInFlight * kPiece);
  std::vector<double> out_of, into;
  Beside out;
  for (unsigned i = 0; i <= launches; ++i) {
    const double leg_out = copy_rate(p.side, bounce.here(), p.side.own_memory.address(), bounce.size(), kCount,
                                     cudaMemcpyDeviceToHost, stream);
    const double leg_in =
        copy_rate(p.side, aside.address(), bounce.here(), bounce.size(), kCount, cudaMemcpyHostToDevice, stream);
    const Stream body{p.side.queue->handle().value(), p.side.own.from, p.side.own.to, kPiece, kCount, kInFlight};
    p.side.runner.start(body, 1, 1);
    const double ns = Runner::elapsed_ns(p.side.runner.finish(kCount));
    if (i == 0) continue;  // the first time pages are pinned and streams made
    out_of.push_back(leg_out);
    into.push_back(leg_in);
    out.other.push_back(std::min(leg_out, leg_in));
    out.ours.push_back(static_cast<double>(kCount * kPiece) / ns);
  }
  if (stream != nullptr) check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  p.far.line().say("verify " + std::to_string(p.seed));
  p.far.line().expect("verified");
  out.other_name = median_of(out_of) < median_of(into) ? "GPU to host" : "host to GPU";
  std::ostringstream note;
  note.precision(3);
  note << "legs in pieces of 1 MiB: GPU to host " << median_of(out_of) << ", host to GPU " << median_of(into)
       << " GB/s; " << p.side.queue->path();
  out.note = note.str();
  return out;
}

Beside Across::sustained(unsigned warps, unsigned launches) {
  Parts& p = *parts_;
  constexpr std::uint64_t kEach = 4096;
  std::vector<strait::DeviceQueue> queues;
  std::vector<strait::GpuLease> leases;
  Pages handles(p.side.near, warps * sizeof(sd::Queue));
  Pages targets(p.side.near, warps * sizeof(sd::RemoteRegion));
  const strait::Target target = p.side.peer->lookup("host", seconds(20)).value();
  for (unsigned i = 0; i < warps; ++i) {
    queues.push_back(
        strait::DeviceQueue::open(*p.side.peer, {.near = p.side.device(), .depth_blocks = kDepth}).value());
    leases.push_back(queues.back().lease().value());
    static_cast<sd::Queue*>(handles.here())[i] = queues.back().handle().value();
    static_cast<sd::RemoteRegion*>(targets.here())[i] = queues.back().remote(target).value();
  }
  Beside out;
  for (unsigned i = 0; i <= launches; ++i) {
    p.side.runner.start(Sustained{handles.there<sd::Queue>(), targets.there<sd::RemoteRegion>(), kEach}, warps, 32);
    const double ns = Runner::elapsed_ns(p.side.runner.finish(kEach));
    if (i != 0) out.ours.push_back(static_cast<double>(warps * kEach) / ns * 1000);
  }
  for (const strait::DeviceQueue& queue : queues) queue.failure().value();
  out.note = queues.front().path();
  return out;
}

int run_far_side(int line_fd, int shared_memory, const std::string& near) {
  const Line line(line_fd);
  try {
    Side side(parse_near(near), shared_memory);
    line.say(side.node.address());
    side.meet(side.node.accept(seconds(20)).value());
    line.say("met");
    for (;;) {
      std::istringstream command(line.hear());
      std::string kind;
      std::uint64_t number = 0;
      command >> kind >> number;
      if (kind == "quit") return 0;
      if (kind == "verify") {
        line.say(side.holds(number) ? "verified" : "failed: other bytes than were put");
        continue;
      }
      if (kind == "flags")
        side.start_flags(number, false);
      else
        side.start_signals(kind == "own", number, false);
      line.say("up");
      (void)side.runner.finish(kRounds);
      line.say("done");
    }
  } catch (const std::exception& e) {
    line.say(std::string("failed: ") + std::string(e.what()).substr(0, 900));
    return 1;
  }
}

}  // namespace bench::gpu
