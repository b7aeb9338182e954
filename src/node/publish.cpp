// SPDX-License-Identifier: Apache-2.0
// Names and tickets: how a region is handed to peers.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "node/core.hpp"

namespace strait::node {

Result<strait_published*> Core::publish(const std::string& name, strait_region& region) {
  if (name.empty() || name.size() > rendezvous::kMaxNameBytes) {
    return fail(Code::invalid, "a published name has 1 to {} bytes, this one has {}", rendezvous::kMaxNameBytes,
                name.size());
  }
  if (region.access == 0) {
    return with_remedy(fail(Code::invalid, "the region was shared with access 0: peers could do nothing with it"),
                       "share it with remote_read, remote_write or remote_atomic");
  }
  STRAIT_CHECK(let_peers_name(region));
  auto published = std::make_unique<strait_published>();
  published->core = shared_from_this();
  published->name = name;
  published->region_id = region.id;
  const Locked lock(regions_mutex_);
  if (region.state.load() != RegionState::live)
    return fail(Code::gone, "the region was revoked and cannot be published");
  const auto [at, fresh] = names_.emplace(name, region.id);
  if (!fresh)
    return with_remedy(fail(Code::invalid, "the name \"{}\" is taken on this Node", name),
                       "withdraw the other region first, or choose another name");
  return published.release();
}

void Core::withdraw(const strait_published& published) {
  const Locked lock(regions_mutex_);
  const auto found = names_.find(published.name);
  // Revoking the region withdrew it already, and another one may have the name by now.
  if (found != names_.end() && found->second == published.region_id) names_.erase(found);
}

Status Core::make_ticket(strait_region& region, std::uint64_t offset, std::uint64_t length_bytes, std::uint32_t access,
                         std::int64_t lifetime_ns, strait_ticket& out) {
  if (region.state.load() != RegionState::live)
    return fail(Code::gone, "the region was revoked: it can issue no ticket");
  if (offset > region.length_bytes || length_bytes > region.length_bytes - offset || length_bytes == 0) {
    return fail(Code::invalid, "the ticket's range {} + {} is empty or outside the region of {} bytes", offset,
                length_bytes, region.length_bytes);
  }
  if (access == 0 || (access & ~region.access) != 0) {
    return fail(Code::denied,
                "the ticket asks for access {:#x}, the region was shared with {:#x}: a ticket can only narrow", access,
                region.access);
  }
  STRAIT_CHECK(let_peers_name(region));
  keys::TicketFields fields;
  fields.node = id_;
  fields.region_id = region.id;
  fields.offset = offset;
  fields.length_bytes = length_bytes;
  fields.epoch = region.epoch.load();
  fields.access = access;
  const std::int64_t lifetime = lifetime_ns < 0 ? settings_.ticket_lifetime_ns : lifetime_ns;
  const std::int64_t now = sys::wall_ns();
  fields.expires_wall_ns = lifetime > INT64_MAX - now ? INT64_MAX : now + lifetime;
  STRAIT_TRY(const keys::TicketBytes bytes, keys::issue(fields, ticket_key_));
  static_assert(sizeof bytes == sizeof out.bytes);
  std::memcpy(out.bytes, bytes.data(), bytes.size());
  return {};
}

rendezvous::Target Core::target_of(const strait_region& region) const {
  rendezvous::Target target;
  target.access = region.access;
  target.region_id = region.id;
  target.epoch = region.epoch.load();
  target.address = region.address;
  target.length_bytes = region.length_bytes;
  target.more_rkeys.fill(kNoKey);
  target.more_signal_rkeys.fill(kNoKey);
  for (std::size_t i = 0; i < region.remote.size(); ++i) {
    (i == 0 ? target.rkey : target.more_rkeys[i - 1]) = region.remote[i].rkey();
    if (region.signals) {
      (i == 0 ? target.signal_rkey : target.more_signal_rkeys[i - 1]) = region.remote[i].signal_rkey();
      target.signal_address = reinterpret_cast<std::uint64_t>(region.signals.get());
    }
  }
  return target;
}

Result<rendezvous::Target> Core::on_lookup(rendezvous::PeerId, const std::string& name) {
  wait_until_open();
  const Locked lock(regions_mutex_);
  const auto found = names_.find(name);
  if (found == names_.end()) {
    return with_remedy(fail(Code::gone, "nothing is published under \"{}\" on {}", name, address_),
                       "check the name, or wait until the owner has published it");
  }
  rendezvous::Target target = target_of(*regions_.at(found->second));
  add_proof(target);
  return target;
}

// A ticket for less than the region gets keys that reach no further: the rights are then kept by our NICs and not by
// the good manners of whoever holds the ticket.
Status Core::grant_part_locked(strait_region& region, const keys::TicketFields& fields, rendezvous::Target& target) {
  if (fields.offset == 0 && fields.length_bytes == region.length_bytes && fields.access == region.access) return {};
  auto granted = std::ranges::find_if(region.granted, [&](const GrantedKey& one) {
    return one.offset == fields.offset && one.length_bytes == fields.length_bytes && one.access == fields.access;
  });
  if (granted == region.granted.end()) {
    GrantedKey made{fields.offset, fields.length_bytes, fields.access, std::vector<rail::MemoryKey>(rails_.size())};
    std::optional<Error> first;
    bool some = false;
    for (std::size_t i = 0; i < rails_.size() && i < region.remote.size(); ++i) {
      if (!region.remote[i].data.valid()) continue;
      auto key = register_part(region, rails_[i], fields.offset, fields.length_bytes, fields.access);
      if (key) {
        made.keys[i] = std::move(*key);
        some = true;
      } else if (!first) {
        first = key.error();
      }
    }
    if (!some && first) return *first;
    region.granted.push_back(std::move(made));
    granted = std::prev(region.granted.end());
  }
  for (std::size_t i = 0; i < granted->keys.size(); ++i) {
    const rail::MemoryKey& key = granted->keys[i];
    (i == 0 ? target.rkey : target.more_rkeys[i - 1]) = key.valid() ? key.rkey() : kNoKey;
  }
  return {};
}

Result<rendezvous::Target> Core::on_redeem(rendezvous::PeerId, const rendezvous::TicketBytes& ticket) {
  STRAIT_TRY(const keys::TicketFields fields, keys::verify(ticket, ticket_key_, id_, sys::wall_ns()));
  const Locked lock(regions_mutex_);
  const auto found = regions_.find(fields.region_id);
  const bool alive = found != regions_.end() && found->second->state.load() == RegionState::live;
  STRAIT_CHECK(keys::check_current(fields, alive ? found->second->epoch.load() : 0, alive));
  // The MAC vouches for the numbers; the checks are repeated because a region may be smaller than its ticket claims
  // only through a bug, and that must not become somebody's access.
  rendezvous::Target target = target_of(*found->second);
  if (fields.offset > target.length_bytes || fields.length_bytes > target.length_bytes - fields.offset) {
    return fail(Code::denied, "the ticket's range is outside the region");
  }
  STRAIT_CHECK(grant_part_locked(*found->second, fields, target));
  target.address += fields.offset;
  target.length_bytes = fields.length_bytes;
  target.access &= fields.access;
  if ((target.access & STRAIT_REMOTE_WRITE) == 0) {
    target.signal_address = 0;
    target.signal_rkey = 0;
    target.more_signal_rkeys = {};
  }
  add_proof(target);
  return target;
}

}  // namespace strait::node
