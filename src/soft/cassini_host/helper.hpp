// SPDX-License-Identifier: Apache-2.0
// Helper: the thread in a client's process that copies for the server what the server cannot reach. Started when it is
// first needed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "soft/cassini_host/own_memory.hpp"
#include "strait/plugin.h"
#include "sys/event_thread.hpp"
#include "sys/fork.hpp"

namespace strait::soft::cassini {

class Helper {
 public:
  explicit Helper(sys::Fd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Status start();

  void lend(std::uint32_t memory, const strait_memory_port* port);
  void end(std::uint32_t memory);  // no copy uses the port any more when it returns

 private:
  std::int64_t serve();
  [[nodiscard]] bool copy(std::uint32_t memory, bool to_memory, std::uint64_t address, std::byte* bytes, std::size_t n);

  sys::ProcessFd socket_;
  OwnMemory own_;
  std::mutex mutex_;
  std::map<std::uint32_t, const strait_memory_port*> ports_;
  bool started_ = false;
  sys::EventThread thread_;  // last
};

}  // namespace strait::soft::cassini
