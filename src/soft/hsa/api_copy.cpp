// SPDX-License-Identifier: Apache-2.0
// Entry points: copies, fills, prefetches.
#include <cstring>

#include "soft/hsa/api.hpp"

namespace strait::soft::hsa {
namespace {

constexpr std::uint32_t kEngines = 0x3;  // two copy engines, as a bit mask

// The program's memory as the CPU knows it. False: an address of a device, and no live memory of it.
bool reach_by_cpu(Runtime& runtime, const void* address, std::uint64_t length_bytes, Bytes& out) {
  if (runtime.reach(address, length_bytes, out)) return true;
  for (std::size_t i = 0; i < runtime.gpu_count(); ++i) {
    if (runtime.gpu(i).arena->touches(reinterpret_cast<std::uint64_t>(address), length_bytes)) return false;
  }
  out = {static_cast<std::byte*>(const_cast<void*>(address)), nullptr};
  return true;
}

// The signals that are waited for, and the one that is counted down. kInvalidSignal: one of them is none.
Answer find_signals(Runtime& runtime, std::uint32_t n, const Signal* list, Signal done, std::vector<SignalRef>& after,
                    SignalRef& completes) {
  if ((n == 0) != (list == nullptr)) return kInvalidArgument;
  for (std::uint32_t i = 0; i < n; ++i) {
    after.push_back(runtime.signals().find(list[i]));
    if (!after.back()) return kInvalidSignal;
  }
  completes = runtime.signals().find(done);
  return completes ? kSuccess : kInvalidSignal;
}

bool copy_bytes(const Bytes& to, const Bytes& from, std::size_t size) {
  std::memmove(to.at, from.at, size);
  counts().copies.add();
  counts().copied_bytes.add(size);
  return true;
}

}  // namespace

Answer hsa_amd_memory_async_copy(void* to, Agent to_agent, const void* from, Agent from_agent, std::size_t size,
                                 std::uint32_t n, const Signal* dependencies, Signal done) {
  STRAIT_HSA_OPEN(runtime);
  if (to == nullptr || from == nullptr) return kInvalidArgument;
  std::uint32_t to_node = 0, from_node = 0;
  if (!runtime->node_of(to_agent, to_node) || !runtime->node_of(from_agent, from_node)) return kInvalidAgent;
  std::vector<SignalRef> after;
  SignalRef completes;
  if (const Answer bad = find_signals(*runtime, n, dependencies, done, after, completes); bad != kSuccess) return bad;
  if (size == 0) return kSuccess;  // and the signal stays as it is, as there
  Bytes target, source;
  const bool by_cpu = to_node == 0 && from_node == 0;
  const bool reached = by_cpu ? reach_by_cpu(*runtime, to, size, target) && reach_by_cpu(*runtime, from, size, source)
                              : runtime->reach(to, size, target) && runtime->reach(from, size, source);
  if (!reached) counts().copies_refused.add();
  // A GPU that meets an address it has no page for does not tell the caller: the signal says it, below zero.
  const bool started = runtime->signals().run_after(
      std::move(after), std::move(completes),
      [target, source, size, reached] { return reached && copy_bytes(target, source, size); });
  return started ? kSuccess : kOutOfResources;
}

Answer hsa_amd_memory_async_copy_on_engine(void* to, Agent to_agent, const void* from, Agent from_agent,
                                           std::size_t size, std::uint32_t n, const Signal* dependencies, Signal done,
                                           std::int32_t engine, bool) {
  STRAIT_HSA_OPEN(runtime);
  if (engine <= 0 || (static_cast<std::uint32_t>(engine) & ~kEngines) != 0) return kInvalidArgument;
  return hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, n, dependencies, done);
}

Answer hsa_amd_memory_copy_engine_status(Agent to_agent, Agent from_agent, std::uint32_t* mask) {
  STRAIT_HSA_OPEN(runtime);
  if (mask == nullptr) return kInvalidArgument;
  std::uint32_t to_node = 0, from_node = 0;
  if (!runtime->node_of(to_agent, to_node) || !runtime->node_of(from_agent, from_node)) return kInvalidAgent;
  *mask = to_node == 0 && from_node == 0 ? 0 : kEngines;
  return *mask == 0 ? kOutOfResources : kSuccess;
}

Answer hsa_memory_copy(void* to, const void* from, std::size_t size) {
  STRAIT_HSA_OPEN(runtime);
  if (to == nullptr || from == nullptr) return kInvalidArgument;
  if (size == 0) return kSuccess;
  Bytes target, source;
  if (!reach_by_cpu(*runtime, to, size, target) || !reach_by_cpu(*runtime, from, size, source)) {
    counts().copies_refused.add();
    return kInvalidAllocation;
  }
  (void)copy_bytes(target, source, size);
  return kSuccess;
}

Answer hsa_amd_memory_fill(void* pointer, std::uint32_t value, std::size_t count) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || reinterpret_cast<std::uintptr_t>(pointer) % sizeof value != 0) return kInvalidArgument;
  if (count == 0) return kSuccess;
  Bytes target;
  if (count > SIZE_MAX / sizeof value || !runtime->reach(pointer, count * sizeof value, target))
    return kInvalidAllocation;
  for (std::size_t i = 0; i < count; ++i) std::memcpy(target.at + i * sizeof value, &value, sizeof value);
  counts().fills.add();
  return kSuccess;
}

Answer hsa_amd_svm_attributes_set(void* pointer, std::size_t size, SvmPair* list, std::size_t n) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || size == 0 || (n != 0 && list == nullptr)) return kInvalidArgument;
  return runtime->advise(reinterpret_cast<std::uint64_t>(pointer), size, list, n);
}

Answer hsa_amd_svm_attributes_get(void* pointer, std::size_t size, SvmPair* list, std::size_t n) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || size == 0 || (n != 0 && list == nullptr)) return kInvalidArgument;
  return runtime->advice(reinterpret_cast<std::uint64_t>(pointer), size, list, n);
}

Answer hsa_amd_svm_prefetch_async(void* pointer, std::size_t size, Agent agent, std::uint32_t n,
                                  const Signal* dependencies, Signal done) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr || size == 0) return kInvalidArgument;
  std::uint32_t node = 0;
  if (!runtime->node_of(agent, node)) return kInvalidAgent;
  std::vector<SignalRef> after;
  SignalRef completes;
  if ((n == 0) != (dependencies == nullptr)) return kInvalidArgument;
  if (done.handle != 0 || n != 0) {
    if (const Answer bad = find_signals(*runtime, n, dependencies, done, after, completes); bad != kSuccess) return bad;
  }
  const bool started = runtime->signals().run_after(std::move(after), std::move(completes), [] { return true; });
  return started ? kSuccess : kOutOfResources;
}

}  // namespace strait::soft::hsa
