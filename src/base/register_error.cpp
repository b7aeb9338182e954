// SPDX-License-Identifier: Apache-2.0
#include "base/register_error.hpp"

#include <cerrno>

namespace strait {
namespace {

struct RegisterRow {
  int error;
  Code code;
  const char* cause;
  const char* remedy;
};

constexpr const char* kOtherWay =
    "Try the option reach=peermem, or a copy through host memory with STRAIT_ALLOW_STAGING=1.";

constexpr const char* kNoDevice = "the NIC or the accelerator is no longer there";
constexpr const char* kOpenAgain = "Was it removed, or its driver unloaded? Open the Node again when it is back.";

constexpr RegisterRow kDmabufRows[] = {
    {524, Code::unsupported,
     "the accelerator's driver refused this NIC: there is no peer-to-peer path that it supports (PCI topology, ACS, "
     "IOMMU), or the NIC's driver takes no peer memory",
     "Use a NIC under the same PCI switch or root complex (`strait explain` says how near), switch ACS "
     "redirection off, or set STRAIT_ALLOW_STAGING=1."},
    {EOPNOTSUPP, Code::unsupported,
     "the NIC's driver has no dma-buf registration: it is missing from the provider or the kernel (5.12 or newer), or "
     "the "
     "kernel was built without on-demand paging",
     kOtherWay},
    {EPROTONOSUPPORT, Code::unsupported,
     "the NIC's driver has no dma-buf registration: it is missing from the provider or the kernel (5.12 or newer)",
     kOtherWay},
    {EINVAL, Code::invalid,
     "the range ends past the dma-buf, its address and its offset are not at the same place in a page, or the "
     "descriptor "
     "is no dma-buf",
     "Export the whole allocation again and register exactly the bytes that were exported."},
    {EPERM, Code::unsupported,
     "the accelerator's driver found no peer-to-peer path to this NIC when it was to map the memory (habanalabs)",
     "Use a NIC under the same root complex; the kernel needs CONFIG_PCI_P2PDMA. Or allow a copy through host memory "
     "with STRAIT_ALLOW_STAGING=1."},
    {EBUSY, Code::again,
     "the memory cannot be mapped now: the accelerator is in reset (habanalabs), or the buffer is pinned elsewhere "
     "(amdgpu)",
     "Try again when the device is back; a buffer that another device has pinned must be let go there first."},
    {ENOMEM, Code::limit,
     "there is no room: the accelerator's BAR, the NIC's translation entries, or the memory that may be locked",
     "Register less at once or deregister something; look at BAR1 (`nvidia-smi -q`), resizable BAR and `ulimit -l`."},
    {ENODEV, Code::gone, kNoDevice, kOpenAgain},
    {EBADF, Code::invalid, "the descriptor is not open", "It was closed before it was registered."},
};

constexpr RegisterRow kAddressRows[] = {
    {EFAULT, Code::unsupported, "no peer-memory client and no p2p pages answer for this device address",
     "Load nvidia-peermem (NVIDIA) or a kernel with amdgpu's peer memory, or use reach=dmabuf, which needs neither."},
    {524, Code::unsupported,
     "the accelerator's driver refused this NIC: there is no peer-to-peer path that it supports",
     "Use a NIC under the same PCI switch or root complex, or allow a copy through host memory with "
     "STRAIT_ALLOW_STAGING=1."},
    {EINVAL, Code::invalid,
     "the accelerator's driver gives no pages for this range: it ends past the allocation, or the allocation is not "
     "RDMA "
     "capable (pool or VMM memory)",
     "Use reach=dmabuf, which takes such memory, or allocate it RDMA capable."},
    {ENOMEM, Code::limit, "there is no room: the accelerator's BAR, or the NIC's translation entries",
     "Register less at once or deregister something; look at BAR1 (`nvidia-smi -q`) and resizable BAR."},
    {EOPNOTSUPP, Code::unsupported, "the NIC's driver cannot register device memory by its address",
     "Try the option reach=dmabuf, or a copy through host memory with STRAIT_ALLOW_STAGING=1."},
    {ENODEV, Code::gone, kNoDevice, kOpenAgain},
};

template <std::size_t N>
const RegisterRow* find_row(const RegisterRow (&rows)[N], int error) {
  for (const RegisterRow& row : rows) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

}  // namespace

Error register_failed(int sys_errno, RegisteredBy by, const std::string& nic) {
  const bool dmabuf = by == RegisteredBy::dmabuf;
  const char* what = dmabuf ? "the dma-buf" : "device memory by its address";
  const RegisterRow* row = dmabuf ? find_row(kDmabufRows, sys_errno) : find_row(kAddressRows, sys_errno);
  if (row == nullptr) return fail_errno(sys_errno, fmt::format("{} did not register {}", nic, what));
  const std::string text = errno_text(sys_errno);
  Error error = fail(row->code, "{} did not register {}: {} ({})", nic, what, row->cause,
                     sys_errno == 524 ? "errno 524" : text.substr(0, text.find(' ')));
  error.sys_errno = sys_errno;
  return with_remedy(std::move(error), row->remedy);
}

}  // namespace strait
