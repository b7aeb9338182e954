// SPDX-License-Identifier: Apache-2.0
#include "buffer/providers.hpp"

#include "buffer/host.hpp"

namespace strait::buffer {
namespace {

Status check_range(Range range) {
  if (range.address == 0) return fail(Code::invalid, "the null address is nobody's memory");
  if (range.length_bytes == 0) return fail(Code::invalid, "a range of 0 bytes at {:#x} names no memory", range.address);
  if (range.length_bytes > UINT64_MAX - range.address) {
    return fail(Code::invalid, "{} bytes at {:#x} wrap around the end of the address space", range.length_bytes,
                range.address);
  }
  return {};
}

Result<Claim> claim_of(Provider& provider, const strait_claim& raw, Range asked) {
  Range whole{raw.base, raw.length_bytes};
  std::uint64_t identity = raw.identity;
  if (raw.sort == STRAIT_SORT_VMM) {
    // The claim is one mapping; a framework's buffer runs over many.
    if (const auto range = provider.range_of(asked.address)) {
      whole = {range->base, range->length_bytes};
      identity = range->identity;
    }
  }
  if (asked.end() > whole.end()) {
    return fail(Code::invalid, "the range ends {} bytes past the allocation of {} at {:#x} ({})",
                asked.end() - whole.end(), size_text(whole.length_bytes), whole.address,
                provider.devices()[raw.device].name);
  }
  Claim claim;
  claim.provider = &provider;
  claim.device = &provider.devices()[raw.device];
  claim.device_index = raw.device;
  claim.asked = asked;
  claim.whole = whole;
  claim.identity = identity;
  claim.capabilities = raw.capabilities;
  claim.sort = raw.sort;
  claim.ipc_ways = raw.ipc_ways;
  claim.block_identity = raw.block_identity;
  if (raw.cpu_address != 0) claim.cpu_address = raw.cpu_address + (asked.address - raw.base);
  return claim;
}

}  // namespace

Result<std::unique_ptr<Providers>> Providers::open(std::vector<Plugin> plugins) {
  std::unique_ptr<Providers> all(new Providers(sys::AddressSpace::open()));
  STRAIT_TRY(Plugin host, use_plugin(host_provider_ops()));
  plugins.insert(plugins.begin(), std::move(host));
  for (Plugin& plugin : plugins) {
    const bool optional = plugin.optional;
    const std::string kind = plugin.ops->kind;
    auto opened = Provider::open(std::move(plugin));
    if (!opened && optional && opened.error().code == Code::unsupported) {
      all->absent_.push_back({kind, opened.error().text});
      continue;
    }
    STRAIT_TRY(auto provider, std::move(opened));
    for (const Device& device : provider->devices()) {
      for (const Device* other : all->devices()) {
        if (other->name == device.name)
          return fail(Code::invalid, "two memory providers have a device named {}", device.name);
      }
    }
    all->providers_.push_back(std::move(provider));
  }
  return all;
}

Providers::~Providers() {
  while (!providers_.empty()) providers_.pop_back();
}

Result<Claim> Providers::classify(const void* address, std::uint64_t length_bytes) const {
  return classify(Range{reinterpret_cast<std::uint64_t>(address), length_bytes});
}

Result<Claim> Providers::classify(Range range) const {
  STRAIT_CHECK(check_range(range));
  // Host is last: its answer costs system calls, an accelerator's a look into a table.
  for (std::size_t i = 1; i <= providers_.size(); ++i) {
    Provider& provider = *providers_[i % providers_.size()];
    const auto claim = provider.classify(range.address);
    if (!claim) continue;
    if (claim->sort != STRAIT_SORT_PINNED_HOST) return claim_of(provider, *claim, range);
    // Host memory that a runtime knows is host memory all the same: where it lies, the kernel says.
    STRAIT_TRY(Claim pinned, classify_host(range));
    pinned.sort = STRAIT_SORT_PINNED_HOST;
    return pinned;
  }
  return classify_host(range);
}

// Memory that no provider allocated: malloc, mmap, the stack, or no memory at all. The kernel knows.
Result<Claim> Providers::classify_host(Range range) const {
  using Kind = sys::RangeAccess::Kind;
  const sys::RangeAccess access = space_.look(range.address, range.length_bytes);
  const char* const whence = access.weak_from > range.address ? " (inside the range)" : "";
  if (access.kind == Kind::unmapped) {
    return with_remedy(fail(Code::invalid, "{:#x}{} is not mapped in this process", access.weak_from, whence),
                       "Was the memory freed, or is the length too long?");
  }
  if (access.kind == Kind::no_access) {
    return with_remedy(
        fail(Code::invalid, "{:#x}{} is reserved but not accessible, and no accelerator claims it", access.weak_from,
             whence),
        "Device memory that was freed, of another Node, or of a vendor whose provider is not loaded looks so.");
  }
  return host_claim(range, access.kind == Kind::read_write);
}

Claim Providers::host_claim(Range range, bool writable) const {
  Provider& host = *providers_.front();
  Claim claim;
  claim.provider = &host;
  claim.device = &host.devices().front();
  claim.asked = claim.whole = range;
  claim.capabilities = kHostCapabilities;
  claim.writable = writable;
  claim.sort = STRAIT_SORT_HOST;
  claim.cpu_address = range.address;
  return claim;
}

Result<Providers::Place> Providers::find(std::string_view device) const {
  if (device.empty()) device = kHostDevice;
  std::string names;
  for (const auto& provider : providers_) {
    for (std::uint32_t i = 0; i < provider->devices().size(); ++i) {
      const Device& candidate = provider->devices()[i];
      if (candidate.name == device) return Place{provider.get(), &candidate, i};
      names += (names.empty() ? "" : ", ") + candidate.name;
    }
  }
  return with_remedy(fail(Code::invalid, "there is no memory device \"{}\"", device), "Here are: " + names + ".");
}

Result<Memory> Providers::allocate(std::string_view device, std::uint64_t length_bytes) {
  STRAIT_TRY(const Place place, find(device));
  STRAIT_TRY(const std::uint64_t address, place.provider->allocate(place.index, length_bytes));
  return Memory(place.provider, place.device, Range{address, length_bytes});
}

Status Providers::copy(void* to, const void* from, std::uint64_t length_bytes, sys::Deadline deadline) {
  if (length_bytes == 0) return {};
  STRAIT_TRY(const Claim target, classify(to, length_bytes));
  STRAIT_TRY(const Claim source, classify(from, length_bytes));
  if (!target.writable) {
    return fail(Code::invalid, "{:#x} cannot be the target of a copy: this process may only read it",
                target.asked.address);
  }
  if (target.provider != source.provider && !target.cpu_accessible() && !source.cpu_accessible()) {
    return with_remedy(
        fail(Code::unsupported, "no provider copies from {} to {} directly", source.device->name, target.device->name),
        "Copy through host memory.");
  }
  Provider& copier = source.cpu_accessible() ? *target.provider : *source.provider;
  STRAIT_TRY(const std::uint64_t ticket, copier.start_copy(target.asked.address, source.asked.address, length_bytes));
  return copier.wait_copy(ticket, deadline);
}

std::vector<const Device*> Providers::devices() const {
  std::vector<const Device*> all;
  for (const auto& provider : providers_) {
    for (const Device& device : provider->devices()) all.push_back(&device);
  }
  return all;
}

}  // namespace strait::buffer
