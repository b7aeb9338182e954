// SPDX-License-Identifier: Apache-2.0
// UserFault: the kernel tells when pages of this process are unmapped, moved or given back (userfaultfd).
//
// A thread that unmaps watched pages waits in the kernel until somebody has read the event. So whoever reads must never
// wait for anything that such a thread may hold: no lock, no allocation, no free. Pages are watched in write-protect
// mode and never protected: nobody's page faults are delivered, only the events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "sys/fork.hpp"

namespace strait::sys {

// These addresses may be something else now.
struct AddressChange {
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
};

// The system call: a test hands in one that fails.
int userfaultfd_call(int flags);

class UserFault {
 public:
  using SystemCall = int (*)(int flags);
  // Code::unsupported says which of the kernel's doors is closed, and what would open it.
  [[nodiscard]] static Result<UserFault> open(SystemCall call = &userfaultfd_call);

  // Whole pages around the range; again and overlapping is fine. Any thread. Fails for memory that cannot be watched.
  [[nodiscard]] Status watch(std::uint64_t address, std::uint64_t length_bytes) const;

  // Readable when there is an event. Polling it lets nobody go on; reading does.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // What has happened, without waiting; 0: nothing more. The threads concerned go on when it returns, or before.
  [[nodiscard]] std::size_t read(std::span<AddressChange> out) const;

 private:
  explicit UserFault(ProcessFd fd) : fd_(std::move(fd)) {}
  ProcessFd fd_;  // a child must not keep the parent's: its events would be waited for
};

}  // namespace strait::sys
