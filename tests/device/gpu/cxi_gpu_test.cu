// SPDX-License-Identifier: Apache-2.0
// Kernels of GPU 0 that post to the software Cassini, through the public calls: two cards of this process, and the
// server's between two processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cuda_machine.cuh"
#include "strait/cxi.h"
#include "strait/cxi/library.hpp"
#include "strait/cxi_queue.hpp"
#include "strait/device/cxi/command.hpp"
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

// ---- The names of strait/cxi.h --------------------------------------------------------------------------------------

__global__ void increments(cxi_ct ct, unsigned each) {
  for (unsigned i = 0; i < each; ++i) cxi_ct_inc_success(&ct, 3);
}
__global__ void failures(cxi_ct ct) {
  cxi_ct_inc_failure(&ct, 1);
}
__global__ void reset(cxi_ct ct, bool of_failures) {
  if (of_failures)
    cxi_ct_reset_failure(&ct);
  else
    cxi_ct_reset_success(&ct);
}

// Whole pages of ordinary memory, or of somebody else's, that GPU 0 reaches for as long as this is there.
class Reached {
 public:
  Reached(void* pages, std::size_t bytes) : pages_(pages) {
    check(cudaHostRegister(pages, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable), "register");
    check(cudaHostGetDevicePointer(&there_, pages, 0), "the GPU's address");
  }
  explicit Reached(std::size_t bytes) : Reached(cleared(bytes), bytes) { own_ = pages_; }
  Reached(const Reached&) = delete;
  Reached& operator=(const Reached&) = delete;
  ~Reached() {
    check(cudaHostUnregister(pages_), "let go");
    std::free(own_);
  }
  void* here() const { return pages_; }
  void* there() const { return there_; }

 private:
  static void* cleared(std::size_t bytes) {
    void* const pages = std::aligned_alloc(4096, bytes);
    std::memset(pages, 0, bytes);
    return pages;
  }
  void* pages_;
  void* there_ = nullptr;
  void* own_ = nullptr;
};

// What the calls of strait/cxi.h make on a card of this process. The kernels are given the same with their addresses.
class CxiNamesOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    dev_ = cxi_dev_open("local0");
    ASSERT_NE(dev_, nullptr) << errno;
    lni_ = cxi_lni_alloc(dev_, 1);
    ASSERT_NE(lni_, nullptr) << errno;
    cp_ = cxi_trig_cp_alloc(lni_, 1, CXI_TC_BEST_EFFORT, CXI_TC_TYPE_DEFAULT, TRIG_LCID);
    ASSERT_NE(cp_, nullptr) << errno;
    ct_ = cxi_ct_alloc(lni_, static_cast<c_ct_writeback*>(word_.here()));
    ASSERT_NE(ct_, nullptr) << errno;
    triggered_ = queue(CXI_CQ_IS_TX | CXI_CQ_TX_WITH_TRIG_CMDS);
    ASSERT_NE(triggered_, nullptr) << errno;
    void* page = nullptr;
    std::size_t bytes = 0;
    ASSERT_EQ(cxi_ct_user_info(ct_, &page, &bytes), 0);
    doorbell_ = std::make_unique<Reached>(page, bytes);
    ASSERT_FALSE(HasFailure()) << "the GPU does not reach the doorbell page";
  }
  void TearDown() override {
    doorbell_.reset();
    if (triggered_ != nullptr) cxi_cq_free(triggered_);
    if (ct_ != nullptr) cxi_ct_free(ct_);
    if (cp_ != nullptr) cxi_cp_free(cp_);
    if (lni_ != nullptr) {
      EXPECT_EQ(cxi_lni_free(lni_), 0);
    }
    cxi_dev_close(dev_);
  }

  cxi_cq* queue(unsigned flags) {
    cxi_cq_alloc_opts opts{};
    opts.count = 64;
    opts.flags = flags;
    opts.lcid = flags == 0 ? 0 : cp_->lcid;
    return cxi_cq_alloc(lni_, nullptr, &opts);
  }
  // The counter as a kernel is given it.
  cxi_ct ct() const {
    cxi_ct out = *ct_;
    out.doorbell = static_cast<std::uint64_t*>(doorbell_->there());
    out.wb = static_cast<c_ct_writeback*>(word_.there());
    return out;
  }

  // Writes the counter back, and reads it: failures << 48 | successes. All ones: it did not come in time.
  std::uint64_t counted() {
    auto* const word = static_cast<std::uint64_t*>(word_.here());
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(word) + 7, std::uint8_t{0}, __ATOMIC_RELEASE);
    std::uint8_t* const at = triggered_->commands.claim<2>();
    if (at == nullptr) return ~std::uint64_t{0};
    ki::store_ct(at, ki::ct_get(ct_->ctn));
    cxi_cq_ring(triggered_);
    const Deadline deadline = Deadline::after_ns(kPatienceNs);
    while (!deadline.passed()) {
      const std::uint64_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      if (now >> 63 != 0) return now & ~(std::uint64_t{1} << 63);
      std::this_thread::yield();
    }
    return ~std::uint64_t{0};
  }
  // Comes there, and stays.
  void expect_counted(std::uint64_t success, std::uint64_t failure) {
    const std::uint64_t goal = failure << 48 | success;
    const Deadline deadline = Deadline::after_ns(kPatienceNs);
    std::uint64_t now = counted();
    while (now != goal && now != ~std::uint64_t{0} && !deadline.passed()) now = counted();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    now = counted();
    EXPECT_EQ(now & 0xffffffffffff, success);
    EXPECT_EQ(now >> 48, failure);
  }

  Reached word_{4096};
  cxi_dev* dev_ = nullptr;
  cxi_lni* lni_ = nullptr;
  cxi_cp* cp_ = nullptr;
  cxi_ct* ct_ = nullptr;
  cxi_cq* triggered_ = nullptr;
  std::unique_ptr<Reached> doorbell_;
};

TEST_F(CxiNamesOnGpu, EqualIncrementsAndFailuresOfManyThreadsAreAllCountedAndReset) {
  increments<<<8, 125>>>(ct(), 100);
  finish();
  expect_counted(300'000, 0);
  failures<<<5, 20>>>(ct());
  finish();
  expect_counted(300'000, 100);
  reset<<<1, 1>>>(ct(), false);
  finish();
  expect_counted(0, 100);
  reset<<<1, 1>>>(ct(), true);
  finish();
  expect_counted(0, 0);
  increments<<<1, 32>>>(ct(), 1);
  finish();
  expect_counted(96, 0);
}

// A kernel's two queues. Addresses are the GPU's, but for those in commands, which are the card's.
struct Posting {
  cxi_cq *target, *transmit;
  void *target_ring, *target_page, *transmit_ring, *transmit_page;
  std::uint64_t *from, *to;
  c_target_cmd append;
  c_set_state_cmd enable;
  c_full_dma_cmd put;
};

template <class Enough>
__device__ bool soon(Enough enough) {
  const Deadline deadline = Deadline::after_ns(kPatienceNs);
  while (!enough()) {
    if (deadline.passed()) return false;
    sd::relax();
  }
  return true;
}

// Answers: how many of the steps went well, and what each of two counts that is not enough for.
__global__ void post_by_name(Posting given, std::uint64_t value, Answer* answer) {
  *answer = {0, 0, 0};
  cxi_cq_init(given.target, given.target_ring, 64, given.target_page, 1024);
  cxi_cq_init(given.transmit, given.transmit_ring, 64, given.transmit_page, 0);
  if (cxi_cq_emit_target(given.target, &given.append) != 0) return;
  if (cxi_cq_emit_target(given.target, &given.enable) != 0) return;
  answer->posted = 1;
  cxi_cq_ring(given.target);
  // Both are read when the read pointer is behind them: a put that is earlier finds a portal that is disabled.
  const auto* const ring = static_cast<const std::uint8_t*>(given.target_ring);
  if (!soon([&] { return ki::status_of(ring).rd_ptr() == 6; })) return;
  answer->posted = 2;
  sd::store_relaxed<sd::Scope::system>(given.from, value);
  if (cxi_cq_emit_dma(given.transmit, &given.put) != 0) return;
  cxi_cq_ring(given.transmit);
  answer->posted = 3;
  if (!soon([&] { return sd::peek(given.to) == value; })) return;
  answer->posted = 4;
  answer->value = sd::peek(given.to);
  // What is not rung is not seen, and a full ring is an answer.
  while (cxi_cq_emit_dma(given.transmit, &given.put) == 0 && answer->waited < 1000) ++answer->waited;
}

TEST_F(CxiNamesOnGpu, APutOfAKernelLandsAndCounts) {
  strait_cxi_about about{};
  about.struct_size = sizeof about;
  ASSERT_EQ(strait_cxi_about_device(static_cast<strait_cxi_device*>(dev_->device), &about, nullptr), 0);
  const Reached memory(8192);  // the first half is put into the second
  cxi_domain* const domain = cxi_domain_alloc(lni_, 1, 511);
  ASSERT_NE(domain, nullptr) << errno;
  cxi_cq* const target = queue(0);
  ASSERT_NE(target, nullptr) << errno;
  cxi_cq* const transmit = queue(CXI_CQ_IS_TX);
  ASSERT_NE(transmit, nullptr) << errno;
  const auto address = reinterpret_cast<std::uintptr_t>(memory.here());
  cxi_md* const md = cxi_map(lni_, address, 8192, CXI_MAP_PIN | CXI_MAP_READ | CXI_MAP_WRITE, nullptr);
  ASSERT_NE(md, nullptr) << errno;
  const cxi_pt_alloc_opts portal{};
  cxi_pte* const pte = cxi_pte_alloc(lni_, nullptr, &portal);
  ASSERT_NE(pte, nullptr) << errno;
  unsigned index = 0;
  ASSERT_EQ(cxi_pte_map(pte, domain, 0, false, &index), 0);

  {
    const Reached target_ring(target->cmds, target->cmds_size), target_page(target->wp_addr, target->wp_addr_size);
    const Reached ring(transmit->cmds, transmit->cmds_size), page(transmit->wp_addr, transmit->wp_addr_size);
    const Block queues(true, 4096);
    static_assert(2 * sizeof(cxi_cq) <= 4096);
    Posting given{};
    given.target = reinterpret_cast<cxi_cq*>(queues.words());
    given.transmit = given.target + 1;
    given.target_ring = target_ring.there();
    given.target_page = target_page.there();
    given.transmit_ring = ring.there();
    given.transmit_page = page.there();
    given.from = static_cast<std::uint64_t*>(memory.there()) + 1;
    given.to = static_cast<std::uint64_t*>(memory.there()) + 512 + 8;
    given.append.command.opcode = C_CMD_TGT_APPEND;
    given.append.ptlte_index = pte->id & 0x7ff;
    given.append.op_put = 1;
    given.append.event_link_disable = given.append.event_comm_disable = given.append.event_unlink_disable = 1;
    given.append.lac = md->lac & 7;
    given.append.start = CXI_VA_TO_IOVA(md, address + 4096) & 0x1ffffffffffffff;
    given.append.length = 4096;
    given.append.match_id = 0xffffffff;
    given.append.ignore_bits = ~std::uint64_t{0};
    given.enable.command.opcode = C_CMD_TGT_SETSTATE;
    given.enable.ptlte_state = C_PTLTE_ENABLED;
    given.enable.ptlte_index = pte->id & 0x7ff;
    given.put.command.opcode = C_CMD_PUT;
    given.put.lac = md->lac & 7;
    given.put.event_send_disable = given.put.event_success_disable = given.put.event_ct_ack = 1;
    given.put.dfa.unicast.nid = about.nid & 0xfffff;
    given.put.dfa.unicast.endpoint_defined = domain->pid & 0xfff;
    given.put.local_addr = CXI_VA_TO_IOVA(md, address + 8) & 0x1ffffffffffffff;
    given.put.remote_offset = 64;
    given.put.request_len = 8;
    given.put.ct = ct_->ctn & 0x7ff;
    Answers answer(1);
    ASSERT_FALSE(HasFailure()) << "the GPU does not reach everything";
    post_by_name<<<1, 1>>>(given, 0x123456789abcdef0, answer.data());
    finish();
    EXPECT_EQ(answer[0].posted, 4u) << "append and enable; they were read; the put was emitted; it landed";
    EXPECT_EQ(answer[0].value, 0x123456789abcdef0u);
    // 64 blocks, 4 of which are the status and one of which stays empty. The put itself may not be known to be read.
    EXPECT_GE(answer[0].waited, 58u);
    EXPECT_LE(answer[0].waited, 59u);
    expect_counted(1, 0);
  }
  EXPECT_EQ(static_cast<const std::uint64_t*>(memory.here())[512 + 8], 0x123456789abcdef0u);
  cxi_cq_free(target);
  cxi_cq_free(transmit);
  EXPECT_EQ(cxi_pte_unmap(pte, domain, static_cast<int>(index)), 0);
  cxi_pte_free(pte);
  EXPECT_EQ(cxi_unmap(md), 0);
  cxi_domain_free(domain);
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
