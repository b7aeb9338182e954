// SPDX-License-Identifier: Apache-2.0
// What an operation on a lane with one owner does not do: allocate, take a lock, ring twice for one batch.
//
// This program's own operator new and pthread_mutex_lock stand before those that libstrait would find otherwise. They
// count what the thread does that posts, between two marks. The software NIC is driven by that thread too, and stands
// for hardware: what it takes for itself is left out. The memory on this side is what STRAIT_TEST_DEVICE names, host
// memory otherwise: a vendor's device, under `strait run`, has memory no CPU can reach.
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>

#include <new>

#include "flow.hpp"

namespace {

struct Counts {
  long allocations = 0, locks = 0;
};
thread_local Counts counted_here;
thread_local bool counting = false;

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

}  // namespace

// Not inlined: g++ would see that what new made goes to free(), and take that for a mistake.
#define STRAIT_SHOWN __attribute__((visibility("default"), noinline))

STRAIT_SHOWN void* operator new(std::size_t bytes) {
  if (counts_here()) ++counted_here.allocations;
  if (void* const at = std::malloc(bytes == 0 ? 1 : bytes)) return at;
  throw std::bad_alloc();
}
STRAIT_SHOWN void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}
STRAIT_SHOWN void operator delete(void* at) noexcept {
  std::free(at);
}
STRAIT_SHOWN void operator delete[](void* at) noexcept {
  std::free(at);
}
STRAIT_SHOWN void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}
STRAIT_SHOWN void operator delete[](void* at, std::size_t) noexcept {
  std::free(at);
}
extern "C" STRAIT_SHOWN int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Call = int (*)(pthread_mutex_t*);
  static const Call next = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (counts_here()) ++counted_here.locks;
  return next(mutex);
}

namespace strait::flow {
namespace {

constexpr std::size_t kBytes = 256 * 1024;
constexpr std::size_t kPiece = 8192;  // the least that goes by a copy grant
constexpr int kPuts = 10'000;
constexpr std::uint32_t kBatch = 32;  // more than fit without room of their own
constexpr int kBatches = kPuts / static_cast<int>(kBatch);

std::string local_kind() {
  return std::getenv("STRAIT_TEST_DEVICE") == nullptr ? "host" : test_device();
}

// What `work` took of this thread.
template <class Work>
Counts counts_of(Work work) {
  counted_here = {};
  counting = true;
  work();
  counting = false;
  return counted_here;
}

class LaneCost : public ::testing::TestWithParam<const char*> {
 protected:
  LaneCost()
      : pair(settings({{"grant", GetParam()}}), settings({{"grant", GetParam()}})),
        target(pair.owner, "host", kBytes, access::all),
        local(pair.asker, local_kind(), kBytes, access::local),
        published(pair.owner.publish("block", target.region).value()),
        place(pair.far.lookup("block").value()),
        lane(pair.far.lane(256).value()) {}
  [[nodiscard]] strait_slice slice(std::size_t offset, std::size_t length) {
    return local.region.slice(offset, length).raw;
  }
  // Posts and waits; what was counted goes to `posting` and `waiting`.
  template <class Post>
  void post_and_wait(Post post) {
    strait_op op{};
    strait_error error{};
    error.struct_size = sizeof error;
    std::int32_t code = STRAIT_OK;
    const Counts posted = counts_of([&] { code = post(&op, &error); });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    posting.allocations += posted.allocations;
    posting.locks += posted.locks;
    const Counts waited = counts_of([&] { code = strait_wait(&op, 30'000'000'000, nullptr, &error); });
    ASSERT_EQ(code, STRAIT_OK) << error.text;
    waiting.allocations += waited.allocations;
  }
  void put_and_get(std::size_t length) {
    const strait_slice here = slice(0, length);
    post_and_wait([&](strait_op* op, strait_error* error) {
      return strait_put(lane.raw(), &here, &place.raw(), 0, nullptr, op, error);
    });
    post_and_wait([&](strait_op* op, strait_error* error) {
      return strait_get(lane.raw(), &here, &place.raw(), 0, nullptr, op, error);
    });
  }
  void batch(std::size_t length) {
    std::array<strait_item, kBatch> items{};
    for (std::uint32_t i = 0; i < kBatch; ++i)
      items[i] = {i % 2 == 0 ? std::uint32_t{STRAIT_PUT} : std::uint32_t{STRAIT_GET}, 0, slice(i * kPiece, length),
                  &place.raw(), i * kPiece};
    post_and_wait([&](strait_op* op, strait_error* error) {
      return strait_batch(lane.raw(), items.data(), kBatch, nullptr, op, error);
    });
  }

  Pair pair;
  Block target, local;
  Published published;
  Target place;
  Lane lane;
  Counts posting, waiting;
};
INSTANTIATE_TEST_SUITE_P(Grants, LaneCost, ::testing::Values("ring", "map", "copy"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(LaneCost, CountsWhatItSaysItCounts) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const Counts some = counts_of([&] {
    delete new std::vector<int>(3);
    ::pthread_mutex_lock(&mutex);
    ::pthread_mutex_unlock(&mutex);
    // Within libstrait, too.
    char* json = nullptr;
    (void)strait_node_info(pair.asker.raw(), &json, nullptr);
    strait_text_free(json);
  });
  EXPECT_GE(some.allocations, 3);
  EXPECT_GE(some.locks, 2);
}

TEST_P(LaneCost, PutsAndGetsAllocateNothingAndTakeNoLock) {
  for (const std::size_t length : {std::size_t{8}, std::size_t{64}, kPiece}) {
    put_and_get(length);  // what is made once
    posting = waiting = {};
    for (int i = 0; i < kPuts / 6 && !HasFatalFailure(); ++i) put_and_get(length);
    EXPECT_EQ(posting.allocations, 0) << length;
    EXPECT_EQ(posting.locks, 0) << length;
    EXPECT_EQ(waiting.allocations, 0) << length;
  }
}

TEST_P(LaneCost, LongBatchesAllocateNothingAndTakeNoLock) {
  for (const std::size_t length : {std::size_t{64}, kPiece}) {
    batch(length);
    posting = waiting = {};
    for (int i = 0; i < kBatches && !HasFatalFailure(); ++i) batch(length);
    EXPECT_EQ(posting.allocations, 0) << length;
    EXPECT_EQ(posting.locks, 0) << length;
    EXPECT_EQ(waiting.allocations, 0) << length;
  }
}

// The NIC counts the doorbells that it finds rung, on another thread than the one that posts: one that rings for every
// item is caught at it now and then, one that rings for every batch never.
TEST_P(LaneCost, ABatchRingsOnce) {
  const auto nic = [&](const char* what) { return info(pair.asker)["nics"][0]["counters"].value(what, 0); };
  batch(64);
  const int rung = nic("doorbells"), worked = nic("work_requests");
  for (int i = 0; i < kBatches && !HasFatalFailure(); ++i) batch(64);
  const bool by_nic = std::string(GetParam()) != "map" || local_kind() != "host";  // a CPU stores what it reaches
  EXPECT_LE(nic("doorbells") - rung, by_nic ? kBatches : 0);
  EXPECT_EQ(nic("work_requests") - worked, by_nic ? kBatches * static_cast<int>(kBatch) : 0);
}

}  // namespace
}  // namespace strait::flow
