// SPDX-License-Identifier: Apache-2.0
// Memory of other processes: a real child, lists cut differently on both sides, and the answers of a kernel that
// refuses.
#include "sys/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <vector>

#include "sys/mapping.hpp"

namespace strait::sys {
namespace {

constexpr std::size_t kBytes = 64 * 1024;

// A child that holds a private copy of `memory` until it is told to end; what it exits with says whether its copy
// begins with 0x5a.
class Holder {
 public:
  explicit Holder(const std::byte* memory) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[1]);
      char nothing = 0;
      while (::read(ends[0], &nothing, 1) > 0) {
      }
      ::_exit(memory[0] == std::byte{0x5a} ? 0 : 1);
    }
    ::close(ends[0]);
    tell_ = Fd(ends[1]);
  }
  ~Holder() {
    if (pid_ > 0) (void)finish();
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  int finish() {
    tell_.reset();
    int status = -1;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  Fd tell_;
};

iovec part(const std::byte* at, std::size_t length) {
  return {const_cast<std::byte*>(at), length};
}

class Process : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = map_anonymous(kBytes, Protect::read_write).value();
    for (std::size_t i = 0; i < kBytes; ++i) memory_.data()[i] = static_cast<std::byte>(i * 7 + i / 256);
    expected_.assign(memory_.data(), memory_.data() + kBytes);
  }
  Mapping memory_;
  std::vector<std::byte> expected_;
};

TEST_F(Process, ReadsWhatTheChildHolds) {
  const Holder child(memory_.data());
  std::fill_n(memory_.data(), kBytes, std::byte{0});  // the child has its own copy: this must not show
  std::vector<std::byte> got(kBytes);
  const iovec into[] = {part(got.data(), 1), part(got.data() + 1, 4999), part(got.data() + 5000, kBytes - 5000)};
  const iovec from[] = {part(memory_.data(), kBytes / 2), part(memory_.data() + kBytes / 2, kBytes / 2)};
  const Status status = read_process(child.pid(), into, from);
  ASSERT_TRUE(status) << status.error().explain();
  EXPECT_EQ(got, expected_);
}

TEST_F(Process, ManySmallPartsTakeSeveralCalls) {
  const Holder child(memory_.data());
  std::vector<std::byte> got(kBytes);
  std::vector<iovec> into;
  std::vector<iovec> from;
  for (std::size_t at = 0; at < kBytes; at += 512) into.push_back(part(got.data() + at, 512));
  for (std::size_t at = 0; at < kBytes; at += 1024) {
    from.push_back(part(memory_.data() + at, 1024));
    from.push_back(part(memory_.data(), 0));  // empty parts are allowed and skipped
  }
  const Status status = read_process(child.pid(), into, from);
  ASSERT_TRUE(status) << status.error().explain();
  EXPECT_EQ(got, expected_);
}

TEST_F(Process, WritesIntoTheChild) {
  Holder child(memory_.data());
  const std::byte mark{0x5a};
  const iovec from[] = {part(&mark, 1)};
  const iovec into[] = {part(memory_.data(), 1)};
  ASSERT_TRUE(write_process(child.pid(), from, into));
  EXPECT_NE(memory_.data()[0], mark) << "the parent's copy is another one";
  EXPECT_EQ(child.finish(), 0) << "the child did not see the byte";
}

TEST_F(Process, AProcessThatIsGoneIsSaidToBeGone) {
  Holder child(memory_.data());
  const pid_t pid = child.pid();
  (void)child.finish();
  std::byte got{};
  const iovec into[] = {part(&got, 1)};
  const iovec from[] = {part(memory_.data(), 1)};
  const Status status = read_process(pid, into, from);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::gone);
  EXPECT_NE(status.error().text.find(std::to_string(pid)), std::string::npos);
}

TEST_F(Process, AddressesThatAreNotThereAreAnError) {
  const Holder child(memory_.data());
  const Mapping hole = map_anonymous(page_bytes(), Protect::none).value();
  std::vector<std::byte> got(2 * page_bytes());
  // The first half can be read, the second cannot: the partial copy must not count as success.
  const iovec into[] = {part(got.data(), got.size())};
  const iovec from[] = {part(memory_.data(), page_bytes()), part(hole.data(), page_bytes())};
  const Status status = read_process(child.pid(), into, from);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().sys_errno, EFAULT);
}

TEST_F(Process, ListsOfDifferentLengthAreRefusedBeforeAnyCall) {
  Calls calls = real_calls();
  calls.process_vm_readv = [](pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                              unsigned long) -> ssize_t {
    ADD_FAILURE() << "the kernel was asked";
    return 0;
  };
  std::byte got[16] = {};
  const iovec into[] = {part(got, 16)};
  const iovec from[] = {part(memory_.data(), 15)};
  EXPECT_EQ(read_process(::getpid(), into, from, calls).error().code, Code::invalid);
  const iovec wrapping[] = {part(memory_.data(), SIZE_MAX), part(memory_.data(), 17)};  // sums to 16 modulo 2^64
  EXPECT_EQ(read_process(::getpid(), into, wrapping, calls).error().code, Code::invalid);
}

TEST_F(Process, AKernelThatForbidsItIsExplained) {
  Calls calls = real_calls();
  calls.process_vm_writev = [](pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                               unsigned long) -> ssize_t { return errno = EPERM, -1; };
  const iovec same[] = {part(memory_.data(), 8)};
  const Status status = write_process(1, same, same, calls);
  EXPECT_EQ(status.error().code, Code::denied);
  EXPECT_NE(status.error().remedy.find("ptrace_scope"), std::string::npos);
  calls.process_vm_writev = [](pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                               unsigned long) -> ssize_t { return errno = ENOSYS, -1; };
  EXPECT_EQ(write_process(1, same, same, calls).error().code, Code::unsupported);
}

TEST_F(Process, ACallThatMovesNothingEndsTheLoop) {
  Calls calls = real_calls();
  calls.process_vm_readv = [](pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                              unsigned long) -> ssize_t { return 0; };
  const iovec same[] = {part(memory_.data(), 8)};
  EXPECT_EQ(read_process(::getpid(), same, same, calls).error().sys_errno, EFAULT);
}

TEST_F(Process, ShortMovesAreContinued) {
  static int calls_made;
  calls_made = 0;
  Calls calls = real_calls();
  calls.process_vm_readv = [](pid_t, const iovec* local, unsigned long, const iovec* remote, unsigned long,
                              unsigned long) -> ssize_t {
    ++calls_made;
    std::copy_n(static_cast<std::byte*>(remote->iov_base), 1, static_cast<std::byte*>(local->iov_base));
    return 1;
  };
  std::byte got[16] = {};
  const iovec into[] = {part(got, 16)};
  const iovec from[] = {part(memory_.data(), 16)};
  ASSERT_TRUE(read_process(::getpid(), into, from, calls));
  EXPECT_EQ(calls_made, 16);
  EXPECT_TRUE(std::equal(got, got + 16, expected_.begin()));
}

TEST_F(Process, NothingToCopyIsDone) {
  EXPECT_TRUE(read_process(::getpid(), {}, {}));
}

// No run of 20 zeros in 1000 random bytes; an unfilled part would leave one.
bool looks_random(const std::vector<std::byte>& bytes) {
  const std::vector<std::byte> zeros(20);
  return std::search(bytes.begin(), bytes.end(), zeros.begin(), zeros.end()) == bytes.end();
}

TEST(Random, FillsEveryByteAndDiffers) {
  std::vector<std::byte> first(1000);
  std::vector<std::byte> second(1000);
  ASSERT_TRUE(fill_random(first));
  ASSERT_TRUE(fill_random(second));
  EXPECT_NE(first, second);
  EXPECT_TRUE(looks_random(first));
}

TEST(Random, AKernelWithoutAGeneratorIsAnErrorNotALoop) {
  Calls calls = real_calls();
  std::byte key[32] = {};
  calls.getrandom = [](void*, std::size_t, unsigned) -> ssize_t { return errno = ENOSYS, -1; };
  EXPECT_EQ(fill_random(key, calls).error().code, Code::unsupported);
  calls.getrandom = [](void*, std::size_t, unsigned) -> ssize_t { return 0; };
  EXPECT_EQ(fill_random(key, calls).error().sys_errno, EIO);
}

TEST(Random, InterruptionsAreSatOut) {
  Calls calls = real_calls();
  static int interruptions;
  static int served;
  interruptions = 3;
  served = 0;
  calls.getrandom = [](void* into, std::size_t length, unsigned flags) -> ssize_t {
    if (interruptions-- > 0) return errno = EINTR, -1;
    ++served;
    return real_calls().getrandom(into, length, flags);
  };
  std::vector<std::byte> bytes(1000);
  ASSERT_TRUE(fill_random(bytes, calls));
  EXPECT_EQ(served, 4) << "1000 bytes in requests of 256";
  EXPECT_TRUE(looks_random(bytes));
}

TEST(Barriers, AnswerTheSameEveryTime) {
  // Whether the kernel has the call is its business; that registering makes the barrier work is ours.
  const bool registered = register_for_barriers();
  EXPECT_EQ(barrier_everywhere(), registered);
  EXPECT_EQ(register_for_barriers(), registered);
}

}  // namespace
}  // namespace strait::sys
