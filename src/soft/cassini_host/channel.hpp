// SPDX-License-Identifier: Apache-2.0
// Channel: one open of a device, wherever its cards are: in a server that all processes of a user share, or in this
// process. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "soft/cassini/client.hpp"
#include "soft/cassini_host/protocol.hpp"
#include "strait/plugin.h"
#include "sys/caller.hpp"
#include "sys/fd.hpp"

namespace strait::soft::cassini {

// Device memory that a command names, as this process knows it.
struct NamedMemory {
  protocol::Carried said{};
  int file = -1;                             // the caller keeps it open
  const strait_memory_port* port = nullptr;  // instead of a file; lives as long as `said.memory` is known
};

class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  // As Client::write.
  [[nodiscard]] virtual long write(std::span<const std::byte> command, const sys::Caller& caller,
                                   std::span<const NamedMemory> memory) = 0;
  // As Client::map; `page` says what is there.
  [[nodiscard]] virtual int map(std::uint64_t offset, std::uint64_t bytes, Client::Page& page) = 0;
  virtual void unmap(std::uint64_t offset) = 0;
  [[nodiscard]] virtual Result<sys::Fd> wait(std::uint32_t wait) = 0;
  [[nodiscard]] virtual int share(std::uint64_t address, std::uint64_t bytes, int fd, std::uint64_t offset) = 0;
  [[nodiscard]] virtual int unshare(std::uint64_t address) = 0;
  virtual void tear_down(std::uint32_t md) = 0;
  // A port under a number, for NamedMemory: before the command, and after the last use.
  virtual void lend_port(std::uint32_t memory, const strait_memory_port* port) = 0;
  virtual void end_port(std::uint32_t memory) = 0;
  // The end of it, while what commands named is still held: afterwards no port is used any more. Of other calls only
  // tear_down() and end_port() may follow.
  virtual void close() {}
  [[nodiscard]] virtual std::string counters() = 0;
  // What strict has found since the last call. Also at the end of the process: waits for others a second at the most.
  [[nodiscard]] virtual std::vector<Finding> findings() = 0;

  [[nodiscard]] virtual int pages() const = 0;  // the file whose offsets cookies are
  [[nodiscard]] virtual std::uint32_t id() const = 0;
};

}  // namespace strait::soft::cassini
