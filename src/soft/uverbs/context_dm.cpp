// SPDX-License-Identifier: Apache-2.0
// Memory of the device. Here it is ordinary memory, but a program knows it by a handle only, as on hardware: it is
// written and read by calls of libibverbs, which map it, and by work requests.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <cerrno>
#include <cstring>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/limits.hpp"
#include "soft/uverbs/pages.hpp"

namespace strait::soft::uverbs {

namespace {

constexpr std::uint64_t kMayBeAsked = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
                                      IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC |
                                      IB_UVERBS_ACCESS_ZERO_BASED | IB_UVERBS_ACCESS_OPTIONAL_RANGE;

}  // namespace

// The first gap that is long enough.
bool Context::find_room(Dm& dm) {
  for (bool moved = true; moved;) {
    moved = false;
    objects_.each<Dm>([&](std::uint32_t, const Dm& other) {
      if (dm.first_page + dm.pages <= other.first_page || other.first_page + other.pages <= dm.first_page) return;
      dm.first_page = other.first_page + other.pages;
      moved = true;
    });
  }
  return dm.first_page + dm.pages <= pages::kMemoryPages;
}

int Context::alloc_dm(Request& request) {
  if (request.word(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE) != MLX5_IB_UAPI_DM_TYPE_MEMIC) return -EOPNOTSUPP;  // for steering
  if (!pages_.valid()) return -EOPNOTSUPP;
  auto dm = std::make_unique<Dm>();
  dm->length_bytes = request.word(UVERBS_ATTR_ALLOC_DM_LENGTH);
  const std::uint64_t align_log2 = request.word(UVERBS_ATTR_ALLOC_DM_ALIGNMENT);
  const std::size_t page = sys::page_bytes();
  if (dm->length_bytes == 0 || (align_log2 >= 64 || std::uint64_t{1} << align_log2 > page)) return -EINVAL;
  if (dm->length_bytes > limits::kDeviceMemoryBytes) return -ENOMEM;
  dm->pages = static_cast<std::uint32_t>((dm->length_bytes + page - 1) / page);
  if (!find_room(*dm)) return -ENOMEM;
  auto mapped = sys::map_file(pages_.get(), std::uint64_t{pages::kMemory + dm->first_page} * page, dm->pages * page,
                              sys::Protect::read_write);
  if (!mapped) return -errno_of(mapped.error());
  dm->mapping = std::move(*mapped);
  std::memset(dm->mapping.data(), 0, dm->mapping.size());  // of who had it before
  const auto index = static_cast<std::uint16_t>(dm->first_page);
  const std::uint32_t handle = objects_.add(std::move(dm));
  const std::uint64_t offset = 0;  // in its first page
  int failed = request.put(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, offset);
  if (failed == 0) failed = request.put(MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, index);
  if (failed == 0) failed = request.put_word(UVERBS_ATTR_ALLOC_DM_HANDLE, handle);
  if (failed != 0) objects_.remove(handle);
  return failed;
}

int Context::free_dm(Request& request) {
  const std::uint64_t handle = request.word(UVERBS_ATTR_FREE_DM_HANDLE);
  const Dm* const dm = objects_.find<Dm>(handle);
  if (dm == nullptr) return -ENOENT;
  if (dm->users != 0) return -EBUSY;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return 0;
}

int Context::query_dm(Request& request) {
  const Dm* const dm = objects_.find<Dm>(request.word(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE));
  if (dm == nullptr) return -ENOENT;
  const std::uint64_t offset = 0;
  const auto index = static_cast<std::uint16_t>(dm->first_page);
  int failed = request.put(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, offset);
  if (failed == 0) failed = request.put(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, index);
  if (failed == 0) failed = request.put(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, dm->length_bytes);
  return failed;
}

int Context::reg_dm_mr(Request& request) {
  auto mr = std::make_unique<Mr>();
  mr->pd = objects_.find<Pd>(request.word(UVERBS_ATTR_REG_DM_MR_PD_HANDLE));
  mr->dm = objects_.find<Dm>(request.word(UVERBS_ATTR_REG_DM_MR_DM_HANDLE));
  if (mr->pd == nullptr || mr->dm == nullptr) return -ENOENT;
  const std::uint64_t access = request.word(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS);
  if ((access & ~kMayBeAsked) != 0 || (access & IB_UVERBS_ACCESS_ZERO_BASED) == 0) return -EINVAL;
  mr->access = static_cast<std::uint32_t>(access);
  if (const int failed = check_access(mr->access)) return failed;
  mr->start = request.word(UVERBS_ATTR_REG_DM_MR_OFFSET);
  mr->length_bytes = request.word(UVERBS_ATTR_REG_DM_MR_LENGTH);
  if (mr->start > mr->dm->length_bytes || mr->length_bytes > mr->dm->length_bytes - mr->start) return -EINVAL;
  mr->iova = 0;
  if (const int failed = make_mr(*mr, -1, 0)) return failed;
  Mr& made = *mr;
  const std::uint32_t handle = objects_.add(std::move(mr));
  int failed = request.put(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, made.key);
  if (failed == 0) failed = request.put(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, made.key);
  if (failed == 0) failed = request.put_word(UVERBS_ATTR_REG_DM_MR_HANDLE, handle);
  if (failed != 0) {
    (void)drop_mr(made);
    objects_.remove(handle);
    return failed;
  }
  ++made.pd->users;
  ++made.dm->users;
  return 0;
}

}  // namespace strait::soft::uverbs
