// SPDX-License-Identifier: Apache-2.0
// The system calls strait makes, as a table: a test hands in a table in which one of them fails.
//
// Only what has to be made to fail is here. Everything in sys/ that can run out of something takes `const Calls&`.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace strait::sys {

struct Calls {
  int (*memfd_create)(const char* name, unsigned flags);
  int (*ftruncate)(int fd, off_t length);
  void* (*mmap)(void* addr, std::size_t length, int prot, int flags, int fd, off_t offset);
  int (*eventfd)(unsigned initial, int flags);
  int (*socket)(int domain, int type, int protocol);
  ssize_t (*process_vm_readv)(pid_t pid, const iovec* local, unsigned long n_local, const iovec* remote,
                              unsigned long n_remote, unsigned long flags);
  ssize_t (*process_vm_writev)(pid_t pid, const iovec* local, unsigned long n_local, const iovec* remote,
                               unsigned long n_remote, unsigned long flags);
  ssize_t (*getrandom)(void* into, std::size_t length, unsigned flags);
};

// The real ones. Never null, never changes.
const Calls& real_calls();

}  // namespace strait::sys
