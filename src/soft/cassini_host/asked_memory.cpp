// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/asked_memory.hpp"

#include <algorithm>
#include <cstring>

#include "sys/socket.hpp"

namespace strait::soft::cassini {

bool MemoryAsker::ask(const protocol::MemoryAsk& ask, const void* payload, std::size_t payload_bytes, void* into,
                      std::size_t into_bytes) {
  if (dead_) return false;
  const std::int64_t from_ns = sys::now_ns();
  const auto deadline = sys::Deadline::after_ns(patience_->longest_ns(from_ns));
  const bool done = ask_until(ask, payload, payload_bytes, into, into_bytes, deadline);
  patience_->waited(from_ns, sys::now_ns());
  return done;
}

bool MemoryAsker::ask_until(const protocol::MemoryAsk& ask, const void* payload, std::size_t payload_bytes, void* into,
                            std::size_t into_bytes, sys::Deadline deadline) {
  packet_.resize(sizeof ask + payload_bytes);
  std::memcpy(packet_.data(), &ask, sizeof ask);
  if (payload_bytes != 0) std::memcpy(packet_.data() + sizeof ask, payload, payload_bytes);
  const auto again = [&](const Error& error, bool for_write) {
    return error.code == Code::again && sys::wait_ready(socket_.get(), for_write, deadline);
  };
  for (;;) {
    const Status sent = sys::send_packet(socket_.get(), packet_, {});
    if (sent) break;
    if (!again(sent.error(), true)) return !(dead_ = true);
  }
  for (;;) {
    auto got = sys::receive_packet(socket_.get(), protocol::kMostBytes);
    if (!got) {
      if (again(got.error(), false)) continue;
      return !(dead_ = true);
    }
    protocol::MemoryAnswer answer{};
    if (got->bytes.size() < sizeof answer) return !(dead_ = true);
    std::memcpy(&answer, got->bytes.data(), sizeof answer);
    if (answer.done != 1) return false;
    if (got->bytes.size() != sizeof answer + into_bytes) return !(dead_ = true);
    if (into_bytes != 0) std::memcpy(into, got->bytes.data() + sizeof answer, into_bytes);
    return true;
  }
}

bool MemoryAsker::read(std::uint32_t memory, std::uint64_t address, void* into, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t n = std::min(bytes - at, protocol::kMostCopied);
    if (!ask({protocol::MemoryKind::read, memory, address + at, n}, nullptr, 0, static_cast<std::byte*>(into) + at, n))
      return false;
    at += n;
  }
  return true;
}

bool MemoryAsker::write(std::uint32_t memory, std::uint64_t address, const void* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t n = std::min(bytes - at, protocol::kMostCopied);
    if (!ask({protocol::MemoryKind::write, memory, address + at, n}, static_cast<const std::byte*>(from) + at, n,
             nullptr, 0))
      return false;
    at += n;
  }
  return true;
}

bool MemoryAsker::reaches(std::uint32_t memory, std::uint64_t address, std::uint64_t bytes, bool writable) {
  const auto kind = writable ? protocol::MemoryKind::reaches_to_write : protocol::MemoryKind::reaches;
  return ask({kind, memory, address, bytes}, nullptr, 0, nullptr, 0);
}

}  // namespace strait::soft::cassini
