// SPDX-License-Identifier: Apache-2.0
// Puts between two processes on a software Cassini that both share, through the public CxiQueue: commands posted by a
// Lane, completed by a counting event that is written back when its trigger fires. Memory lies on files that the device
// maps.
//
//   cxi_transfer latency|rate|bandwidth [workload options] [server=CPU] [direct=0|1] [pingpong=0|1]
//
// latency: from posting a put to the counting event that says that it lies in the target's memory; the target sleeps.
// pingpong=1: to and fro instead, both polling memory, half of it is printed; wants a third CPU. server: where the
// process that has the cards runs; the target's CPU unless said. direct=0: memory that the device reaches by system
// calls only.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>

#include <memory>
#include <optional>

#include "soft/cassini_host/server.hpp"
#include "strait/cxi_queue.hpp"
#include "strait/device/cxi/lane.hpp"
#include "sys/mapping.hpp"
#include "transfer.hpp"

namespace bench {
namespace {

namespace sd = strait::device;
namespace ki = strait::device::cxi;
namespace sys = strait::sys;

// The device need not say after every command how far it is: that would be a cache line that goes to and fro.
constexpr auto kPolicy = strait::wire::cxi::CqPolicy::low_freq;
constexpr std::uint64_t kWaitNs = 10'000'000'000;

template <class T>
T need(strait::Result<T> result, const char* what) {
  if (!result) give_up(std::string(what) + ": " + result.error().explain());
  return std::move(*result);
}

class CxiTransport {
 public:
  // The device stores forward.
  static constexpr bool kLastWordLast = true;

  CxiTransport(const Workload& workload, Meeting* meeting, int side)
      : workload_(workload), side_(side), lazy_(workload.option("pingpong", "0") != "1") {
    device_.emplace(need(strait::CxiDevice::open("soft0"), "the device"));
    place_memory();
    queue_.emplace(need(
        strait::CxiQueue::open(*device_, {.counters = 1, .signalled_puts = 1, .update_policy = kPolicy}), "a queue"));
    const auto mine = need(queue_->expose({memory_, bytes_}, STRAIT_CXI_NO_COUNTER, strait::access::remote_write),
                           "memory that the peer reaches");
    std::memcpy(meeting->letter[side], &mine, sizeof mine);
    meet(meeting, side);
    strait::CxiPlace theirs;
    std::memcpy(&theirs, meeting->letter[1 - side], sizeof theirs);
    local_ = need(queue_->local({memory_, bytes_}), "memory to put from");
    remote_ = need(queue_->remote(theirs), "the peer's memory");
    lane_.emplace(need(queue_->handle(), "a handle"));
    if (!lane_->usable()) give_up("the queue is not usable");
    meet(meeting, side);
  }

  void post(Place from, Place to) {
    for (;;) {
      const std::uint64_t there = target_at(to.region) + to.offset;
      // The shortest travel in the command itself, as the peer's do.
      const ki::Pending put =
          workload_.size_bytes == 8
              ? lane_->put_value(*reinterpret_cast<const std::uint64_t*>(source(from.region) + from.offset), remote_,
                                 there, how_)
              : lane_->put(local_, source_at(from.region) + from.offset, remote_, there, workload_.size_bytes, how_);
      if (put.ok()) break;
      if (put.posted != ki::Posted::full) give_up("the device refuses a put");
      reap_down_to(under_way() / 2);
    }
    ++posted_;
  }
  // One-sided: nothing of this process is needed for what the other one puts.
  void progress() {
    if (side_ == 1 && lazy_) ::usleep(200);
  }
  void reap_down_to(std::uint32_t n) {
    if (under_way() <= n) return;
    // A wait costs a trigger: when some are waited for, half of them are.
    const std::uint64_t goal = posted_ - n / 2;
    const ki::Outcome out = lane_->wait_counter(0, goal, sd::Deadline::after_ns(kWaitNs));
    if (out.waited != sd::Waited::ok) give_up("a put did not complete");
    done_ = goal;
  }
  std::uint8_t* source(std::uint32_t r) { return memory_ + source_at(r); }
  std::uint8_t* target(std::uint32_t r) { return memory_ + target_at(r); }
  void load_source(std::uint32_t r, const std::uint8_t* bytes) {
    std::memcpy(source(r), bytes, workload_.region_bytes);
  }
  void read_target(std::uint32_t r, std::uint8_t* bytes) { std::memcpy(bytes, target(r), workload_.region_bytes); }
  std::string path() const { return std::string("software Cassini, ") + (shared_ ? "memory it maps" : "system calls"); }

 private:
  [[nodiscard]] std::uint64_t region() const { return (workload_.region_bytes + 4095) / 4096 * 4096; }
  [[nodiscard]] std::uint64_t source_at(std::uint32_t r) const { return 2 * r * region(); }
  [[nodiscard]] std::uint64_t target_at(std::uint32_t r) const { return (2 * r + 1) * region(); }
  [[nodiscard]] std::uint32_t under_way() const { return static_cast<std::uint32_t>(posted_ - done_); }

  void place_memory() {
    bytes_ = 2 * workload_.regions * region();
    file_ = need(sys::make_sealed_memfd("bench", bytes_), "a file in memory");
    mapping_ = need(sys::map_file(file_.get(), 0, bytes_, sys::Protect::read_write), "its mapping");
    memory_ = reinterpret_cast<std::uint8_t*>(mapping_.data());
    std::memset(memory_, 0, bytes_);
    shared_ = workload_.option("direct", "1") == "1";
    strait_error error{};
    error.struct_size = sizeof error;
    if (shared_ && strait_cxi_share(device_->raw(), memory_, bytes_, file_.get(), 0, &error) != STRAIT_OK)
      give_up(std::string("the device does not share memory: ") + error.text);
  }

  const Workload& workload_;
  const ki::How how_{.arm = workload_.test == Test::latency, .arm_ahead = 32};  // each is waited for at once
  const int side_;
  const bool lazy_;
  bool shared_ = true;
  std::uint64_t bytes_ = 0;
  sys::Fd file_;
  sys::Mapping mapping_;
  std::uint8_t* memory_ = nullptr;
  std::optional<strait::CxiDevice> device_;
  std::optional<strait::CxiQueue> queue_;
  ki::LocalMemory local_{};
  ki::RemoteMemory remote_{};
  std::optional<ki::Lane<sd::Sharing::one_thread>> lane_;
  std::uint64_t posted_ = 0, done_ = 0;
};

// One put after the other, each waited for.
int run_completions(const Workload& workload, Meeting* meeting, int side, CxiTransport& transport) {
  load_sources(workload, transport);
  const Phases phases = run_phases(workload, meeting, side, transport, [&](std::uint32_t phase, std::uint64_t count) {
    if (side == 1) return;
    PhasePlaces places(workload, phase);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Place there = places.to_owner.next();
      put_word(transport, workload, there, there, tag(phase, i));
      transport.reap_down_to(0);
    }
  });
  if (side == 1) meeting->wrong.fetch_add(verify(workload, side, transport, phases.counts, kPhases));
  meet(meeting, side);
  if (side == 1) return 0;
  const std::uint64_t count = phases.counts[kPhases];
  print_result(workload, static_cast<double>(phases.took_ns) / static_cast<double>(count) / 1e3, "us", count,
               meeting->wrong.load(), transport.path());
  return 0;
}

// The process that has the cards, on a CPU of its own choice; ends with us. It listens when this returns.
pid_t start_server(const std::string& name, int cpu) {
  int ready[2];
  if (::pipe(ready) != 0) give_up("no pipe");
  const pid_t child = ::fork();
  if (child != 0) {
    ::close(ready[1]);
    char listens = 0;
    if (::read(ready[0], &listens, 1) != 1) give_up("the server did not start");
    ::close(ready[0]);
    return child;
  }
  ::close(ready[0]);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(cpu);
  strait::soft::cassini::ServerSettings settings;
  settings.name = strait::soft::cassini::server_name(name);
  settings.cards = 1;
  auto server = strait::soft::cassini::Server::create(settings);
  if (!server || ::write(ready[1], "1", 1) != 1) give_up("no server");
  ::close(ready[1]);
  std::_Exit((*server)->run() ? 0 : 1);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  const std::string name = "bench-" + std::to_string(::getpid());
  ::setenv("STRAIT_CASSINI", name.c_str(), 1);  // option cassini: a server of this run's own
  const std::string cpu = workload.option("server", std::to_string(workload.cpu[1]));
  const pid_t server = bench::start_server(name, std::atoi(cpu.c_str()));
  bench::Meeting* meeting = nullptr;
  const int side = bench::split(workload, &meeting);
  {
    bench::CxiTransport transport(workload, meeting, side);
    if (workload.test == bench::Test::latency && workload.option("pingpong", "0") != "1") {
      bench::run_completions(workload, meeting, side, transport);
    } else {
      bench::run_transfer(workload, meeting, side, transport);
    }
    bench::meet(meeting, side);
  }
  if (side != 0) return 0;
  ::kill(server, SIGKILL);
  bench::join();
  return 0;
}
