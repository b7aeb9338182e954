// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include <cerrno>
#include <cstring>

namespace strait {

std::string errno_text(int sys_errno) {
  // 524 is the kernel-internal ENOTSUPP; it leaks out of dma-buf exporters that refuse an attach and strerror does not
  // know it.
  if (sys_errno == 524) return "errno 524 (ENOTSUPP: the exporter refused this device)";
  const char* name = strerrorname_np(sys_errno);
  const char* words = strerrordesc_np(sys_errno);
  if (name == nullptr) return fmt::format("errno {}", sys_errno);
  return fmt::format("{} ({})", name, words == nullptr ? "no description" : words);
}

Error fail_errno(int sys_errno, std::string what) {
  Code code = Code::system;
  std::string remedy;
  switch (sys_errno) {
    case EMFILE:
      code = Code::limit;
      remedy = "This process has no file descriptors left: raise `ulimit -n`, or close some.";
      break;
    case ENFILE:
    case ENOMEM:
    case ENOSPC: code = Code::limit; break;
    case ETIMEDOUT: code = Code::timeout; break;
    case EOPNOTSUPP:
    case ENOSYS: code = Code::unsupported; break;
    default: break;
  }
  return Error{code, sys_errno, 0, fmt::format("{}: {}", what, errno_text(sys_errno)), std::move(remedy)};
}

const char* code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid: return "invalid";
    case Code::unsupported: return "unsupported";
    case Code::again: return "again";
    case Code::timeout: return "timeout";
    case Code::denied: return "denied";
    case Code::gone: return "gone";
    case Code::limit: return "limit";
    case Code::device: return "device";
    case Code::system: return "system";
  }
  return "unknown";
}

}  // namespace strait
