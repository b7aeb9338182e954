// SPDX-License-Identifier: Apache-2.0
// Puts between two processes on a software Cassini that both share: commands posted by a Lane, completed by a counting
// event that is written back when its trigger fires. Memory lies on files that the device maps.
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

#include <memory>
#include <optional>

#include "rail/cxi/command_queue.hpp"
#include "rail/cxi/device.hpp"
#include "rail/cxi/objects.hpp"
#include "soft/cassini_host/server.hpp"
#include "strait/device/cxi/lane.hpp"
#include "strait/plugin.h"
#include "sys/mapping.hpp"
#include "transfer.hpp"

extern "C" const strait_cxi_ops* strait_cxi_plugin(void);

namespace bench {
namespace {

namespace sd = strait::device;
namespace ki = strait::device::cxi;
namespace cxi = strait::rail::cxi;
namespace w = strait::wire::cxi;
namespace sys = strait::sys;

constexpr std::uint32_t kVni = 1;
constexpr std::uint32_t kIndex = 3;
// The device need not say after every command how far it is: that would be a cache line that goes to and fro.
constexpr w::CqPolicy kPolicy = w::CqPolicy::low_freq;
constexpr std::uint64_t kWaitNs = 10'000'000'000;

template <class T>
T need(strait::Result<T> result, const char* what) {
  if (!result) give_up(std::string(what) + ": " + result.error().explain());
  return std::move(*result);
}
void need(const strait::Status& status, const char* what) {
  if (!status) give_up(std::string(what) + ": " + status.error().explain());
}

std::string server_name() {
  return "strait-bench-cassini." + std::to_string(::getpid());
}

class CxiTransport {
 public:
  // The device stores forward.
  static constexpr bool kLastWordLast = true;

  CxiTransport(const Workload& workload, const std::string& server, Meeting* meeting, int side)
      : workload_(workload), side_(side), lazy_(workload.option("pingpong", "0") != "1") {
    device_ = need(cxi::Device::serve(strait_cxi_plugin(), "device=0,host=shared,name=" + server), "the device");
    lni_ = need(cxi::Lni::make(*device_), "an LNI");
    profile_ = need(cxi::Profile::make(lni_, kVni, w::TrafficClass::best_effort, w::CpType::triggered), "a profile");
    domain_ = need(cxi::Domain::make(lni_, kVni), "a domain");
    place_memory();
    portal_ = need(cxi::Portal::make(lni_, domain_, kIndex, w::kEqNone, 0), "a portal");
    target_ = need(cxi::CommandQueue::make(lni_, {.kind = cxi::CommandQueue::Kind::target}), "a target queue");
    transmit_ = need(cxi::CommandQueue::make(lni_, {.lcid = profile_.lcid(), .policy = kPolicy}), "a transmit queue");
    triggered_ = need(cxi::CommandQueue::make(lni_, {.kind = cxi::CommandQueue::Kind::triggered, .policy = kPolicy}),
                      "a counters' queue");
    open_portal();
    open_lane();
    meeting->base[side][0] = domain_.pid();
    meet(meeting, side);
    const auto peer = static_cast<std::uint32_t>(meeting->base[1 - side][0]);
    const w::DevInfo& info = device_->info();
    remote_ = {sd::head_of<ki::RemoteMemory>(),
               0,
               bytes_,
               0,
               w::unicast_dfa(info.nid, w::endpoint_of(peer, info.pid_bits, kIndex)),
               w::index_ext_of(kIndex),
               0,
               0,
               0,
               0};
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
  // The write-back word has the first page; then source, target, source, ...
  [[nodiscard]] std::uint64_t region() const { return (workload_.region_bytes + 4095) / 4096 * 4096; }
  [[nodiscard]] std::uint64_t source_at(std::uint32_t r) const { return 4096 + 2 * r * region(); }
  [[nodiscard]] std::uint64_t target_at(std::uint32_t r) const { return 4096 + (2 * r + 1) * region(); }
  [[nodiscard]] std::uint32_t under_way() const { return static_cast<std::uint32_t>(posted_ - done_); }

  void place_memory() {
    bytes_ = 4096 + 2 * workload_.regions * region();
    file_ = need(sys::make_sealed_memfd("bench", bytes_), "a file in memory");
    mapping_ = need(sys::map_file(file_.get(), 0, bytes_, sys::Protect::read_write), "its mapping");
    memory_ = reinterpret_cast<std::uint8_t*>(mapping_.data());
    std::memset(memory_, 0, bytes_);
    const auto address = reinterpret_cast<std::uint64_t>(memory_);
    shared_ = workload_.option("direct", "1") == "1";
    if (shared_) need(device_->share(address, bytes_, file_.get(), 0), "sharing");
    md_ = need(cxi::Memory::make(lni_, {.address = address, .bytes = bytes_, .flags = w::kMapRead | w::kMapWrite}),
               "a descriptor");
    local_ = {sd::head_of<ki::LocalMemory>(), md_.iova(address), bytes_, md_.lac(), 0};
  }
  void open_portal() {
    w::SetStateCmd enable{};
    enable.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::set_state);
    enable.set_ptlte_index(portal_.number());
    enable.set_ptlte_state(w::PteState::enabled);
    enable.set_drop_count(0xffffff);
    w::TargetCmd entry{};
    entry.set_header(w::CmdType::cq, w::CmdSize::b64, w::TargetOp::append);
    entry.set_ptlte_index(portal_.number());
    entry.set_ptl_list(w::PtlList::priority);
    entry.set_flags(w::kLeOpPut | w::kLeEventLinkDisable | w::kLeEventSuccessDisable);
    entry.set_match_id(w::kMatchAnyone);
    entry.set_lac(md_.lac());
    entry.set_start(md_.iova(reinterpret_cast<std::uint64_t>(memory_)));
    entry.set_length(bytes_);
    if (!target_.emit(enable, w::CmdSize::b64) || !target_.emit(entry, w::CmdSize::b64))
      give_up("no room in a new ring");
    target_.ring();
    const std::uint64_t start = now_ns();
    while (!target_.empty()) {
      if (now_ns() - start > kWaitNs) give_up("the device does not look at its rings");
    }
    if (target_.status().return_code() != w::ReturnCode::ok) give_up("the device refuses a list entry");
  }
  void open_lane() {
    auto* const word = reinterpret_cast<std::uint64_t*>(memory_);
    counter_ = need(cxi::Counter::make(lni_, word), "a counter");
    counter_state_ = {{sd::head_of<ki::Counter>(), word, reinterpret_cast<std::uint64_t*>(counter_.doorbell()),
                       counter_.number(), ki::kMemoryDoorbell},
                      0,
                      0};
    ki::QueueMemory memory;
    memory.transmit = {ring_of(transmit_),     transmit_.blocks(), page_of(transmit_), nullptr,
                       ki::RingKind::transmit, sd::Reach::system};
    memory.triggered = {ring_of(triggered_),     triggered_.blocks(), page_of(triggered_), nullptr,
                        ki::RingKind::triggered, sd::Reach::system};
    memory.counter = &counter_state_;
    memory.counters = 1;
    if (!ki::open_queue(state_, memory)) give_up("the queue is not as it should be");
    lane_.emplace(ki::Queue{sd::head_of<ki::Queue>(), sd::Sharing::one_thread, 0, &state_});
    if (!lane_->usable()) give_up("the queue is not usable");
  }
  static std::uint8_t* ring_of(const cxi::CommandQueue& queue) {
    return reinterpret_cast<std::uint8_t*>(queue.ring_memory());
  }
  static std::uint64_t* page_of(const cxi::CommandQueue& queue) {
    return reinterpret_cast<std::uint64_t*>(queue.launch_page());
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
  std::unique_ptr<cxi::Device> device_;
  cxi::Lni lni_;
  cxi::Profile profile_;
  cxi::Domain domain_;
  cxi::Memory md_;
  cxi::Counter counter_;
  cxi::Portal portal_;
  cxi::CommandQueue target_, transmit_, triggered_;
  ki::CounterState counter_state_{};
  ki::QueueState state_{};
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
  settings.name = name;
  settings.cards = 1;
  auto server = strait::soft::cassini::Server::create(settings);
  if (!server || ::write(ready[1], "1", 1) != 1) give_up("no server");
  ::close(ready[1]);
  (*server)->run();
  std::_Exit(0);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const bench::Workload workload = bench::parse_workload(argc, argv);
  const std::string name = bench::server_name();
  const std::string cpu = workload.option("server", std::to_string(workload.cpu[1]));
  const pid_t server = bench::start_server(name, std::atoi(cpu.c_str()));
  bench::Meeting* meeting = nullptr;
  const int side = bench::split(workload, &meeting);
  {
    bench::CxiTransport transport(workload, name, meeting, side);
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
