// SPDX-License-Identifier: Apache-2.0
// What an operation on a lane with one owner does not do: allocate, take a lock, ring twice for one batch.
//
// This program's own malloc and pthread_mutex_lock, and their like, stand before those that libstrait would find
// otherwise. They count what the thread does that posts, between two marks. A lane's own lock is no call of anybody's:
// the test holds it, and whoever wants it is counted when it lets others run. The software NIC is driven by the posting
// thread too, and stands for hardware: what it takes for itself is left out. The memory on this side is what
// STRAIT_TEST_DEVICE names, host memory otherwise: a vendor's device, under `strait run`, has memory no CPU can reach.
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sched.h>

#include <shared_mutex>
#include <tuple>

#include "flow.hpp"
#include "node/lane.hpp"

namespace {

struct Counts {
  long allocations = 0, locks = 0;
};
thread_local Counts counted_here;
thread_local bool counting = false;
thread_local strait_lane* held = nullptr;  // whose lock this thread's test has

// Is this the library's doing? The NIC is below it on the stack, and in a library of its own.
bool counts_here() {
  if (!counting) return false;
  counting = false;
  void* frames[32];
  const int depth = ::backtrace(frames, static_cast<int>(std::size(frames)));
  bool nic = false;
  for (int i = 0; i < depth && !nic; ++i) {
    Dl_info where{};
    nic = ::dladdr(frames[i], &where) != 0 && std::strstr(where.dli_fname, "libstrait-soft") != nullptr;
  }
  counting = true;
  return !nic;
}
void count_allocation() {
  if (counts_here()) ++counted_here.allocations;
}
void count_lock() {
  if (counts_here()) ++counted_here.locks;
}

}  // namespace

// What operator new calls is counted, so that what is allocated in any other way is too.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}
#define STRAIT_SHOWN extern "C" __attribute__((visibility("default")))

STRAIT_SHOWN void* malloc(std::size_t bytes) noexcept {
  count_allocation();
  return __libc_malloc(bytes);
}
STRAIT_SHOWN void* calloc(std::size_t count, std::size_t bytes) noexcept {
  count_allocation();
  return __libc_calloc(count, bytes);
}
STRAIT_SHOWN void* realloc(void* old, std::size_t bytes) noexcept {
  count_allocation();
  return __libc_realloc(old, bytes);
}
STRAIT_SHOWN void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}
STRAIT_SHOWN int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  count_allocation();
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}

// STRAIT_COUNTED(name, type): the call by which a lock of that type is taken.
#define STRAIT_COUNTED(name, type)                                                        \
  STRAIT_SHOWN int name(type* lock) noexcept {                                            \
    static const auto next = reinterpret_cast<int (*)(type*)>(::dlsym(RTLD_NEXT, #name)); \
    count_lock();                                                                         \
    return next(lock);                                                                    \
  }
STRAIT_COUNTED(pthread_mutex_lock, pthread_mutex_t)
STRAIT_COUNTED(pthread_mutex_trylock, pthread_mutex_t)
STRAIT_COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
STRAIT_COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
STRAIT_COUNTED(pthread_rwlock_tryrdlock, pthread_rwlock_t)
STRAIT_COUNTED(pthread_rwlock_trywrlock, pthread_rwlock_t)

// base/spin_lock.hpp calls this when a lock is taken: who wants the one that is held is counted, and gets it.
STRAIT_SHOWN int sched_yield() noexcept {
  static const auto next = reinterpret_cast<int (*)()>(::dlsym(RTLD_NEXT, "sched_yield"));
  if (held != nullptr && counts_here()) {
    ++counted_here.locks;
    held->mutex.unlock();
    held = nullptr;
  }
  return next();
}

namespace strait::flow {
namespace {

constexpr std::size_t kBytes = 256 * 1024;
constexpr std::size_t kPiece = 8192;  // the least that goes by a copy grant
constexpr int kTimes = 1000;
constexpr std::uint32_t kBatch = 32;  // more than fit without room of their own
constexpr int kBatches = 300;
constexpr int kMessages = 200;  // between threads that sleep in between

std::string local_kind() {
  return std::getenv("STRAIT_TEST_DEVICE") == nullptr ? "host" : test_device();
}

// What `work` took of this thread. `lane`: its own lock is not to be had meanwhile.
template <class Work>
Counts counts_of(strait_lane* lane, Work work) {
  if (lane != nullptr) {
    lane->mutex.lock();
    held = lane;
  }
  counted_here = {};
  counting = true;
  work();
  counting = false;
  if (held != nullptr) held->mutex.unlock();
  held = nullptr;
  return counted_here;
}

struct Error : strait_error {
  Error() : strait_error{} { struct_size = sizeof(strait_error); }
};

class Cost {
 protected:
  explicit Cost(const char* grant)
      : pair(settings({{"grant", grant}}), settings({{"grant", grant}})),
        target(pair.owner, "host", kBytes, access::all),
        local(pair.asker, local_kind(), kBytes, access::local),
        published(pair.owner.publish("block", target.region).value()),
        place(pair.far.lookup("block").value()),
        lane(pair.far.lane(256).value()) {}
  [[nodiscard]] strait_slice slice(std::size_t offset, std::size_t length) {
    return local.region.slice(offset, length).raw;
  }
  // Posts and waits; what was counted goes to `posting` and `waiting`. A wait may take a lock: one that lasts looks
  // whether the peer is there still.
  template <class Post>
  void post_and_wait(strait_lane* on, Post post) {
    strait_op op{};
    Error error;
    std::int32_t code = STRAIT_OK;
    const Counts posted = counts_of(on, [&] { code = post(&op, &error); });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    posting.allocations += posted.allocations;
    posting.locks += posted.locks;
    const Counts waited = counts_of(nullptr, [&] { code = strait_wait(&op, 30'000'000'000, nullptr, &error); });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    waiting.allocations += waited.allocations;
  }
  template <class Post>
  void post_and_wait(Post post) {
    post_and_wait(lane.raw(), post);
  }

  Pair pair;
  Block target, local;
  Published published;
  Target place;
  Lane lane;
  Counts posting, waiting;
};

// One operation, as often as it is asked for.
struct Kind;
class LaneCost : public Cost, public ::testing::TestWithParam<std::tuple<const char*, Kind>> {
 public:
  LaneCost();
  template <std::size_t kLength>
  void put() {
    with_slice(kLength, nullptr, strait_put);
  }
  template <std::size_t kLength>
  void get() {
    with_slice(kLength, nullptr, strait_get);
  }
  void put_with_signal() {
    const strait_op_options options = asking(STRAIT_WITH_SIGNAL);
    with_slice(64, &options, strait_put);
  }
  void long_put_with_signal() {
    const strait_op_options options = asking(STRAIT_WITH_SIGNAL);
    with_slice(kPiece, &options, strait_put);
  }
  void put_behind_a_fence() {
    const strait_op_options options = asking(STRAIT_FENCE);
    with_slice(64, &options, strait_put);
  }
  void fetch_add() {
    post_and_wait([&](strait_op* op, strait_error* error) {
      return strait_fetch_add(lane.raw(), &place.raw(), 8, 3, nullptr, op, error);
    });
  }
  void compare_swap() {
    post_and_wait([&](strait_op* op, strait_error* error) {
      return strait_compare_swap(lane.raw(), &place.raw(), 16, 0, 1, nullptr, op, error);
    });
  }
  template <std::size_t kLength>
  void batch() {
    batch_of(kLength, nullptr);
  }
  void batch_with_signal() {
    const strait_op_options options = asking(STRAIT_WITH_SIGNAL);
    batch_of(64, &options);
  }
  // Nobody waits for it; flushing is what takes as long as it takes.
  void detached_and_flushed() {
    const strait_slice here = slice(0, 64);
    Error error;
    std::int32_t code = STRAIT_OK;
    const Counts posted = counts_of(lane.raw(), [&] {
      strait_op op{};
      code = strait_put(lane.raw(), &here, &place.raw(), 0, nullptr, &op, &error);
      strait_detach(&op);
    });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    posting.allocations += posted.allocations;
    posting.locks += posted.locks;
    const Counts flushed = counts_of(nullptr, [&] { code = strait_flush(lane.raw(), 30'000'000'000, &error); });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    waiting.allocations += flushed.allocations;
  }
  void tested() {
    const strait_slice here = slice(0, 64);
    Error error;
    strait_op op{};
    std::int32_t code = STRAIT_OK;
    const Counts all = counts_of(lane.raw(), [&] {
      code = strait_put(lane.raw(), &here, &place.raw(), 0, nullptr, &op, &error);
      while (code == STRAIT_OK && op.lane != nullptr) {
        code = strait_test(&op, nullptr, &error);
        if (code == STRAIT_AGAIN) code = STRAIT_OK;
      }
    });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    posting.allocations += all.allocations;
    posting.locks += all.locks;
  }
  // Messages go over the peers' own lanes, which any thread may use: those have a lock, and it is the only one.
  void send() { message(asking(0)); }
  void send_with_immediate() { message(asking(STRAIT_WITH_IMM)); }
  void put_with_immediate() {
    const strait_slice here = slice(0, 64);
    const strait_op_options options = asking(STRAIT_WITH_IMM);
    Operation arrives = pair.near.receive_imm();
    post_and_wait(nullptr, [&](strait_op* op, strait_error* error) {
      return strait_put(strait_peer_lane(pair.far.raw()), &here, &place.raw(), 0, &options, op, error);
    });
    const auto received = arrives.wait(30s);
    ASSERT_TRUE(received) << received.error().explain();
  }
  void receive() {
    const strait_slice here = slice(0, 64);
    Error error;
    strait_op op{};
    std::int32_t code = STRAIT_OK;
    strait_lane* const own = strait_peer_lane(pair.far.raw());
    const Counts posted = counts_of(nullptr, [&] { code = strait_receive(own, &here, &op, &error); });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    posting.allocations += posted.allocations;
    posting.locks += posted.locks;
    const auto sent = pair.near.send(target.region.slice(0, 64)).wait(30s);
    ASSERT_TRUE(sent) << sent.error().explain();
    const Counts waited = counts_of(nullptr, [&] { code = strait_wait(&op, 30'000'000'000, nullptr, &error); });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    waiting.allocations += waited.allocations;
  }

 private:
  static strait_op_options asking(std::uint32_t flags) {
    strait_op_options options{};
    options.struct_size = sizeof options;
    options.flags = flags;
    options.imm = 7;
    options.signal_add = 1;
    return options;
  }
  template <class Call>
  void with_slice(std::size_t length, const strait_op_options* options, Call call) {
    const strait_slice here = slice(0, length);
    post_and_wait([&](strait_op* op, strait_error* error) {
      return call(lane.raw(), &here, &place.raw(), 0, options, op, error);
    });
  }
  void batch_of(std::size_t length, const strait_op_options* options) {
    std::array<strait_item, kBatch> items{};
    for (std::uint32_t i = 0; i < kBatch; ++i)
      items[i] = {i % 2 == 1 ? std::uint32_t{STRAIT_PUT} : std::uint32_t{STRAIT_GET}, 0, slice(i * kPiece, length),
                  &place.raw(), i * kPiece};
    post_and_wait([&](strait_op* op, strait_error* error) {
      return strait_batch(lane.raw(), items.data(), kBatch, options, op, error);
    });
  }
  void message(const strait_op_options& options) {
    const strait_slice here = slice(0, 64);
    Operation arrives = pair.near.receive(target.region.slice(0, 64));
    post_and_wait(nullptr, [&](strait_op* op, strait_error* error) {
      return strait_send(strait_peer_lane(pair.far.raw()), &here, &options, op, error);
    });
    const auto received = arrives.wait(30s);
    ASSERT_TRUE(received) << received.error().explain();
  }
};

struct Kind {
  const char* name;
  void (LaneCost::*once)();
  int times = kTimes;
  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};
LaneCost::LaneCost() : Cost(std::get<0>(GetParam())) {}

const Kind kKinds[] = {
    {"Put8", &LaneCost::put<8>},
    {"Put64", &LaneCost::put<64>},
    {"Put8KiB", &LaneCost::put<kPiece>},
    {"Get8", &LaneCost::get<8>},
    {"Get64", &LaneCost::get<64>},
    {"Get8KiB", &LaneCost::get<kPiece>},
    {"PutWithSignal", &LaneCost::put_with_signal},
    {"Put8KiBWithSignal", &LaneCost::long_put_with_signal},
    {"PutBehindAFence", &LaneCost::put_behind_a_fence},
    {"PutWithImmediate", &LaneCost::put_with_immediate, kMessages},
    {"FetchAdd", &LaneCost::fetch_add},
    {"CompareSwap", &LaneCost::compare_swap},
    {"Batch64", &LaneCost::batch<64>, kBatches},
    {"Batch8KiB", &LaneCost::batch<kPiece>, kBatches},
    {"BatchWithSignal", &LaneCost::batch_with_signal, kBatches},
    {"PutDetachedAndFlushed", &LaneCost::detached_and_flushed},
    {"PutTested", &LaneCost::tested},
    {"Send", &LaneCost::send, kMessages},
    {"SendWithImmediate", &LaneCost::send_with_immediate, kMessages},
    {"Receive", &LaneCost::receive, kMessages},
};
constexpr const char* kGrants[] = {"ring", "map", "copy"};
INSTANTIATE_TEST_SUITE_P(Operations, LaneCost,
                         ::testing::Combine(::testing::ValuesIn(kGrants), ::testing::ValuesIn(kKinds)),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param)) + std::get<1>(one.param).name;
                         });

TEST_P(LaneCost, AllocatesNothingAndTakesNoLock) {
  const Kind& kind = std::get<1>(GetParam());
  (this->*kind.once)();  // what is made once
  posting = waiting = {};
  for (int i = 0; i < kind.times && !HasFatalFailure(); ++i) (this->*kind.once)();
  EXPECT_EQ(posting.allocations, 0);
  EXPECT_EQ(posting.locks, 0);
  EXPECT_EQ(waiting.allocations, 0);
}

class GrantCost : public Cost, public ::testing::TestWithParam<const char*> {
 protected:
  GrantCost() : Cost(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Grants, GrantCost, ::testing::ValuesIn(kGrants),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(GrantCost, CountsWhatItSaysItCounts) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::shared_mutex read_and_write;
  const Counts some = counts_of(nullptr, [&] {
    delete new std::vector<int>(3);
    std::free(std::malloc(5));
    ::pthread_mutex_lock(&mutex);
    ::pthread_mutex_unlock(&mutex);
    read_and_write.lock_shared();
    read_and_write.unlock_shared();
  });
  EXPECT_EQ(some.allocations, 3);
  EXPECT_EQ(some.locks, 2);
  const Counts within = counts_of(nullptr, [&] {
    char* json = nullptr;
    (void)strait_node_info(pair.asker.raw(), &json, nullptr);
    strait_text_free(json);
  });
  EXPECT_GE(within.allocations, 1);
  EXPECT_GE(within.locks, 1);
  // The lock of a lane that callers share.
  strait_lane* const own = strait_peer_lane(pair.far.raw());
  const strait_slice here = slice(0, 64);
  const auto once = pair.far.put(local.region.slice(0, 64), place.at(0)).wait(30s);  // what is made once
  ASSERT_TRUE(once) << once.error().explain();
  strait_op op{};
  Error error;
  std::int32_t code = STRAIT_OK;
  const Counts shared = counts_of(own, [&] { code = strait_put(own, &here, &place.raw(), 0, nullptr, &op, &error); });
  ASSERT_EQ(code, STRAIT_OK) << error.text;
  EXPECT_EQ(shared.locks, 1);
  EXPECT_EQ(shared.allocations, 0);
  ASSERT_EQ(strait_wait(&op, 30'000'000'000, nullptr, &error), STRAIT_OK) << error.text;
}

// The NIC counts the doorbells that it finds rung, on another thread than the one that posts: one that rings for every
// item is caught at it now and then, one that rings for every batch never.
TEST_P(GrantCost, ABatchRingsOnce) {
  const auto nic = [&](const char* what) { return info(pair.asker)["nics"][0]["counters"].value(what, 0); };
  std::array<strait_item, kBatch> items{};
  for (std::uint32_t i = 0; i < kBatch; ++i)
    items[i] = {i % 2 == 0 ? std::uint32_t{STRAIT_PUT} : std::uint32_t{STRAIT_GET}, 0, slice(i * kPiece, 64),
                &place.raw(), i * kPiece};
  const auto batch = [&] {
    post_and_wait([&](strait_op* op, strait_error* error) {
      return strait_batch(lane.raw(), items.data(), kBatch, nullptr, op, error);
    });
  };
  batch();
  const int rung = nic("doorbells"), worked = nic("work_requests");
  for (int i = 0; i < kBatches && !HasFatalFailure(); ++i) batch();
  const bool by_nic = std::string(GetParam()) != "map" || local_kind() != "host";  // a CPU stores what it reaches
  EXPECT_LE(nic("doorbells") - rung, by_nic ? kBatches : 0);
  EXPECT_EQ(nic("work_requests") - worked, by_nic ? kBatches * static_cast<int>(kBatch) : 0);
}

}  // namespace
}  // namespace strait::flow
