// SPDX-License-Identifier: Apache-2.0
// strait_nic_ops in front of CxiRail: the NIC "cxi" of libstrait.
#include "rail/cxi/plugin.hpp"

#include "rail/cxi/rail.hpp"
#include "rail/proxy/nic_ops.hpp"

namespace strait::rail::cxi {

const strait_nic_ops* nic_plugin() {
  static constexpr strait_nic_ops kOps = proxy::nic_ops<CxiRail>("cxi");
  return &kOps;
}

}  // namespace strait::rail::cxi
