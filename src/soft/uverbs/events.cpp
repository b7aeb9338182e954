// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/events.hpp"

#include <rdma/ib_user_verbs.h>

#include <cstring>

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

namespace {

EventTarget* target_of(std::uint64_t user) {
  return reinterpret_cast<EventTarget*>(static_cast<std::uintptr_t>(user));
}

}  // namespace

void EventRouter::on_completion(std::uint32_t /*cqn*/, std::uint64_t user) {
  EventTarget* const target = target_of(user);
  if (target == nullptr || !target->completions) return;
  ib_uverbs_comp_event_desc out{};
  out.cq_handle = target->element;
  ++target->completions_sent;
  target->completions->send(out);
}

void EventRouter::on_async(const nic::AsyncEvent& event) {
  EventTarget* const target = target_of(event.user);
  if (target == nullptr || !target->async) return;
  ib_uverbs_async_event_desc out{};
  out.element = target->element;
  out.event_type = static_cast<std::uint32_t>(event.kind);
  ++target->async_sent;
  target->async->send(out);
}

}  // namespace strait::soft::uverbs
