// SPDX-License-Identifier: Apache-2.0
#include "sys/between.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace strait::sys {

Status try_process_vm(const Calls& calls) {
  constexpr int kOtherBytes = 255;  // no errno
  volatile std::uint64_t word = 0x7374726169740001;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "no process could be made to try with");
  if (child == 0) {
    std::uint64_t read = 0;
    const iovec into{&read, sizeof read};
    const iovec from{const_cast<std::uint64_t*>(&word), sizeof word};
    const ssize_t got = calls.process_vm_readv(parent, &into, 1, &from, 1, 0);
    if (got < 0) ::_exit(errno);
    ::_exit(got == sizeof read && read == word ? 0 : kOtherBytes);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail_errno(errno, "waiting for the process that tried");
  }
  if (!WIFEXITED(status)) return fail(Code::system, "the process that tried was killed");  // by seccomp, for one
  const int answer = WEXITSTATUS(status);
  if (answer == 0) return {};
  if (answer == kOtherBytes) return fail(Code::system, "process_vm_readv read something else than is there");
  Error error = fail_errno(answer, "process_vm_readv of another process of this user");
  if (answer == EPERM) {
    error.code = Code::denied;
    error.remedy = "The kernel forbids it: kernel.yama.ptrace_scope above 0, a container, or a seccomp filter.";
  }
  return error;
}

}  // namespace strait::sys
