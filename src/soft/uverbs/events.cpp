// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/events.hpp"

#include <rdma/ib_user_verbs.h>

#include <cstring>
#include <optional>

namespace strait::soft::uverbs {

std::uint32_t Channel::take_back(std::uint64_t element) {
  const std::scoped_lock lock(mutex_);
  return pipe_.take_back([&](std::span<const std::byte> event) {
    std::uint64_t of = 0;
    if (event.size() < sizeof of) return false;
    std::memcpy(&of, event.data(), sizeof of);
    return of == element;
  });
}

std::uint32_t EventTarget::async_read() {
  return async ? async_sent - async->take_back(element) : 0;
}

std::uint32_t EventTarget::completions_read() {
  return completions ? completions_sent - completions->take_back(element) : 0;
}

void EventTarget::subscribe(std::vector<Subscription> wanted) {
  const std::scoped_lock lock(mutex_);
  for (Subscription& one : wanted) subscriptions_.push_back(std::move(one));
}

// An event entry of the device: its type in byte 1, and what it happened to in its data, which begins at byte 32.
void EventTarget::tell_subscribers(wire::prm::EventType type, std::uint32_t number) {
  const std::scoped_lock lock(mutex_);
  for (const Subscription& one : subscriptions_) {
    if (one.type != type) continue;
    if (!one.with_data) {
      one.channel->send(one.cookie);
      continue;
    }
    struct {
      std::uint64_t cookie;
      std::uint8_t entry[64];
    } out{one.cookie, {}};
    out.entry[1] = static_cast<std::uint8_t>(type);
    wire::prm::put(out.entry, {(type == wire::prm::EventType::cq_error ? 32u : 56u) * 8, 32}, number);
    one.channel->send(out);
  }
}

namespace {

using wire::prm::EventType;

std::optional<EventType> type_of_event(nic::AsyncKind kind) {
  switch (kind) {
    case nic::AsyncKind::cq_error: return EventType::cq_error;
    case nic::AsyncKind::qp_fatal: return EventType::qp_fatal;
    case nic::AsyncKind::qp_request_error: return EventType::qp_request_error;
    case nic::AsyncKind::qp_access_error: return EventType::qp_access_error;
    case nic::AsyncKind::communication_established: return EventType::communication_established;
    case nic::AsyncKind::sq_drained: return EventType::sq_drained;
    case nic::AsyncKind::srq_error: return EventType::srq_error;
    case nic::AsyncKind::srq_limit_reached: return EventType::srq_limit_reached;
    case nic::AsyncKind::last_wqe_reached: return EventType::last_wqe_reached;
    default: return {};
  }
}

EventTarget* target_of(std::uint64_t user) {
  return reinterpret_cast<EventTarget*>(static_cast<std::uintptr_t>(user));
}

void send_async(EventTarget& target, const nic::AsyncEvent& event) {
  if (!target.async) return;
  ib_uverbs_async_event_desc out{};
  out.element = target.element;
  out.event_type = static_cast<std::uint32_t>(event.kind);
  ++target.async_sent;
  target.async->send(out);
}

}  // namespace

void EventRouter::on_completion(std::uint32_t cqn, std::uint64_t user) {
  EventTarget* const target = target_of(user);
  if (target == nullptr) return;
  target->tell_subscribers(EventType::completion, cqn);
  if (!target->completions) return;
  ib_uverbs_comp_event_desc out{};
  out.cq_handle = target->element;
  ++target->completions_sent;
  target->completions->send(out);
}

void EventRouter::listen(const std::shared_ptr<Channel>& channel) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
  listeners_.push_back(channel);
}

void EventRouter::on_async(const nic::AsyncEvent& event) {
  if (event.kind == nic::AsyncKind::device_fatal) {
    ib_uverbs_async_event_desc out{};
    out.event_type = static_cast<std::uint32_t>(event.kind);
    const std::scoped_lock lock(mutex_);
    for (const auto& each : listeners_) {
      if (const auto channel = each.lock()) channel->send(out);
    }
    return;
  }
  EventTarget* const target = target_of(event.user);
  if (target == nullptr) return;
  if (const auto type = type_of_event(event.kind)) target->tell_subscribers(*type, event.number);
  if (target->fan != nullptr) return target->fan->send(event);
  send_async(*target, event);
}

void EventFan::add(EventTarget& target) {
  const std::scoped_lock lock(mutex_);
  targets_.push_back(&target);
}

void EventFan::remove(const EventTarget& target) {
  const std::scoped_lock lock(mutex_);
  std::erase(targets_, &target);
}

void EventFan::send(const nic::AsyncEvent& event) {
  const std::scoped_lock lock(mutex_);
  for (EventTarget* const target : targets_) send_async(*target, event);
}

}  // namespace strait::soft::uverbs
