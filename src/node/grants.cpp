// SPDX-License-Identifier: Apache-2.0
// Giving and taking back map and copy grants; asking for them.
#include <array>
#include <cstring>

#include "base/mac.hpp"
#include "node/core.hpp"
#include "node/near.hpp"
#include "node/peer.hpp"
#include "sys/peer_file.hpp"

namespace strait::node {
namespace {

constexpr std::uint32_t kWrites = STRAIT_REMOTE_WRITE | STRAIT_REMOTE_ATOMIC;

grant::Subject subject_of(const rendezvous::Target& target) {
  return {target.region_id, target.epoch, target.address, target.length_bytes, target.access, target.rkey};
}

}  // namespace

bool lies_in_files(const buffer::Device& device) {
  const bool exports = (device.capabilities & STRAIT_CAN_EXPORT_DMABUF) != 0;
  return (device.capabilities & STRAIT_CPU_ACCESSIBLE) != 0 || (device.software && exports);
}

namespace {

// The memory file behind a region, if it holds the region's pages and no others.
Result<sys::Fd> own_file(const strait_region& region) {
  Reached& exported = *region.exported;
  if (!lies_in_files(*region.claim.device)) return fail(Code::unsupported, "it lies in no file that could be mapped");
  STRAIT_TRY(const Reached::Files files, exported.open());
  if (!files) return fail(Code::unsupported, "it lies in no file that could be mapped");
  const exports::ExportedFd& file = files->pages.valid() ? files->pages : files->fd;
  if (const Status sealed = sys::check_sealed(file.fd(), 0); !sealed)
    return fail(Code::unsupported, "it lies in no memory file: {}", sealed.error().text);
  const std::uint64_t offset = file.offset() + (region.address - exported.range().address);
  if (offset != 0 || !sys::holds_exactly(file.fd(), region.length_bytes))
    return fail(Code::unsupported, "it is a part of a larger allocation, whose other pages would come with it");
  return sys::Fd::copy_of(file.fd());
}

}  // namespace
}  // namespace strait::node

// Accelerator memory in software lies in a file: this CPU can move its bytes too, by a mapping of its own, made when it
// is first asked for.
std::byte* strait_region::find_view(std::uint64_t offset) {
  using namespace strait;
  const std::lock_guard lock(staging_mutex);
  if (std::byte* const first = view.load(); first != nullptr) return first + offset;
  if (viewless.exchange(true) || staged || !exported || !node::lies_in_files(*claim.device)) return nullptr;
  const auto opened = exported->open();
  if (!opened || !*opened) return nullptr;
  const exports::ExportedFd& file = (*opened)->pages.valid() ? (*opened)->pages : (*opened)->fd;
  const std::uint64_t at = file.offset() + (address - exported->range().address);
  const std::uint64_t skip = at % sys::page_bytes();
  const std::uint64_t bytes = sys::round_up(skip + length_bytes, sys::page_bytes());
  if (!sys::check_sealed(file.fd(), at - skip + bytes)) return nullptr;
  auto mapped = sys::map_file(file.fd(), at - skip, bytes, sys::Protect::read_write);
  if (!mapped) return nullptr;
  sys::keep_from_children(*mapped);
  view_mapping = std::move(*mapped);
  view.store(view_mapping.data() + skip, std::memory_order_release);
  return view.load() + offset;
}

namespace strait::node {

// Anything that is between the bytes and the peer on purpose would be passed by.
std::string Core::why_no_grants() const {
  if (settings_.grants == Grants::ring) return "option grant=ring";
  if (options_.flag("strict")) return "option strict: the NIC is to see every operation";
  if (!options_.text("faults").empty()) return "option faults: the NIC is to see every operation";
  if (!options_.text("capture").empty()) return "option capture: the NIC is to see every operation";
  if (options_.text("carrier") == "roce") return "option carrier=roce: everything is to be packets";
  for (const Rail& rail : rails_) {
    if (!rail.nic->has_cpu_atomics())
      return fmt::format("atomics of {} and of a CPU are not atomic to each other", rail.nic->name());
  }
  return rails_.empty() ? "there is no NIC" : "";
}

std::string Core::why_no_copies() const {
  return options_.text("cross_memory") == "off" ? "option cross_memory=off of its Node" : "";
}

Status Core::open_door() {
  no_grants_because_ = why_no_grants();
  if (!no_grants_because_.empty()) return {};
  STRAIT_TRY(door_, grant::Door::open(id_, *this));
  STRAIT_TRY(visits_, grant::Visits::start());
  // Who sleeps on a descriptor of its own does so between two calls: peers always raise the event.
  if (settings_.progress == ProgressMode::eventfd) door_->begin_sleep();
  return {};
}

grant::Proof Core::proof_of(const grant::Subject& subject) const {
  std::array<std::byte, 8 + sizeof subject> bytes{};
  std::memcpy(bytes.data(), "grant 1", 8);
  std::memcpy(bytes.data() + 8, &subject, sizeof subject);
  const Digest digest = hmac_sha256(ticket_key_, bytes);
  grant::Proof proof;
  std::memcpy(proof.data(), digest.data(), proof.size());
  return proof;
}

void Core::add_proof(rendezvous::Target& target) const {
  if (!door_) return;
  target.proof = proof_of(subject_of(target));
  target.grantable = 1;
}

Result<grant::Offer> Core::on_ask(const grant::Subject& subject, const grant::Proof& proof, grant::Way only) {
  if (!same_digest(proof, proof_of(subject)))
    return fail(Code::denied, "the proof that came with the target does not fit it");
  const Locked lock(regions_mutex_);
  const auto found = regions_.find(subject.region_id);
  if (found == regions_.end()) return fail(Code::gone, "the region was revoked");
  const strait_region& region = *found->second;
  if (region.state.load() != RegionState::live || region.epoch.load() != subject.epoch)
    return fail(Code::gone, "the region was revoked");
  grant::Offer offer;
  const bool writes = (subject.access & kWrites) != 0;
  std::string why;
  if (settings_.grants == Grants::copy) {
    why = "option grant=copy";
  } else if (only == grant::Way::copy) {
    why = "none was asked for";
  } else if (subject.address != region.address || subject.length_bytes != region.length_bytes ||
             subject.access != region.access) {
    why = "the target is a part of the region";
  } else if (auto file = own_file(region); !file) {
    why = file.error().text;
  } else if (const Status sealed = sys::seal_for_peers(file->get(), writes); !sealed) {
    why = sealed.error().text;
  } else {
    offer.way = grant::Way::map;
    offer.memory = std::move(*file);
    if ((subject.access & STRAIT_REMOTE_WRITE) != 0 && region.signals.fd() >= 0) {
      STRAIT_TRY(offer.signals, sys::Fd::copy_of(region.signals.fd()));
    }
    if (region.memory != nullptr) region.memory->mapped = true;
    return offer;
  }
  if (settings_.grants == Grants::map || only == grant::Way::map)
    return fail(Code::unsupported, "no map grant: {}", why);
  if (!region.cpu_accessible)
    return fail(Code::unsupported, "no map grant: {}; no copy grant: a CPU cannot reach {}", why,
                region.claim.device->name);
  if (const std::string off = why_no_copies(); !off.empty())
    return fail(Code::unsupported, "no map grant: {}; no copy grant: {}", why, off);
  offer.way = grant::Way::copy;
  return offer;
}

bool Core::still_shared(const grant::Subject& subject) {
  const Locked lock(regions_mutex_);
  const auto found = regions_.find(subject.region_id);
  return found != regions_.end() && found->second->state.load() == RegionState::live &&
         found->second->epoch.load() == subject.epoch;
}

// ---- Asking

std::shared_ptr<grant::Host> Core::host_of(strait_peer& peer, sys::Deadline deadline) {
  if (!door_ || !peer.same_host) return nullptr;
  const std::lock_guard lock(peer.host_mutex);
  if (peer.host_tried) return peer.host;
  peer.host_tried = true;
  auto host = grant::Host::visit(peer.node_id, deadline, sys::real_calls(),
                                 why_no_copies().empty() ? "" : "option cross_memory=off");
  if (!host) {
    peer.no_grants_because = host.error().text;
    return nullptr;
  }
  if (const Status added = visits_->add(*host); !added) {
    peer.no_grants_because = added.error().text;
    return nullptr;
  }
  peer.host = std::move(*host);
  return peer.host;
}

void Core::bring_near(strait_lane& lane, strait_peer& peer, sys::Deadline deadline) {
  if (lane.near.load(std::memory_order_relaxed) != nullptr) return;
  const std::shared_ptr<grant::Host> host = host_of(peer, deadline);
  if (!host) return;
  const std::lock_guard lock(peer.host_mutex);
  if (lane.near.load(std::memory_order_relaxed) != nullptr) return;
  grant::Mark* const mark = host->take_mark();
  if (mark == nullptr) {
    peer.no_grants_because =
        fmt::format("{} lanes to this peer have them already, the most there can be", grant::kMarks);
    return;
  }
  lane.near_side = std::make_unique<Near>(host, mark);
  lane.near_side->map_path = fmt::format("map grant -> {}", peer.name);
  lane.near_side->copy_path = fmt::format("copy grant -> {}", peer.name);
  lane.near_side->copy_paths =
      fmt::format("{}; under {} bytes and atomics: {}", lane.near_side->copy_path, kCopyAtLeast, lane.path);
  lane.near.store(lane.near_side.get(), std::memory_order_release);
  if (!lane.shared && !host->needs_fence()) lane.words.store(lane.near_side.get(), std::memory_order_release);
}

// Whatever comes of it, the target is good through the NIC.
void Core::ask_for_grant(strait_peer& peer, const rendezvous::Target& target, sys::Deadline deadline) {
  if (target.grantable == 0) return;
  const std::shared_ptr<grant::Host> host = host_of(peer, deadline);
  if (!host) return;
  if (peer.lane) bring_near(*peer.lane, peer, deadline);
  const grant::Way only = settings_.grants == Grants::map    ? grant::Way::map
                          : settings_.grants == Grants::copy ? grant::Way::copy
                                                             : grant::Way::none;
  const auto way = host->ask(subject_of(target), target.proof, deadline, only);
  if (way) {
    counters_.get(*way == grant::Way::map ? "map_grants" : "copy_grants").add();
    return;
  }
  counters_.get("grants_refused").add();
  log_.write(Level::info, "region {} of {} goes through the NIC: {}", target.region_id, peer.name, way.error().text);
}

// ---- Taking back

std::vector<grant::Holdout> Core::take_back(strait_region& region, sys::Deadline deadline) {
  if (!door_ || region.access == 0) return {};
  return door_->revoke(region.id, region.left_behind ? sys::Deadline::after_ns(0) : deadline);
}

bool Core::is_held(const strait_region& region) {
  return door_ && region.access != 0 && !region.left_behind && door_->is_held(region.id);
}

// The other regions of its memory, if none of them is good for anybody any more.
std::optional<std::vector<strait_region*>> Core::all_revoked_beside_locked(const strait_region& region) {
  std::vector<strait_region*> others;
  const auto look_at = [&](strait_region* one) {
    if (one->memory == region.memory && one != &region) others.push_back(one);
  };
  for (const auto& [id, one] : regions_) look_at(one);
  for (const auto& one : draining_) look_at(one.get());
  for (const strait_region* const one : others)
    if (one->state.load() != RegionState::revoked || lanes_hold(*one, nullptr)) return std::nullopt;
  // One that is being dropped right now is in neither list.
  if (others.size() + 1 != region.memory->shared) return std::nullopt;
  return others;
}

// Somebody still maps the region's pages, or may: a peer's word is no proof, and one that has gone may have handed the
// file on. They are left to it: the memory gets others, with the same bytes, at the same address. Only where nobody may
// refer to the old ones any more.
const char* Core::leave_pages(strait_region& region, const std::vector<grant::Holdout>& holdouts) {
  if ((holdouts.empty() && settings_.trusts_let_go) || region.left_behind) return nullptr;
  counters_.get("grant_holdouts").add(holdouts.size());
  {
    const Locked lock(regions_mutex_);
    const bool has_others = region.memory != nullptr && region.claim.sort == STRAIT_SORT_HOST;
    if (holdouts.empty() && (!has_others || !region.memory->mapped)) return nullptr;
    if (!has_others) return "this memory cannot be given other pages";
    if (!all_revoked_beside_locked(region))
      return holdouts.empty() ? nullptr : "other regions of this memory are in use";  // the last of them sees to it
  }
  // Registrations name the old pages.
  region.local.reset();
  region.exported.reset();
  const buffer::Range range = region.claim.whole;
  book_.forget(range);
  if (cache_) cache_->invalidate(range.address, range.length_bytes);
  const auto renewed = region.claim.provider->advise(range, STRAIT_ADVICE_OWN_PAGES, STRAIT_HOST_PLACE);
  if (!renewed || *renewed != buffer::Provider::Advised::done) return "this memory could not be given other pages";
  {
    const Locked lock(regions_mutex_);
    region.left_behind = true;
    region.memory->mapped = false;
    if (const auto others = all_revoked_beside_locked(region)) {
      for (strait_region* const one : *others) one->left_behind = true;
    }
  }
  counters_.get("pages_left").add();
  if (holdouts.empty()) {
    log_.write(Level::debug, "region {} had been mapped by peers: the memory has other pages now", region.id);
  } else {
    log_.write(Level::warn,
               "{} did not let go of region {} in time: its pages were left to it, and the memory has others now",
               holdouts[0].who(), region.id);
  }
  return nullptr;
}

}  // namespace strait::node
