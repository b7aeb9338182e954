// SPDX-License-Identifier: Apache-2.0
// What UDP sockets on loopback give at best, for the rows about packets: nothing is checked, ordered or acknowledged.
//
//   udp_transfer latency|rate|bandwidth [workload options] [segment=N]
//
// bandwidth: datagrams of `segment` bytes, handed over in one piece of up to 64 KiB (UDP_SEGMENT) and received in one
// (UDP_GRO); the sender stays at most 1 MiB ahead. latency: 8 bytes there and back, both sides polling, half the round
// trip. rate: datagrams of `segment` bytes by sendmmsg and recvmmsg.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "workload.hpp"

namespace bench {
namespace {

constexpr std::size_t kPiece = 64 * 1024 - 256;
constexpr std::size_t kAhead = 1 << 20;
constexpr std::size_t kBatch = 64;

class Udp {
 public:
  Udp(Meeting* meeting, int side) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in mine{};
    mine.sin_family = AF_INET;
    mine.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int one = 1, large = 8 << 20;
    setsockopt(fd_, SOL_UDP, UDP_GRO, &one, sizeof one);
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    socklen_t length = sizeof mine;
    if (fd_ < 0 || bind(fd_, reinterpret_cast<sockaddr*>(&mine), sizeof mine) != 0 ||
        getsockname(fd_, reinterpret_cast<sockaddr*>(&mine), &length) != 0)
      give_up("no UDP socket on loopback");
    meeting->base[side][0] = ntohs(mine.sin_port);
    meet(meeting, side);
    sockaddr_in other = mine;
    other.sin_port = htons(static_cast<std::uint16_t>(meeting->base[1 - side][0]));
    if (connect(fd_, reinterpret_cast<sockaddr*>(&other), sizeof other) != 0) give_up("cannot connect the socket");
  }
  ~Udp() { close(fd_); }
  Udp(const Udp&) = delete;
  Udp& operator=(const Udp&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

// The owner counts what has come in meeting->count, which the initiator reads.
void drain(Udp& udp, Meeting* meeting) {
  std::vector<char> buffer(kBatch * 65536);
  std::vector<iovec> pieces(kBatch);
  std::vector<mmsghdr> headers(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    pieces[i] = {buffer.data() + i * 65536, 65536};
    headers[i].msg_hdr.msg_iov = &pieces[i];
    headers[i].msg_hdr.msg_iovlen = 1;
  }
  while (meeting->over[0].load(std::memory_order_relaxed) == 0) {
    const int got = recvmmsg(udp.fd(), headers.data(), kBatch, MSG_DONTWAIT, nullptr);
    std::uint64_t bytes = 0;
    for (int i = 0; i < got; ++i) bytes += headers[static_cast<std::size_t>(i)].msg_len;
    if (bytes != 0) meeting->count.fetch_add(bytes);
  }
}

double flood(Udp& udp, Meeting* meeting, std::size_t segment, bool pieces, double seconds, std::uint64_t& bytes) {
  std::vector<char> buffer(kPiece, 'x');
  const std::size_t per_piece = std::min<std::size_t>(kPiece / segment, 64) * segment;
  const auto gso = static_cast<int>(segment);
  if (pieces && setsockopt(udp.fd(), SOL_UDP, UDP_SEGMENT, &gso, sizeof gso) != 0) give_up("no UDP_SEGMENT here");
  std::vector<iovec> vectors(kBatch, iovec{buffer.data(), pieces ? per_piece : segment});
  std::vector<mmsghdr> headers(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    headers[i].msg_hdr.msg_iov = &vectors[i];
    headers[i].msg_hdr.msg_iovlen = 1;
  }
  std::uint64_t sent = 0;
  const std::uint64_t start = now_ns();
  const auto until = start + static_cast<std::uint64_t>(seconds * 1e9);
  std::uint64_t last = 0, stuck = 0;
  while (now_ns() < until) {
    const std::uint64_t come = meeting->count.load(std::memory_order_relaxed);
    if (sent - come > kAhead) {
      stuck = come == last ? stuck + 1 : 0;
      last = come;
      if (stuck > 100'000) sent = come;  // the rest was lost
      continue;
    }
    const int n = sendmmsg(udp.fd(), headers.data(), pieces ? 1u : static_cast<unsigned>(kBatch), MSG_DONTWAIT);
    if (n > 0) sent += static_cast<std::uint64_t>(n) * vectors[0].iov_len;
  }
  const std::uint64_t took = now_ns() - start;
  bytes = meeting->count.load();
  return static_cast<double>(took);
}

double ping(Udp& udp, double seconds, std::uint64_t& count) {
  std::uint64_t word = 0;
  const std::uint64_t start = now_ns();
  const auto until = start + static_cast<std::uint64_t>(seconds * 1e9);
  for (count = 0; now_ns() < until; ++count) {
    if (send(udp.fd(), &count, sizeof count, 0) != sizeof count) give_up("send failed");
    while (recv(udp.fd(), &word, sizeof word, MSG_DONTWAIT) != sizeof word) {
    }
  }
  return static_cast<double>(now_ns() - start);
}

void pong(Udp& udp, Meeting* meeting) {
  std::uint64_t word = 0;
  while (meeting->over[0].load(std::memory_order_relaxed) == 0) {
    if (recv(udp.fd(), &word, sizeof word, MSG_DONTWAIT) == sizeof word) (void)!send(udp.fd(), &word, sizeof word, 0);
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  const Workload w = parse_workload(argc, argv);
  const auto segment = static_cast<std::size_t>(std::stoul(w.option("segment", "4168")));
  Meeting* meeting = nullptr;
  const int side = split(w, &meeting);
  Udp udp(meeting, side);
  meet(meeting, side);
  const bool latency = w.test == Test::latency;
  const std::string path = latency                ? "UDP, 8 bytes"
                           : w.test == Test::rate ? "UDP mmsg, " + std::to_string(segment) + " bytes"
                                                  : "UDP GSO and GRO, " + std::to_string(segment) + " bytes";
  if (side == 1) {
    latency ? pong(udp, meeting) : drain(udp, meeting);
    return 0;
  }
  std::uint64_t amount = 0;
  if (latency) {
    const double ns = ping(udp, w.seconds, amount);
    print_result(w, ns / static_cast<double>(amount) / 2 / 1e3, "us", amount, 0, path);
  } else {
    const double ns = flood(udp, meeting, segment, w.test == Test::bandwidth, w.seconds, amount);
    const auto bytes = static_cast<double>(amount);
    if (w.test == Test::bandwidth) {
      print_result(w, bytes / ns, "GB/s", amount, 0, path);
    } else {
      print_result(w, bytes / static_cast<double>(segment) / ns * 1e3, "M/s", amount, 0, path);
    }
  }
  meeting->over[0].store(1);
  join();
  return 0;
}
