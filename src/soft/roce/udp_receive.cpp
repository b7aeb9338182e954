// SPDX-License-Identifier: Apache-2.0
// UDP port, receiving: runs of datagrams are split into packets, and those of other processes passed on.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/roce/packet.hpp"
#include "soft/roce/udp_port.hpp"
#include "soft/roce/udp_wire.hpp"
#include "sys/clock.hpp"

namespace strait::soft::roce {
namespace {

constexpr std::size_t kMostHeldBytes = 8 << 20;
constexpr std::int64_t kLongestHeldNs = 1'000'000'000;
constexpr std::int64_t kAskAllAgainNs = 1'000'000;
constexpr unsigned kLookEvery = 8;      // calls of receive() per look at sockets that are quiet
constexpr unsigned kUnwatchAfter = 64;  // and before somebody who receives is taken for one who does not sleep

}  // namespace

// Packets that another process received for this one's range.
void UdpPort::refill_from_claim() {
  const std::span<std::byte> into(claimed_in_.get(), kRunStride + sizeof(ForwardHeader));
  claim_busy_ = false;
  const auto got = claim_.receive(into);
  if (!got) return;
  claim_busy_ = true;
  // The name is open to everybody on the host; only who may share the port may say where a packet came from.
  const uid_t me = sys::effective_user();
  ForwardHeader header;
  if (got->cut || got->bytes <= sizeof header) {
    ++counters_.not_roce;
    return;
  }
  std::memcpy(&header, into.data(), sizeof header);
  // Others may speak for this host, from which they could send a packet as well.
  if (got->sender != me && got->sender != 0 && !sys::is_own_address(header.source)) {
    ++counters_.not_roce;
    return;
  }
  const std::size_t bytes = got->bytes - sizeof header;
  if (header.segment_bytes == 0) {
    ++counters_.not_roce;
    return;
  }
  runs_[run_end_++] = {{{header.source}, {header.destination}, header.source_port},
                       header.ecn_ce != 0,
                       into.data() + sizeof header,
                       bytes,
                       header.segment_bytes,
                       true};
}

bool UdpPort::watch() {
  watched_at_ = polls_ + 1;
  if (!socket_watched_) socket_watched_ = events_.add(socket_->fd()).has_value();
  if (!own_watched_) own_watched_ = events_.add(own_->fd()).has_value();
  return socket_watched_ && own_watched_;
}

bool UdpPort::refill() {
  run_next_ = run_end_ = 0;
  // Where nothing came for long, one call tells of all sockets.
  const bool busy = ++polls_ - came_at_ <= kStaysBusy;
  if (!busy && watch() && !events_.ready()) return false;
  const bool other_busy = own_ && socket_ && !(own_last_ ? socket_watched_ : own_watched_);
  const bool look_everywhere = !busy || (polls_ % kLookEvery == 0 && (other_busy || events_.ready()));
  if (claim_busy_ || look_everywhere) refill_from_claim();
  // Of two sockets the one that had something last; the other now and then.
  auto& likely = own_ && (own_last_ || !socket_) ? own_ : socket_;
  auto& other = &likely == &own_ ? socket_ : own_;
  if (look_everywhere && other && refill_from(other)) {
    own_last_ = !own_last_;
    return true;
  }
  return refill_from(likely) || run_end_ != 0;
}

// Whether it had anything. Fills in_, which one socket has at a time.
bool UdpPort::refill_from(std::optional<sys::UdpSocket>& socket) {
  auto& in = in_entries_;
  const auto count = socket->receive(in, in_.get(), kRunStride);
  if (!count) return false;
  for (std::size_t i = 0; i < *count; ++i) {
    ++counters_.batches_received;
    if (in[i].cut || in[i].bytes == 0) {
      ++counters_.not_roce;
      continue;
    }
    runs_[run_end_++] = {{{in[i].from}, {in[i].to}, in[i].from_port},
                         in[i].ecn_ce,
                         in_.get() + i * kRunStride,
                         in[i].bytes,
                         in[i].segment_bytes,
                         false};
  }
  if (*count == 0) return false;
  came_at_ = polls_;
  bool& watched = &socket == &own_ ? own_watched_ : socket_watched_;
  if (watched && polls_ - watched_at_ >= kUnwatchAfter) {
    events_.remove(socket->fd());
    watched = false;
  }
  return true;
}

// 0, or why the process that holds `range` of the address `at` did not get the first `bytes` of the run.
int UdpPort::pass_on(const Run& run, const IpAddress& at, std::uint8_t range, std::size_t bytes) {
  const std::size_t packets = (bytes + run.segment_bytes - 1) / run.segment_bytes;
  ForwardHeader header;
  header.source = run.flow.source.gid;
  header.destination = run.flow.destination.gid;
  header.source_port = run.flow.source_port;
  header.ecn_ce = run.ecn_ce ? 1 : 0;
  header.segment_bytes = static_cast<std::uint32_t>(run.segment_bytes);
  const auto head = std::as_bytes(std::span(&header, 1));
  const auto waits = [&](const Held& held) { return held.range == range && held.at == at; };
  int error = EAGAIN;
  // Behind what waits for the same process: a flow stays in order.
  if (std::none_of(held_.begin(), held_.end(), waits)) {
    error = claim_.send(range_name(at, range), head, {run.data, bytes});
  }
  if (error == 0) {
    counters_.forwarded += packets;
  } else if (error == EAGAIN && held_bytes_ + bytes <= kMostHeldBytes) {
    Held held{at, range, sys::now_ns(), packets, std::vector<std::byte>(head.begin(), head.end())};
    held.message.insert(held.message.end(), run.data, run.data + bytes);
    held_bytes_ += held.message.size();
    held_.push_back(std::move(held));
  } else if (error != ECONNREFUSED && error != ENOENT) {
    counters_.forward_full += packets;
  }
  return error;
}

// The first `bytes` of the run belong to `range`, which is not ours.
void UdpPort::forward(const Run& run, std::uint8_t range, std::size_t bytes) {
  // The claim is on the address the port was opened with, also when it receives for others.
  const int error = pass_on(run, settings_.address, range, bytes);
  if (error == ECONNREFUSED || error == ENOENT)
    counters_.forward_no_holder += (bytes + run.segment_bytes - 1) / run.segment_bytes;
}

// Nobody keeps a list of who is there: all names are tried, but not for every packet of a flood.
void UdpPort::forward_to_all(const Run& run, std::size_t bytes, bool self) {
  const std::int64_t now = sys::now_ns();
  const IpAddress& at = self ? run.flow.destination : settings_.address;
  if (now - asked_all_ns_ < kAskAllAgainNs) {
    for (const std::uint8_t range : others_) (void)pass_on(run, at, range, bytes);
    if (self) (void)pass_on(run, at, range_, bytes);
    return;
  }
  others_.clear();
  for (unsigned range = 1; range <= 255; ++range) {
    if (range == range_) continue;
    const int error = pass_on(run, at, static_cast<std::uint8_t>(range), bytes);
    if (error != ECONNREFUSED && error != ENOENT) others_.push_back(static_cast<std::uint8_t>(range));
  }
  if (self) (void)pass_on(run, at, range_, bytes);
  asked_all_ns_ = sys::now_ns();
}

// The kernel keeps no more than ten messages or so for a process (net.unix.max_dgram_qlen); the rest waits here, but
// not for ever: the process may be stopped.
void UdpPort::forward_held() {
  std::array<bool, 256> full{};
  const std::int64_t now = sys::now_ns();
  for (auto held = held_.begin(); held != held_.end();) {
    const int error = full[held->range] ? EAGAIN : claim_.send(range_name(held->at, held->range), held->message, {});
    if (error == EAGAIN && now - held->since_ns < kLongestHeldNs) {
      full[held->range] = true;
      ++held;
      continue;
    }
    if (error == EAGAIN) full[held->range] = true;
    (error == 0        ? counters_.forwarded
     : error == EAGAIN ? counters_.forward_full
                       : counters_.forward_no_holder) += held->packets;
    held_bytes_ -= held->message.size();
    held = held_.erase(held);
  }
}

// Packet `n` of a run, counted from the next one.
std::span<const std::byte> UdpPort::packet_of(const Run& run, std::size_t n) {
  const std::size_t before = n * run.segment_bytes;
  if (before >= run.bytes) return {};
  return {run.data + before, std::min(run.segment_bytes, run.bytes - before)};
}

void UdpPort::hand_out(Sink& sink, Run& run, int most, int& count) {
  if (run.bytes > 2 * run.segment_bytes) {
    for (std::size_t n = 0; n < Sink::kLater; ++n) sink.expect({}, packet_of(run, n));
    for (std::size_t n = 0; n < Sink::kSoon; ++n) sink.expect(packet_of(run, n), {});
  }
  while (run.bytes != 0 && count < most) {
    const std::size_t bytes = std::min(run.segment_bytes, run.bytes);
    if (run.bytes > Sink::kSoon * run.segment_bytes)
      sink.expect(packet_of(run, Sink::kSoon), packet_of(run, Sink::kLater));
    const std::uint8_t range = range_of({run.data, bytes});
    // Range 0 has the QPNs that are the same everywhere, and packets too short to tell: whoever has them counts them.
    if (range == range_ || range == 0) {
      if (range == 0 && !run.forwarded && is_management({run.data, bytes})) forward_to_all(run, bytes, false);
      const Arrival arrival{run.flow, run.ecn_ce, run.flow.destination.is_v4(), {run.data, bytes}, 0};
      run.data += bytes;
      run.bytes -= bytes;
      ++count;
      ++counters_.received;
      sink.on_packet(arrival);
      continue;
    }
    std::size_t others = bytes;
    while (others < run.bytes) {
      const std::size_t next = std::min(run.segment_bytes, run.bytes - others);
      if (range_of({run.data + others, next}) != range) break;
      others += next;
    }
    // What was forwarded once is not forwarded again: two processes that disagree would play ping-pong.
    if (run.forwarded)
      counters_.forward_no_holder += (others + run.segment_bytes - 1) / run.segment_bytes;
    else
      forward(run, range, others);
    run.data += others;
    run.bytes -= others;
  }
}

int UdpPort::receive(Sink& sink, int most) {
  if (!held_.empty()) forward_held();
  int count = 0;
  while (count < most) {
    if (run_next_ == run_end_ && (count != 0 || !refill())) break;
    hand_out(sink, runs_[run_next_], most, count);
    if (runs_[run_next_].bytes == 0) ++run_next_;
  }
  return count;
}

}  // namespace strait::soft::roce
