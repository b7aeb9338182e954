// SPDX-License-Identifier: Apache-2.0
// UDP port: opening, claiming a range, sending in runs. udp_receive.cpp is the other direction.
#include "soft/roce/udp_port.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/roce/icrc.hpp"
#include "soft/roce/ip_udp.hpp"
#include "soft/roce/udp_wire.hpp"
#include "strait/wire/roce.hpp"
#include "sys/clock.hpp"

namespace strait::soft::roce {

using wire::roce::kUdpPort;

namespace {

constexpr std::size_t kOutBytes = 1 << 20;
constexpr std::size_t kMostPackets = 512;
constexpr std::size_t kMostSegments = 64;
constexpr std::size_t kMostRunBytes = 65507;  // what fits one IPv4 datagram; IPv6 has 20 more
constexpr std::int64_t kAskAgainNs = 1'000'000'000;
constexpr unsigned kSendsPerClock = 64;

bool in_use(const Error& error) {
  return error.sys_errno == EADDRINUSE;
}

}  // namespace

// Code::again: it is taken.
Result<UdpPort::Place> UdpPort::take_range(const UdpPortSettings& settings, const sys::UdpSettings& udp,
                                           std::uint8_t range) {
  STRAIT_TRY(auto claim, sys::LocalDatagram::bind(range_name(settings.address, range)));
  Place place{range, std::move(claim), {}};
  if (settings.shared.empty()) return place;
  sys::UdpSettings mine = udp;
  mine.port = own_port(range);
  mine.share_port = false;
  auto own = sys::UdpSocket::open(mine);
  if (!own && in_use(own.error())) return fail(Code::again, "UDP port {} is taken", mine.port);
  if (!own) return std::move(own).error();
  place.own.emplace(std::move(*own));
  return place;
}

Result<UdpPort::Place> UdpPort::take_place(const UdpPortSettings& settings, const sys::UdpSettings& udp) {
  if (settings.qpn_range != 0) {
    auto place = take_range(settings, udp, settings.qpn_range);
    if (place || place.error().code != Code::again) return place;
    return with_remedy(fail(Code::again, "queue pair range {} of {} is taken by another process",
                            int{settings.qpn_range}, settings.address.text()),
                       "ask for range 0, which takes any that is free");
  }
  // Not always from 1: packets of a process that just died should not meet the same numbers again.
  const auto start = static_cast<unsigned>(sys::now_ns() / 1'000'000 % 255);
  for (unsigned i = 0; i < 255; ++i) {
    auto place = take_range(settings, udp, static_cast<std::uint8_t>(1 + (start + i) % 255));
    if (place || place.error().code != Code::again) return place;
  }
  return with_remedy(fail(Code::limit, "all 255 queue pair ranges of {} are taken", settings.address.text()),
                     "end some of the processes that use this address, or use another address");
}

Result<std::unique_ptr<UdpPort>> UdpPort::open(const UdpPortSettings& settings) {
  if (settings.address.is_any() || settings.address.is_multicast()) {
    return with_remedy(fail(Code::invalid, "a RoCE port cannot have the address {}", settings.address.text()),
                       "name one address of this host: the iCRC of every packet covers it");
  }
  auto link = sys::interface_of(settings.address.gid);
  if (!link) {
    if (link.error().code != Code::invalid) return std::move(link).error();
    return with_remedy(fail(Code::invalid, "{} is not an address of this host", settings.address.text()),
                       "`ip address` lists those it has; any 127.x.y.z works for tests on one host");
  }
  sys::UdpSettings udp;
  udp.address = settings.address.gid;
  udp.port = kUdpPort;
  udp.any_destination = settings.any_destination;
  udp.interface = settings.interface.empty() && settings.address.is_link_local() ? link->name : settings.interface;
  udp.share_port = true;
  udp.traffic_class = settings.traffic_class;
  udp.buffer_bytes = settings.socket_buffer_bytes;
  STRAIT_TRY(Place place, take_place(settings, udp));
  std::optional<sys::UdpSocket> socket;
  auto opened = sys::UdpSocket::open(udp);
  // Another user's processes have it: what comes from other hosts is theirs, this host is still in reach.
  if (!opened && !(in_use(opened.error()) && place.own)) return std::move(opened).error();
  if (opened) socket.emplace(std::move(*opened));
  STRAIT_TRY(auto events, sys::EventSet::make());
  if (socket) STRAIT_CHECK(events.add(socket->fd()));
  if (place.own) STRAIT_CHECK(events.add(place.own->fd()));
  STRAIT_CHECK(events.add(place.claim.fd()));
  const std::size_t overhead = (settings.address.is_v4() ? kV4Bytes : kV6Bytes) + kUdpBytes;
  const auto mtu = static_cast<std::uint32_t>(
      std::min<std::size_t>(link->mtu_bytes > overhead ? link->mtu_bytes - overhead : 0, kMostRunBytes));
  return std::unique_ptr<UdpPort>(new UdpPort(settings, std::move(socket), std::move(place), std::move(events), mtu));
}

UdpPort::UdpPort(const UdpPortSettings& settings, std::optional<sys::UdpSocket> socket, Place place,
                 sys::EventSet events, std::uint32_t mtu_bytes)
    : settings_(settings),
      socket_(std::move(socket)),
      own_(std::move(place.own)),
      claim_(std::move(place.claim)),
      events_(std::move(events)),
      range_(place.range),
      mtu_bytes_(mtu_bytes),
      out_(new std::byte[kOutBytes]),
      in_(new std::byte[sys::UdpSocket::kMostIn * kRunStride]),
      claimed_in_(new std::byte[kRunStride + sizeof(ForwardHeader)]) {
  queue_.reserve(kMostPackets);
}

UdpPort::~UdpPort() = default;

std::byte* UdpPort::begin(const IpAddress& to, std::uint16_t /*source_port*/, std::size_t most_bytes) {
  if (head_ == queue_.size()) {
    queue_.clear();
    head_ = 0;
    out_used_ = 0;
  }
  if (most_bytes > mtu_bytes_ || out_used_ + most_bytes > kOutBytes || queue_.size() == kMostPackets) return nullptr;
  next_to_ = to;
  return out_.get() + out_used_;
}

// Where a packet goes: port 4791, unless another process of this host is to have it.
std::uint16_t UdpPort::port_of(const IpAddress& to, std::span<const std::byte> packet) const {
  const auto& shared = settings_.shared;
  if (std::find(shared.begin(), shared.end(), to) == shared.end()) return kUdpPort;
  const std::uint8_t range = range_of(packet);
  if (range != 0) return own_port(range);
  return is_management(packet) ? std::uint16_t{0} : kUdpPort;
}

void UdpPort::commit(std::size_t bytes) {
  std::byte* const at = out_.get() + out_used_;
  seal({settings_.address, next_to_, source_port()}, {at, bytes});
  queue_.push_back({next_to_, out_used_, static_cast<std::uint32_t>(bytes), port_of(next_to_, {at, bytes})});
  out_used_ += static_cast<std::uint32_t>(bytes);
}

bool UdpPort::may_segment(const IpAddress& to) {
  if (!settings_.segmentation || !out_socket().can_segment()) return false;
  const bool other = last_neighbour_ == nullptr || last_to_ != to;
  if (!other && ++segmented_ % kSendsPerClock != 0) return last_neighbour_->may_segment;
  const std::int64_t now = sys::now_ns();
  if (other) {
    const std::string key(reinterpret_cast<const char*>(to.gid.data()), to.gid.size());
    last_neighbour_ = &neighbours_[key];
    last_to_ = to;
  }
  Neighbour& neighbour = *last_neighbour_;
  // Asked again from time to time: an address can move to another host.
  if (neighbour.asked_ns == 0 || now - neighbour.asked_ns > kAskAgainNs) {
    neighbour = {!to.is_v4() || sys::is_own_address(to.gid), now};
  }
  return neighbour.may_segment;
}

// How many packets from `first` on may go as one segmented send.
std::size_t UdpPort::run_from(std::size_t first) {
  const Queued& head = queue_[first];
  std::size_t bytes = head.bytes;
  std::size_t count = 1;
  while (first + count < queue_.size() && count < kMostSegments) {
    const Queued& next = queue_[first + count];
    if (next.bytes > head.bytes || bytes + next.bytes > kMostRunBytes || next.to != head.to || next.port != head.port)
      break;
    bytes += next.bytes;
    ++count;
    if (next.bytes < head.bytes) break;  // only the last may be smaller
  }
  return count > 1 && may_segment(head.to) ? count : 1;
}

// One call of the system. Moves `head` past what was sent or given up.
Status UdpPort::send_from(std::size_t& head) {
  auto& entries = out_entries_;
  auto& packets = out_packets_;
  std::size_t count = 0;
  for (std::size_t at = head; at < queue_.size() && count < entries.size() && queue_[at].port != 0; ++count) {
    packets[count] = run_from(at);
    const Queued& first = queue_[at];
    const Queued& last = queue_[at + packets[count] - 1];
    entries[count] = {&first.to.gid, first.port, out_.get() + first.offset, last.offset + last.bytes - first.offset,
                      static_cast<std::uint16_t>(packets[count] > 1 ? first.bytes : 0)};
    at += packets[count];
  }
  const auto sent = out_socket().send(std::span(entries).first(count));
  for (std::size_t i = 0; i < sent.taken; ++i) {
    head += packets[i];
    counters_.sent += packets[i];
    ++counters_.batches_sent;
  }
  switch (sent.error) {
    case 0: return {};
    case EAGAIN:
    case ENOBUFS: return fail(Code::again, "the socket's send buffer is full");
    case EBADF:
    case ENOTSOCK:
    case EFAULT: return fail_errno(sent.error, "cannot send from a RoCE port");
    default: break;
  }
  if (packets[sent.taken] > 1) {
    // Devices without checksum offload cannot segment, and a segment must fit the route's MTU. One by one, then.
    neighbours_[std::string(reinterpret_cast<const char*>(queue_[head].to.gid.data()), 16)] = {false, sys::now_ns()};
    return {};
  }
  ++head;
  ++counters_.send_refused;
  counters_.last_send_errno = sent.error;
  return {};
}

Status UdpPort::flush() {
  while (head_ < queue_.size()) {
    const Queued& next = queue_[head_];
    if (next.port != 0) {
      STRAIT_CHECK(send_from(head_));
      continue;
    }
    const Run run{
        {settings_.address, next.to, source_port()}, false, out_.get() + next.offset, next.bytes, next.bytes, false};
    forward_to_all(run, next.bytes, true);
    ++head_;
    ++counters_.sent;
  }
  return {};
}

}  // namespace strait::soft::roce
