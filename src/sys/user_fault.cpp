// SPDX-License-Identifier: Apache-2.0
#include "sys/user_fault.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "sys/mapping.hpp"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace strait::sys {
namespace {

constexpr std::uint64_t kWanted = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;

Error why_not(int error) {
  if (error == ENOSYS) {
    return fail(Code::unsupported, "this kernel has no userfaultfd (CONFIG_USERFAULTFD), or a seccomp filter hides it");
  }
  if (error == EPERM) {
    return with_remedy(
        fail(Code::unsupported, "this process may not use userfaultfd: a seccomp filter, or the kernel's settings"),
        "Linux 5.11 and later lets everybody watch user memory; before, set vm.unprivileged_userfaultfd to 1. In a "
        "container, its seccomp profile must allow userfaultfd");
  }
  Error failed = fail_errno(error, "cannot open a userfaultfd");
  return failed;
}

AddressChange change_of(const uffd_msg& message) {
  switch (message.event) {
    case UFFD_EVENT_REMAP: return {message.arg.remap.from, message.arg.remap.len};
    case UFFD_EVENT_REMOVE:
    case UFFD_EVENT_UNMAP: return {message.arg.remove.start, message.arg.remove.end - message.arg.remove.start};
    default: return {0, UINT64_MAX};  // an event nobody asked for: everything may have changed
  }
}

}  // namespace

int userfaultfd_call(int flags) {
  return static_cast<int>(::syscall(SYS_userfaultfd, flags));  // libc has no function for it
}

Result<UserFault> UserFault::open(SystemCall call) {
  // Faults in the kernel's own accesses are not ours to see; asking for less needs no privilege.
  int raw = call(O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (raw < 0 && errno == EINVAL) raw = call(O_CLOEXEC | O_NONBLOCK);  // before Linux 5.11
  if (raw < 0) return why_not(errno);
  Fd fd(raw);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kWanted;
  if (::ioctl(fd.get(), UFFDIO_API, &api) != 0 || (api.features & kWanted) != kWanted) {
    return fail(Code::unsupported, "this kernel's userfaultfd does not tell of unmapped memory (Linux 4.11 and later)");
  }
  return UserFault(ProcessFd(std::move(fd)));
}

Status UserFault::watch(std::uint64_t address, std::uint64_t length_bytes) const {
  const std::uint64_t page = page_bytes();
  uffdio_register request{};
  request.range.start = address / page * page;
  request.range.len = round_up(address + length_bytes, page) - request.range.start;
  request.mode = UFFDIO_REGISTER_MODE_WP;
  if (::ioctl(fd_.get(), UFFDIO_REGISTER, &request) == 0) return {};
  return fail_errno(errno, fmt::format("userfaultfd cannot watch {} bytes at {:#x}", length_bytes, address));
}

std::size_t UserFault::read(std::span<AddressChange> out) const {
  std::array<uffd_msg, 16> messages;
  const std::size_t room = std::min(out.size(), messages.size());
  const ssize_t got = ::read(fd_.get(), messages.data(), room * sizeof(uffd_msg));
  if (got <= 0) return 0;
  const std::size_t count = static_cast<std::size_t>(got) / sizeof(uffd_msg);
  for (std::size_t i = 0; i < count; ++i) out[i] = change_of(messages[i]);
  return count;
}

}  // namespace strait::sys
