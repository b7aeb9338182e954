// SPDX-License-Identifier: Apache-2.0
// Server: the process that has the cards. One thread looks at the rings of all clients and answers their calls; where a
// copy of a client's memory does not come back, another thread goes on as that one (sys/relay.hpp).
//
// Starts empty, ends by itself when it has had no client for a while. Who may come in: processes of the same user, and
// root.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "soft/cassini/card.hpp"
#include "soft/cassini_host/pace.hpp"
#include "soft/cassini_host/patience.hpp"
#include "soft/cassini_host/session.hpp"
#include "sys/event.hpp"
#include "sys/event_set.hpp"
#include "sys/fd.hpp"
#include "sys/relay.hpp"

namespace strait::soft::cassini {

inline constexpr std::uint32_t kMostCards = 16;

// Where the server of this user listens; `given` tells several apart. Without it: STRAIT_CASSINI in the environment.
[[nodiscard]] std::string server_name(const std::string& given);
[[nodiscard]] std::string server_name();

struct ServerSettings {
  std::string name = server_name();
  std::uint32_t cards = kMostCards;
  std::int64_t linger_ns = 2'000'000'000;  // without a client
  bool ask_for_memory = false;             // as if the kernel refused process_vm_readv
};

class Server {
 public:
  // Code::again: another one listens under that name.
  [[nodiscard]] static Result<std::unique_ptr<Server>> create(ServerSettings settings);
  // Until nobody has been there for a while, or stop(). The caller watches the thread that does it.
  [[nodiscard]] Status run();
  // From any thread.
  void stop();

 private:
  Server(ServerSettings settings, sys::Fd listener, sys::EventSet events, sys::Event stopping);
  void serve();
  // The watching thread: a copy of that process waits in the kernel. True: for too long.
  [[nodiscard]] bool held_up_enough(pid_t process);
  // Asks and newcomers that are there now. True: there were some.
  bool look_at_sockets();
  void take_newcomers();
  // One for all connections of a process, those that were before among them: to come again is free.
  std::shared_ptr<Patience> patience_with(pid_t process);

  const ServerSettings settings_;
  sys::Fd listener_;
  sys::EventSet events_;
  sys::Event stopping_;
  std::atomic<bool> stop_{false};
  Fabric fabric_;
  sys::Relay relay_;
  std::map<pid_t, Patience> copying_;  // the watching thread's
  std::map<pid_t, std::shared_ptr<Patience>> patience_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::uint32_t next_id_ = 1;
};

}  // namespace strait::soft::cassini
