// SPDX-License-Identifier: Apache-2.0
// libstrait-verbs.so: strait_nic_ops in front of VerbsRail.
#include "rail/proxy/nic_ops.hpp"
#include "rail/verbs/rail.hpp"

extern "C" __attribute__((visibility("default"))) const strait_nic_ops* strait_nic_plugin(void);
extern "C" const strait_nic_ops* strait_nic_plugin(void) {
  static constexpr strait_nic_ops kOps = strait::rail::proxy::nic_ops<strait::rail::verbs::VerbsRail>("verbs");
  return &kOps;
}
