// SPDX-License-Identifier: Apache-2.0
#include "sys/calls.hpp"

#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

namespace strait::sys {
namespace {
int real_eventfd(unsigned initial, int flags) {
  return ::eventfd(initial, flags);
}
}  // namespace

const Calls& real_calls() {
  static const Calls calls{
      .memfd_create = ::memfd_create,
      .ftruncate = ::ftruncate,
      .mmap = ::mmap,
      .eventfd = real_eventfd,
      .socket = ::socket,
      .process_vm_readv = ::process_vm_readv,
      .process_vm_writev = ::process_vm_writev,
      .getrandom = ::getrandom,
  };
  return calls;
}

}  // namespace strait::sys
