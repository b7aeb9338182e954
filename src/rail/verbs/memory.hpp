// SPDX-License-Identifier: Apache-2.0
// Registrations on a verbs device, and by which of the possible ways each was made.
//
// The ways, in order: host memory by its address; a dma-buf as such, which any file may be that the kernel takes for
// one; the mapping of the memfd that holds its pages,
// when the driver takes no dma-buf (EOPNOTSUPP: rxe, siw and others have no such operation). The mapping of a dma-buf
// itself is the last resort and refused by the kernel for want of struct pages (EFAULT): then only staging is left,
// which is the caller's to decide.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/error.hpp"
#include "rail/verbs/port.hpp"
#include "strait/plugin.h"
#include "sys/mapping.hpp"

namespace strait::rail::verbs {

struct Registration {
  sys::Mapping mapping;  // of a file, when the memory was reached that way
  Owner<ibv_mr, ibv_dereg_mr> region;
  std::string how;       // for people
  std::uint32_t by = 0;  // STRAIT_NIC_BY_*
  std::uint32_t pd = 0;
};

class Memory {
 public:
  // Does the driver know dma-bufs at all? Asked once, with a descriptor that is none.
  void probe_dmabuf(ibv_pd* domain);
  // A peer-memory client has said that it is there; whether it answers, a registration tells.
  [[nodiscard]] static bool peer_client_seen();
  [[nodiscard]] bool takes_dmabuf() const { return takes_dmabuf_; }
  // What dma-bufs and device addresses need, and what of it is there. False: there is no requirement `index`.
  [[nodiscard]] bool requirement(std::uint32_t index, strait_requirement& out) const;

  [[nodiscard]] Result<strait_nic_mr> add(const std::string& device, ibv_pd* domain,
                                          const strait_nic_mr_request& request);
  // Returns the protection domain it belonged to.
  [[nodiscard]] Result<std::uint32_t> remove(std::uint32_t lkey);
  [[nodiscard]] const Registration* find(std::uint32_t lkey) const;
  [[nodiscard]] std::size_t size() const { return all_.size(); }

  struct {
    std::uint64_t by_address = 0, by_dmabuf = 0, dmabuf_refused = 0, by_mapping = 0, by_device_address = 0;
  } counts;

 private:
  [[nodiscard]] Status reach(const std::string& device, ibv_pd* domain, const strait_nic_mr_request& request,
                             Registration& out);
  [[nodiscard]] Status reach_file(const std::string& device, ibv_pd* domain, const strait_nic_mr_request& request,
                                  int dmabuf_errno, Registration& out);
  bool takes_dmabuf_ = false;
  int probe_errno_ = 0;
  std::map<std::uint32_t, Registration> all_;  // by lkey
};

}  // namespace strait::rail::verbs
