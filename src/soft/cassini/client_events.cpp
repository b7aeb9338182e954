// SPDX-License-Identifier: Apache-2.0
// Event queues and wait objects.
#include <cerrno>

#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::uint64_t kMaxEventBytes = std::uint64_t{1} << 32;

bool is_event_buffer(std::uint64_t queue, std::uint64_t bytes) {
  return queue != 0 && bytes != 0 && bytes <= kMaxEventBytes && queue % sys::page_bytes() == 0 &&
         bytes % sys::page_bytes() == 0;
}

bool contains(const Md& md, std::uint64_t address, std::uint64_t bytes) {
  return address >= md.va && address - md.va <= md.length && bytes <= md.length - (address - md.va);
}

// Each threshold is a share of the queue in percent; the last one must still be one.
bool thresholds_are_valid(const wire::EqAttr& attr) {
  if (attr.status_thresh_count == 0) return true;
  if (attr.status_thresh_count > wire::kMaxEqThresholds || attr.status_thresh_base > 100 ||
      attr.status_thresh_delta > 100)
    return false;
  return (attr.status_thresh_count - 1) * attr.status_thresh_delta + (100 - attr.status_thresh_base) <= 100;
}

}  // namespace

int Client::place_events(const Md* md, bool passthrough, std::uint64_t queue, std::uint64_t bytes, Place& place) {
  if (passthrough) {
    if (const int failed = contiguous(queue, bytes); failed != 0) return failed;
    place = {.memory = &memory_, .address = queue, .direct = memory_.direct(queue, bytes)};
    return 0;
  }
  if (md == nullptr || !contains(*md, queue, bytes)) return -EINVAL;
  place = {.memory = md->memory, .address = md->at + (queue - md->va), .direct = nullptr};
  if (md->memory != nullptr) place.direct = md->memory->direct(place.address, bytes);
  return 0;
}

int Client::eq_alloc(const wire::EqAllocCmd& c) {
  Lni* owner = lni(c.lni);
  if (owner == nullptr) return -EINVAL;
  const bool passthrough = (c.attr.flags & wire::kEqPassthrough) != 0;
  Md* md = passthrough ? nullptr : own(card_.mds, c.queue_md);
  if (!passthrough && md == nullptr) return -EINVAL;
  const auto wait = [&](std::uint32_t handle, Wait*& out) {
    const auto found = waits_.find(handle);
    out = found == waits_.end() ? nullptr : &found->second;
    return handle == wire::kWaitNone || out != nullptr;
  };
  Wait *event_wait = nullptr, *status_wait = nullptr;
  if (!wait(c.event_wait, event_wait) || !wait(c.status_wait, status_wait)) return -EINVAL;
  if (!is_event_buffer(c.attr.queue, c.attr.queue_len) || !thresholds_are_valid(c.attr)) return -EINVAL;
  if (md != nullptr && !contains(*md, c.attr.queue, c.attr.queue_len)) return -EINVAL;
  if ((c.attr.flags & wire::kEqRegisterPct) != 0 && !who_.admin) return -EPERM;
  const auto slots = static_cast<std::uint32_t>(c.attr.queue_len / 64);
  if (c.attr.reserved_slots > slots - 1) return -EINVAL;

  // A number that this LNI gave up comes first: it is paid for.
  Eq* eq = nullptr;
  if (!owner->retired_eqs.empty()) {
    eq = card_.event_queues.revive(owner->retired_eqs.front());
    owner->retired_eqs.erase(owner->retired_eqs.begin());
  } else {
    if (const int failed = take(card_, *owner->service, Resource::eq); failed != 0) return failed;
    eq = card_.event_queues.make();
    if (eq == nullptr) {
      give_back(card_, *owner->service, Resource::eq);
      return -ENOSPC;
    }
  }
  eq->lni = owner;
  eq->md = md;
  eq->event_wait = event_wait;
  eq->status_wait = status_wait;
  eq->flags = c.attr.flags | wire::kEqUser;
  eq->slots = slots;
  eq->reserved_slots = c.attr.reserved_slots;
  eq->threshold_base = c.attr.status_thresh_base;
  eq->threshold_delta = c.attr.status_thresh_delta;
  eq->threshold_count = c.attr.status_thresh_count;
  ++owner->refs;
  if (md != nullptr) ++md->refs;
  if (event_wait != nullptr) ++event_wait->refs;
  if (status_wait != nullptr) ++status_wait->refs;

  wire::EqAllocResp answer{};
  answer.eq = eq->id;
  int failed = place_events(md, passthrough, c.attr.queue, c.attr.queue_len, eq->buffer);
  if (failed == 0) {
    Cookie* state = make_cookie(Page::event_state, wire::kMappedPageBytes, eq->mapped, answer.csr);
    failed = state == nullptr ? -ENOMEM : 0;
    if (state != nullptr) eq->state_page = reinterpret_cast<std::uint64_t*>(state->mapping.data());
  }
  if (failed == 0) failed = respond(c.resp, answer);
  if (failed != 0) drop(*eq);
  return failed;
}

int Client::eq_free(const wire::EqFreeCmd& c) {
  Eq* eq = own(card_.event_queues, c.eq);
  if (eq == nullptr) return -EINVAL;
  if (eq->refs != 0 || eq->mapped != 0) return -EBUSY;
  drop(*eq);
  return 0;
}

void Client::drop(Eq& eq) {
  drop_cookies(eq.mapped);
  if (eq.md != nullptr) --eq.md->refs;
  if (eq.resized_md != nullptr) --eq.resized_md->refs;
  if (eq.event_wait != nullptr) --eq.event_wait->refs;
  if (eq.status_wait != nullptr) --eq.status_wait->refs;
  --eq.lni->refs;
  eq.lni->retired_eqs.push_back(eq.id);
  card_.event_queues.retire(eq.id);
}

int Client::eq_resize(const wire::EqResizeCmd& c) {
  Eq* eq = own(card_.event_queues, c.eq_hndl);
  if (eq == nullptr || !is_event_buffer(c.queue, c.queue_len)) return -EINVAL;
  const bool passthrough = (eq->flags & wire::kEqPassthrough) != 0;
  Md* md = passthrough ? nullptr : own(card_.mds, c.queue_md);
  if (!passthrough && (md == nullptr || !contains(*md, c.queue, c.queue_len) || md->lac != eq->md->lac)) return -EINVAL;
  if (eq->resized) return -EINVAL;
  Eq::Next next;
  if (const int failed = place_events(md, passthrough, c.queue, c.queue_len, next.buffer); failed != 0) return failed;
  next.slots = static_cast<std::uint32_t>(c.queue_len / 64);
  next.md = md;
  eq->next = next;
  eq->resized = true;
  eq->resized_md = md;
  if (md != nullptr) ++md->refs;
  // The client may wait for the switch without any other traffic.
  card_.switch_buffer(*eq);
  return 0;
}

int Client::eq_resize_complete(const wire::EqResizeCompleteCmd& c) {
  Eq* eq = own(card_.event_queues, c.eq_hndl);
  if (eq == nullptr || !eq->resized) return -EINVAL;
  if (eq->next) card_.switch_buffer(*eq);
  if (eq->md != nullptr) --eq->md->refs;
  eq->md = eq->resized_md;
  eq->resized_md = nullptr;
  eq->resized = false;
  return 0;
}

int Client::eq_adjust_reserved_fc(const wire::EqAdjustReservedFcCmd& c) {
  Eq* eq = own(card_.event_queues, c.eq_hndl);
  if (eq == nullptr) return -EINVAL;
  constexpr auto kMost = static_cast<std::int64_t>(wire::kMaxReservedFc);
  const std::int64_t next = std::int64_t{eq->reserved_fc} + c.value;
  if (c.value > kMost || c.value < -kMost || next > kMost || next < 0) return -EINVAL;
  if (next > std::int64_t{eq->slots} - 1) return -ENOSPC;
  eq->reserved_fc = static_cast<std::uint32_t>(next);
  return respond(c.resp, wire::EqAdjustReservedFcResp{static_cast<std::int32_t>(next)});
}

// ---- Waiting --------------------------------------------------------------------------------------------------------

int Client::wait_alloc(const wire::WaitAllocCmd& c) {
  Lni* owner = lni(c.lni);
  if (owner == nullptr) return -EINVAL;
  std::uint32_t handle = 1;
  while (waits_.contains(handle)) ++handle;
  if (const int failed = respond(c.resp, wire::WaitAllocResp{id_, handle}); failed != 0) return failed;
  waits_[handle].id = handle;
  waits_[handle].raise = [this, handle] { host_.raise(handle); };
  wait_lnis_[handle] = owner;
  ++owner->refs;
  return 0;
}

int Client::wait_free(const wire::WaitFreeCmd& c) {
  const auto found = waits_.find(c.wait);
  if (found == waits_.end()) return -EINVAL;
  if (found->second.refs != 0) return -EBUSY;
  --wait_lnis_[c.wait]->refs;
  wait_lnis_.erase(c.wait);
  waits_.erase(found);
  return 0;
}

}  // namespace strait::soft::cassini
