// SPDX-License-Identifier: Apache-2.0
// The lab's Ethernet link: what rxe sends comes out of the guest as one frame per datagram, and in the capture.
#include <sys/socket.h>
#include <sys/un.h>

#include "checks.hpp"
#include "rxe_client.hpp"

namespace strait::lab {
namespace {

using Frame = std::vector<std::uint8_t>;

std::uint32_t big_endian(const Frame& frame, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | frame.at(at + i);
  return value;
}

// The host's end: a folder with two sockets, ours bound before qemu starts.
class Link : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "strait-link.XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    socket_ = sys::Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string mine = folder_ + "/host";
    std::memcpy(address.sun_path, mine.c_str(), mine.size());
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  GuestOptions options(std::vector<std::string> more) const {
    GuestOptions options;
    options.name = "link";
    options.more = {"--carrier", "dgram",           "--local", folder_ + "/guest",
                    "--remote",  folder_ + "/host", "--pcap",  capture()};
    options.more.insert(options.more.end(), more.begin(), more.end());
    return options;
  }
  std::string capture() const { return folder_ + "/link.pcap"; }

  // The next frame that `wanted` likes; others (the guest's own multicast) pass by. Empty at the deadline.
  template <class Wanted>
  Frame next(Wanted wanted) const {
    const sys::Deadline deadline = sys::Deadline::after_ns(60'000'000'000);
    while (sys::wait_ready(socket_.get(), false, deadline)) {
      Frame frame(65536);
      const ssize_t n = ::recv(socket_.get(), frame.data(), frame.size(), 0);
      frame.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
      if (frame.size() >= 42 && wanted(frame)) return frame;
    }
    return {};
  }

  // The guest sends 61 bytes to a host that says nothing.
  void send_to(RxeClient& rxe, RxeQueue* queue) {
    ASSERT_GOT(gid, rxe.open(Family::v4, 1024));
    ASSERT_GOT(made, rxe.make(QueueKind::rc));
    Gid host = gid;
    host[15] = 1;
    EXPECT_DONE(rxe.connect(made.id, {.gid = host, .qpn = 0x123456, .psn = 5}));
    EXPECT_DONE(rxe.post(made.id, {.op = "send", .wr = 1, .bytes = 61, .seed = 1}));
    *queue = made;
  }

  std::string folder_;
  sys::Fd socket_;
};

TEST_F(Link, carries_what_rxe_sends) {
  const auto booted = Guest::boot(options({"--peer-mac", "02:00:00:00:00:01"}));
  ASSERT_TRUE(booted) << booted.error().explain();
  Guest& guest = **booted;
  RxeClient rxe(guest);
  RxeQueue queue;
  send_to(rxe, &queue);
  const Frame frame = next([](const Frame& f) { return big_endian(f, 12, 2) == 0x0800 && f[23] == 17; });
  ASSERT_FALSE(frame.empty()) << "no UDP came out of the guest";
  EXPECT_EQ(big_endian(frame, 0, 4), 0x02000000u);
  EXPECT_EQ(big_endian(frame, 4, 2), 0x0001u);
  EXPECT_EQ(big_endian(frame, 30, 4), 0xc6336401u) << "to 198.51.100.1";
  EXPECT_EQ(big_endian(frame, 36, 2), 4791u);
  EXPECT_EQ(frame.at(42), 4) << "RC SEND only";
  EXPECT_EQ(frame.at(43) >> 4 & 3, 3) << "61 bytes want 3 of padding";
  EXPECT_EQ(big_endian(frame, 47, 3), 0x123456u);
  EXPECT_EQ(big_endian(frame, 51, 3), queue.psn);
  EXPECT_EQ(frame.size(), 14u + 20 + 8 + 12 + 64 + 4);
  EXPECT_DONE(guest.finish());
  std::ifstream file(capture(), std::ios::binary);
  const std::string recorded{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(recorded.find(std::string(frame.begin(), frame.end())), std::string::npos)
      << "the frame is not in the capture of " << recorded.size() << " bytes";
}

// The kernel resolves the neighbour when the queue pair goes to RTR, so the other end must answer by then.
TEST_F(Link, asks_who_we_are) {
  const auto booted = Guest::boot(options({}));
  ASSERT_TRUE(booted) << booted.error().explain();
  RxeClient rxe(**booted);
  ASSERT_GOT(gid, rxe.open(Family::v4, 1024));
  ASSERT_GOT(made, rxe.make(QueueKind::rc));
  Gid host = gid;
  host[15] = 1;
  const Status connected = rxe.connect(made.id, {.gid = host, .qpn = 0x123456, .psn = 5});
  ASSERT_FALSE(connected);
  EXPECT_NE(connected.error().explain().find("ETIMEDOUT"), std::string::npos) << connected.error().explain();
  const Frame frame = next([](const Frame& f) { return big_endian(f, 12, 2) == 0x0806; });
  ASSERT_FALSE(frame.empty()) << "no ARP came out of the guest";
  EXPECT_EQ(big_endian(frame, 20, 2), 1u) << "a request";
  EXPECT_EQ(big_endian(frame, 38, 4), 0xc6336401u) << "for 198.51.100.1";
}

}  // namespace
}  // namespace strait::lab
