// SPDX-License-Identifier: Apache-2.0
// Datagrams between processes of one host: unix sockets with a path, or with an abstract name that the kernel forgets
// with its holder and keeps within the network namespace. Never blocks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "sys/calls.hpp"
#include "sys/fork.hpp"

namespace strait::sys {

struct LocalName {
  std::string text;
  bool abstract = false;
};

class LocalDatagram {
 public:
  // Code::again when a living process has the name. A path whose holder died is taken over.
  [[nodiscard]] static Result<LocalDatagram> bind(const LocalName& name, const Calls& calls = real_calls());
  LocalDatagram(LocalDatagram&& other) noexcept;
  LocalDatagram& operator=(LocalDatagram&&) = delete;
  ~LocalDatagram();  // removes its path; not in a forked child, which has no part in it

  [[nodiscard]] int fd() const { return fd_.get(); }

  // 0 or an errno: EAGAIN when the receiver's queue is full, ECONNREFUSED or ENOENT when nobody has the name.
  [[nodiscard]] int send(const LocalName& to, std::span<const std::byte> head, std::span<const std::byte> body) const;

  struct Got {
    std::size_t bytes = 0;
    uid_t sender = 0;  // as the kernel vouches for it; -1 (65534 in namespaces that do not know it) when it does not
    bool cut = false;
  };
  // Code::again when nothing is there.
  [[nodiscard]] Result<Got> receive(std::span<std::byte> into) const;

 private:
  LocalDatagram(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  ProcessFd fd_;      // a forked child's copy would keep the name taken
  std::string path_;  // to be removed; empty for an abstract name
};

// The user this process acts as: who else may share its addresses.
[[nodiscard]] uid_t effective_user();

}  // namespace strait::sys
