// SPDX-License-Identifier: Apache-2.0
#include "sys/process.hpp"

#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace strait::sys {
namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// Lengths may come from a peer: a sum that wraps around must not pass for a small one.
bool total_bytes(std::span<const iovec> parts, std::size_t* total) {
  *total = 0;
  for (const iovec& part : parts) {
    if (__builtin_add_overflow(*total, part.iov_len, total)) return false;
  }
  return true;
}

Error explain(int sys_errno, const char* verb, pid_t pid) {
  Error error = fail_errno(sys_errno, fmt::format("cannot {} the memory of process {}", verb, pid));
  if (sys_errno == EPERM) {
    error.code = Code::denied;
    error.remedy =
        "The kernel forbids it: another user's process, another container, or kernel.yama.ptrace_scope above 0.";
  } else if (sys_errno == ESRCH) {
    error.code = Code::gone;
  }
  return error;
}

// The part of `parts` that starts `skip` bytes in, as much of it as `out` holds.
template <std::size_t N>
std::size_t cut(std::span<const iovec> parts, std::size_t skip, std::array<iovec, N>& out) {
  std::size_t count = 0;
  for (const iovec& part : parts) {
    if (skip >= part.iov_len) {
      skip -= part.iov_len;
      continue;
    }
    if (count == N) break;
    out[count++] = {static_cast<char*>(part.iov_base) + skip, part.iov_len - skip};
    skip = 0;
  }
  return count;
}

Status transfer(Transfer call, const char* verb, pid_t pid, std::span<const iovec> local,
                std::span<const iovec> remote) {
  std::size_t total = 0;
  std::size_t remote_total = 0;
  if (!total_bytes(local, &total) || !total_bytes(remote, &remote_total) || total != remote_total) {
    return fail(Code::invalid, "the two lists of a copy between processes differ in length");
  }
  std::size_t done = 0;
  while (done < total) {
    std::array<iovec, 32> near{};
    std::array<iovec, 32> far{};
    const std::size_t n_near = cut(local, done, near);
    const std::size_t n_far = cut(remote, done, far);
    const ssize_t moved = call(pid, near.data(), n_near, far.data(), n_far, 0);
    if (moved < 0) return explain(errno, verb, pid);
    if (moved == 0) return explain(EFAULT, verb, pid);  // no progress: trying again would never end
    done += static_cast<std::size_t>(moved);
  }
  return {};
}

}  // namespace

Status read_process(pid_t pid, std::span<const iovec> into, std::span<const iovec> from, const Calls& calls) {
  return transfer(calls.process_vm_readv, "read", pid, into, from);
}

Status write_process(pid_t pid, std::span<const iovec> from, std::span<const iovec> into, const Calls& calls) {
  return transfer(calls.process_vm_writev, "write", pid, from, into);
}

void allow_access_by(pid_t pid) {
  (void)::prctl(PR_SET_PTRACER, static_cast<unsigned long>(pid), 0, 0, 0);  // EINVAL: there is no Yama
}

bool register_for_barriers() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool barrier_everywhere() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

Status fill_random(std::span<std::byte> bytes, const Calls& calls) {
  while (!bytes.empty()) {
    // Up to 256 bytes come whole or not at all; a signal can only interrupt longer requests.
    const ssize_t got = calls.getrandom(bytes.data(), std::min<std::size_t>(bytes.size(), 256), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return fail_errno(got == 0 ? EIO : errno, "the kernel gives no random bytes");
    }
  }
  return {};
}

}  // namespace strait::sys
