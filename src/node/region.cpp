// SPDX-License-Identifier: Apache-2.0
// Sharing memory: recognise, export, register; and the way back.
#include "node/region.hpp"

#include <algorithm>

#include "node/core.hpp"
#include "node/lane.hpp"

namespace strait::node {
namespace {

std::uint32_t nic_access(std::uint32_t access) {
  std::uint32_t rights = 0;
  if (access & STRAIT_REMOTE_READ) rights |= STRAIT_NIC_REMOTE_READ;
  // A NIC demands local write beside the right to write from afar.
  if (access & STRAIT_REMOTE_WRITE) rights |= STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_LOCAL_WRITE;
  if (access & STRAIT_REMOTE_ATOMIC) rights |= STRAIT_NIC_REMOTE_ATOMIC | STRAIT_NIC_LOCAL_WRITE;
  return rights;
}

constexpr std::uint32_t kAllAccess = STRAIT_REMOTE_READ | STRAIT_REMOTE_WRITE | STRAIT_REMOTE_ATOMIC;

}  // namespace

Status Core::stage(strait_region& region, const buffer::Claim& claim) {
  if (region.access != 0) {
    std::string reasons;
    for (const exports::Rejected& no : region.exported->rejected)
      reasons += fmt::format("; {}: {}", exports::way_name(no.way), no.reason);
    return with_remedy(
        fail(Code::unsupported, "no NIC can reach this memory of {}, so peers cannot be given access to it{}",
             claim.device->name, reasons),
        "share it with access 0 (as a local source or destination), or share host memory");
  }
  STRAIT_TRY(exports::Staging staging,
             exports::Staging::make(*providers_, claim, {region.address, region.length_bytes}));
  region.staging = std::make_unique<exports::Staging>(std::move(staging));
  region.staged = true;
  region.local_address = reinterpret_cast<std::uint64_t>(region.staging->data());
  rail::MemoryRequest request;
  request.address = region.local_address;
  request.length_bytes = region.length_bytes;
  request.access = STRAIT_NIC_LOCAL_WRITE;
  STRAIT_TRY(region.bounce_key, rails_[0].nic->register_memory(request));
  region.lkeys[0] = region.bounce_key.lkey();
  return {};
}

Status Core::register_local(strait_region& region, const buffer::Claim& claim) {
  const exports::Policy policy{settings_.allow_staging};
  STRAIT_TRY(region.exported, book_.get(claim, rails_[0].abilities, policy));
  if (region.exported->way == exports::Way::staged) return stage(region, claim);
  region.local_address = region.address;
  const keys::Allocation allocation{claim.whole.address, claim.whole.length_bytes, claim.identity,
                                    region.memory != nullptr};
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    STRAIT_TRY(keys::Lease lease,
               rails_[i].cache->acquire(allocation, claim.writable ? std::uint32_t{STRAIT_NIC_LOCAL_WRITE} : 0u));
    region.lkeys[i] = lease.lkey();
    region.local.push_back(std::move(lease));
  }
  return {};
}

Result<rail::MemoryKey> Core::register_part(const strait_region& region, Rail& rail, std::uint64_t offset,
                                            std::uint64_t length_bytes, std::uint32_t access) {
  const exports::Exported& exported = *region.exported;
  rail::MemoryRequest request;
  request.address = region.address + offset;
  request.length_bytes = length_bytes;
  request.access = nic_access(access);
  // Host pages are reached by address: what peers may touch is never lent, so their file is not needed here.
  if (exported.fd.valid() && exported.way != exports::Way::host_pages) {
    request.fd = exported.fd.fd();
    request.fd_offset = exported.fd.offset() + (request.address - exported.range.address);
    if (exported.pages.valid()) {
      request.pages_fd = exported.pages.fd();
      request.pages_offset = exported.pages.offset() + (request.address - exported.range.address);
    }
  }
  return rail.nic->register_memory(request);
}

Status Core::register_remote(strait_region& region) {
  if (region.access == 0) return {};
  const bool signals = (region.access & STRAIT_REMOTE_WRITE) != 0;
  if (signals) region.signals = std::make_unique<SignalWords>();
  for (Rail& rail : rails_) {
    RemoteKeys keys;
    STRAIT_TRY(keys.data, register_part(region, rail, 0, region.length_bytes, region.access));
    if (signals) {
      rail::MemoryRequest words;
      words.address = reinterpret_cast<std::uint64_t>(region.signals.get());
      words.length_bytes = sizeof(SignalWords);
      words.access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_ATOMIC;
      STRAIT_TRY(keys.signals, rail.nic->register_memory(words));
    }
    region.remote.push_back(std::move(keys));
  }
  return {};
}

Result<strait_region*> Core::share(void* address, std::uint64_t length_bytes, std::uint32_t access) {
  if ((access & ~kAllAccess) != 0) return fail(Code::invalid, "access {:#x} has bits strait does not know", access);
  if (rails_.empty()) {
    return with_remedy(fail(Code::unsupported, "this Node has no NIC, so memory cannot be shared"),
                       "open the Node with the option nics=soft");
  }
  sweep();
  const std::int64_t before_ns = sys::now_ns();
  STRAIT_TRY(const buffer::Claim claim, providers_->classify(address, length_bytes));
  auto region = std::make_unique<strait_region>();
  region->recognise_ns = sys::now_ns() - before_ns;
  if (!claim.writable && (access & (STRAIT_REMOTE_WRITE | STRAIT_REMOTE_ATOMIC)) != 0) {
    return fail(Code::invalid, "this memory is mapped read-only: peers cannot be allowed to write it");
  }
  region->address = reinterpret_cast<std::uint64_t>(address);
  region->length_bytes = length_bytes;
  region->access = access;
  region->cpu_accessible = claim.cpu_accessible();
  region->writable = claim.writable;
  region->claim = claim;
  region->core = shared_from_this();
  {
    const std::lock_guard lock(regions_mutex_);
    auto after = memories_.upper_bound(region->address);
    if (after != memories_.begin()) {
      strait_memory* memory = std::prev(after)->second;
      if (region->address < memory->memory.range().end()) region->memory = memory;
    }
    if (region->memory != nullptr) ++region->memory->shared;
  }
  auto registered = register_local(*region, claim);
  if (registered) registered = register_remote(*region);
  if (!registered) {
    cut_off_locked(*region);
    release_local(*region);
    return registered.error();
  }
  counters_.get("regions_shared").add();
  const std::lock_guard lock(regions_mutex_);
  region->id = next_region_++;
  regions_[region->id] = region.get();
  return region.release();
}

// Ends every peer's access. What follows cannot fail, so a region is never half revoked.
void Core::cut_off_locked(strait_region& region) {
  region.granted.clear();
  region.remote.clear();
}

// The local registration and the place in the Node's memory: only when no operation uses the region any more.
void Core::release_local(strait_region& region) {
  region.local.clear();
  region.bounce_key.reset();
  region.staging.reset();
  region.exported.reset();
  strait_memory* memory = nullptr;
  {
    const std::lock_guard lock(regions_mutex_);
    memory = std::exchange(region.memory, nullptr);
    if (memory == nullptr || --memory->shared != 0 || !memory->dropped) return;
  }
  const std::shared_ptr<Core> keep = memory->core;  // the handle may be the last to hold us
  (void)free(memory);
}

bool Core::in_use(const strait_region& region, std::string* by_whom) {
  const std::lock_guard lock(lanes_mutex_);
  for (strait_lane* lane : lanes_) {
    if (!lane->core.holds(&region)) continue;
    if (by_whom != nullptr) *by_whom = lane->peer_name;
    return true;
  }
  return false;
}

Status Core::revoke(strait_region& region, sys::Deadline deadline) {
  region.state.store(RegionState::revoked, std::memory_order_seq_cst);
  {
    const std::lock_guard lock(regions_mutex_);
    if (!region.remote.empty() || region.epoch.load() == 1) {
      region.epoch.fetch_add(1);
      cut_off_locked(region);
    }
    std::erase_if(names_, [&](const auto& entry) { return entry.second == region.id; });
  }
  std::string by_whom;
  for (std::uint32_t turn = 0; in_use(region, &by_whom); ++turn) {
    if (deadline.passed()) {
      return with_remedy(
          fail(Code::timeout,
               "no peer can reach the region any more, but an operation on the lane to {} still uses it; it stays "
               "quarantined",
               by_whom),
          "wait for or flush the operations of that lane, then revoke again; do not free the memory before");
    }
    // Lanes with an owner are reaped by that thread alone; the shared ones by us.
    drive_all();
    reap_shared_lanes();
    if (turn > 64) (void)sys::nap_on(-1, 50'000);
  }
  release_local(region);
  return {};
}

void Core::drop(strait_region* raw) {
  std::unique_ptr<strait_region> region(raw);
  region->state.store(RegionState::revoked, std::memory_order_seq_cst);
  {
    const std::lock_guard lock(regions_mutex_);
    region->epoch.fetch_add(1);
    cut_off_locked(*region);
    std::erase_if(names_, [&](const auto& entry) { return entry.second == region->id; });
    regions_.erase(region->id);
  }
  reap_shared_lanes();
  if (!in_use(*region, nullptr)) {
    release_local(*region);
    return;
  }
  {
    const std::lock_guard lock(regions_mutex_);
    draining_.push_back(std::move(region));
    draining_count_.store(draining_.size(), std::memory_order_relaxed);
  }
  sleeper_.rouse_now();  // somebody has to look until it has drained
}

void Core::sweep() {
  if (draining() == 0) return;
  reap_shared_lanes();
  std::vector<std::unique_ptr<strait_region>> drained;
  {
    const std::lock_guard lock(regions_mutex_);
    for (auto& region : draining_) {
      if (!in_use(*region, nullptr)) drained.push_back(std::move(region));
    }
    std::erase(draining_, nullptr);
    draining_count_.store(draining_.size(), std::memory_order_relaxed);
  }
  for (auto& region : drained) release_local(*region);
}

Status Core::wait_signal(strait_region& region, std::uint32_t index, std::uint64_t at_least, sys::Deadline deadline,
                         std::uint64_t& value) {
  const std::atomic<std::uint64_t>& word = region.signals->words[index];
  const std::int64_t spin_until_ns = sys::now_ns() + settings_.spin_ns;
  for (std::uint32_t turn = 1;; ++turn) {
    value = word.load(std::memory_order_acquire);
    if (value >= at_least) return {};
    const std::int32_t did = drive_all();
    if (turn % 64 != 0) continue;
    poll_count.fetch_add(1, std::memory_order_relaxed);
    if (region.state.load(std::memory_order_relaxed) != RegionState::live) {
      return fail(Code::gone, "the region was revoked while signal {} was waited for", index);
    }
    if (deadline.passed()) {
      value = word.load(std::memory_order_acquire);
      if (value >= at_least) return {};
      return fail(Code::timeout, "signal {} is at {} and did not reach {} before the deadline", index, value, at_least);
    }
    if (did == 0 && sys::now_ns() > spin_until_ns && rails_[0].nic->arm()) {
      // Bounded: others sleep on the NIC's descriptor too, and may take the event.
      (void)sys::nap_on(rails_[0].nic->event_fd(), std::min<std::int64_t>(deadline.left_ns(), 1'000'000));
    }
  }
}

}  // namespace strait::node
