// SPDX-License-Identifier: Apache-2.0
// Entry points: the program's own mappings.
#include "soft/hsa/api.hpp"

namespace strait::soft::hsa {

Answer hsa_amd_vmem_address_reserve_align(void** address, std::size_t size, std::uint64_t wanted,
                                          std::uint64_t alignment, std::uint64_t flags) {
  STRAIT_HSA_OPEN(runtime);
  if (address == nullptr || size == 0 || flags > 1) return kInvalidArgument;
  return runtime->reserve(address, size, wanted, alignment);
}

Answer hsa_amd_vmem_address_reserve(void** address, std::size_t size, std::uint64_t wanted, std::uint64_t flags) {
  return hsa_amd_vmem_address_reserve_align(address, size, wanted, 0, flags);
}

Answer hsa_amd_vmem_address_free(void* address, std::size_t size) {
  STRAIT_HSA_OPEN(runtime);
  if (address == nullptr || size == 0) return kInvalidArgument;
  return runtime->unreserve(address, size);
}

Answer hsa_amd_vmem_handle_create(MemoryPool pool, std::size_t size, std::int32_t type, std::uint64_t,
                                  VmemHandle* handle) {
  STRAIT_HSA_OPEN(runtime);
  if (handle == nullptr || size == 0) return kInvalidArgument;
  PoolName name{};
  if (!runtime->pool_of(pool, name)) return kInvalidMemoryPool;
  return runtime->create_handle(name, size, type, *handle);
}

Answer hsa_amd_vmem_handle_release(VmemHandle handle) {
  STRAIT_HSA_OPEN(runtime);
  return runtime->release_handle(handle);
}

Answer hsa_amd_vmem_map(void* address, std::size_t size, std::size_t offset, VmemHandle handle, std::uint64_t flags) {
  STRAIT_HSA_OPEN(runtime);
  if (address == nullptr || size == 0 || flags != 0) return kInvalidArgument;
  return runtime->map_handle(address, size, offset, handle);
}

Answer hsa_amd_vmem_unmap(void* address, std::size_t size) {
  STRAIT_HSA_OPEN(runtime);
  if (address == nullptr || size == 0) return kInvalidArgument;
  return runtime->unmap_handle(address, size);
}

Answer hsa_amd_vmem_set_access(void* address, std::size_t size, const AccessDesc* wanted, std::size_t n) {
  STRAIT_HSA_OPEN(runtime);
  if (address == nullptr || size == 0 || wanted == nullptr || n == 0 || n > 1024) return kInvalidArgument;
  return runtime->set_access(address, size, wanted, n);
}

Answer hsa_amd_vmem_get_access(void* address, std::int32_t* permissions, Agent agent) {
  STRAIT_HSA_OPEN(runtime);
  if (address == nullptr || permissions == nullptr) return kInvalidArgument;
  std::uint32_t node = 0;
  if (!runtime->node_of(agent, node)) return kInvalidAgent;
  return runtime->get_access(address, *permissions, node);
}

Answer hsa_amd_vmem_export_shareable_handle(int* fd, VmemHandle handle, std::uint64_t) {
  STRAIT_HSA_OPEN(runtime);
  if (fd == nullptr) return kInvalidArgument;
  return runtime->export_handle(*fd, handle);
}

Answer hsa_amd_vmem_import_shareable_handle(int fd, VmemHandle* handle) {
  STRAIT_HSA_OPEN(runtime);
  if (handle == nullptr) return kInvalidArgument;
  return runtime->import_handle(fd, *handle);
}

Answer hsa_amd_vmem_retain_alloc_handle(VmemHandle* handle, void* address) {
  STRAIT_HSA_OPEN(runtime);
  if (handle == nullptr || address == nullptr) return kInvalidArgument;
  return runtime->retain_handle(*handle, address);
}

Answer hsa_amd_vmem_get_alloc_properties_from_handle(VmemHandle handle, MemoryPool* pool, std::int32_t* type) {
  STRAIT_HSA_OPEN(runtime);
  if (pool == nullptr || type == nullptr) return kInvalidArgument;
  return runtime->handle_properties(handle, *pool, *type);
}

}  // namespace strait::soft::hsa
