// SPDX-License-Identifier: Apache-2.0
#include "buffer/rocm/provider.hpp"

#include <cstring>
#include <span>

#include "buffer/config.hpp"
#include "buffer/pci.hpp"
#include "buffer/rocm/rocm.hpp"
#include "sys/process.hpp"

namespace strait::buffer::rocm {

Result<std::unique_ptr<RocmProvider>> RocmProvider::open(std::string_view config) {
  STRAIT_TRY(const ProviderConfig parsed, ProviderConfig::parse(config, "rocm"));
  STRAIT_TRY(const Hsa* hsa, Hsa::get());
  ProcessToken token{};
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(token))));
  std::unique_ptr<RocmProvider> made(new RocmProvider(*hsa, parsed.ipc_cache, token));
  if (const HsaStatus status = hsa->init(); status != kOk) {
    Error error = hsa->failed(status, "initialise the HSA runtime");
    error.code = Code::unsupported;  // no kernel driver, no device
    return error;
  }
  made->blocks_.enter(*hsa);
  made->entered_ = true;
  STRAIT_CHECK(made->find_agents());
  std::map<std::uint64_t, MemoryPool> pools;
  for (const Gpu& gpu : made->gpus_) pools.emplace(gpu.agent.handle, gpu.pool);
  made->copies_ = std::make_unique<Copies>(*hsa, made->blocks_, made->cpu_, pools, parsed.cpu_copies);
  return made;
}

RocmProvider::~RocmProvider() {
  if (in_child()) {
    (void)copies_.release();
    (void)opened_.release();
    return;
  }
  copies_.reset();  // waits for what is queued
  opened_.reset();
  for (const auto& [base, device] : allocations_) (void)hsa_.pool_free(reinterpret_cast<void*>(base));
  if (!entered_) return;
  blocks_.leave();
  (void)hsa_.shut_down();
}

Status RocmProvider::find_agents() {
  // The runtime's own list: ROCR_VISIBLE_DEVICES has already been heard.
  std::vector<Agent> agents;
  const HsaStatus status = hsa_.iterate_agents(
      [](Agent agent, void* into) -> HsaStatus {
        static_cast<std::vector<Agent>*>(into)->push_back(agent);
        return kOk;
      },
      &agents);
  if (status != kOk) return hsa_.failed(status, "list the HSA agents");
  for (const Agent agent : agents) {
    std::uint32_t device = 0;
    if (hsa_.agent_info(agent, kAgentDevice, &device) != kOk) continue;
    if (device == 0 && !has_cpu_) {
      cpu_ = agent;
      has_cpu_ = true;
    }
    if (device == 1) STRAIT_CHECK(add_gpu(agent));
  }
  if (gpus_.empty()) {
    return with_remedy(fail(Code::unsupported, "the HSA runtime sees no GPU"),
                       "Is ROCR_VISIBLE_DEVICES empty, or amdgpu not loaded?");
  }
  if (!has_cpu_) return fail(Code::unsupported, "the HSA runtime sees no CPU agent");
  bool dmabuf = false;
  // Releases before the question existed answer with an error: then the call itself is the test.
  const bool asked = hsa_.system_info(kSystemDmabuf, &dmabuf) == kOk;
  exports_ = hsa_.export_dmabuf != nullptr && hsa_.close_dmabuf != nullptr && (dmabuf || !asked);
  return {};
}

Status RocmProvider::add_gpu(Agent agent) {
  Gpu gpu;
  gpu.agent = agent;
  gpu.name = fmt::format("rocm:{}", gpus_.size());
  char text[64] = {};
  if (hsa_.agent_info(agent, kAgentProduct, text) == kOk || hsa_.agent_info(agent, kAgentName, text) == kOk) {
    text[sizeof text - 1] = '\0';
    gpu.product = text;
  }
  std::uint32_t bdf = 0;
  std::uint32_t domain = 0;
  if (hsa_.agent_info(agent, kAgentBdf, &bdf) == kOk) {
    (void)hsa_.agent_info(agent, kAgentDomain, &domain);
    gpu.pci = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain & 0xffff, bdf >> 8 & 0xff, bdf >> 3 & 0x1f, bdf & 7);
  }
  struct Search {
    const Hsa& hsa;
    Gpu& gpu;
  } search{hsa_, gpu};
  const HsaStatus status = hsa_.iterate_pools(
      agent,
      [](MemoryPool pool, void* into) -> HsaStatus {
        auto& [hsa, found] = *static_cast<Search*>(into);
        std::uint32_t segment = 1;
        std::uint32_t flags = 0;
        std::size_t bytes = 0;
        bool allocates = false;
        (void)hsa.pool_info(pool, kPoolSegment, &segment);
        (void)hsa.pool_info(pool, kPoolFlags, &flags);
        (void)hsa.pool_info(pool, kPoolBytes, &bytes);
        (void)hsa.pool_info(pool, kPoolAllocates, &allocates);
        if (segment != 0 || !allocates || (flags & kFlagCoarse) == 0) return kOk;
        found.pool = pool;
        found.memory_bytes = bytes;
        return kInfoBreak;
      },
      &search);
  if (status != kOk && status != kInfoBreak) return hsa_.failed(status, "list the memory pools of " + gpu.name);
  if (gpu.memory_bytes == 0) return fail(Code::unsupported, "{} has no pool of device memory", gpu.name);
  gpus_.push_back(std::move(gpu));
  return {};
}

Result<const RocmProvider::Gpu*> RocmProvider::gpu_at(std::uint32_t device) const {
  if (device >= gpus_.size()) return fail(Code::invalid, "there is no device {}: rocm has {}", device, gpus_.size());
  return &gpus_[device];
}

Status RocmProvider::device_info(std::uint32_t device, strait_device_info& out) const {
  STRAIT_TRY(const Gpu* gpu, gpu_at(device));
  out = {};
  plugin::put_text(gpu->name, out.name, sizeof out.name);
  plugin::put_text(gpu->product.empty() ? "ROCm device" : gpu->product, out.description, sizeof out.description);
  plugin::put_text("ROCm (HSA runtime)", out.driver, sizeof out.driver);
  out.memory_bytes = gpu->memory_bytes;
  out.capabilities = STRAIT_CAN_ALLOCATE | STRAIT_CAN_COPY | STRAIT_CAN_PEER_MEMORY;
  if (exports_) out.capabilities |= STRAIT_CAN_EXPORT_DMABUF;
  if (hsa_.watch_free != nullptr && hsa_.unwatch_free != nullptr)
    out.capabilities |= STRAIT_CAN_IDENTIFY | STRAIT_CAN_WATCH;
  if (hsa_.ipc_create != nullptr && hsa_.ipc_attach != nullptr && hsa_.ipc_detach != nullptr)
    out.capabilities |= STRAIT_CAN_IPC;
  fill_pci(gpu->pci, out);
  std::uint64_t free_bytes = 0;
  if (hsa_.agent_info(gpu->agent, kAgentMemoryFree, &free_bytes) == kOk) out.free_bytes = free_bytes;
  return {};
}

bool RocmProvider::device_of(const Block& block, std::uint32_t& device) const {
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].agent.handle != block.owner) continue;
    device = i;
    return true;
  }
  return false;
}

bool RocmProvider::classify(std::uint64_t address, strait_claim& out) const {
  Block block;
  if (!blocks_.find(address, block)) return false;
  out = {};
  out.base = block.base;
  out.length_bytes = block.length_bytes;
  out.cpu_address = block.host_base;
  if (block.type == kTypeLocked || !device_of(block, out.device)) {
    // hipHostMalloc is an allocation with a CPU as owner.
    out.sort = STRAIT_SORT_PINNED_HOST;
    out.capabilities = STRAIT_CAN_COPY | STRAIT_CPU_ACCESSIBLE;
    return true;
  }
  out.sort = block.type == kTypeVmem ? STRAIT_SORT_VMM : STRAIT_SORT_DEVICE;
  out.identity = block.identity;
  out.capabilities = STRAIT_CAN_COPY | STRAIT_CAN_PEER_MEMORY;
  if (exports_) out.capabilities |= STRAIT_CAN_EXPORT_DMABUF;
  if (block.identity != 0) out.capabilities |= STRAIT_CAN_IDENTIFY | STRAIT_CAN_WATCH;
  if (block.host_base != 0) out.capabilities |= STRAIT_CAN_MAP_CPU;
  if (block.type == kTypeHsa && hsa_.ipc_create != nullptr && hsa_.ipc_attach != nullptr) {
    out.capabilities |= STRAIT_CAN_IPC;
    out.ipc_ways = STRAIT_IPC_BYTES;
  }
  return true;
}

std::uint64_t RocmProvider::identity(std::uint64_t address, std::uint64_t length_bytes) const {
  return blocks_.identity(address, length_bytes);
}

Result<std::uint64_t> RocmProvider::watch(std::uint64_t address, strait_freed_callback call, void* context) {
  return blocks_.watch(address, call, context);
}

void RocmProvider::unwatch(std::uint64_t watch) {
  blocks_.unwatch(watch);
}

Result<RocmProvider::Held> RocmProvider::hold(std::uint64_t address, std::uint64_t length_bytes,
                                              const char* what) const {
  if (length_bytes == 0) return fail(Code::invalid, "cannot {} 0 bytes at {:#x}", what, address);
  Held held;
  if (!blocks_.find(address, held.block) || held.block.type == kTypeLocked || !device_of(held.block, held.device))
    return fail(Code::invalid, "cannot {} {:#x}: it is not ROCm device memory, freed or never allocated", what,
                address);
  if (length_bytes > held.block.base + held.block.length_bytes - address) {
    return fail(Code::invalid, "cannot {} {} bytes at {:#x}: they end past the allocation of {} bytes at {:#x}", what,
                length_bytes, address, held.block.length_bytes, held.block.base);
  }
  return held;
}

Result<std::uint64_t> RocmProvider::allocate(std::uint32_t device, std::uint64_t length_bytes) {
  STRAIT_TRY(const Gpu* gpu, gpu_at(device));
  if (length_bytes == 0) return fail(Code::invalid, "cannot allocate 0 bytes on {}", gpu->name);
  void* memory = nullptr;
  if (const HsaStatus status = hsa_.pool_allocate(gpu->pool, length_bytes, 0, &memory); status != kOk) {
    Error error = hsa_.failed(status, fmt::format("allocate {} bytes on {}", length_bytes, gpu->name));
    if (length_bytes > gpu->memory_bytes) error.code = Code::limit;
    return error;
  }
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  const std::lock_guard lock(mutex_);
  allocations_.emplace(address, device);
  allocated_.add();
  return address;
}

Status RocmProvider::free(std::uint64_t address) {
  {
    const std::lock_guard lock(mutex_);
    if (allocations_.erase(address) == 0)
      return fail(Code::invalid, "{:#x} is not ROCm memory that strait allocated: freed already, or somebody else's",
                  address);
  }
  if (const HsaStatus status = hsa_.pool_free(reinterpret_cast<void*>(address)); status != kOk)
    return hsa_.failed(status, fmt::format("free {:#x}", address));
  freed_.add();
  return {};
}

Result<std::uint64_t> RocmProvider::copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  return copies_->start(to, from, length_bytes);
}

std::int32_t RocmProvider::copy_done(std::uint64_t ticket) {
  return copies_->done(ticket);
}

Status RocmProvider::Port::read(std::uint64_t address, void* into, std::uint64_t length_bytes) {
  return owner_.copies_->run(reinterpret_cast<std::uint64_t>(into), address, length_bytes);
}

Status RocmProvider::Port::write(std::uint64_t address, const void* from, std::uint64_t length_bytes) {
  return owner_.copies_->run(address, reinterpret_cast<std::uint64_t>(from), length_bytes);
}

}  // namespace strait::buffer::rocm

namespace strait::buffer {

const strait_provider_ops* rocm_provider_ops() {
  static const strait_provider_ops ops = Face<rocm::RocmProvider>::ops("rocm");
  return &ops;
}

}  // namespace strait::buffer
