// SPDX-License-Identifier: Apache-2.0
// Names of agents and pools. A handle is a number with a mark in it, so that one from nowhere is told from a real one.
#include "soft/hsa/runtime.hpp"

namespace strait::soft::hsa {
namespace {

constexpr std::uint64_t kAgentMark = 0x5341'4745'0000'0000;
constexpr std::uint64_t kPoolMark = 0x5350'4f4f'0000'0000;
constexpr std::uint64_t kMarkBits = 0xffff'ffff'0000'0000;

MemoryPool pool_name(PoolKind kind, std::uint32_t node) {
  return MemoryPool{kPoolMark | std::uint64_t{node} << 8 | static_cast<std::uint32_t>(kind)};
}

}  // namespace

Agent Runtime::agent_of(std::uint32_t node) {
  return Agent{kAgentMark | node};
}

bool Runtime::node_of(Agent agent, std::uint32_t& node) const {
  if ((agent.handle & kMarkBits) != kAgentMark) return false;
  node = static_cast<std::uint32_t>(agent.handle);
  return node == 0 || gpu_of(node) != nullptr;
}

const Gpu* Runtime::gpu_of(std::uint32_t node) const {
  for (const Gpu& gpu : gpus_) {
    if (gpu.node == node) return &gpu;
  }
  return nullptr;
}

Gpu* Runtime::gpu_at(std::uint32_t node) {
  for (Gpu& gpu : gpus_) {
    if (gpu.node == node) return &gpu;
  }
  return nullptr;
}

bool Runtime::pool_of(MemoryPool pool, PoolName& out) const {
  if ((pool.handle & kMarkBits) != kPoolMark) return false;
  const auto word = static_cast<std::uint32_t>(pool.handle);
  out = {static_cast<PoolKind>(word & 0xff), word >> 8};
  for (const MemoryPool& known : pools_of(out.node)) {
    if (known.handle == pool.handle) return true;
  }
  return false;
}

std::vector<MemoryPool> Runtime::pools_of(std::uint32_t node) const {
  if (node == 0)
    return {pool_name(PoolKind::cpu_fine, 0), pool_name(PoolKind::cpu_kernarg, 0), pool_name(PoolKind::cpu_coarse, 0)};
  if (gpu_of(node) == nullptr) return {};
  return {pool_name(PoolKind::gpu_coarse, node), pool_name(PoolKind::gpu_fine, node),
          pool_name(PoolKind::gpu_group, node)};
}

std::uint64_t Runtime::available_bytes(std::uint32_t node) {
  const std::lock_guard lock(mutex_);
  forget_closed_exports_locked();
  const Gpu* gpu = gpu_of(node);
  return gpu == nullptr ? 0 : gpu->arena->memory_bytes() - gpu->arena->used_bytes();
}

}  // namespace strait::soft::hsa
