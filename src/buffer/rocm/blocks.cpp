// SPDX-License-Identifier: Apache-2.0
#include "buffer/rocm/blocks.hpp"

namespace strait::buffer::rocm {

Blocks& Blocks::of_process() {
  static auto* const blocks = new Blocks;  // the runtime may call back until the very end
  return *blocks;
}

void Blocks::enter(const Hsa& hsa) {
  const std::lock_guard lock(learning_);
  hsa_ = &hsa;
  ++users_;
}

void Blocks::leave() {
  const std::lock_guard lock(learning_);
  if (--users_ != 0) return;
  std::vector<Block> last;
  {
    const std::unique_lock table(table_);
    for (const auto& [base, block] : blocks_) last.push_back(block);
    blocks_.clear();
  }
  for (const Block& block : last) {
    if (block.identity != 0) (void)hsa_->unwatch_free(reinterpret_cast<void*>(block.base), freed);
  }
}

bool Blocks::find_known(std::uint64_t address, Block& out) const {
  const std::shared_lock lock(table_);
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return false;
  const Block& block = std::prev(after)->second;
  if (address - block.base >= block.length_bytes) return false;
  out = block;
  return true;
}

bool Blocks::find(std::uint64_t address, Block& out) {
  return find_known(address, out) || learn(address, out);
}

bool Blocks::learn(std::uint64_t address, Block& out) {
  if (address == 0) return false;
  const std::lock_guard lock(learning_);
  if (find_known(address, out)) return true;
  PointerInfo info;
  if (hsa_->pointer_info(reinterpret_cast<const void*>(address), &info, nullptr, nullptr, nullptr) != kOk) return false;
  if (info.type == kTypeUnknown || info.type == kTypeReserved || info.length_bytes == 0) return false;
  out = {};
  out.base = reinterpret_cast<std::uint64_t>(info.type == kTypeLocked ? info.host_base : info.agent_base);
  out.length_bytes = info.length_bytes;
  out.host_base = reinterpret_cast<std::uint64_t>(info.host_base);
  out.owner = info.owner.handle;
  out.type = info.type;
  if (address - out.base >= out.length_bytes) return false;
  if (info.type != kTypeHsa || hsa_->watch_free == nullptr || hsa_->unwatch_free == nullptr) return true;
  // Written down first: if it is freed from here on, the callback finds it.
  {
    const std::unique_lock table(table_);
    out.identity = ++last_identity_;
    blocks_[out.base] = out;
  }
  if (hsa_->watch_free(reinterpret_cast<void*>(out.base), freed, this) == kOk) return true;
  const std::unique_lock table(table_);
  blocks_.erase(out.base);
  out.identity = 0;  // the runtime does not watch this one: it is asked anew each time
  return true;
}

std::uint64_t Blocks::identity(std::uint64_t address, std::uint64_t length_bytes) {
  Block block;
  if (!find(address, block)) return 0;
  return length_bytes <= block.base + block.length_bytes - address ? block.identity : 0;
}

void Blocks::freed(void* pointer, void* self) {
  Blocks& blocks = *static_cast<Blocks*>(self);
  const auto base = reinterpret_cast<std::uint64_t>(pointer);
  {
    const std::unique_lock lock(blocks.table_);
    blocks.blocks_.erase(base);
  }
  const std::lock_guard lock(blocks.watching_);
  for (auto at = blocks.watches_.begin(); at != blocks.watches_.end();) {
    const auto next = std::next(at);
    if (at->second.base == base) {
      at->second.call(at->second.context, base);
      blocks.watches_.erase(at);
    }
    at = next;
  }
}

Result<std::uint64_t> Blocks::watch(std::uint64_t address, strait_freed_callback call, void* context) {
  Block block;
  if (!find(address, block)) return fail(Code::invalid, "{:#x} is not memory of the HSA runtime", address);
  if (block.identity == 0) return fail(Code::unsupported, "the HSA runtime does not tell when {:#x} is freed", address);
  std::uint64_t watch = 0;
  {
    const std::lock_guard lock(watching_);
    watch = ++last_watch_;
    watches_.emplace(watch, Watch{block.base, call, context});
  }
  // Freed in between: nobody would have told.
  Block now;
  if (find_known(address, now) && now.identity == block.identity) return watch;
  unwatch(watch);
  return fail(Code::invalid, "{:#x} was freed while it was about to be watched", address);
}

void Blocks::unwatch(std::uint64_t watch) {
  const std::lock_guard lock(watching_);
  watches_.erase(watch);
}

}  // namespace strait::buffer::rocm
