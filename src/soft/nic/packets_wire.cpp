// SPDX-License-Identifier: Apache-2.0
// Packets, the last step out and the first in: captures for people, and faults on purpose.
//
// A fault is decided for packet n of a connection by the plan alone. A dropped packet is made and thrown away; a late
// one is kept as it was and sent after others. The capture shows what really left, and a comment on what was done to
// it.
#include <algorithm>
#include <cstring>

#include "soft/nic/engine.hpp"
#include "soft/nic/packets.hpp"

namespace strait::soft::nic {
namespace r = wire::roce;

Status Packets::capture_to(const std::string& file) {
  STRAIT_TRY(roce::Capture capture, roce::Capture::open(file));
  capture_ = std::make_unique<roce::Capture>(std::move(capture));
  return {};
}

std::byte* Packets::open_packet(std::uint8_t from, const roce::IpAddress& to, std::uint16_t source_port,
                                std::size_t payload_bytes) {
  about_wqe_ = kNoWqe;
  going_from_ = from;
  going_to_ = to;
  const std::size_t most = r::kMaxHeaderBytes + payload_bytes + r::pad_of(payload_bytes) + r::kIcrcBytes;
  std::byte* packet = port(from).begin(to, source_port, most);
  if (packet != nullptr || !ports_[from].unflushed) return packet;
  flush();
  return port(from).begin(to, source_port, most);
}

void Packets::close_packet(QueuePair& qp, std::byte* packet, std::size_t bytes) {
  const std::uint64_t n = engine_.faults() != nullptr ? qp.message_rolls++ : 0;
  leave({qp.flow(), n, qp.packets->source_port, qp.qpn}, packet, bytes);
}

void Packets::leave(const Leaving& what, std::byte* packet, std::size_t bytes) {
  ++counts_.packets_sent;
  const FaultPlan* const plan = engine_.faults();
  if (plan == nullptr) [[likely]]
    return commit(what, packet, bytes, Fault::none);
  const Fault fault = is_down() ? Fault::drop : plan->on_message(what.flow, what.roll);
  if (fault != Fault::none) ++engine_.counts_.faults_injected;
  switch (fault) {
    case Fault::drop: drop(roce::Drop::injected); break;
    case Fault::duplicate: {
      const std::vector<std::byte> copy(packet, packet + bytes);
      commit(what, packet, bytes, fault);
      std::byte* const again = port(going_from_).begin(going_to_, what.source_port, bytes);
      if (again == nullptr) break;
      std::memcpy(again, copy.data(), bytes);
      commit(what, again, bytes, fault);
      break;
    }
    case Fault::reorder:
    case Fault::delay: hold(what, packet, bytes, fault); break;
    default: commit(what, packet, bytes, fault); break;
  }
  if (!held_.empty()) release_held();
}

void Packets::commit(const Leaving& what, std::byte* packet, std::size_t bytes, Fault fault) {
  port(going_from_).commit(bytes);
  unflushed_ = ports_[going_from_].unflushed = true;
  if (fault == Fault::corrupt) {
    // Behind the seal: one bit, anywhere.
    const std::uint64_t at = engine_.faults()->damaged_bit(what.flow, what.roll, bytes * 8);
    packet[at / 8] ^= std::byte{1} << (at % 8);
  }
  if (!capture_) return;
  const roce::Port& from = port(going_from_);
  const roce::Flow flow{from.address(), going_to_, from.leaves_from(what.source_port)};
  (void)capture_->write(flow, sys::wall_ns(), {packet, bytes}, comment_on(what, fault), true);
}

// On the packet being made. Empty: nobody will read it.
std::string Packets::comment_on(const Leaving& what, Fault fault) const {
  if (!capture_) return {};
  std::string comment = fmt::format("{} queue pair {:#x}", engine_.config_.name, what.qpn);
  if (about_wqe_ != kNoWqe) comment += fmt::format(", WQE {}", about_wqe_ & 0xffff);
  if (fault != Fault::none) comment += fmt::format(", fault: {}", fault_name(fault));
  return comment;
}

void Packets::hold(const Leaving& what, const std::byte* packet, std::size_t bytes, Fault fault) {
  const FaultPlan& plan = *engine_.faults();
  const std::uint64_t behind = counts_.packets_sent + plan.overtaken_by(what.flow, what.roll);
  held_.push_back({sys::now_ns() + plan.late_by_ns(fault), fault == Fault::reorder ? behind : UINT64_MAX, going_from_,
                   going_to_, what.source_port, comment_on(what, fault),
                   std::vector<std::byte>(packet, packet + bytes)});
}

void Packets::release_held() {
  const std::int64_t now = sys::now_ns();
  std::erase_if(held_, [&](const Held& held) {
    if (now < held.due_ns && counts_.packets_sent < held.due_packet) return false;
    std::byte* const out = port(held.from).begin(held.to, held.source_port, held.bytes.size());
    if (out == nullptr) return false;
    std::memcpy(out, held.bytes.data(), held.bytes.size());
    port(held.from).commit(held.bytes.size());
    unflushed_ = ports_[held.from].unflushed = true;
    if (capture_) {
      const roce::Port& from = port(held.from);
      const roce::Flow flow{from.address(), held.to, from.leaves_from(held.source_port)};
      (void)capture_->write(flow, sys::wall_ns(), {out, held.bytes.size()}, held.comment, true);
    }
    return true;
  });
}

void Packets::write_arrival(const roce::Arrival& arrival) {
  (void)capture_->write(arrival.flow, sys::wall_ns(), arrival.bytes, fmt::format("{} received", engine_.config_.name),
                        false);
}

bool Packets::is_down() const {
  return engine_.is_down();
}

void Packets::flush() {
  unflushed_packets_ = 0;
  if (!unflushed_) return;
  unflushed_ = false;
  for (OwnPort& own : ports_) {
    if (!own.unflushed) continue;
    own.unflushed = !own.port->flush();  // what the system does not take now is tried again in the next pass
    unflushed_ = unflushed_ || own.unflushed;
  }
  if (capture_ && !unflushed_) (void)capture_->flush();
}

}  // namespace strait::soft::nic
