// SPDX-License-Identifier: Apache-2.0
// Lease: how a process that opened another's Gaudi memory learns that it is no more. Habana's driver tells nobody:
// freed memory is a piece of a pool that stays mapped, and after the owner's end the device's next owner has the same
// addresses. So the owner keeps a file locked for as long as the allocation lives; the kernel unlocks it when he dies.
//
// The file comes from a stranger: he can lie about his own memory and about nothing else. A child that the owner forked
// and that runs on keeps the lock too.
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "sys/fd.hpp"
#include "sys/file_hold.hpp"
#include "sys/mapping.hpp"
#include "sys/note.hpp"

namespace strait::buffer::gaudi {

class Lease {
 public:
  Lease() = default;
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease() {
    if (granted_ && fd_.valid()) sys::let_go_of_file(fd_.get());  // also of copies in forked children
  }

  // The owner's side: it lasts as long as this object.
  [[nodiscard]] static Result<Lease> grant(std::uint64_t identity) {
    Lease lease;
    STRAIT_TRY(lease.fd_, sys::make_sealed_memfd(kName, sys::page_bytes()));
    if (!sys::take_file_alone(lease.fd_.get())) return fail_errno(EBUSY, "locking the lease of Gaudi memory");
    lease.granted_ = true;
    lease.identity_ = identity;
    return lease;
  }
  // For another process: a description of its own, without the lock.
  [[nodiscard]] Result<sys::Fd> give() const { return sys::open_again(fd_.get()); }
  // What another process gave; `fd` stays the caller's.
  [[nodiscard]] static Result<Lease> look(int fd, std::uint64_t identity) {
    if (fd < 0) return fail(Code::invalid, "a Gaudi memory handle came without its descriptor");
    if (sys::memfd_name(fd) != kName) return fail(Code::invalid, "a Gaudi memory handle came with another descriptor");
    Lease lease;
    STRAIT_TRY(lease.fd_, sys::open_again(fd));
    lease.identity_ = identity;
    return lease;
  }
  // Asked by those who look, and by any number of them at once: shared locks do not exclude each other.
  [[nodiscard]] bool lasts() const {
    if (!fd_.valid() || !sys::hold_file(fd_.get())) return fd_.valid();
    sys::let_go_of_file(fd_.get());
    return false;
  }
  [[nodiscard]] std::uint64_t identity() const { return identity_; }

 private:
  static constexpr const char* kName = "strait gaudi lease";
  sys::Fd fd_;
  bool granted_ = false;
  std::uint64_t identity_ = 0;
};

}  // namespace strait::buffer::gaudi
