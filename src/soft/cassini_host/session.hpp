// SPDX-License-Identifier: Apache-2.0
// Session: one client of the server. Reads asks from its socket, answers them, and is told by the socket when the
// process is gone.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "soft/cassini/client.hpp"
#include "soft/cassini_host/process_memory.hpp"
#include "soft/cassini_host/protocol.hpp"
#include "soft/cassini_host/waits.hpp"
#include "sys/fd.hpp"
#include "sys/socket.hpp"

namespace strait::soft::cassini {

class Session {
 public:
  // `relay` carries the caller. `id` names the client in sysfs. `may_reach` false: memory is asked for, as where the
  // kernel refuses. `patience`: of the process.
  Session(Fabric& fabric, sys::Relay& relay, sys::Fd socket, sys::PeerCredentials peer, std::uint32_t id,
          bool may_reach, std::shared_ptr<Patience> patience)
      : fabric_(fabric),
        relay_(relay),
        socket_(std::move(socket)),
        peer_(peer),
        id_(id),
        may_reach_(may_reach),
        patience_(std::move(patience)) {}

  [[nodiscard]] int socket() const { return socket_.get(); }
  // One ask, if one has come. False: the client is gone, or sends what nobody of ours would.
  [[nodiscard]] bool serve();
  // It holds a device open; others only ask for numbers.
  [[nodiscard]] bool has_client() const { return client_ != nullptr; }

 private:
  struct Reply {
    std::int64_t result = 0;
    std::uint64_t words[3] = {};
    std::string text;
    sys::Fd file;
  };
  void answer(const protocol::Ask& ask, std::span<const std::byte> rest, std::vector<sys::Fd>& files, Reply& reply);
  void hello(const protocol::Ask& ask, std::span<const std::byte> rest, std::vector<sys::Fd>& files, Reply& reply);
  void write(const protocol::Ask& ask, std::span<const std::byte> rest, std::vector<sys::Fd>& files, Reply& reply);
  void number(const protocol::Ask& ask, Reply& reply);

  Fabric& fabric_;
  sys::Relay& relay_;
  sys::Fd socket_;
  const sys::PeerCredentials peer_;
  const std::uint32_t id_;
  const bool may_reach_;
  const std::shared_ptr<Patience> patience_;
  std::shared_ptr<MemoryAsker> asker_;
  Waits waits_;
  std::unique_ptr<ProcessMemory> memory_;
  std::unique_ptr<Client> client_;  // last: it uses the others
};

// Rings are looked at until they are empty, or a while has passed: so that what was rung before somebody asks what was
// found is among it.
void settle(Fabric& fabric);

// "commands=12,puts=3": all cards together.
[[nodiscard]] std::string counters_of(Fabric& fabric);

}  // namespace strait::soft::cassini
