// SPDX-License-Identifier: Apache-2.0
// Memory that a DevX program names for its queues and keys.
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cerrno>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/devx_objects.hpp"
#include "sys/files.hpp"

namespace strait::soft::uverbs {

namespace {

constexpr std::uint32_t kWrites = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE;
constexpr std::uint32_t kUmemAccess = kWrites | IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_RELAXED_ORDERING;

// Where a dma-buf is seen from here; a memfd that cannot shrink will do as one, as everywhere else.
int map_dmabuf(int fd, std::uint64_t offset, Umem& umem) {
  if (!sys::is_open_fd(fd)) return -EBADF;
  const std::uint64_t skip = offset % sys::page_bytes();
  if (!sys::is_dmabuf(fd)) {
    if (!sys::check_sealed(fd, offset + umem.length_bytes)) return -EINVAL;
  } else if (const std::int64_t size = sys::file_bytes(fd);
             size >= 0 && offset + umem.length_bytes > static_cast<std::uint64_t>(size)) {
    return -EINVAL;
  }
  auto mapped = sys::map_file(fd, offset - skip, umem.length_bytes + skip,
                              umem.writable ? sys::Protect::read_write : sys::Protect::read);
  if (!mapped) return -errno_of(mapped.error());
  umem.mapping = std::move(*mapped);
  umem.bytes = umem.mapping.data() + skip;
  return 0;
}

}  // namespace

int Context::umem_reg(Request& request) {
  if (const int failed = need_devx()) return failed;
  auto umem = std::make_unique<Umem>();
  const std::uint64_t address = request.word(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
  umem->length_bytes = request.word(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
  std::uint32_t access = 0;
  if (const int failed = request.get(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, access)) return failed;
  if ((access & ~kUmemAccess) != 0) return -EINVAL;
  if (umem->length_bytes == 0 || address + umem->length_bytes < address) return -EINVAL;
  // Of the page sizes that the program would have, the smallest is always there.
  if (request.has(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP) &&
      request.word(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP) < sys::page_bytes())
    return -EINVAL;
  umem->writable = (access & kWrites) != 0;
  if (request.has(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)) {
    const auto fd = static_cast<int>(static_cast<std::int64_t>(request.word(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD)));
    if (const int failed = map_dmabuf(fd, address, *umem)) return failed;
  } else {
    umem->bytes = device_->memory().lasting(address, umem->length_bytes, umem->writable);
    if (umem->bytes == nullptr) return -EFAULT;
  }
  const std::uint32_t handle = objects_.add(std::move(umem));
  int failed = request.put(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, handle);
  if (failed == 0) failed = request.put_word(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, handle);
  if (failed != 0) objects_.remove(handle);
  return failed;
}

int Context::umem_dereg(Request& request) {
  if (const int failed = need_devx()) return failed;
  const std::uint64_t handle = request.word(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE);
  const Umem* const umem = objects_.find<Umem>(handle);
  if (umem == nullptr) return -ENOENT;
  if (umem->users != 0) return -EBUSY;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return 0;
}

}  // namespace strait::soft::uverbs
