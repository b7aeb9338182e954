// SPDX-License-Identifier: Apache-2.0
#include "soft/roce/ethernet_port.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/roce/icrc.hpp"
#include "soft/roce/ip_udp.hpp"
#include "sys/clock.hpp"

namespace strait::soft::roce {
namespace {

constexpr std::size_t kInBytes = 65536 + 64;
constexpr std::size_t kMostFrames = 512;
constexpr std::size_t kMostWaiting = 32;  // packets per unknown neighbour
constexpr std::size_t kMostNeighbours = 4096;
constexpr std::int64_t kAskEveryNs = 200'000'000;
constexpr int kMostAsked = 5;

}  // namespace

Result<std::unique_ptr<EthernetPort>> EthernetPort::open(const EthernetPortSettings& settings) {
  if (settings.address.is_any() || settings.address.is_multicast()) {
    return with_remedy(fail(Code::invalid, "a RoCE port cannot have the address {}", settings.address.text()),
                       "give it one of its own on the link");
  }
  if ((settings.mac[0] & 1) != 0) return fail(Code::invalid, "a port cannot have the MAC address of a group");
  const std::uint32_t overhead = (settings.address.is_v4() ? 20U : 40U) + 8U;
  if (settings.link_mtu_bytes < 576 || settings.link_mtu_bytes > 65535) {
    return fail(Code::invalid, "a link MTU of {} bytes: 576 to 65535 are possible", settings.link_mtu_bytes);
  }
  if (settings.local_path == settings.remote_path) {
    return fail(Code::invalid, "\"{}\" cannot be both ends of a link", settings.local_path);
  }
  STRAIT_TRY(auto socket, sys::LocalDatagram::bind({settings.local_path, false}));
  return std::unique_ptr<EthernetPort>(
      new EthernetPort(settings, std::move(socket), settings.link_mtu_bytes - overhead));
}

EthernetPort::EthernetPort(const EthernetPortSettings& settings, sys::LocalDatagram socket, std::uint32_t mtu_bytes)
    : settings_(settings), socket_(std::move(socket)), mtu_bytes_(mtu_bytes), in_(new std::byte[kInBytes]) {}

std::byte* EthernetPort::begin(const IpAddress& to, std::uint16_t source_port, std::size_t most_bytes) {
  if (most_bytes > mtu_bytes_ || committed_.size() + ready_.size() >= kMostFrames) return nullptr;
  next_flow_ = {settings_.address, to, source_port};
  if (next_.capacity() == 0 && !spare_.empty()) {
    next_ = std::move(spare_.back());
    spare_.pop_back();
  }
  const std::size_t before = kEthernetBytes + ip_udp_bytes(next_flow_);
  next_.resize(before + most_bytes);
  return next_.data() + before;
}

void EthernetPort::commit(std::size_t bytes) {
  const std::size_t before = kEthernetBytes + ip_udp_bytes(next_flow_);
  next_.resize(before + bytes);
  const std::span<std::byte> packet(next_.data() + before, bytes);
  seal(next_flow_, packet);
  write_ip_udp(next_flow_, packet, {settings_.traffic_class, 64, 0}, next_.data() + kEthernetBytes);
  committed_.push_back({next_flow_.destination, std::move(next_)});
  next_ = {};
}

void EthernetPort::ask(const IpAddress& wanted, Neighbour& neighbour, std::int64_t now_ns) {
  neighbour.asked_ns = now_ns;
  ++neighbour.asked;
  // Lost like any other packet when the socket is full: it is asked again.
  (void)socket_.send({settings_.remote_path, false}, ask_neighbour(settings_.mac, settings_.address, wanted), {});
}

void EthernetPort::ask_again() {
  const std::int64_t now = sys::now_ns();
  for (auto& [address, neighbour] : neighbours_) {
    if (neighbour.waiting.empty() || now - neighbour.asked_ns < kAskEveryNs) continue;
    if (neighbour.asked < kMostAsked) {
      ask(address, neighbour, now);
      continue;
    }
    counters_.send_refused += neighbour.waiting.size();
    counters_.last_send_errno = EHOSTUNREACH;
    waiting_ -= neighbour.waiting.size();
    neighbour.waiting.clear();
    neighbour.asked = 0;
    neighbour.asked_ns = 0;
  }
}

void EthernetPort::learn(const IpAddress& address, const Mac& mac) {
  if (address.is_any() || address.is_multicast() || (mac[0] & 1) != 0) return;
  if (neighbours_.size() >= kMostNeighbours && !neighbours_.contains(address)) return;
  Neighbour& neighbour = neighbours_[address];
  neighbour.known = true;
  neighbour.mac = mac;
  neighbour.asked = 0;
  waiting_ -= neighbour.waiting.size();
  for (Frame& frame : neighbour.waiting) {
    std::memcpy(frame.data(), mac.data(), mac.size());
    ready_.push_back(std::move(frame));
  }
  neighbour.waiting.clear();
}

Status EthernetPort::send_queue() {
  while (!ready_.empty()) {
    Frame& frame = ready_.front();
    const int error = socket_.send({settings_.remote_path, false}, frame, {});
    if (error == EAGAIN) return fail(Code::again, "the other end of the link does not read fast enough");
    if (error == EBADF || error == ENOTSOCK) return fail_errno(error, "cannot send from a RoCE port");
    if (error == 0) {
      ++counters_.sent;
      ++counters_.batches_sent;
    } else {
      ++counters_.send_refused;
      counters_.last_send_errno = error;
    }
    if (spare_.size() < kMostFrames) spare_.push_back(std::move(frame));
    ready_.pop_front();
  }
  return {};
}

Status EthernetPort::flush() {
  if (waiting_ != 0) ask_again();
  for (; !committed_.empty(); committed_.pop_front()) {
    auto& [to, frame] = committed_.front();
    if (neighbours_.size() >= kMostNeighbours && !neighbours_.contains(to)) {
      ++counters_.send_refused;
      counters_.last_send_errno = ENOBUFS;
      continue;
    }
    Neighbour& neighbour = neighbours_[to];
    write_ethernet(neighbour.mac, settings_.mac, to.is_v4() ? kEtherIpv4 : kEtherIpv6, frame.data());
    if (neighbour.known) {
      ready_.push_back(std::move(frame));
      continue;
    }
    if (neighbour.waiting.size() == kMostWaiting) {
      neighbour.waiting.pop_front();
      --waiting_;
      ++counters_.send_refused;
      counters_.last_send_errno = EHOSTUNREACH;
    }
    neighbour.waiting.push_back(std::move(frame));
    ++waiting_;
    if (neighbour.asked == 0) ask(to, neighbour, sys::now_ns());
  }
  return send_queue();
}

bool EthernetPort::for_me(std::span<const std::byte> frame) const {
  return (frame[0] & std::byte{1}) != std::byte{0} || std::memcmp(frame.data(), settings_.mac.data(), 6) == 0;
}

void EthernetPort::on_frame(std::span<const std::byte> frame, Sink& sink, int& count) {
  if (frame.size() < kEthernetBytes || !for_me(frame)) return;
  if (const auto message = read_neighbour(frame, settings_.address)) {
    Mac from;
    std::memcpy(from.data(), frame.data() + 6, from.size());
    if (message->sender_mac) learn(message->sender, *message->sender_mac);
    if (message->asks_for_me) {
      const auto answer =
          answer_neighbour(settings_.mac, settings_.address, *message, message->sender_mac.value_or(from));
      (void)socket_.send({settings_.remote_path, false}, answer, {});
    }
    return;
  }
  const std::uint16_t type = ethernet_type(frame);
  IpUdp ip;
  if ((type != kEtherIpv4 && type != kEtherIpv6) || !parse_ip_udp(frame.subspan(kEthernetBytes), ip) ||
      ip.flow.destination.is_v4() != (type == kEtherIpv4) || ip.flow.destination != settings_.address) {
    ++counters_.not_roce;
    return;
  }
  Mac from;
  std::memcpy(from.data(), frame.data() + 6, from.size());
  const auto known = neighbours_.find(ip.flow.source);
  if (known == neighbours_.end() || !known->second.known) learn(ip.flow.source, from);
  ++count;
  ++counters_.received;
  sink.on_packet({ip.flow, ip.ecn_ce, false, ip.bytes, ip.ip_id});
}

int EthernetPort::receive(Sink& sink, int most) {
  int count = 0;
  // Frames that are no packets cost time too: a flood of them must not keep the caller here.
  for (int frames = 0; count < most && frames < 4 * most; ++frames) {
    const auto got = socket_.receive({in_.get(), kInBytes});
    if (!got) break;
    ++counters_.batches_received;
    if (!got->cut) on_frame({in_.get(), got->bytes}, sink, count);
  }
  if (waiting_ != 0) ask_again();
  if (!ready_.empty()) (void)send_queue();  // what waited for an answer that came; a full socket is flush()'s business
  return count;
}

}  // namespace strait::soft::roce
