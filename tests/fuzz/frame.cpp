// SPDX-License-Identifier: Apache-2.0
// Fuzz target: Ethernet frames from strangers: ARP, neighbour discovery, and UDP datagrams in IP packets.
//
// Input: the frame.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "require.hpp"
#include "soft/roce/ip_udp.hpp"
#include "soft/roce/neighbour.hpp"

namespace {

namespace roce = strait::soft::roce;
using strait::fuzz::require;

constexpr roce::Mac kMac = {2, 0, 0, 0, 0, 1};

void check_neighbour(std::span<const std::byte> frame, const roce::IpAddress& me) {
  const auto message = roce::read_neighbour(frame, me);
  if (!message) return;
  require(!message->sender_mac || !message->sender.is_any(), "nothing is learned about nobody");
  if (!message->asks_for_me) return;
  const auto answer = roce::answer_neighbour(kMac, me, *message, message->sender_mac.value_or(kMac));
  // The answer, read by the one who asked, says where we are.
  const auto read = roce::read_neighbour(answer, message->sender);
  require(read.has_value() && read->sender == me && read->sender_mac == kMac, "an answer says where we are");
  require(!read->asks_for_me, "an answer is no question");
}

void check_packet(std::span<const std::byte> ip_packet) {
  roce::IpUdp ip;
  if (!roce::parse_ip_udp(ip_packet, ip)) return;
  require(
      ip.bytes.data() >= ip_packet.data() && ip.bytes.data() + ip.bytes.size() <= ip_packet.data() + ip_packet.size(),
      "the datagram lies within the packet");
  std::byte headers[roce::kMaxIpUdpBytes];
  const std::size_t count = roce::write_ip_udp(ip.flow, ip.bytes, {0, 64, ip.ip_id}, headers);
  require(count == roce::ip_udp_bytes(ip.flow), "headers have the length that is promised");
  const std::unique_ptr<std::byte[]> again(new std::byte[count + ip.bytes.size()]);
  std::memcpy(again.get(), headers, count);
  if (!ip.bytes.empty()) std::memcpy(again.get() + count, ip.bytes.data(), ip.bytes.size());
  roce::IpUdp read;
  require(roce::parse_ip_udp({again.get(), count + ip.bytes.size()}, read), "what was written is read");
  require(read.flow == ip.flow && read.ip_id == ip.ip_id && std::ranges::equal(read.bytes, ip.bytes),
          "and is the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<std::byte[]> memory(new std::byte[size]);
  if (size != 0) std::memcpy(memory.get(), data, size);
  const std::span<const std::byte> frame(memory.get(), size);
  check_neighbour(frame, roce::IpAddress::v4(10, 0, 0, 2));
  check_neighbour(frame, {{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}});
  if (size >= roce::kEthernetBytes) check_packet(frame.subspan(roce::kEthernetBytes));
  return 0;
}
