// SPDX-License-Identifier: Apache-2.0
// Scratch: a private folder that does not outlive its owner. One whose owner was killed is removed by the next who
// asks.
#pragma once

#include <string>

#include "base/error.hpp"
#include "sys/fd.hpp"
#include "sys/fork.hpp"

namespace strait::sys {

class Scratch {
 public:
  // PARENT/NAME.<letters>, mode 0700; the path has no links in it. The owner holds a lock on a file in it for as long
  // as it lives, which says more than a process id: numbers are used again, and other namespaces have others.
  [[nodiscard]] static Result<Scratch> create(const std::string& parent, const std::string& name);
  // Removes the folders of that name, of this user, whose owners are gone. How many.
  static int sweep(const std::string& parent, const std::string& name);

  Scratch(Scratch&& other) noexcept = default;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();  // in the process that made it: removes it and all that is in it

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Scratch(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  Fd lock_;
  ForkMark mark_;
};

// $TMPDIR, or /tmp where that is not set.
[[nodiscard]] std::string temporary_folder();

}  // namespace strait::sys
