// SPDX-License-Identifier: Apache-2.0
// Fuzz target: packets from a client to the process that has the cards. Whatever comes, each packet is answered or ends
// its own connection, no descriptor is left behind, and the card's books are as before.
//
// Input: steps of a kind byte, a length (2 bytes, little endian) and that many bytes.
//   0  a packet of those bytes      1  the same, with the magic number in its first word
// Bits 4 to 7 of the kind: what comes along: 1 a socket, 2 a file of fixed size, 3 a file that can shrink, 4 two files.
// The client's memory is not reached: it shares the file of fixed size, or nobody answers for it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

#include "cassini_world.hpp"
#include "soft/cassini_host/session.hpp"
#include "sys/caller.hpp"
#include "sys/clock.hpp"
#include "sys/files.hpp"
#include "sys/host.hpp"
#include "sys/relay.hpp"
#include "sys/socket.hpp"

namespace {

using namespace strait::fuzz;
namespace sys = strait::sys;
namespace protocol = cassini::protocol;

constexpr int kMostFds = 256;

std::set<int> open_fds() {
  std::set<int> out;
  for (int fd = 0; fd < kMostFds; ++fd) {
    if (sys::is_open_fd(fd)) out.insert(fd);
  }
  return out;
}

// What a packet can bring along. The other end of the socket is closed: nobody answers for the client's memory.
class Desk {
 public:
  Desk() {
    auto fixed_size = sys::make_sealed_memfd("cassini-fuzz-shared", Memory::kBytes);
    loose_ = sys::Fd(::memfd_create("cassini-fuzz-loose", MFD_ALLOW_SEALING));
    require(fixed_size.has_value() && loose_.valid() && ::ftruncate(loose_.get(), kPage) == 0,
            "there are files in memory");
    fixed_ = std::move(*fixed_size);
  }
  // Bits of a kind -> descriptors to send; the socket is a new one each time.
  std::vector<int> pick(unsigned which, sys::Fd& socket) const {
    switch (which) {
      case 1: {
        auto pair = sys::packet_pair();
        require(pair.has_value(), "there are sockets");
        socket = std::move(pair->one);
        return {socket.get()};
      }
      case 2: return {fixed_.get()};
      case 3: return {loose_.get()};
      case 4: return {fixed_.get(), loose_.get()};
      default: return {};
    }
  }
  cassini::Fabric fabric{2};
  sys::Relay relay{[](std::uint64_t) { return false; }};  // nothing runs in it: each call is simply made

 private:
  sys::Fd fixed_, loose_;
};

// False: the connection has ended.
bool step(const Desk& desk, cassini::Session& session, int socket, unsigned kind, std::span<const std::byte> bytes) {
  std::vector<std::byte> packet(bytes.begin(), bytes.end());
  packet.resize(std::clamp<std::size_t>(packet.size(), 1, protocol::kMostBytes));
  if (kind % 2 == 1) {
    packet.resize(std::max(packet.size(), sizeof(protocol::Ask)));
    const std::uint32_t magic = protocol::kMagic;
    std::memcpy(packet.data(), &magic, sizeof magic);
  }
  sys::Fd made;
  const std::vector<int> files = desk.pick(kind >> 4, made);
  require(sys::send_packet(socket, packet, files).has_value(), "the socket has room");
  const bool goes_on = session.serve();
  const auto answer = sys::receive_packet(socket, protocol::kMostBytes);
  require(answer.has_value() == goes_on, "a packet is answered, or ends the connection");
  if (answer) require(answer->bytes.size() >= sizeof(protocol::Answer), "an answer has its head");
  return goes_on;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Desk& desk = *new Desk;
  static const std::set<int> files_before = open_fds();
  const Books before(*desk.fabric.card(0));
  {
    auto ends = sys::packet_pair();
    require(ends.has_value(), "there are sockets");
    const sys::PeerCredentials peer{.pid = sys::process_id(), .uid = sys::real_user()};
    cassini::Session session(desk.fabric, desk.relay, std::move(ends->one), peer, 1, false,
                             std::make_shared<cassini::Patience>(sys::now_ns()));
    const auto* at = reinterpret_cast<const std::byte*>(data);
    const std::byte* const end = at + size;
    while (end - at >= 3) {
      const auto asked = static_cast<std::size_t>(at[1]) | static_cast<std::size_t>(at[2]) << 8;
      const std::size_t n = std::min(asked, static_cast<std::size_t>(end - at) - 3);
      if (!step(desk, session, ends->other.get(), static_cast<unsigned>(at[0]), {at + 3, n})) break;
      drive_to_rest(desk.fabric, 20'000);
      at += 3 + n;
    }
  }
  require(Books(*desk.fabric.card(0)) == before, "the end of a connection gives everything back");
  require(open_fds() == files_before, "no descriptor stays behind");
  return 0;
}
