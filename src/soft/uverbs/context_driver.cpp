// SPDX-License-Identifier: Apache-2.0
// Methods of the mlx5 driver's own: what who imports a context asks for, and doorbell pages.
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cerrno>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/pages.hpp"

namespace strait::soft::uverbs {

int Context::query_pd(Request& request) {
  const Pd* const pd = objects_.find<Pd>(request.word(MLX5_IB_ATTR_QUERY_PD_HANDLE));
  if (pd == nullptr) return -ENOENT;
  return request.put(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, pd->number);
}

// What steering wants to know of a port. There is none: no flag is set.
int Context::query_driver_port(Request& request) {
  if (request.word(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM) != 1) return -EINVAL;
  return request.put(MLX5_IB_ATTR_QUERY_PORT, mlx5_ib_uapi_query_port{});
}

int Context::alloc_uar(Request& request) {
  const std::uint64_t type = request.word(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
  if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC) return -EINVAL;
  auto uar = std::make_unique<Uar>();
  uar->page = pages::kFirstDoorbell;
  while (objects_.find_uar(uar->page) != nullptr) ++uar->page;
  if (uar->page >= pages::kFirstDoorbell + pages::kDoorbells) return -ENOMEM;
  const std::uint32_t page = uar->page;
  const auto bytes = static_cast<std::uint32_t>(sys::page_bytes());
  const std::uint64_t offset = std::uint64_t{page} * bytes;
  const std::uint32_t handle = objects_.add(std::move(uar));
  int failed = request.put(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset);
  if (failed == 0) failed = request.put(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, bytes);
  if (failed == 0) failed = request.put(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, page);
  if (failed == 0) failed = request.put_word(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, handle);
  if (failed != 0) objects_.remove(handle);
  return failed;
}

int Context::destroy_uar(Request& request) {
  const std::uint64_t handle = request.word(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE);
  const Uar* const uar = objects_.find<Uar>(handle);
  if (uar == nullptr) return -ENOENT;
  if (uar->users != 0) return -EBUSY;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return 0;
}

}  // namespace strait::soft::uverbs
