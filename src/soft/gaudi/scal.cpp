// SPDX-License-Identifier: Apache-2.0
// libscal.so: one handle for each open device, one pool in it.
#include "soft/gaudi/scal.hpp"

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "soft/gaudi/driver.hpp"

namespace strait::soft::gaudi::scal {
namespace {

constexpr const char* kPoolName = "global_hbm";

struct Known {
  int fd = -1;
};

struct Table {
  std::mutex mutex;
  std::map<std::uint32_t, Known> known;  // by slot
};

Table& table() {
  static auto* one = new Table;
  return *one;
}

constexpr std::uintptr_t kHandleMark = 0x5343'414c'0000'0000;
constexpr std::uintptr_t kPoolMark = 0x5343'504f'0000'0000;

Handle handle_of(std::uint32_t slot) {
  return reinterpret_cast<Handle>(kHandleMark | (slot + 1));
}

// The descriptor it was made with; -1: no such handle.
int fd_of(std::uintptr_t word, std::uintptr_t mark) {
  if ((word & 0xffff'ffff'0000'0000) != mark || (word & 0xffff'ffff) == 0) return -1;
  const std::lock_guard lock(table().mutex);
  const auto found = table().known.find(static_cast<std::uint32_t>(word) - 1);
  return found == table().known.end() ? -1 : found->second.fd;
}

int pool_of(PoolHandle handle, Pool& pool, Handle& scal) {
  const auto word = reinterpret_cast<std::uintptr_t>(handle);
  Driver* driver = Driver::get();
  const int fd = fd_of(word, kPoolMark);
  if (driver == nullptr || fd < 0 || driver->pool(fd, pool) != 0) return kInvalidParam;
  scal = handle_of(static_cast<std::uint32_t>(word) - 1);
  return kSuccess;
}

template <class Info>
int fill_pool(PoolHandle handle, Info* info, Pool& pool) {
  if (info == nullptr) return kInvalidParam;
  Handle scal = nullptr;
  if (const int bad = pool_of(handle, pool, scal); bad != kSuccess) return bad;
  *info = {};
  info->scal = scal;
  info->name = kPoolName;
  info->device_base = pool.base;
  info->total_bytes = pool.total_bytes;
  info->free_bytes = pool.free_bytes;
  return kSuccess;
}

int remember(Driver& driver, int fd, Handle* handle) {
  const auto node = driver.node_of(fd);
  if (!node) return kInvalidParam;
  const std::lock_guard lock(table().mutex);
  table().known[node->slot] = Known{fd};
  *handle = handle_of(node->slot);
  return kSuccess;
}

}  // namespace

#define SCAL_DECLARE(returns, name, arguments) STRAIT_SCAL_API returns name arguments;
SCAL_FUNCTIONS(SCAL_DECLARE)

int scal_set_logs_folder(const char*) {
  return kSuccess;
}

int scal_init(int fd, const char* config, Handle* handle, void*) {
  Driver* driver = Driver::get();
  if (config == nullptr || handle == nullptr) return kInvalidParam;
  if (driver == nullptr || driver->first_generation()) return kFailure;  // there was no scal then
  Pool pool;
  const int made = driver->make_pool(fd, pool);
  if (made != 0) return made == -ENOMEM ? kOutOfMemory : kInvalidParam;
  return remember(*driver, fd, handle);
}

void scal_destroy(Handle handle) {
  const auto word = reinterpret_cast<std::uintptr_t>(handle);
  if (fd_of(word, kHandleMark) < 0) return;
  const std::lock_guard lock(table().mutex);
  table().known.erase(static_cast<std::uint32_t>(word) - 1);
}

int scal_get_fd(Handle handle) {
  return fd_of(reinterpret_cast<std::uintptr_t>(handle), kHandleMark);
}

int scal_get_handle_from_fd(int fd, Handle* handle) {
  Driver* driver = Driver::get();
  if (handle == nullptr) return kInvalidParam;
  Pool pool;
  if (driver == nullptr || driver->first_generation() || driver->pool(fd, pool) != 0) return kNotFound;
  return remember(*driver, fd, handle);
}

std::uint32_t scal_get_sram_size(Handle) {
  return 0;
}

int scal_get_pool_handle_by_name(Handle handle, const char* name, PoolHandle* pool) {
  const auto word = reinterpret_cast<std::uintptr_t>(handle);
  if (name == nullptr || pool == nullptr || fd_of(word, kHandleMark) < 0) return kInvalidParam;
  if (std::strcmp(name, kPoolName) != 0) return kNotFound;
  *pool = reinterpret_cast<PoolHandle>(kPoolMark | (word & 0xffff'ffff));
  return kSuccess;
}

int scal_get_pool_handle_by_id(Handle handle, unsigned id, PoolHandle* pool) {
  return id == 0 ? scal_get_pool_handle_by_name(handle, kPoolName, pool) : kNotFound;
}

int scal_pool_get_info(PoolHandle handle, PoolInfo* info) {
  Pool pool;
  return fill_pool(handle, info, pool);
}

int scal_pool_get_infoV2(PoolHandle handle, PoolInfoV2* info) {
  Pool pool;
  const int filled = fill_pool(handle, info, pool);
  if (filled == kSuccess) info->device_base_allocated = pool.allocated_base;
  return filled;
}

const char* scal_get_version_sha1() {
  return "strait software scal";
}

const char* scal_get_build_time() {
  return "";
}

#define SCAL_UNSUPPORTED(name)                                                               \
  STRAIT_SCAL_API std::int64_t name() {                                                      \
    if (Driver* driver = Driver::get(); driver != nullptr) driver->count_unsupported(#name); \
    return kNotImplemented;                                                                  \
  }
#include "soft/gaudi/scal_unsupported.inc"

}  // namespace strait::soft::gaudi::scal
