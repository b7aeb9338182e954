// SPDX-License-Identifier: Apache-2.0
#include "sys/process.hpp"

#include <linux/membarrier.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace strait::sys {
namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

std::size_t total_bytes(std::span<const iovec> parts) {
  std::size_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  return total;
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

Status transfer(Transfer call, const char* verb, pid_t pid, std::span<const iovec> local, std::span<const iovec> remote) {
  const std::size_t total = total_bytes(local);
  if (total != total_bytes(remote)) return fail(Code::invalid, "the two lists of a copy between processes differ in length");
  std::size_t done = 0;
  while (done < total) {
    std::array<iovec, 32> near{};
    std::array<iovec, 32> far{};
    const std::size_t n_near = cut(local, done, near);
    const std::size_t n_far = cut(remote, done, far);
    const ssize_t moved = call(pid, near.data(), n_near, far.data(), n_far, 0);
    if (moved < 0) return fail_errno(errno, fmt::format("cannot {} the memory of process {}", verb, pid));
    if (moved == 0) return fail_errno(EFAULT, fmt::format("cannot {} the memory of process {}", verb, pid));
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

bool register_for_barriers() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool barrier_everywhere() { return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0; }

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), std::min<std::size_t>(bytes.size(), 256), 0);
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace strait::sys
