// SPDX-License-Identifier: Apache-2.0
// Sharing memory: recognise, export, register; and the way back.
#include "node/region.hpp"

#include <algorithm>
#include <optional>

#include "node/core.hpp"
#include "node/lane.hpp"
#include "node/near.hpp"

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

// For peers to let go of a region that is dropped without a deadline.
constexpr std::int64_t kDropGraceNs = 20'000'000;

constexpr std::uint32_t kAllAccess = STRAIT_REMOTE_READ | STRAIT_REMOTE_WRITE | STRAIT_REMOTE_ATOMIC;

}  // namespace

Result<Signals> Signals::make(bool for_peers) {
  Signals out;
  if (for_peers) {
    const std::size_t bytes = sys::round_up(sizeof(grant::SignalPage), sys::page_bytes());
    auto fd = sys::make_sealed_memfd("strait signals", bytes);
    if (fd) {
      STRAIT_TRY(out.mapping_, sys::map_file(fd->get(), 0, bytes, sys::Protect::read_write));
      out.fd_ = std::move(*fd);
      out.page_ = new (out.mapping_.data()) grant::SignalPage;
      return out;
    }
    // No descriptors left: peers raise them through the NIC.
  }
  // Aligned by hand: an aligned new takes five times as long as this, and sharing again is to be quick.
  std::size_t room = sizeof(grant::SignalPage) + alignof(grant::SignalPage) - 1;
  out.own_ = std::make_unique_for_overwrite<std::byte[]>(room);
  void* at = out.own_.get();
  out.page_ = new (std::align(alignof(grant::SignalPage), sizeof(grant::SignalPage), at, room)) grant::SignalPage;
  return out;
}

Status Core::stage(strait_region& region, const buffer::Claim& claim) {
  if (region.access != 0) {
    return with_remedy(
        fail(Code::unsupported, "no NIC can reach this memory of {}, so peers cannot be given access to it{}",
             claim.device->name, region.exported->rejected_text()),
        "share it with access 0 (as a local source or destination), or share host memory");
  }
  STRAIT_TRY(exports::Staging staging,
             exports::Staging::make(*providers_, claim, {region.address, region.length_bytes}));
  counters_.get(staging.pinned() ? "staged_pinned" : "staged_plain").add();
  region.staging = std::make_unique<exports::Staging>(std::move(staging));
  region.staged = true;
  region.local_address = reinterpret_cast<std::uint64_t>(region.staging->data());
  rail::MemoryRequest request;
  request.address = region.local_address;
  request.length_bytes = region.length_bytes;
  request.access = STRAIT_NIC_LOCAL_WRITE;
  STRAIT_TRY(region.own_keys, register_with_all(*region.exported, request));
  for (std::size_t i = 0; i < rails_.size(); ++i)
    if (region.own_keys[i].valid()) region.lkeys[i] = region.own_keys[i].lkey();
  return {};
}

Status Core::register_local(strait_region& region, const buffer::Claim& claim) {
  const exports::Policy policy{settings_.allow_staging, settings_.reach};
  STRAIT_TRY(region.exported, book_.get(claim, abilities_, policy, region.files));
  region.local_address = region.address;
  keys::Allocation allocation{claim.whole.address, claim.whole.length_bytes, key_identity(claim),
                              region.memory != nullptr};
  if (monitor_ && claim.sort == STRAIT_SORT_HOST && allocation.identity == 0 && !allocation.stable) {
    monitor_->settle();
    allocation.stable = allocation.monitored = true;
  }
  const std::uint32_t access = claim.writable ? std::uint32_t{STRAIT_NIC_LOCAL_WRITE} : 0u;
  while (region.exported->way() != exports::Way::staged) {
    auto lease = acquire(allocation, *region.exported, access);
    if (lease) {
      region.local = std::move(*lease);
      for (std::size_t i = 0; i < rails_.size(); ++i) region.lkeys[i] = region.local.lkey(i);
      return {};
    }
    if (lease.error().code == Code::limit && register_slice(region, lease.error())) return {};
    STRAIT_TRY(region.exported, next_way(*region.exported, lease.error(), settings_.allow_staging, region.files));
  }
  return stage(region, claim);
}

// There is no room for the whole allocation (an accelerator's BAR): then for the region's own bytes, exported by
// themselves and not remembered.
Status Core::register_slice(strait_region& region, const Error& why) {
  const buffer::Range part{region.address, region.length_bytes};
  if (region.exported->way() != exports::Way::dmabuf || part == region.claim.whole) return why;
  STRAIT_TRY(exports::Exported how,
             exports::make_reachable(region.claim, part, abilities_, {false, exports::Reach::dmabuf, {}}));
  how.text += fmt::format(", these {} bytes only: {}", part.length_bytes, why.text);
  Reached::Files files;
  const auto slice = std::make_shared<Reached>(std::move(how), region.claim, files);
  rail::MemoryRequest request;
  request.address = region.address;
  request.length_bytes = region.length_bytes;
  request.access = STRAIT_NIC_LOCAL_WRITE;
  request.fd = files->fd.fd();
  request.fd_offset = files->fd.offset();
  request.port = slice->port();
  if (files->pages.valid()) {
    request.pages_fd = files->pages.fd();
    request.pages_offset = files->pages.offset();
  }
  STRAIT_TRY(region.own_keys, register_with_all(*slice, request));
  for (std::size_t i = 0; i < rails_.size(); ++i)
    if (region.own_keys[i].valid()) region.lkeys[i] = region.own_keys[i].lkey();
  region.exported = slice;
  region.files = std::move(files);
  counters_.get("registered_slices").add();
  return {};
}

Result<rail::MemoryKey> Core::register_part(const strait_region& region, Rail& rail, std::uint64_t offset,
                                            std::uint64_t length_bytes, std::uint32_t access) {
  Reached& exported = *region.exported;
  rail::MemoryRequest request;
  request.address = region.address + offset;
  request.length_bytes = length_bytes;
  request.access = nic_access(access);
  Reached::Files files;  // open until the NIC has its own hold on the memory
  // Host pages are reached by address: what peers may touch is never lent, so their file is not needed here.
  if (exported.has_files() && exported.way() != exports::Way::host_pages) {
    STRAIT_TRY(files, exported.open());
    request.fd = files->fd.fd();
    request.fd_offset = files->fd.offset() + (request.address - exported.range().address);
    request.port = exported.port();
    if (files->pages.valid()) {
      request.pages_fd = files->pages.fd();
      request.pages_offset = files->pages.offset() + (request.address - exported.range().address);
    }
  }
  if (exported.by_device_address()) request.access |= STRAIT_NIC_DEVICE_ADDRESS;
  return rail.nic->register_memory(request);
}

Status Core::register_remote(strait_region& region) {
  if (region.access == 0) return {};
  // Host pages are reached by address and by no other way: what can be said against it was said to the local
  // registration. So the peers' one is made when there is something that they could name.
  region.named = region.exported->way() != exports::Way::host_pages || region.exported->has_files();
  if (!region.named) return make_signals(region);
  for (bool trimmed = false;;) {
    STRAIT_CHECK(make_signals(region));
    auto keys = make_remote_keys(region);
    if (keys) {
      region.remote = std::move(*keys);
      return {};
    }
    if (keys.error().code == Code::limit && !std::exchange(trimmed, true)) {
      cache_->trim();  // what nobody uses takes the room
      continue;
    }
    // Never staged: a peer could not know when the bytes arrive.
    STRAIT_TRY(region.exported, next_way(*region.exported, keys.error(), false, region.files));
  }
}

// Before the first peer can be told of it: by a name, or by a ticket.
Status Core::let_peers_name(strait_region& region) {
  const std::lock_guard naming(region.naming_mutex);
  // Revoked: whoever gives the name or the ticket says so.
  if (region.named || region.state.load() != RegionState::live) return {};
  auto keys = make_remote_keys(region);
  if (!keys && keys.error().code == Code::limit) {
    cache_->trim();
    keys = make_remote_keys(region);
  }
  if (!keys) return keys.error();
  const Locked lock(regions_mutex_);
  region.remote = std::move(*keys);
  region.named = true;
  return {};
}

// By a peer, for a map grant: only whole allocations are. Of a hundred thousand parts of one none needs a descriptor.
bool Core::may_be_mapped(const strait_region& region) const {
  const buffer::Claim& claim = region.claim;
  return door_ && region.exported->has_files() && lies_in_files(*claim.device) &&
         claim.whole == buffer::Range{region.address, region.length_bytes};
}

Status Core::make_signals(strait_region& region) {
  if ((region.access & STRAIT_REMOTE_WRITE) == 0) return {};
  STRAIT_TRY(region.signals, Signals::make(may_be_mapped(region)));
  return {};
}

Result<std::vector<RemoteKeys>> Core::make_remote_keys(strait_region& region) {
  Reached::Files for_all_rails;
  if (region.exported->way() == exports::Way::dmabuf) {
    STRAIT_TRY(for_all_rails, region.exported->open());
  }
  std::vector<RemoteKeys> made(rails_.size());
  std::optional<Error> first;
  bool some = false;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    // Where this process's own registration was refused there is nothing to hope for, and the reason is known.
    if (region.lkeys[i] == kNoKey) continue;
    auto data = register_part(region, rails_[i], 0, region.length_bytes, region.access);
    if (!data) {
      region.exported->note_refusal(i, "for peers: " + data.error().text);
      if (!first) first = data.error();
      continue;
    }
    if (region.signals) {
      rail::MemoryRequest words;
      words.address = reinterpret_cast<std::uint64_t>(region.signals.get());
      words.length_bytes = Signals::kWordBytes;
      words.access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_ATOMIC;
      STRAIT_TRY(made[i].signals, rails_[i].nic->register_memory(words));
    }
    made[i].data = std::move(*data);
    some = true;
  }
  if (!some && first) return *first;
  return made;
}

Status Core::check_share(std::uint32_t access) {
  if ((access & ~kAllAccess) != 0) return fail(Code::invalid, "access {:#x} has bits strait does not know", access);
  if (rails_.empty()) {
    return with_remedy(fail(Code::unsupported, "this Node has no NIC, so memory cannot be shared"),
                       "open the Node with the option nics=soft");
  }
  sweep();
  return {};
}

// Registered on every rail: known from here on. The NICs hold the memory, so its descriptors go; only those stay that a
// ticket for a part of it may need and nobody could make again.
strait_region* Core::adopt(std::unique_ptr<strait_region> region) {
  if (region->cpu_accessible) region->view.store(reinterpret_cast<std::byte*>(region->address));
  if (region->access == 0 || region->exported->can_open_again()) region->files.reset();
  if (region->claim.provider != nullptr && !region->cpu_accessible) book_.registered(*region->exported);
  regions_shared_.add();
  const Locked lock(regions_mutex_);
  region->id = next_region_++;
  regions_[region->id] = region.get();
  return region.release();
}

Result<strait_region*> Core::share(void* address, std::uint64_t length_bytes, std::uint32_t access) {
  STRAIT_CHECK(check_share(access));
  std::int64_t recognise_ns = 0;
  STRAIT_TRY(const buffer::Claim claim,
             recognise({reinterpret_cast<std::uint64_t>(address), length_bytes}, recognise_ns));
  auto region = std::make_unique<strait_region>();
  region->recognise_ns = recognise_ns;
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
    const Locked lock(regions_mutex_);
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
    {
      const Locked lock(regions_mutex_);
      cut_off_locked(*region);
    }
    release_local(*region);
    return registered.error();
  }
  return adopt(std::move(region));
}

// Ends every peer's access. What follows cannot fail, so a region is never half revoked.
void Core::cut_off_locked(strait_region& region) {
  region.granted.clear();
  region.remote.clear();
}

// The local registration and the place in the Node's memory: only when no operation uses the region any more.
void Core::release_local(strait_region& region) {
  region.local.reset();
  region.own_keys.clear();
  region.staging.reset();
  region.files.reset();
  region.exported.reset();
  region.view.store(nullptr);
  region.view_mapping.reset();
  strait_memory* memory = nullptr;
  {
    const Locked lock(regions_mutex_);
    memory = std::exchange(region.memory, nullptr);
    if (memory == nullptr || --memory->shared != 0 || !memory->dropped) return;
  }
  const std::shared_ptr<Core> keep = memory->core;  // the handle may be the last to hold us
  (void)free(memory);
}

bool Core::in_use(const strait_region& region) {
  return is_held(region) || lanes_hold(region, nullptr);
}

bool Core::lanes_hold(const strait_region& region, std::string* by_whom) {
  const Locked lock(lanes_mutex_);
  for (strait_lane* lane : lanes_) {
    if (!lane->core.holds(&region)) continue;
    if (by_whom != nullptr) *by_whom = lane->peer_name;
    return true;
  }
  return false;
}

namespace {

Error quarantined(strait_region& region, Error why, const char* remedy) {
  if (!region.quarantine_told.exchange(true))
    region.core->log().write(Level::warn, "region {} of {}: {}", region.id, region.claim.device->name, why.text);
  return with_remedy(std::move(why), remedy);
}

}  // namespace

Status Core::revoke(strait_region& region, sys::Deadline deadline) {
  region.state.store(RegionState::revoked, std::memory_order_seq_cst);
  {
    const std::lock_guard naming(region.naming_mutex);  // whoever is at it; the next one sees the state
    const Locked lock(regions_mutex_);
    if (!region.remote.empty() || region.epoch.load() == 1) {
      region.epoch.fetch_add(1);
      cut_off_locked(region);
    }
    std::erase_if(names_, [&](const auto& entry) { return entry.second == region.id; });
  }
  const std::vector<grant::Holdout> holdouts = take_back(region, deadline);
  std::string by_whom;
  for (std::uint32_t turn = 0; lanes_hold(region, &by_whom); ++turn) {
    if (deadline.passed()) {
      return quarantined(
          region,
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
  if (const char* const why = leave_pages(region, holdouts); why != nullptr) {
    if (holdouts.empty()) {
      return quarantined(region, fail(Code::timeout, "peers had mapped the region, and {}; it stays quarantined", why),
                         "revoke again when memory is free; do not put new data into the memory before");
    }
    return quarantined(
        region,
        fail(Code::timeout, "no operation finds the region any more, but {} {}, and {}; it stays quarantined",
             holdouts[0].who(), holdouts[0].inside ? "has not come out of it" : "has not let go of its mapping", why),
        "end that process, or revoke every other region of the memory, then revoke again; do not put new data into the "
        "memory before");
  }
  release_local(region);
  return {};
}

void Core::drop(strait_region* raw) {
  std::unique_ptr<strait_region> region(raw);
  region->state.store(RegionState::revoked, std::memory_order_seq_cst);
  {
    const Locked lock(regions_mutex_);
    region->epoch.fetch_add(1);
    cut_off_locked(*region);
    std::erase_if(names_, [&](const auto& entry) { return entry.second == region->id; });
    regions_.erase(region->id);
  }
  const std::vector<grant::Holdout> holdouts = take_back(*region, sys::Deadline::after_ns(kDropGraceNs));
  reap_shared_lanes();
  if (!lanes_hold(*region, nullptr) && leave_pages(*region, holdouts) == nullptr) {
    release_local(*region);
    return;
  }
  log_.write(Level::debug, "region {} of {} was dropped while operations use it: it goes when they have drained",
             region->id, region->claim.device->name);
  {
    const Locked lock(regions_mutex_);
    draining_.push_back(std::move(region));
    draining_count_.store(draining_.size(), std::memory_order_relaxed);
  }
  sleeper_.rouse_now();  // somebody has to look until it has drained
}

void Core::sweep() {
  if (draining() == 0) return;
  if (freed_.some.exchange(false) && cache_) cache_->reap();
  reap_shared_lanes();
  std::vector<std::unique_ptr<strait_region>> drained;
  {
    const Locked lock(regions_mutex_);
    for (auto& region : draining_) {
      if (!in_use(*region)) drained.push_back(std::move(region));
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
    if (did == 0 && sys::now_ns() > spin_until_ns) sleep_on_signal(region, index, at_least, deadline);
  }
}

// Until the NIC has something, or a peer that maps the signals raised one. Bounded: others sleep on the same
// descriptors, and may take the event.
void Core::sleep_on_signal(strait_region& region, std::uint32_t index, std::uint64_t at_least, sys::Deadline deadline) {
  constexpr std::int64_t kLongestNapNs = 1'000'000;
  const rail::Nic& nic = *rails_[0].nic;
  if (!nic.arm()) return;
  // The others cannot wake this: it looks at them more often.
  const std::int64_t longest_ns = rails_.size() == 1 ? kLongestNapNs : kLongestNapNs / 10;
  const std::int64_t nap_ns = std::min(deadline.left_ns(), longest_ns);
  if (!door_) {
    (void)sys::nap_on(nic.event_fd(), nap_ns);
    return;
  }
  door_->begin_sleep();
  if (region.signals->words[index].load() < at_least) {
    (void)sys::nap_on_either(nic.event_fd(), door_->wake().fd(), nap_ns);
    door_->wake().clear();
  }
  door_->end_sleep();
}

}  // namespace strait::node
