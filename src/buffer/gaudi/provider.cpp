// SPDX-License-Identifier: Apache-2.0
#include "buffer/gaudi/provider.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>

#include "base/plugin_requirement.hpp"
#include "buffer/config.hpp"
#include "buffer/gaudi/gaudi.hpp"
#include "buffer/kernel_driver.hpp"
#include "buffer/pci.hpp"
#include "sys/fd.hpp"
#include "sys/pci.hpp"
#include "sys/process.hpp"

namespace strait::buffer::gaudi {
namespace {

constexpr std::uint32_t kMostModules = 64;
constexpr const char* kAskedToAcquire =
    "provider_config has gaudi:acquire=open, which takes every device that HABANA_VISIBLE_MODULES shows this process.";

// "0,2" or "all": what SynapseAI gives to a program that asks for any device. Its lists, and hl-thunk, name all of
// them.
bool is_visible(std::uint32_t module) {
  const char* const text = std::getenv("HABANA_VISIBLE_MODULES");
  if (text == nullptr || std::string_view(text) == "all") return true;
  const std::string padded = fmt::format(",{},", text);
  return padded.find(fmt::format(",{},", module)) != std::string::npos;
}

}  // namespace

Result<std::unique_ptr<GaudiProvider>> GaudiProvider::open(std::string_view config) {
  STRAIT_TRY(const ProviderConfig parsed, ProviderConfig::parse(config, "gaudi"));
  STRAIT_TRY(const Libraries* libraries, Libraries::get());
  ProcessToken token{};
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(token))));
  std::unique_ptr<GaudiProvider> made(new GaudiProvider(*libraries, parsed.ipc_cache, token));
  if (libraries->has_synapse) {
    const int status = libraries->synapse.initialize();
    if (status != kSynOk && status != kSynAlreadyInitialized)
      return fail(Code::unsupported, "SynapseAI does not initialise: it answers {}", status);
    made->initialized_ = status == kSynOk;
  }
  STRAIT_CHECK(made->list_devices());
  if (parsed.acquire_at_open) STRAIT_CHECK(made->acquire_all());
  return made;
}

GaudiProvider::~GaudiProvider() {
  if (in_child()) {
    (void)copies_.release();
    opened_->forget();
    for (auto& [base, far] : far_) (void)new std::shared_ptr<Acquired>(std::move(far.via));
    for (auto& [base, lease] : leases_)
      (void)new Lease(std::move(lease));  // the parent's word is not ours to take back
    for (auto& device : acquired_) (void)new std::shared_ptr<Acquired>(std::move(device));
    for (auto& [fd, device] : fds_) (void)new std::shared_ptr<Acquired>(std::move(device));
    return;
  }
  copies_.reset();
  opened_.reset();
  leases_.clear();
  for (const auto& [address, device] : allocations_) {
    if (acquired_[device]) (void)acquired_[device]->free(address);
  }
  fds_.clear();
  acquired_.clear();
  // Whoever initialised SynapseAI after us was told that it is, and may have a device of it.
  if (initialized_ && !Acquired::somebody_has_one(libraries_)) (void)libraries_.synapse.destroy();
}

Status GaudiProvider::list_modules(std::vector<std::uint32_t>& modules) const {
  if (libraries_.has_synapse) {
    std::uint32_t ids[kMostModules] = {};
    std::uint32_t count = kMostModules;
    if (libraries_.synapse.module_ids(ids, &count) == kSynOk && count <= kMostModules) {
      std::copy_if(ids, ids + count, std::back_inserter(modules), is_visible);
      return {};
    }
  }
  // hl-thunk of 2021 has no count: nodes are tried until one is not there.
  const int count = libraries_.thunk.device_count != nullptr ? libraries_.thunk.device_count(kAnyDevice)
                                                             : static_cast<int>(kMostModules);
  for (int i = 0; i < count && i < static_cast<int>(kMostModules); ++i) {
    if (is_visible(static_cast<std::uint32_t>(i))) modules.push_back(static_cast<std::uint32_t>(i));
  }
  return {};
}

Status GaudiProvider::list_devices() {
  std::vector<std::uint32_t> modules;
  STRAIT_CHECK(list_modules(modules));
  const HlThunk& thunk = libraries_.thunk;
  for (const std::uint32_t module : modules) {
    // Control nodes can be opened by everybody, also while another process computes.
    const int control = thunk.open_control_by_module != nullptr ? thunk.open_control_by_module(module)
                                                                : thunk.open_control(static_cast<int>(module), nullptr);
    if (control < 0) {
      if (thunk.device_count == nullptr) break;
      return fail_errno(control == -1 ? errno : -control,
                        fmt::format("hl-thunk cannot open the control node of module {}", module));
    }
    Slot slot;
    slot.module = module;
    slot.name = fmt::format("gaudi:{}", slots_.size());
    char bus[64] = {};
    if (thunk.pci_bus_id(control, bus, sizeof bus - 1) == 0) slot.pci = sys::pci_address(bus).value_or("");
    // The struct grew; its first three numbers are where SRAM and DRAM begin, and how much DRAM there is.
    alignas(8) std::byte info[2048] = {};
    if (thunk.hw_ip_info(control, info) == 0) {
      std::memcpy(&slot.memory_base, info + 8, sizeof slot.memory_base);
      std::memcpy(&slot.memory_bytes, info + 16, sizeof slot.memory_bytes);
    }
    (void)thunk.close(control);
    slots_.push_back(std::move(slot));
  }
  if (slots_.empty()) {
    return with_remedy(fail(Code::unsupported, "hl-thunk sees no Gaudi"),
                       "Is HABANA_VISIBLE_MODULES empty, or the habanalabs driver not loaded?");
  }
  linked_ = libraries_.has_synapse && addresses_differ();
  acquired_.resize(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) acquired_[i] = Acquired::taken(libraries_, slots_[i]);
  return {};
}

bool GaudiProvider::addresses_differ() const {
  const HlThunk& thunk = libraries_.thunk;
  if (thunk.device_count == nullptr || thunk.open_control_by_module == nullptr) return false;
  // All modules: a link leads to those that are not for this process, too.
  const int count = std::min(thunk.device_count(kAnyDevice), static_cast<int>(kMostModules));
  std::vector<std::pair<std::uint64_t, std::uint64_t>> memories;
  for (int module = 0; module < count; ++module) {
    const int control = thunk.open_control_by_module(static_cast<std::uint32_t>(module));
    if (control < 0) return false;
    alignas(8) std::byte info[2048] = {};
    const bool told = thunk.hw_ip_info(control, info) == 0;
    (void)thunk.close(control);
    std::uint64_t base = 0, length = 0;
    std::memcpy(&base, info + 8, sizeof base);
    std::memcpy(&length, info + 16, sizeof length);
    if (!told || length == 0 || length > UINT64_MAX - base) return false;
    for (const auto& [other, bytes] : memories) {
      if (base < other + bytes && other < base + length) return false;
    }
    memories.emplace_back(base, length);
  }
  return memories.size() > 1;
}

Status GaudiProvider::check_device(std::uint32_t device) const {
  if (device < slots_.size()) return {};
  return fail(Code::invalid, "there is no device {}: gaudi has {}", device, slots_.size());
}

Status GaudiProvider::device_info(std::uint32_t device, strait_device_info& out) const {
  STRAIT_CHECK(check_device(device));
  const Slot& slot = slots_[device];
  out = {};
  plugin::put_text(slot.name, out.name, sizeof out.name);
  plugin::put_text(fmt::format("Gaudi, module {}", slot.module), out.description, sizeof out.description);
  plugin::put_text(libraries_.has_synapse     ? "hl-thunk, SynapseAI, scal"
                   : libraries_.thunk.current ? "hl-thunk"
                                              : "hl-thunk as of 2021",
                   out.driver, sizeof out.driver);
  out.memory_bytes = slot.memory_bytes;
  out.capabilities = STRAIT_CAN_ALLOCATE | STRAIT_CAN_IDENTIFY;
  if (libraries_.has_synapse) out.capabilities |= STRAIT_CAN_COPY;
  if (linked_) out.capabilities |= STRAIT_CAN_IPC;
  if (libraries_.thunk.export_mapped != nullptr || libraries_.thunk.export_by_handle != nullptr)
    out.capabilities |= STRAIT_CAN_EXPORT_DMABUF;
  // Copies between modules are SynapseAI's, and it takes the links.
  if (libraries_.has_synapse) plugin::put_text("Gaudi link", out.link, sizeof out.link);
  fill_pci(slot.pci, out);
  const std::lock_guard lock(mutex_);
  if (acquired_[device]) out.free_bytes = acquired_[device]->free_bytes();
  return {};
}

Status GaudiProvider::acquire_all() {
  for (std::uint32_t device = 0; device < device_count(); ++device) {
    const auto taken = acquire(device);
    if (taken) continue;
    Error why = taken.error();
    why.remedy += (why.remedy.empty() ? "" : " ") + std::string(kAskedToAcquire);
    return why;
  }
  return {};
}

Result<std::shared_ptr<Acquired>> GaudiProvider::acquire(std::uint32_t device) {
  STRAIT_CHECK(check_device(device));
  const std::lock_guard lock(mutex_);
  if (!acquired_[device]) {
    STRAIT_TRY(acquired_[device], Acquired::take(libraries_, slots_[device]));
  }
  return acquired_[device];
}

bool GaudiProvider::find(std::uint64_t address, Found& out) const {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < acquired_.size(); ++i) {
    // A framework may acquire a device at any time, and tells nobody: it is looked for when an address is that
    // device's.
    const Slot& slot = slots_[i];
    if (!acquired_[i] && address - slot.memory_base < slot.memory_bytes)
      acquired_[i] = Acquired::taken(libraries_, slot);
    if (!acquired_[i] || !acquired_[i]->find(address, out.memory)) continue;
    out.device = acquired_[i];
    out.index = i;
    return true;
  }
  return find_far(address, out);
}

bool GaudiProvider::classify(std::uint64_t address, strait_claim& out) const {
  Found found;
  if (!find(address, found)) return false;
  out = {};
  out.base = found.memory.base;
  out.length_bytes = found.memory.length_bytes;
  out.identity = found.memory.identity;
  out.device = found.index;
  out.sort = STRAIT_SORT_DEVICE;
  out.capabilities = STRAIT_CAN_IDENTIFY;
  if (libraries_.has_synapse) out.capabilities |= STRAIT_CAN_COPY;
  if (found.far) return true;
  if (linked_ && !found.memory.pool) {
    out.capabilities |= STRAIT_CAN_IPC;
    out.ipc_ways = STRAIT_IPC_FD;
  }
  if (libraries_.thunk.export_mapped != nullptr || libraries_.thunk.export_by_handle != nullptr)
    out.capabilities |= STRAIT_CAN_EXPORT_DMABUF;
  return true;
}

// One export covers the whole pool, for as long as the device is held.
bool GaudiProvider::range(std::uint64_t address, strait_range& out) const {
  Found found;
  if (!find(address, found)) return false;
  const GaudiMemory whole = libraries_.has_synapse && !found.far ? found.device->pool() : found.memory;
  out = {whole.base, whole.length_bytes, whole.identity};
  return true;
}

std::uint64_t GaudiProvider::identity(std::uint64_t address, std::uint64_t length_bytes) const {
  Found found;
  if (find(address, found) && length_bytes <= found.memory.base + found.memory.length_bytes - address)
    return found.memory.identity;
  const std::lock_guard lock(mutex_);
  for (const auto& device : acquired_) {
    if (!device) continue;
    const GaudiMemory pool = device->pool();
    if (address == pool.base && length_bytes == pool.length_bytes) return pool.identity;
  }
  return 0;
}

Result<std::uint64_t> GaudiProvider::allocate(std::uint32_t device, std::uint64_t length_bytes) {
  STRAIT_CHECK(check_device(device));
  if (length_bytes == 0) return fail(Code::invalid, "cannot allocate 0 bytes on {}", slots_[device].name);
  STRAIT_TRY(const auto acquired, acquire(device));
  STRAIT_TRY(const std::uint64_t address, acquired->allocate(length_bytes));
  const std::lock_guard lock(mutex_);
  allocations_.emplace(address, device);
  allocated_.add();
  return address;
}

Status GaudiProvider::free(std::uint64_t address) {
  std::shared_ptr<Acquired> device;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end())
      return fail(Code::invalid, "{:#x} is not Gaudi memory that strait allocated: freed already, or somebody else's",
                  address);
    device = acquired_[found->second];
    allocations_.erase(found);
    leases_.erase(address);
  }
  STRAIT_CHECK(device->free(address));
  freed_.add();
  return {};
}

Result<GaudiProvider::Found> GaudiProvider::side(std::uint64_t address, std::uint64_t length_bytes) const {
  if (address == 0) return fail(Code::invalid, "a copy cannot start at the null address");
  if (length_bytes > UINT64_MAX - address)
    return fail(Code::invalid, "{} bytes at {:#x} wrap around", length_bytes, address);
  Found found;
  if (!find(address, found)) return found;
  if (found.memory.identity == 0)
    return fail(Code::gone, "the Gaudi memory at {:#x} is no more: the process that owned it freed it, or ended",
                address);
  if (length_bytes > found.memory.base + found.memory.length_bytes - address)
    return fail(Code::invalid, "{} bytes at {:#x} run past the Gaudi allocation of {} bytes at {:#x}", length_bytes,
                address, found.memory.length_bytes, found.memory.base);
  return found;
}

Result<std::uint64_t> GaudiProvider::copy(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes) {
  if (length_bytes == 0) return 0;
  STRAIT_TRY(const Found target, side(to, length_bytes));
  STRAIT_TRY(const Found source, side(from, length_bytes));
  if (!target.device && !source.device) return fail(Code::invalid, "neither {:#x} nor {:#x} is Gaudi memory", to, from);
  if (target.far && source.far)
    return fail(Code::unsupported, "{:#x} and {:#x} are both Gaudi memory of other processes: one side has to be here",
                to, from);
  if (target.far || source.far) {
    const auto& near = target.far ? source : target;
    const auto host = near.device  ? Copies::FarHost::none
                      : source.far ? Copies::FarHost::target
                                   : Copies::FarHost::source;
    const auto& device = near.device ? near.device : target.far ? target.device : source.device;
    return copies_->start_far(device, to, from, length_bytes, host);
  }
  return copies_->start(target.device, to, source.device, from, length_bytes);
}

std::int32_t GaudiProvider::copy_done(std::uint64_t ticket) {
  return copies_->done(ticket);
}

Status GaudiProvider::Port::read(std::uint64_t address, void* into, std::uint64_t length_bytes) {
  STRAIT_TRY(const std::uint64_t ticket, owner_.copy(reinterpret_cast<std::uint64_t>(into), address, length_bytes));
  return owner_.copies_->wait(ticket);
}

Status GaudiProvider::Port::write(std::uint64_t address, const void* from, std::uint64_t length_bytes) {
  STRAIT_TRY(const std::uint64_t ticket, owner_.copy(address, reinterpret_cast<std::uint64_t>(from), length_bytes));
  return owner_.copies_->wait(ticket);
}

Result<ExportedRange> GaudiProvider::export_fd(std::uint64_t address, std::uint64_t length_bytes, std::uint32_t flags) {
  if (flags != 0) return fail(Code::unsupported, "Gaudi memory: no export flags {:#x}", flags);
  if (length_bytes == 0) return fail(Code::invalid, "cannot export 0 bytes at {:#x}", address);
  Found found;
  if (!find(address, found))
    return fail(Code::invalid, "cannot export {:#x}: it is not Gaudi memory, freed or never allocated", address);
  if (found.far)
    return fail(Code::unsupported, "cannot export {:#x}: it is memory of another process, which can", address);
  if (length_bytes > found.memory.base + found.memory.length_bytes - address)
    return fail(Code::invalid, "cannot export {} bytes at {:#x}: they end past the allocation of {} bytes at {:#x}",
                length_bytes, address, found.memory.length_bytes, found.memory.base);
  STRAIT_TRY(const ExportedRange made, found.device->export_range(found.memory, address, length_bytes));
  const std::lock_guard lock(mutex_);
  fds_.insert_or_assign(made.fd, std::move(found.device));
  exported_.add();
  return made;
}

void GaudiProvider::close_fd(std::int32_t fd) {
  std::shared_ptr<Acquired> last;  // after the lock
  sys::Fd closed;
  const std::lock_guard lock(mutex_);
  const auto found = fds_.find(fd);
  if (found == fds_.end()) {
    bad_fd_closes_.add();
    return;
  }
  last = std::move(found->second);
  fds_.erase(found);
  closed = sys::Fd(fd);
  fd_closes_.add();
}

Result<strait_flush_need> GaudiProvider::flush(std::uint32_t device, bool perform) {
  STRAIT_CHECK(check_device(device));
  strait_flush_need out{};
  const bool by_call = libraries_.thunk.flush_writes != nullptr;
  out.need = by_call ? STRAIT_FLUSH_BY_CALL : STRAIT_FLUSH_BY_READ;
  plugin::put_text(by_call ? "hlthunk_cs_flush_pci_hbw_writes" : "no flush call in this hl-thunk: read back by the NIC",
                   out.text, sizeof out.text);
  if (!perform || !by_call) return out;
  STRAIT_TRY(const auto acquired, acquire(device));
  STRAIT_CHECK(acquired->flush());
  out.done = 1;
  return out;
}

// Asked of SynapseAI, which answers once it is initialised.
std::string GaudiProvider::synapse_version() const {
  char text[64] = {};
  if (libraries_.synapse.version == nullptr || libraries_.synapse.version(text, sizeof text - 1) != kSynOk) return "";
  return text;
}

bool GaudiProvider::requirement(GaudiProvider* open, std::uint32_t index, strait_requirement& out) {
  using plugin::met;
  const auto libraries = Libraries::get();
  if (index == 0)
    return plugin::say(out, "libhl-thunk.so", met(libraries.has_value()), 0,
                       !libraries                    ? libraries.error().text
                       : (*libraries)->thunk.current ? "as of today"
                                                     : "as of 2021");
  if (!libraries) return false;
  switch (index) {
    case 1: {
      const std::string version = open != nullptr && (*libraries)->has_synapse ? open->synapse_version() : "";
      return plugin::say(out, "libSynapse.so and libscal.so", met((*libraries)->has_synapse), STRAIT_CAN_COPY,
                         !(*libraries)->has_synapse ? "not used: " + (*libraries)->no_synapse_because
                         : version.empty()          ? "loaded"
                                                    : "SynapseAI says it is of version " + version);
    }
    case 2: {
      const bool there = (*libraries)->thunk.export_mapped != nullptr;
      return plugin::say(out, "hlthunk_device_mapped_memory_export_dmabuf_fd (Gaudi 2 and later)", met(there),
                         STRAIT_CAN_EXPORT_DMABUF, there ? "present" : "this hl-thunk is older");
    }
    case 3:
      return plugin::say(
          out, "habanalabs kernel driver", open == nullptr ? std::uint32_t{STRAIT_REQUIREMENT_UNKNOWN} : met(true), 0,
          open == nullptr ? "no provider is open" : "its control nodes open; " + kernel_driver_text("habanalabs"));
    default: return false;
  }
}

std::string GaudiProvider::counters() const {
  const OpenedHandles::Counts handles = opened_->counts();
  const std::lock_guard lock(mutex_);
  std::uint64_t taken = 0;
  std::uint64_t pool_exports = 0;
  for (const auto& device : acquired_) {
    if (!device) continue;
    ++taken;
    pool_exports += device->pool_exports();
  }
  return fmt::format(
      "opens={},acquired={},allocations={},frees={},live_allocations={},exports={},pool_exports={},fd_closes={},"
      "live_fds={},bad_fd_closes={},port_copies={},ipc_exports={},ipc_opens={},ipc_hits={},ipc_closes={},ipc_open_now={"
      "},{}",
      slots_.size(), taken, allocated_.load(), freed_.load(), allocations_.size(), exported_.load(), pool_exports,
      fd_closes_.load(), fds_.size(), bad_fd_closes_.load(), port_.used(), ipc_exports_.load(), handles.opens,
      handles.hits, handles.closes, handles.open_now, copies_->counters());
}

}  // namespace strait::buffer::gaudi

namespace strait::buffer {

const strait_provider_ops* gaudi_provider_ops() {
  static const strait_provider_ops ops = Face<gaudi::GaudiProvider>::ops("gaudi");
  return &ops;
}

}  // namespace strait::buffer
