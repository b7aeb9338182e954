// SPDX-License-Identifier: Apache-2.0
// Local sockets: packets that carry descriptors, packets that must be refused, and nothing leaked by either.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "sys/mapping.hpp"
#include "sys/socket.hpp"

namespace strait::sys {
namespace {

Deadline later() {
  return Deadline::after_ns(20'000'000'000);
}

class Packets : public testing::Test {
 protected:
  void SetUp() override {
    name_ = "strait-packet-test-" + std::to_string(::getpid());
    listener_ = unix_listen(name_).value();
    near_ = unix_connect(name_, later()).value();
    ASSERT_TRUE(wait_ready(listener_.get(), false, later()));
    far_ = accept_one(listener_.get()).value();
  }
  std::string name_;
  Fd listener_;
  Fd near_;
  Fd far_;
  const std::array<std::byte, 3> bytes_ = {std::byte{1}, std::byte{2}, std::byte{3}};
};

TEST_F(Packets, CarryBytesAndDescriptors) {
  const Fd memory = make_sealed_memfd("passed", 4096).value();
  const Mapping mine = map_file(memory.get(), 0, 4096, Protect::read_write).value();
  const int fds[] = {memory.get(), near_.get()};
  ASSERT_TRUE(send_packet(near_.get(), bytes_, fds));
  const Packet packet = receive_packet(far_.get(), 64).value();
  EXPECT_TRUE(std::equal(packet.bytes.begin(), packet.bytes.end(), bytes_.begin(), bytes_.end()));
  ASSERT_EQ(packet.fds.size(), 2U);
  EXPECT_NE(packet.fds[0].get(), memory.get());
  EXPECT_EQ(::fcntl(packet.fds[0].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  const Mapping theirs = map_file(packet.fds[0].get(), 0, 4096, Protect::read).value();
  mine.data()[100] = std::byte{77};
  EXPECT_EQ(theirs.data()[100], std::byte{77});
}

TEST_F(Packets, KeepTheirBoundaries) {
  ASSERT_TRUE(send_packet(near_.get(), bytes_, {}));
  ASSERT_TRUE(send_packet(near_.get(), std::span(bytes_).first(1), {}));
  EXPECT_EQ(receive_packet(far_.get(), 64).value().bytes.size(), 3U);
  EXPECT_EQ(receive_packet(far_.get(), 64).value().bytes.size(), 1U);
  EXPECT_EQ(receive_packet(far_.get(), 64).error().code, Code::again);
}

TEST_F(Packets, TooLongIsRefusedAndItsDescriptorsClosed) {
  const int fds[] = {near_.get()};
  ASSERT_TRUE(send_packet(near_.get(), bytes_, fds));
  const int before = count_open_fds();
  const Result<Packet> packet = receive_packet(far_.get(), 2);
  ASSERT_FALSE(packet);
  EXPECT_EQ(packet.error().code, Code::invalid);
  EXPECT_NE(packet.error().text.find("longer than 2 bytes"), std::string::npos);
  EXPECT_EQ(count_open_fds(), before);
}

TEST_F(Packets, TooManyDescriptorsAreRefusedOnBothSides) {
  const std::vector<int> nine(9, near_.get());
  EXPECT_EQ(send_packet(near_.get(), bytes_, nine).error().code, Code::invalid);

  // A peer with other code than ours can still send nine.
  iovec part{const_cast<std::byte*>(bytes_.data()), bytes_.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 9)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * 9);
  std::memcpy(CMSG_DATA(header), nine.data(), sizeof(int) * 9);
  ASSERT_EQ(::sendmsg(near_.get(), &message, 0), 3);
  const int before = count_open_fds();
  const Result<Packet> packet = receive_packet(far_.get(), 64);
  ASSERT_FALSE(packet);
  EXPECT_EQ(packet.error().code, Code::invalid);
  EXPECT_NE(packet.error().text.find("more than 8 descriptors"), std::string::npos);
  EXPECT_EQ(count_open_fds(), before);
}

TEST_F(Packets, NoDescriptorsLeftIsALimit) {
  const int fds[] = {near_.get(), far_.get()};
  ASSERT_TRUE(send_packet(near_.get(), bytes_, fds));
  const int before = count_open_fds();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit tight = limit;
  {
    const Fd next = near_.duplicate().value();
    tight.rlim_cur = static_cast<rlim_t>(next.get()) + 1;  // room for one, two arrive
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const Result<Packet> packet = receive_packet(far_.get(), 64);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_FALSE(packet);
  EXPECT_EQ(packet.error().code, Code::limit);
  EXPECT_EQ(count_open_fds(), before);
}

TEST_F(Packets, AnEmptyPacketWouldLookLikeTheEnd) {
  EXPECT_EQ(send_packet(near_.get(), {}, {}).error().code, Code::invalid);
}

TEST_F(Packets, AFullSocketIsAnAnswer) {
  const std::vector<std::byte> block(4096);
  Status sent;
  for (int i = 0; sent && i < 100'000; ++i) sent = send_packet(near_.get(), block, {});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Code::again);
  ASSERT_TRUE(receive_packet(far_.get(), 4096));
}

TEST_F(Packets, AClosedPeerIsGone) {
  ASSERT_TRUE(send_packet(far_.get(), bytes_, {}));
  far_.reset();
  EXPECT_EQ(receive_packet(near_.get(), 64).value().bytes.size(), 3U) << "what was sent before still arrives";
  EXPECT_EQ(receive_packet(near_.get(), 64).error().code, Code::gone);
  EXPECT_EQ(send_packet(near_.get(), bytes_, {}).error().code, Code::gone);
}

TEST_F(Packets, TellWhoIsThere) {
  const PeerCredentials who = peer_credentials(far_.get()).value();
  EXPECT_EQ(who.pid, ::getpid());
  EXPECT_EQ(who.uid, ::getuid());
  EXPECT_FALSE(peer_credentials(-1));
}

TEST_F(Packets, NamesAreChecked) {
  EXPECT_EQ(unix_listen("").error().code, Code::invalid);
  EXPECT_EQ(unix_listen(std::string(108, 'x')).error().code, Code::invalid);
  EXPECT_EQ(unix_listen(name_).error().sys_errno, EADDRINUSE);
  EXPECT_EQ(unix_connect(name_ + "-nobody", later()).error().sys_errno, ECONNREFUSED);
}

TEST_F(Packets, AListenerThatNeverAcceptsHoldsTheDeadline) {
  std::vector<Fd> waiting;
  const std::int64_t start = now_ns();
  Result<Fd> fd = unix_connect(name_, Deadline::after_ns(50'000'000));
  for (int i = 0; fd && i < 1000; ++i) {
    waiting.push_back(std::move(*fd));
    fd = unix_connect(name_, Deadline::after_ns(50'000'000));
  }
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::timeout);
  EXPECT_LT(now_ns() - start, 20'000'000'000);
}

}  // namespace
}  // namespace strait::sys
