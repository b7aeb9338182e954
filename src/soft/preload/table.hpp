// SPDX-License-Identifier: Apache-2.0
// Which descriptors of this process are device nodes, and what stands behind them.
//
// Nothing is locked and nothing is allocated but whole pages, which are never given back: a thread that looks while
// another closes finds the old handle or none, never freed memory. A descriptor that was closed or replaced behind our
// back (fclose, a system call of its own) is noticed by its inode when it is used.
#pragma once

#include <cstddef>
#include <cstdint>

struct strait_host_file;

namespace strait::preload {

struct Handle;

// Borrowed while a call is under way: the file is not closed before it is given back.
class Loan {
 public:
  // Of what is behind the descriptor; nothing for all others, at the price of two loads.
  explicit Loan(int fd);
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan();
  explicit operator bool() const { return handle_ != nullptr; }
  // False in a process that inherited the descriptor by fork: what is behind it belongs to the parent.
  [[nodiscard]] bool own() const;
  [[nodiscard]] strait_host_file* file() const;
  [[nodiscard]] std::uint64_t number() const;

 private:
  friend Handle* keep(const Loan& loan);
  Handle* handle_;
};

// For what outlives the call: the file stays until release().
[[nodiscard]] Handle* keep(const Loan& loan);
void release(Handle* handle);
// Null in a process that inherited it by fork.
[[nodiscard]] strait_host_file* own_file(Handle* handle);

// A new device descriptor. False: no room (then nothing is kept).
[[nodiscard]] bool remember(int fd, strait_host_file* file, std::uint64_t number);
// Before it is closed.
void forget(int fd);
void forget_range(unsigned first, unsigned last);
// After dup: `copy` is what `fd` is, and whatever it was before is forgotten.
void share(int fd, int copy);

// This process, as opposed to a child of vfork that runs in our memory for a moment and must change nothing in it.
[[nodiscard]] bool in_own_process();

}  // namespace strait::preload
