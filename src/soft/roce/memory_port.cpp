// SPDX-License-Identifier: Apache-2.0
// The wire in memory.
#include "soft/roce/memory_port.hpp"

#include "soft/roce/icrc.hpp"

namespace strait::soft::roce {

std::pair<std::unique_ptr<MemoryPort>, std::unique_ptr<MemoryPort>> MemoryPort::make_pair(const IpAddress& a,
                                                                                          const IpAddress& b,
                                                                                          Settings settings) {
  const auto to_a = std::make_shared<std::deque<Frame>>();
  const auto to_b = std::make_shared<std::deque<Frame>>();
  return {std::unique_ptr<MemoryPort>(new MemoryPort(a, settings, to_a, to_b)),
          std::unique_ptr<MemoryPort>(new MemoryPort(b, settings, to_b, to_a))};
}

std::byte* MemoryPort::begin(const IpAddress& to, std::uint16_t source_port, std::size_t most_bytes) {
  if (most_bytes > settings_.mtu_bytes || out_->size() + queued_.size() >= settings_.queue_packets) return nullptr;
  next_ = {{address_, to, source_port}, false, false, std::vector<std::byte>(most_bytes)};
  return next_.bytes.data();
}

void MemoryPort::commit(std::size_t bytes) {
  next_.bytes.resize(bytes);
  seal(next_.flow, next_.bytes);
  queued_.push_back(std::move(next_));
}

Status MemoryPort::flush() {
  for (Frame& frame : queued_) out_->push_back(std::move(frame));
  counters_.sent += queued_.size();
  counters_.batches_sent += queued_.empty() ? 0 : 1;
  queued_.clear();
  return {};
}

int MemoryPort::receive(Sink& sink, int most) {
  int count = 0;
  while (count < most && !in_->empty()) {
    const Frame frame = std::move(in_->front());
    in_->pop_front();
    ++count;
    ++counters_.received;
    ++counters_.batches_received;
    sink.on_packet({frame.flow, frame.ecn_ce, frame.id_unknown, frame.bytes, 0});
  }
  return count;
}

}  // namespace strait::soft::roce
