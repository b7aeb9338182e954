// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/helper.hpp"

#include <cstring>
#include <vector>

#include "soft/cassini_host/protocol.hpp"
#include "sys/socket.hpp"

namespace strait::soft::cassini {

Status Helper::start() {
  const std::lock_guard lock(mutex_);
  if (started_) return {};
  STRAIT_CHECK(thread_.start([this] { return serve(); }));
  STRAIT_CHECK(thread_.add(socket_.get()));
  started_ = true;
  return {};
}

void Helper::lend(std::uint32_t memory, const strait_memory_port* port) {
  const std::lock_guard lock(mutex_);
  ports_[memory] = port;
}

void Helper::end(std::uint32_t memory) {
  const std::lock_guard lock(mutex_);
  ports_.erase(memory);
}

bool Helper::copy(std::uint32_t memory, bool to_memory, std::uint64_t address, std::byte* bytes, std::size_t n) {
  if (memory == 0) return to_memory ? own_.write(address, bytes, n) : own_.read(address, bytes, n);
  const std::lock_guard lock(mutex_);
  const auto port = ports_.find(memory);
  if (port == ports_.end()) return false;
  return (to_memory ? port->second->write(port->second->context, address, bytes, n)
                    : port->second->read(port->second->context, address, bytes, n)) == 0;
}

std::int64_t Helper::serve() {
  for (;;) {
    auto packet = sys::receive_packet(socket_.get(), protocol::kMostBytes);
    if (!packet) {
      if (packet.error().code != Code::again) thread_.remove(socket_.get());
      return -1;
    }
    protocol::MemoryAsk ask{};
    if (packet->bytes.size() < sizeof ask) continue;
    std::memcpy(&ask, packet->bytes.data(), sizeof ask);
    std::byte* const payload = packet->bytes.data() + sizeof ask;
    protocol::MemoryAnswer answer{0};
    std::vector<std::byte> out(sizeof answer);
    using protocol::MemoryKind;
    if (ask.kind == MemoryKind::read && ask.bytes <= protocol::kMostCopied) {
      out.resize(sizeof answer + ask.bytes);
      answer.done = copy(ask.memory, false, ask.address, out.data() + sizeof answer, ask.bytes) ? 1 : 0;
      if (answer.done == 0) out.resize(sizeof answer);
    } else if (ask.kind == MemoryKind::write && packet->bytes.size() == sizeof ask + ask.bytes) {
      answer.done = copy(ask.memory, true, ask.address, payload, ask.bytes) ? 1 : 0;
    } else if ((ask.kind == MemoryKind::reaches || ask.kind == MemoryKind::reaches_to_write) && ask.memory == 0) {
      answer.done = own_.reaches(ask.address, ask.bytes, ask.kind == MemoryKind::reaches_to_write) ? 1 : 0;
    }
    std::memcpy(out.data(), &answer, sizeof answer);
    (void)sys::send_packet(socket_.get(), out, {});  // one ask at a time: there is room
  }
}

}  // namespace strait::soft::cassini
