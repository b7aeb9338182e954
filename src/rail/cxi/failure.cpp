// SPDX-License-Identifier: Apache-2.0
// What an errno means, command by command.
#include <cerrno>

#include "rail/cxi/device.hpp"

namespace strait::rail::cxi {
namespace {

const char* wanted_from(w::Op op) {
  switch (op) {
    case w::Op::lni_alloc: return "made no LNI";
    case w::Op::domain_alloc:
    case w::Op::domain_reserve: return "made no domain";
    case w::Op::cp_alloc:
    case w::Op::trig_cp_alloc: return "made no communication profile";
    case w::Op::cq_alloc:
    case w::Op::cq_alloc_buf: return "made no command queue";
    case w::Op::eq_alloc: return "made no event queue";
    case w::Op::ct_alloc: return "made no counter";
    case w::Op::ct_wb_update: return "did not move the counter's write-back";
    case w::Op::pte_alloc: return "made no portal entry";
    case w::Op::pte_map: return "did not map the portal entry";
    case w::Op::atu_map: return "did not map the memory";
    case w::Op::atu_unmap: return "did not unmap the memory";
    case w::Op::wait_alloc: return "made no wait object";
    case w::Op::dev_info_get: return "does not say what it is";
    case w::Op::svc_get: return "does not describe the service";
    default: return "refused a command";
  }
}

const char* meaning(w::Op op, int error) {
  switch (error) {
    case ENOSPC:
      switch (op) {
        case w::Op::lni_alloc: return "all 255 resource groups are in use";
        case w::Op::domain_alloc: return "no PID is free";
        case w::Op::cp_alloc:
        case w::Op::trig_cp_alloc: return "all 16 profiles of this resource group are in use";
        case w::Op::atu_map: return "no address context is free";
        case w::Op::pte_map: return "the table of mapped portal entries is full";
        default: return "the service's limit or the device's pool is used up";
      }
    case EKEYREVOKED: return "the service was disabled";
    case EPERM:
      return op == w::Op::lni_alloc ? "this user is no member of the service" : "it takes a right this process lacks";
    case EBUSY: return "something still uses it, or pages of it are still mapped";
    case EEXIST: return "another process has this PID";
    case E2BIG: return "a command queue has 65536 blocks at most";
    case EFAULT: return op == w::Op::atu_map ? "not all of it is mapped here, or a page cannot be pinned" : "";
    case EOPNOTSUPP: return op == w::Op::atu_map ? "the driver has no way to this kind of memory" : "";
    case ETIMEDOUT: return op == w::Op::ct_wb_update ? "write-backs under way did not end" : "";
    case EINVAL:
      if (op == w::Op::lni_alloc) return "there is no such service";
      if (op == w::Op::cq_alloc_buf) return "the driver is older than this command, or the ring is not whole pages";
      return "";
    default: return "";
  }
}

const char* remedy(w::Op op, int error) {
  if (error == ENOSPC && op != w::Op::lni_alloc)
    return "use fewer of them, or have the service's limits raised (cxi_service)";
  if (error == EKEYREVOKED || (error == EPERM && op == w::Op::lni_alloc))
    return "ask the administrator for a service of this user (cxi_service list)";
  if (op == w::Op::atu_map && error == ENOMEM) return "raise the limit of pinned memory (ulimit -l)";
  return "";
}

}  // namespace

Error Device::failed(w::Op op, int error) const {
  if (error == ECHILD && in_child()) return fail(Code::gone, "{} belongs to the process before the fork", name_);
  const char* const because = meaning(op, error);
  Error out = fail_errno(error, fmt::format("{} {}", name_, wanted_from(op)));
  if (*because != '\0') out.text += fmt::format(": {}", because);
  if (error == ENOSPC) out.code = Code::limit;
  if (error == EKEYREVOKED || error == EPERM) out.code = Code::denied;
  if (error == EBUSY) out.code = Code::again;
  const char* const help = remedy(op, error);
  return *help == '\0' ? out : with_remedy(std::move(out), help);
}

}  // namespace strait::rail::cxi
