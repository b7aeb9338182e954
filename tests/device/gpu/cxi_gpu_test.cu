// SPDX-License-Identifier: Apache-2.0
// Kernels of GPU 0 that post to the software Cassini, through the public calls: two cards of this process, and the
// server's between two processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cuda_machine.cuh"
#include "strait/cxi_queue.hpp"
#include "strait/device/cxi/lane.hpp"

namespace suite {

namespace sd = strait::device;
namespace ki = strait::device::cxi;
using sd::Deadline;
using sd::Sharing;
using sd::Waited;

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint32_t kArrivals = 1;
constexpr std::uint64_t kPatienceNs = 10'000'000'000;

strait::Node& node() {
  static strait::Node the = strait::Node::open().value();
  return the;
}

// Memory of the host that the GPU reaches too, or of the GPU.
class Block {
 public:
  Block(bool on_gpu, std::size_t bytes) : on_gpu_(on_gpu), bytes_(bytes) {
    check(on_gpu ? cudaMalloc(&memory_, bytes) : cudaHostAlloc(&memory_, bytes, cudaHostAllocMapped), "allocate");
    check(cudaMemset(memory_, 0, bytes), "clear");
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { check(on_gpu_ ? cudaFree(memory_) : cudaFreeHost(memory_), "free"); }
  std::uint64_t* words() const { return static_cast<std::uint64_t*>(memory_); }
  strait::CxiMemory whole() const { return {memory_, bytes_}; }
  std::vector<std::uint64_t> read() const {
    std::vector<std::uint64_t> out(bytes_ / 8);
    check(cudaMemcpy(out.data(), memory_, bytes_, cudaMemcpyDefault), "read");
    return out;
  }
  void write(const std::vector<std::uint64_t>& from) {
    check(cudaMemcpy(memory_, from.data(), from.size() * 8, cudaMemcpyDefault), "write");
  }

 private:
  bool on_gpu_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

struct End {
  End(const std::string& name, Sharing sharing, bool on_gpu, std::uint32_t counters = 0)
      : data(on_gpu, kBytes),
        signals(on_gpu, 4096),
        device(strait::CxiDevice::open(name).value()),
        queue(strait::CxiQueue::open(device,
                                     {.near = "cuda:0", .node = &node(), .sharing = sharing, .counters = counters})
                  .value()),
        memory(queue.expose(data.whole(), kArrivals).value()),
        words(queue.expose(signals.whole()).value()),
        from(queue.local(data.whole()).value()) {}
  Block data, signals;
  strait::CxiDevice device;
  strait::CxiQueue queue;
  strait::CxiPlace memory, words;
  ki::LocalMemory from;
};

struct Answer {
  std::uint32_t posted, waited;
  std::uint64_t value;
};
class Answers {
 public:
  explicit Answers(std::size_t count) : block_(false, count * sizeof(Answer)) {}
  Answer* data() const { return reinterpret_cast<Answer*>(block_.words()); }
  const Answer& operator[](std::size_t i) const { return data()[i]; }

 private:
  Block block_;
};

void finish() {
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
}

class CxiOnGpu : public ::testing::TestWithParam<bool> {};
std::string where_name(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "GpuMemory" : "HostMemory";
}
INSTANTIATE_TEST_SUITE_P(Payload, CxiOnGpu, ::testing::Bool(), where_name);

// ---- Every operation ------------------------------------------------------------------------------------------------

__global__ void every_operation(ki::Queue a, ki::Queue b, ki::LocalMemory from, ki::RemoteMemory to, sd::Signal signal,
                                Answer* answers) {
  ki::Lane<Sharing::one_thread> lane(a), other(b);
  const auto in_time = [] { return Deadline::after_ns(kPatienceNs); };
  unsigned n = 0;
  const auto note = [&](ki::Pending posted) {
    const ki::Outcome out = lane.wait(posted, in_time());
    answers[n++] = {static_cast<std::uint32_t>(posted.posted), static_cast<std::uint32_t>(out.waited), out.success};
  };
  note(lane.put(from, 0, to, 64, 4096));
  note(lane.put_value(std::uint64_t{4711}, to, 8192));
  note(lane.add(to, 8192, 9));
  note(lane.fetch_add(to, 8192, 80, from, 4096));
  note(lane.compare_swap(to, 8192, 4800, 5, from, 4104));
  note(lane.get(from, 8192, to, 64, 4096));
  note(lane.put_signal(from, 0, to, 16384, 100'000, 3, 5));
  const auto seen = other.wait_signal(signal, 5, in_time());
  answers[n++] = {0, static_cast<std::uint32_t>(seen.waited), seen.value};
  // put, value, add, two atomics, get, signalled put: each of them counts where the memory was exposed.
  const ki::Outcome came = other.wait_counter(kArrivals, 7, in_time());
  answers[n++] = {0, static_cast<std::uint32_t>(came.waited), came.success};
}

TEST_P(CxiOnGpu, EveryOperation) {
  const auto a = std::make_unique<End>("local0", Sharing::one_thread, GetParam());
  const auto b = std::make_unique<End>("local1", Sharing::one_thread, GetParam());
  std::vector<std::uint64_t> sent(kBytes / 8);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = i * 0x9e3779b97f4a7c15u;
  a->data.write(sent);
  Answers answers(16);
  every_operation<<<1, 1>>>(a->queue.handle().value(), b->queue.handle().value(), a->from,
                            a->queue.remote(b->memory, &b->words).value(),
                            b->queue.signal(b->signals.words() + 3).value(), answers.data());
  finish();
  for (unsigned i = 0; i < 9; ++i) {
    EXPECT_EQ(answers[i].posted, 0u) << i;
    EXPECT_EQ(answers[i].waited, 0u) << i;
  }
  EXPECT_EQ(answers[7].value, 5u);
  const auto got = b->data.read();
  for (unsigned i = 0; i < 512; ++i) ASSERT_EQ(got[8 + i], sent[i]) << i;
  EXPECT_EQ(got[1024], 5u);
  const auto back = a->data.read();
  for (unsigned i = 0; i < 12'500; ++i) ASSERT_EQ(got[2048 + i], back[i]) << i;
  EXPECT_EQ(back[512], 4720u);
  EXPECT_EQ(back[513], 4800u);
  for (unsigned i = 0; i < 512; ++i) ASSERT_EQ(back[1024 + i], sent[i]) << i;
}

// ---- Many posters ---------------------------------------------------------------------------------------------------

__global__ void shared_by_warps(ki::Queue queue, ki::RemoteMemory to, std::uint64_t each, Answer* answers) {
  ki::Lane<Sharing::many_threads> lane(queue);
  const std::uint64_t me = blockIdx.x * blockDim.x + threadIdx.x;
  Answer answer{};
  for (std::uint64_t i = 0; i < each; ++i) {
    const std::uint64_t word = me * each + i;
    const ki::Pending put = lane.put_value(word + 1, to, 8 * word, {.room_ns = kPatienceNs});
    answer.posted += put.ok() ? 1 : 0;
  }
  answer.waited = static_cast<std::uint32_t>(lane.flush(Deadline::after_ns(kPatienceNs)).waited);
  answers[me] = answer;
}

__global__ void look(ki::Queue queue, Answer* answers) {
  ki::Lane<Sharing::many_threads> lane(queue);
  answers[0] = {0, 0, lane.counter(0).success};
  const ki::Outcome now = lane.read_counter(0, Deadline::after_ns(kPatienceNs));
  answers[1] = {static_cast<std::uint32_t>(now.failures), static_cast<std::uint32_t>(now.waited), now.success};
  answers[2] = {static_cast<std::uint32_t>(lane.drain(Deadline::after_ns(kPatienceNs)).waited), 0,
                static_cast<std::uint64_t>(lane.cause().code)};
}

TEST_P(CxiOnGpu, ManyThreadsOnOneQueue) {
  const auto a = std::make_unique<End>("local0", Sharing::many_threads, GetParam());
  const auto b = std::make_unique<End>("local1", Sharing::one_thread, GetParam());
  constexpr unsigned kBlocks = 32, kThreads = 32, kEach = 32;
  Answers answers(kBlocks * kThreads);
  shared_by_warps<<<kBlocks, kThreads>>>(a->queue.handle().value(), a->queue.remote(b->memory).value(), kEach,
                                         answers.data());
  finish();
  unsigned posted = 0, late = 0;
  for (unsigned i = 0; i < kBlocks * kThreads; ++i) {
    posted += answers[i].posted;
    late += answers[i].waited != 0 ? 1 : 0;
  }
  EXPECT_EQ(posted, kBlocks * kThreads * kEach);
  EXPECT_EQ(late, 0u) << "threads whose wait did not end well";
  Answers counts(3);
  look<<<1, 1>>>(a->queue.handle().value(), counts.data());
  finish();
  EXPECT_EQ(counts[1].posted, 0u) << "failures";
  EXPECT_EQ(counts[1].value, kBlocks * kThreads * kEach);
  EXPECT_EQ(counts[0].value, kBlocks * kThreads * kEach) << "as it was last written back";
  EXPECT_EQ(counts[2].posted, 0u) << "the device has taken everything";
  EXPECT_EQ(counts[2].value, static_cast<std::uint64_t>(strait::wire::cxi::ReturnCode::ok));
  const auto got = b->data.read();
  for (std::uint64_t i = 0; i < kBlocks * kThreads * kEach; ++i) ASSERT_EQ(got[i], i + 1) << i;
}

// ---- Doorbells of counters ------------------------------------------------------------------------------------------

__global__ void raise(ki::Queue queue, unsigned each) {
  ki::Lane<Sharing::many_threads> lane(queue);
  for (unsigned i = 0; i < each; ++i) (void)lane.raise_counter(2, 1);
}
__global__ void read_one(ki::Queue queue, std::uint64_t goal, Answer* answer) {
  ki::Lane<Sharing::many_threads> lane(queue);
  const ki::Outcome out = lane.wait_counter(2, goal, Deadline::after_ns(kPatienceNs));
  const ki::Outcome now = lane.read_counter(2, Deadline::after_ns(kPatienceNs));
  *answer = {0, static_cast<std::uint32_t>(out.waited), now.success};
}

TEST(CxiDoorbellOnGpu, AMillionEqualIncrementsAreAllCounted) {
  const auto a = std::make_unique<End>("local0", Sharing::many_threads, false);
  Answers answer(1);
  raise<<<8, 125>>>(a->queue.handle().value(), 1000);
  finish();
  read_one<<<1, 1>>>(a->queue.handle().value(), 1'000'000, answer.data());
  finish();
  EXPECT_EQ(answer[0].waited, 0u);
  EXPECT_EQ(answer[0].value, 1'000'000u);
}

// ---- Ends of waits --------------------------------------------------------------------------------------------------

__global__ void wait_for_nothing(ki::Queue queue, std::uint64_t patience_ns, Answer* answer) {
  ki::Lane<Sharing::one_thread> lane(queue);
  *answer = {0, static_cast<std::uint32_t>(lane.wait_counter(kArrivals, 1, Deadline::after_ns(patience_ns)).waited), 0};
}
__global__ void put_too_far(ki::Queue queue, ki::LocalMemory from, ki::RemoteMemory to, Answer* answer) {
  ki::Lane<Sharing::one_thread> lane(queue);
  const ki::Pending put = lane.put(from, 0, to, kBytes, 64);
  const ki::Outcome out = lane.wait(put, Deadline::after_ns(kPatienceNs));
  *answer = {static_cast<std::uint32_t>(put.posted), static_cast<std::uint32_t>(out.waited),
             static_cast<std::uint64_t>(out.code)};
}

TEST(CxiWaitsOnGpu, EndByDeadlineByTheHostAndByFailure) {
  const auto a = std::make_unique<End>("local0", Sharing::one_thread, false);
  const auto b = std::make_unique<End>("local1", Sharing::one_thread, false);
  Answers answer(1);
  wait_for_nothing<<<1, 1>>>(a->queue.handle().value(), 2'000'000, answer.data());
  finish();
  EXPECT_EQ(answer[0].waited, static_cast<std::uint32_t>(Waited::timeout));
  wait_for_nothing<<<1, 1>>>(a->queue.handle().value(), kPatienceNs, answer.data());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  a->queue.abort();
  finish();
  EXPECT_EQ(answer[0].waited, static_cast<std::uint32_t>(Waited::aborted));
  a->queue.abort(false);
  strait::CxiPlace longer = b->memory;
  longer.length_bytes += 4096;  // a peer that believes too much
  put_too_far<<<1, 1>>>(a->queue.handle().value(), a->from, a->queue.remote(longer).value(), answer.data());
  finish();
  EXPECT_EQ(answer[0].posted, 0u);
  EXPECT_EQ(answer[0].waited, static_cast<std::uint32_t>(Waited::error));
  EXPECT_NE(answer[0].value, 0u) << "the failure has a cause";
}

// ---- Two processes --------------------------------------------------------------------------------------------------

__global__ void in_turns(ki::Queue queue, ki::LocalMemory from, ki::RemoteMemory to, std::uint64_t* data, bool first,
                         std::uint64_t rounds, Answer* answer) {
  ki::Lane<Sharing::one_thread> lane(queue);
  const auto put = [&](std::uint64_t round) {
    sd::store_relaxed<sd::Scope::system>(data, round);
    return lane.put(from, 0, to, 8, 8).ok() && lane.flush(Deadline::after_ns(kPatienceNs)).waited == Waited::ok;
  };
  *answer = {1, 0, 0};
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (first && !put(round)) return;
    if (lane.wait_counter(kArrivals, round, Deadline::after_ns(kPatienceNs)).waited != Waited::ok) return;
    if (sd::peek(data + 1) != round) return;
    if (!first && !put(round)) return;
    answer->value = round;
  }
  answer->posted = 0;
}

// The other process is this program again, with nothing of CUDA before it is born.
int play(int in, int out, bool first, bool on_gpu) {
  const auto mine = std::make_unique<End>("soft0", Sharing::one_thread, on_gpu);
  strait::CxiPlace theirs{};
  if (::write(out, &mine->memory, sizeof theirs) != sizeof theirs) return 2;
  if (::read(in, &theirs, sizeof theirs) != sizeof theirs) return 3;
  Answers answer(1);
  in_turns<<<1, 1>>>(mine->queue.handle().value(), mine->from, mine->queue.remote(theirs).value(), mine->data.words(),
                     first, 100, answer.data());
  finish();
  char over = 0;
  if (::write(out, &over, 1) != 1 || ::read(in, &over, 1) != 1) return 4;
  if (answer[0].posted != 0) std::fprintf(stderr, "ended after %llu rounds\n", (unsigned long long)answer[0].value);
  return answer[0].posted == 0 && !::testing::Test::HasFailure() ? 0 : 1;
}

TEST_P(CxiOnGpu, BetweenTwoProcesses) {
  int down[2], up[2];
  ASSERT_EQ(::pipe(down), 0);
  ASSERT_EQ(::pipe(up), 0);
  const std::string in = std::to_string(down[0]), out = std::to_string(up[1]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::execl("/proc/self/exe", "strait_cxi_gpu_test", "--far", in.c_str(), out.c_str(), GetParam() ? "1" : "0", nullptr);
    ::_exit(127);
  }
  EXPECT_EQ(play(up[0], down[1], true, GetParam()), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

}  // namespace suite

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--far")
    return suite::play(std::stoi(argv[2]), std::stoi(argv[3]), false, argv[4][0] == '1');
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
