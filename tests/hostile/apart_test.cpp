// SPDX-License-Identifier: Apache-2.0
// Processes that may not read each other's memory, or not even meet: bytes arrive all the same, and the run says how.
// And processes that do nothing.
#include <unistd.h>

#include "street.hpp"

namespace strait::testing {
namespace {

class Apart : public Street {
 protected:
  void meet(const std::vector<std::string>& before) {
    open("auto", before);
    connect_friend();
    friends_talk(1);
    middle_->must(put("read", "1", 100'000, from_friend_, 0));
    EXPECT_EQ(middle_->wait(1), kGood);
    friend_->must(put("read", "1", 100'000, to_friend_, 0));
    EXPECT_EQ(friend_->wait(1), kGood);
  }
};

// As in a container: the kernel lets nobody look out of the namespace.
TEST_F(Apart, InAUserNamespace) {
  meet({"/usr/bin/unshare", "-U", "-r"});
  const std::string said = unwrapped(friend_->quit().err);
  EXPECT_NE(said.find("messages through shared memory (large ones copied twice: no process_vm_readv)"),
            std::string::npos)
      << said;
  EXPECT_EQ(middle_->quit().status, 0);
}

// With process numbers of its own besides, as a container has: to the kernel each is nobody to the other.
TEST_F(Apart, InAPidNamespace) {
  meet({"/usr/bin/unshare", "-U", "-r", "-p", "-f"});
  const std::string said = unwrapped(friend_->quit().err);
  EXPECT_NE(said.find("messages through shared memory (large ones copied twice: no process_vm_readv)"),
            std::string::npos)
      << said;
  EXPECT_EQ(middle_->quit().status, 0);
}

TEST_F(Apart, AnotherUser) {
  // Only root can start a process of another user.
  std::vector<std::string> as_nobody{"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  if (::geteuid() != 0) as_nobody.insert(as_nobody.begin(), {"/usr/bin/sudo", "-n"});
  meet(as_nobody);
  const std::string said = unwrapped(friend_->quit().err);
  EXPECT_NE(said.find("other hosts out of reach (port 4791 is another user's)"), std::string::npos) << said;
  EXPECT_EQ(said.find("shared memory"), std::string::npos) << said;
  EXPECT_EQ(middle_->quit().status, 0);
}

class Idle : public OnCarrier {};
INSTANTIATE_TEST_SUITE_P(Carriers, Idle, ::testing::Values("auto", "roce", "auto background=1", "roce background=1"),
                         carrier_name);

// It is counted in CPU time, which a busy machine does not change much.
TEST_P(Idle, TakesNextToNothing) {
  connect_friend();
  friends_talk(1);
  (void)middle_->must("cpu 1000");
  EXPECT_LT(std::stod(middle_->must("cpu 5000")["percent"]), 1.0);
}

}  // namespace
}  // namespace strait::testing
