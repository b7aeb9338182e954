// SPDX-License-Identifier: Apache-2.0
// OpenWatch: hears of every file that a child and its children open, whichever way they ask the kernel, by a seccomp
// filter that needs no rights. It only listens: the kernel goes on with the call.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "sys/event.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class OpenWatch {
 public:
  // Called on a thread of the watch, with the path as the process wrote it.
  using Heard = std::function<void(pid_t process, const std::string& path)>;

  // Before the fork.
  [[nodiscard]] static Result<std::unique_ptr<OpenWatch>> prepare(Heard heard);
  // In the child, between fork and exec: 0, or errno. Afterwards it and all it starts can gain no rights by exec.
  [[nodiscard]] int begin_in_child() const;
  // In the parent, once the child has begun.
  [[nodiscard]] Status listen();
  // Stops listening. Children that are still there then fail to open anything.
  ~OpenWatch();

 private:
  explicit OpenWatch(Heard heard) : heard_(std::move(heard)) {}
  void serve();
  void answer_one();
  Heard heard_;
  Fd ours_, theirs_;  // the child sends the listener through these
  Fd listener_;
  Event stop_;
  std::thread thread_;
};

}  // namespace strait::sys
