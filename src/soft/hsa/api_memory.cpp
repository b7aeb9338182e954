// SPDX-License-Identifier: Apache-2.0
// Entry points: allocating, locking, asking, sharing.
#include <algorithm>
#include <cstring>

#include "soft/hsa/api.hpp"
#include "sys/files.hpp"

namespace strait::soft::hsa {

Answer hsa_amd_memory_pool_allocate(MemoryPool pool, std::size_t size, std::uint32_t, void** pointer) {
  STRAIT_HSA_OPEN(runtime);
  if (size == 0 || pointer == nullptr) return kInvalidArgument;
  PoolName name{};
  if (!runtime->pool_of(pool, name)) return kInvalidMemoryPool;
  return runtime->allocate(name, size, pointer);
}

Answer hsa_amd_memory_pool_free(void* pointer) {
  STRAIT_HSA_OPEN(runtime);
  return runtime->free(pointer);
}

Answer hsa_memory_free(void* pointer) {
  return hsa_amd_memory_pool_free(pointer);
}

// The old names for the program's own memory do nothing on this profile, as there.
Answer hsa_memory_register(void* pointer, std::size_t size) {
  STRAIT_HSA_OPEN(runtime);
  return size == 0 && pointer != nullptr ? kInvalidArgument : kSuccess;
}

Answer hsa_memory_deregister(void*, std::size_t) {
  STRAIT_HSA_OPEN(runtime);
  return kSuccess;
}

Answer hsa_amd_agents_allow_access(std::uint32_t n, const Agent* agents, const std::uint32_t* flags,
                                   const void* pointer) {
  STRAIT_HSA_OPEN(runtime);
  if (n == 0 || agents == nullptr || flags != nullptr || pointer == nullptr) return kInvalidArgument;
  std::uint64_t nodes = 0;
  if (!nodes_of(*runtime, n, agents, nodes)) return kInvalidAgent;
  return runtime->allow_access(nodes, pointer);
}

Answer hsa_amd_memory_lock(void* pointer, std::size_t size, Agent* agents, int n, void** agent_pointer) {
  STRAIT_HSA_OPEN(runtime);
  if (size == 0 || pointer == nullptr || agent_pointer == nullptr) return kInvalidArgument;
  *agent_pointer = nullptr;
  if ((agents == nullptr) != (n == 0) || n < 0) return kInvalidArgument;
  std::uint64_t nodes = 0;
  if (!nodes_of(*runtime, static_cast<std::uint32_t>(n), agents, nodes)) return kInvalidAgent;
  if (n == 0) {  // none named: all
    for (std::size_t i = 0; i < runtime->gpu_count(); ++i) nodes |= std::uint64_t{1} << runtime->gpu(i).node;
  }
  const Answer answer = runtime->lock(pointer, size, nodes);
  if (answer == kSuccess) *agent_pointer = pointer;
  return answer;
}

Answer hsa_amd_memory_lock_to_pool(void* pointer, std::size_t size, Agent* agents, int n, MemoryPool pool,
                                   std::uint32_t flags, void** agent_pointer) {
  STRAIT_HSA_OPEN(runtime);
  PoolName name{};
  if (!runtime->pool_of(pool, name)) return kInvalidMemoryPool;
  if (flags != 0 || name.node != 0) return kInvalidArgument;
  return hsa_amd_memory_lock(pointer, size, agents, n, agent_pointer);
}

Answer hsa_amd_memory_unlock(void* pointer) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr) return kInvalidArgument;
  return runtime->unlock(pointer);
}

Answer hsa_amd_pointer_info(const void* pointer, PointerInfo* info, Allocator allocate, std::uint32_t* n,
                            Agent** agents) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || info == nullptr || info->size == 0) return kInvalidArgument;
  PointerInfo found{};
  std::vector<Agent> accessible;
  const Answer answer = runtime->pointer_info(pointer, found, accessible);
  if (answer != kSuccess) return answer;
  // Only as much as the caller's struct holds: older programs have a shorter one.
  found.size = std::min(info->size, static_cast<std::uint32_t>(sizeof found));
  const std::uint32_t fits = found.size;
  std::memcpy(info, &found, fits);
  if (found.type == kPointerUnknown || allocate == nullptr || n == nullptr || agents == nullptr) return kSuccess;
  *n = static_cast<std::uint32_t>(accessible.size());
  *agents = nullptr;
  if (accessible.empty()) return kSuccess;
  *agents = static_cast<Agent*>(allocate(accessible.size() * sizeof(Agent)));
  if (*agents == nullptr) return kOutOfResources;
  std::copy(accessible.begin(), accessible.end(), *agents);
  return kSuccess;
}

Answer hsa_amd_pointer_info_set_userdata(const void* pointer, void* data) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr) return kInvalidArgument;
  return runtime->set_user_data(pointer, data);
}

Answer hsa_amd_register_deallocation_callback(void* pointer, DeallocationCallback callback, void* data) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || callback == nullptr) return kInvalidArgument;
  return runtime->watch_free(pointer, callback, data);
}

Answer hsa_amd_deregister_deallocation_callback(void* pointer, DeallocationCallback callback) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || callback == nullptr) return kInvalidArgument;
  return runtime->unwatch_free(pointer, callback);
}

Answer hsa_amd_portable_export_dmabuf_v2(const void* pointer, std::size_t size, int* dmabuf, std::uint64_t* offset,
                                         std::uint64_t flags) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || dmabuf == nullptr || offset == nullptr || size == 0 || flags > 1) return kInvalidArgument;
  return runtime->export_dmabuf(pointer, size, *dmabuf, *offset);
}

Answer hsa_amd_portable_export_dmabuf(const void* pointer, std::size_t size, int* dmabuf, std::uint64_t* offset) {
  return hsa_amd_portable_export_dmabuf_v2(pointer, size, dmabuf, offset, 0);
}

Answer hsa_amd_portable_close_dmabuf(int dmabuf) {
  STRAIT_HSA_OPEN(runtime);
  if (!sys::is_open_fd(dmabuf)) return kResourceFree;
  sys::Fd(dmabuf).reset();
  counts().dmabuf_closes.add();
  return kSuccess;
}

Answer hsa_amd_ipc_memory_create(void* pointer, std::size_t size, IpcMemory* handle) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || size == 0 || handle == nullptr) return kInvalidArgument;
  return runtime->ipc_create(pointer, size, *handle);
}

Answer hsa_amd_ipc_memory_attach(const IpcMemory* handle, std::size_t size, std::uint32_t n, const Agent* agents,
                                 void** pointer) {
  STRAIT_HSA_OPEN(runtime);
  if (handle == nullptr || pointer == nullptr || (n != 0 && agents == nullptr)) return kInvalidArgument;
  std::uint64_t nodes = 0;
  if (!nodes_of(*runtime, n, agents, nodes)) return kInvalidAgent;
  return runtime->ipc_attach(*handle, size, nodes, pointer);
}

Answer hsa_amd_ipc_memory_detach(void* pointer) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr) return kInvalidArgument;
  return runtime->detach(pointer, kPointerIpc);
}

Answer hsa_amd_interop_map_buffer(std::uint32_t n, Agent* agents, int handle, std::uint32_t flags, std::size_t* size,
                                  void** pointer, std::size_t* metadata_size, const void** metadata) {
  STRAIT_HSA_OPEN(runtime);
  if (agents == nullptr || size == nullptr || pointer == nullptr || flags != 0 || n == 0) return kInvalidArgument;
  std::uint64_t nodes = 0;
  if (!nodes_of(*runtime, n, agents, nodes)) return kInvalidAgent;
  if (nodes == 1) return kInvalidAgent;  // the CPU alone maps no dma-buf
  if (metadata_size != nullptr) *metadata_size = 0;
  if (metadata != nullptr) *metadata = nullptr;
  return runtime->interop_map(nodes, handle, size, pointer);
}

Answer hsa_amd_interop_unmap_buffer(void* pointer) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr) return kInvalidArgument;
  return runtime->detach(pointer, kPointerGraphics);
}

}  // namespace strait::soft::hsa
