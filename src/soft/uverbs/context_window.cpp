// SPDX-License-Identifier: Apache-2.0
// Memory windows. Binding and invalidating them are work requests, which libmlx5 writes and the engine reads.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>

#include <cerrno>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

int Context::alloc_mw(WriteCall& call) {
  ib_uverbs_alloc_mw wanted{};
  if (const int failed = call.get(wanted)) return failed;
  mlx5_ib_alloc_mw driver{};
  if (const int failed = call.get_driver(driver)) return failed;
  if (driver.comp_mask != 0 || driver.num_klms != 0 || driver.reserved1 != 0 || driver.reserved2 != 0)
    return -EOPNOTSUPP;
  auto mw = std::make_unique<Mw>();
  mw->pd = objects_.find<Pd>(wanted.pd_handle);
  if (mw->pd == nullptr) return -EINVAL;
  const auto made = engine_->alloc_window(mw->pd->number, wanted.mw_type);
  if (!made) return -errno_of(made.error());
  mw->key = *made;
  Pd& pd = *mw->pd;
  ib_uverbs_alloc_mw_resp out{};
  out.rkey = *made;
  out.mw_handle = objects_.add(std::move(mw));
  if (const int failed = call.put(out)) {
    objects_.remove(out.mw_handle);
    (void)engine_->free_window(*made);
    return failed;
  }
  ++pd.users;
  return 0;
}

int Context::destroy_mw(Request& request) {
  const std::uint64_t handle = request.word(UVERBS_ATTR_DESTROY_MW_HANDLE);
  const Mw* const mw = objects_.find<Mw>(handle);
  if (mw == nullptr) return -ENOENT;
  if (const Status freed = engine_->free_window(mw->key); !freed) return -errno_of(freed.error());
  --mw->pd->users;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return 0;
}

}  // namespace strait::soft::uverbs
