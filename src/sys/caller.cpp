// SPDX-License-Identifier: Apache-2.0
#include "sys/caller.hpp"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "sys/files.hpp"

namespace strait::sys {
namespace {

std::uint64_t effective_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) != 0) return 0;
  return std::uint64_t{data[1].effective} << 32 | data[0].effective;
}

}  // namespace

Caller current_caller() {
  Caller out;
  out.uid = ::geteuid();
  out.gid = ::getegid();
  struct stat is {};
  if (::stat("/proc/thread-self/ns/net", &is) == 0) out.network = is.st_ino;
  const std::uint64_t capabilities = effective_capabilities();
  out.admin = (capabilities >> CAP_SYS_ADMIN & 1) != 0;
  out.net_raw = (capabilities >> CAP_NET_RAW & 1) != 0;
  return out;
}

std::uint32_t real_user() {
  return ::getuid();
}

bool process_has_user(std::int32_t pid, std::uint32_t uid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/status", pid);
  const std::string text = read_small_file(path);
  const std::size_t at = text.find("\nUid:");
  if (at == std::string::npos) return false;
  unsigned ids[3] = {};
  if (std::sscanf(text.c_str() + at, "\nUid: %u %u %u", &ids[0], &ids[1], &ids[2]) != 3) return false;
  return ids[0] == uid || ids[1] == uid || ids[2] == uid;
}

}  // namespace strait::sys
