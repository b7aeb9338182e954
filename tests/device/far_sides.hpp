// SPDX-License-Identifier: Apache-2.0
// The host's part of far_bodies.hpp: two processes, each with a Node, a region and a queue for its kernel. The other
// process is this program again, so that nothing of an accelerator is in use when it is born. A Machine says where
// memory comes from and what a kernel is:
//
//   static constexpr const char* kNear;      // who posts
//   static constexpr unsigned kThreads;      // of the block
//   static constexpr std::uint64_t kPatienceNs;
//   void* own(std::size_t bytes);            // its own memory, zeroed; the machine keeps it
//   void* host(std::size_t bytes);           // of the host, reached by its kernels at the same address
//   void load(void* to, const void* from, std::size_t bytes);
//   void start(const Body& body);            // one block of kThreads
//   void finish();                           // it has ended, or never began. Throws if it could not run
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "far_bodies.hpp"
#include "strait/device_queue.hpp"

namespace far {

using std::chrono::seconds;

struct Case {
  const char* name;
  std::uint64_t bytes;
  bool own_memory;       // of the machine, else of the host
  const char* carrier;   // option of the Nodes
  const char* nics;      // the same; null: as it is
  const char* path_has;  // what the queue's path says of it
};
inline constexpr std::uint64_t kRounds = 16;
inline constexpr Case kCases[] = {
    {"OwnMemory64KiB", 64 << 10, true, "auto", nullptr, "ring grant to process"},
    {"OwnMemory1MiB", 1 << 20, true, "auto", nullptr, "ring grant to process"},
    {"HostMemory64KiB", 64 << 10, false, "auto", nullptr, "ring grant to process"},
    {"Packets8Bytes", 8, true, "roce", nullptr, "-> RoCEv2 from "},
    {"Packets8BytesHostMemory", 8, false, "roce", nullptr, "-> RoCEv2 from "},
    {"Packets64KiB", 64 << 10, true, "roce", nullptr, "-> RoCEv2 from "},
    // On a verbs device in software: under `strait run`.
    {"Verbs8Bytes", 8, false, "auto", "verbs:strait0", "proxy: a CPU thread forwards to strait0"},
    {"Verbs64KiB", 64 << 10, false, "auto", "verbs:strait0", "proxy: a CPU thread forwards to strait0"},
};
inline constexpr std::size_t kCaseCount = sizeof kCases / sizeof kCases[0];

// Short texts to and from the other process, one a message. Silence for a minute is an error.
class Line {
 public:
  explicit Line(int fd) : fd_(fd) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { ::close(fd_); }
  void say(const std::string& text) const {
    if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("the other process is gone");
  }
  [[nodiscard]] std::string hear() const {
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, 60'000) != 1) throw std::runtime_error("the other process says nothing");
    char text[1024];
    const ssize_t got = ::recv(fd_, text, sizeof text, 0);
    if (got <= 0) throw std::runtime_error("the other process has ended");
    return {text, static_cast<std::size_t>(got)};
  }
  void expect(const std::string& text) const {
    if (const std::string heard = hear(); heard != text) throw std::runtime_error("the other process says: " + heard);
  }

 private:
  int fd_;
};

class FarProcess {
 public:
  explicit FarProcess(std::size_t which) : started_(start(which)), line_(started_.fd) {}
  FarProcess(const FarProcess&) = delete;
  FarProcess& operator=(const FarProcess&) = delete;
  // Longer than its kernel may wait: a GPU that is shared does not like it when a process is killed with a kernel.
  ~FarProcess() {
    ::shutdown(started_.fd, SHUT_WR);
    for (int i = 0; i < 900; ++i) {
      if (::waitpid(started_.pid, nullptr, WNOHANG) == started_.pid) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "the other process does not end";
    ::kill(started_.pid, SIGKILL);
    (void)::waitpid(started_.pid, nullptr, 0);
  }
  [[nodiscard]] const Line& line() const { return line_; }

 private:
  struct Started {
    int pid, fd;
  };
  static Started start(std::size_t which) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) throw std::runtime_error("no socket");
    const std::string fd = std::to_string(ends[1]), number = std::to_string(which);
    const int pid = ::fork();
    if (pid < 0) throw std::runtime_error("fork failed");
    if (pid == 0) {
      ::close(ends[0]);
      ::execl("/proc/self/exe", "far", "--far", fd.c_str(), number.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    return {pid, ends[0]};
  }
  Started started_;
  Line line_;
};

// What either process has. Members go in reverse, and the kernel has ended before: see Running.
template <class Machine>
class Side {
 public:
  explicit Side(const Case& given)
      : which(given),
        bytes(whole(kBegin + given.bytes)),
        memory(static_cast<std::byte*>(given.own_memory ? machine.own(bytes) : machine.host(bytes))),
        reports(static_cast<Report*>(machine.host(whole(Machine::kThreads * sizeof(Report))))),
        node(strait::Node::open(options(given)).value()),
        region(node.share(memory, bytes, strait::access::all).value()),
        published(node.publish("block", region).value()) {}

  void meet(strait::Peer&& connected) {
    peer.emplace(std::move(connected));
    target.emplace(peer->lookup("block", seconds(20)).value());
    queue.emplace(strait::DeviceQueue::open(*peer, {.near = Machine::kNear, .depth_blocks = 64}).value());
    lease.emplace(queue->lease().value());
  }
  [[nodiscard]] Shift shift(std::uint32_t signal) {
    Shift out{};
    out.queue = queue->handle().value();
    out.from = queue->local(region).value();
    out.to = queue->remote(*target).value();
    out.signal = queue->signal(region, signal).value();
    out.words = reinterpret_cast<std::uint64_t*>(memory + kBegin);
    out.count = which.bytes / 8;
    out.from_bytes = kBegin;
    out.to_bytes = kBegin;
    out.rounds = kRounds;
    out.patience_ns = Machine::kPatienceNs;
    out.reports = reports;
    return out;
  }
  // "right", or what is not. `taker`: the host looks at the memory as well.
  [[nodiscard]] std::string verdict(bool taker) {
    for (unsigned i = 0; i < Machine::kThreads; ++i) {
      const Report& r = reports[i];
      const std::string who = "thread " + std::to_string(i);
      if (r.wrong != 0) {
        return who + " found " + std::to_string(r.wrong) + " wrong words, the first in round " +
               std::to_string(r.round) + " at " + std::to_string(r.at) + ": " + std::to_string(r.found) + ", not " +
               std::to_string(word_of(r.round, r.at));
      }
      if (r.step != Step::all_done || r.rounds != kRounds) {
        const auto failure = queue->failure();
        return who + " ended after " + std::to_string(r.rounds) + " rounds at step " +
               std::to_string(static_cast<unsigned>(r.step)) + ", answered " + std::to_string(r.waited) +
               (failure ? std::string() : ": " + failure.error().explain());
      }
    }
    if (!taker) return "right";
    std::vector<std::uint64_t> found(which.bytes / 8);
    machine.load(found.data(), memory + kBegin, which.bytes);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != word_of(kRounds, i)) return "the host finds another word at " + std::to_string(i);
    }
    return "right";
  }

  const Case which;
  Machine machine;
  const std::size_t bytes;
  std::byte* const memory;
  Report* const reports;
  strait::Node node;
  strait::Region region;
  strait::Published published;
  std::optional<strait::Peer> peer;
  std::optional<strait::Target> target;
  std::optional<strait::DeviceQueue> queue;
  std::optional<strait::GpuLease> lease;

 private:
  static constexpr std::size_t kBegin = 4096;  // in the region
  static std::size_t whole(std::size_t n) {
    constexpr std::size_t kPage = 2 << 20;
    return (n + kPage - 1) / kPage * kPage;
  }
  static strait::NodeOptions options(const Case& given) {
    strait::NodeOptions out;
    out.settings = {{"secret", "two kernels know this secret"}, {"grant", "ring"}, {"carrier", given.carrier}};
    if (given.nics != nullptr) out.settings.emplace_back("nics", given.nics);
    return out;
  }
};

// A kernel under way: nothing it uses goes before it has ended, whatever else happens.
template <class Machine>
class Running {
 public:
  template <class Body>
  Running(Machine& machine, const Body& body) : machine_(&machine) {
    machine.start(body);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    try {
      finish();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
  }
  void finish() {
    if (Machine* const machine = std::exchange(machine_, nullptr)) machine->finish();
  }

 private:
  Machine* machine_;
};

// This process gives, the other takes.
template <class Machine>
void play(std::size_t which) {
  FarProcess far(which);
  Side<Machine> side(kCases[which]);
  side.meet(side.node.connect(far.line().hear(), {.deadline = seconds(20)}).value());
  far.line().expect("met");
  EXPECT_NE(side.queue->path().find(kCases[which].path_has), std::string::npos) << side.queue->path();
  const Give give{side.shift(kTaken)};
  far.line().say("take");
  far.line().expect("up");
  Running<Machine> kernel(side.machine, give);
  kernel.finish();
  EXPECT_EQ(side.verdict(false), "right");
  EXPECT_EQ(far.line().hear(), "right") << "says the other process";
}

// The other process; its exit status.
template <class Machine>
int play_far(int fd, std::size_t which) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const Line line(fd);
  try {
    if (which >= kCaseCount) throw std::runtime_error("there is no such case");
    Side<Machine> side(kCases[which]);
    line.say(side.node.address());
    side.meet(side.node.accept(seconds(20)).value());
    line.say("met");
    const Take take{side.shift(kArrived)};
    line.expect("take");
    {
      Running<Machine> kernel(side.machine, take);
      line.say("up");
      kernel.finish();
    }
    line.say(side.verdict(true).substr(0, 900));
    char end = 0;
    (void)::recv(fd, &end, 1, 0);  // until the other has looked too
    return 0;
  } catch (const std::exception& e) {
    try {
      line.say(std::string(e.what()).substr(0, 900));
    } catch (const std::exception&) {
      std::fprintf(stderr, "the other process: %s\n", e.what());
    }
    return 1;
  }
}

template <class Machine>
int run(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--far")
    return play_far<Machine>(std::stoi(argv[2]), static_cast<std::size_t>(std::stoul(argv[3])));
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

class Far : public ::testing::TestWithParam<std::size_t> {};
inline std::string case_name(const ::testing::TestParamInfo<std::size_t>& info) {
  return kCases[info.param].name;
}
INSTANTIATE_TEST_SUITE_P(Kernels, Far, ::testing::Range(std::size_t{0}, kCaseCount), case_name);

}  // namespace far
