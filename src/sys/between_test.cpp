// SPDX-License-Identifier: Apache-2.0
#include "sys/between.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace strait::sys {
namespace {

TEST(BetweenProcesses, TheKernelsAnswerIsPassedOn) {
  Calls refusing = real_calls();
  refusing.process_vm_readv = [](pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                                 unsigned long) -> ssize_t {
    errno = EPERM;
    return -1;
  };
  const Status refused = try_process_vm(refusing);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::denied);
  Calls lying = real_calls();
  lying.process_vm_readv = [](pid_t, const iovec* into, unsigned long, const iovec*, unsigned long,
                              unsigned long) -> ssize_t { return static_cast<ssize_t>(into->iov_len); };
  EXPECT_FALSE(try_process_vm(lying)) << "nothing was read";
  const Status here = try_process_vm();
  EXPECT_TRUE(here || here.error().code == Code::denied || here.error().sys_errno == ENOSYS) << here.error().text;
}

}  // namespace
}  // namespace strait::sys
