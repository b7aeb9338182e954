// SPDX-License-Identifier: Apache-2.0
// Address handles. The address itself travels in each work request; what is made here is a check and a hardware
// address.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>
#include <cstring>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

// On Ethernet every address is global: there is nothing but GIDs.
int Context::check_port_and_source(std::uint8_t port, bool global, std::uint8_t sgid_index) const {
  return port == 1 && global && sgid_index < device_->gids().size() ? 0 : -EINVAL;
}

int Context::create_ah(WriteCall& call) {
  ib_uverbs_create_ah wanted{};
  if (const int failed = call.get(wanted)) return failed;
  if (const int failed =
          check_port_and_source(wanted.attr.port_num, wanted.attr.is_global != 0, wanted.attr.grh.sgid_index))
    return failed;
  Pd* const pd = objects_.find<Pd>(wanted.pd_handle);
  if (pd == nullptr) return -EINVAL;
  auto ah = std::make_unique<Ah>();
  ah->pd = pd;
  ib_uverbs_create_ah_resp out{};
  out.ah_handle = objects_.add(std::move(ah));
  // Nobody looks at it: packets are sent by their IP addresses. Locally administered, so that it can be no real one.
  mlx5_ib_create_ah_resp driver{};
  driver.response_length = sizeof driver;
  driver.dmac[0] = 0x02;
  std::memcpy(driver.dmac + 1, wanted.attr.grh.dgid + 11, 5);
  int failed = call.put(out);
  if (failed == 0) failed = call.put_driver(driver);
  if (failed != 0) {
    objects_.remove(out.ah_handle);
    return failed;
  }
  ++pd->users;
  return 0;
}

int Context::destroy_ah(Request& request) {
  const std::uint64_t handle = request.word(UVERBS_ATTR_DESTROY_AH_HANDLE);
  const Ah* const ah = objects_.find<Ah>(handle);
  if (ah == nullptr) return -ENOENT;
  --ah->pd->users;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return 0;
}

}  // namespace strait::soft::uverbs
