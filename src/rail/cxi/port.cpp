// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/port.hpp"

#include <algorithm>
#include <cstring>

#include "sys/char_device.hpp"
#include "sys/pause.hpp"
#include "sys/process.hpp"

namespace strait::rail::cxi {
namespace {

constexpr std::uint64_t kEventBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kTransmitBlocks = 4096;
constexpr std::uint32_t kTargetBlocks = 1024;
constexpr std::int64_t kAnswerNs = 5'000'000'000;  // of a device that works: microseconds
constexpr std::uint64_t kPortalOptions = w::kPteIsMatching | w::kPteUseLongEvent;

}  // namespace

Result<std::unique_ptr<Port>> Port::open(const PortRequest& request) {
  STRAIT_TRY(std::unique_ptr<Device> device, Device::open(request.device));
  return open(std::move(device), request);
}

Result<std::unique_ptr<Port>> Port::open(std::unique_ptr<Device> device, const PortRequest& request) {
  std::unique_ptr<Port> port(new Port(std::move(device)));
  STRAIT_CHECK(port->make(request));
  return port;
}

// The one that was asked for; else the first that the service allows. A service that allows all says nothing: 1 then,
// which is the driver's own default.
Result<std::uint32_t> Port::choose_vni(const PortRequest& request) {
  if (request.vni != 0) return request.vni;
  w::SvcGetCmd command{};
  command.svc_id = request.service;
  const auto answer = device_->ask<w::SvcGetResp>(command);
  if (!answer) return 1u;
  const w::SvcDesc& service = answer->svc_desc;
  if ((service.flags & w::kSvcRestrictedVnis) != 0 && service.num_vld_vnis != 0 && service.vnis[0] != 0)
    return std::uint32_t{service.vnis[0]};
  return 1u;
}

Status Port::make(const PortRequest& request) {
  STRAIT_TRY(const std::uint32_t vni, choose_vni(request));
  STRAIT_TRY(lni_, Lni::make(*device_, request.service));
  STRAIT_TRY(profile_, Profile::make(lni_, vni));
  STRAIT_TRY(domain_, Domain::make(lni_, vni));
  STRAIT_TRY(wait_, Wait::make(lni_));
  STRAIT_TRY(events_, EventQueue::make(lni_, kEventBytes, &wait_));
  STRAIT_TRY(transmit_, CommandQueue::make(lni_, {.kind = CommandQueue::Kind::transmit,
                                                  .blocks = kTransmitBlocks,
                                                  .lcid = profile_.lcid(),
                                                  .event_queue = events_.number()}));
  STRAIT_TRY(target_,
             CommandQueue::make(
                 lni_, {.kind = CommandQueue::Kind::target, .blocks = kTargetBlocks, .event_queue = events_.number()}));
  STRAIT_TRY(memory_, Portal::make(lni_, domain_, kMemoryIndex, events_.number(), kPortalOptions));
  STRAIT_TRY(messages_, Portal::make(lni_, domain_, kMessageIndex, events_.number(), kPortalOptions));

  address_.nid = device_->info().nid;
  address_.pid = domain_.pid();
  address_.pid_bits = device_->info().pid_bits;
  address_.vni = vni;
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(&address_.secret, 1))));

  const std::uint32_t capacity = events_.capacity();
  transmit_credits_ = capacity / 4;
  receive_ids_.resize(capacity / 2);
  for (std::size_t i = 0; i < receive_ids_.size(); ++i)
    receive_ids_[i] = static_cast<std::uint16_t>(receive_ids_.size() - 1 - i);
  // Place 0 is the directory itself.
  for (std::uint32_t place = 1; place != kPlaces; ++place) places_.push_back(static_cast<std::uint16_t>(place));
  generations_.resize(kPlaces);
  STRAIT_CHECK(sys::fill_random(std::as_writable_bytes(std::span(generations_))));

  const std::size_t bytes = sys::round_up(kPlaces * sizeof(DirectoryEntry), sys::page_bytes());
  STRAIT_TRY(directory_pages_, sys::map_anonymous(bytes, sys::Protect::read_write));
  const auto base = reinterpret_cast<std::uintptr_t>(directory_pages_.data());
  STRAIT_TRY(directory_memory_, Memory::make(lni_, {.address = base, .bytes = bytes, .flags = w::kMapRead}));
  STRAIT_TRY(sleepers_, sys::EventSet::make());
  STRAIT_TRY(timer_, sys::Timer::make());
  STRAIT_CHECK(sleepers_.add_urgent(wait_.fd()));
  STRAIT_CHECK(sleepers_.add(timer_.fd()));
  return {};
}

Status Port::enable_portals() {
  for (const Portal* const portal : {&memory_, &messages_})
    if (!tell_target(encode_state_change(portal->number(), w::PteState::enabled)))
      return fail(Code::device, "{} does not read its target queue", device_->name());
  if (!await(sys::Deadline::after_ns(kAnswerNs), [&] { return enabled_ == 2; }))
    return fail(Code::timeout, "{} did not enable the portal entries", device_->name());
  STRAIT_TRY(const w::ReturnCode code,
             append_and_wait({.portal = memory_.number(),
                              .buffer_id = 0,
                              .flags = w::kLeOpGet | w::kLeEventCommDisable | w::kLeUnexpectedHdrDisable,
                              .iova = directory_memory_.iova(reinterpret_cast<std::uintptr_t>(directory_pages_.data())),
                              .lac = directory_memory_.lac(),
                              .bytes = kPlaces * sizeof(DirectoryEntry),
                              .match_bits = address_.match_bits(0)}));
  if (code != w::ReturnCode::ok)
    return fail(Code::device, "{} did not take the directory's list entry: code {}", device_->name(),
                static_cast<unsigned>(code));
  return {};
}

bool Port::take_transmit_credit() {
  if (transmit_credits_ == 0) return false;
  --transmit_credits_;
  return true;
}

int Port::take_receive_id() {
  if (receive_ids_.empty()) return -1;
  const int id = receive_ids_.back();
  receive_ids_.pop_back();
  return id;
}

bool Port::tell_target(const void* command, std::uint32_t bytes) {
  const sys::Deadline deadline = sys::Deadline::after_ns(kAnswerNs);
  for (std::uint32_t turn = 0; !target_.place(command, bytes, w::CmdSize::b64); ++turn) {
    target_.ring();
    if (deadline.passed()) return false;
    sys::pause_turn(turn);
  }
  return true;
}

void Port::ring() {
  target_.ring();
  transmit_.ring();
}

bool Port::prepare_messages() {
  if (prepared_messages_) return true;
  const Way way{0, w::index_ext_of(kMessageIndex), address_.match_id(), events_.number()};
  prepared_messages_ = transmit_.emit(encode_state(way), w::CmdSize::b32);
  return prepared_messages_;
}

int Port::take_events(int most) {
  if (wakes_) wake_by_events(false);
  Event event;
  int count = 0;
  while (count < most && events_.next(event)) {
    ++count;
    switch (event.type) {
      case w::EventType::state_change:
        ++state_changes;
        if (event.as<w::TargetLong>().ptlte_state() == w::PteState::enabled) ++enabled_;
        break;
      case w::EventType::command_failure: ++command_failures; break;
      default:
        if (!on_list_event(event)) dispatch(event);
    }
  }
  if (count != 0) {
    events_taken += static_cast<std::uint64_t>(count);
    events_.acknowledge();
  }
  return count;
}

bool Port::await(const sys::Deadline& deadline, const std::function<bool()>& done) {
  constexpr int kAtATime = 64;
  ring();
  for (std::uint32_t turn = 0; !done(); ++turn) {
    if (take_events(kAtATime) != 0) {
      ring();
      turn = 0;
      continue;
    }
    if (deadline.passed()) return false;
    sys::pause_turn(turn);
  }
  return true;
}

bool Port::on_list_event(const Event& event) {
  if (!listing_ || event.type != listing_type_) return false;
  const auto what = event.as<w::TargetLong>();
  if (what.ptlte_index() != listing_portal_ || what.buffer_id() != listing_id_) return false;
  listed_ = event.code;
  listing_ = false;
  return true;
}

Result<w::ReturnCode> Port::append_and_wait(const ListEntry& entry) {
  listing_ = true;
  listing_type_ = w::EventType::link;
  listing_portal_ = entry.portal;
  listing_id_ = entry.buffer_id;
  if (tell_target(encode_append(entry)) && await(sys::Deadline::after_ns(kAnswerNs), [&] { return !listing_; }))
    return listed_;
  listing_ = false;
  return fail(Code::timeout, "{} did not answer an append", device_->name());
}

void Port::unlink_and_wait(std::uint32_t portal, std::uint32_t buffer_id) {
  listing_ = true;
  listing_type_ = w::EventType::unlink;
  listing_portal_ = portal;
  listing_id_ = buffer_id;
  if (tell_target(encode_unlink(portal, buffer_id)))
    (void)await(sys::Deadline::after_ns(kAnswerNs), [&] { return !listing_; });
  listing_ = false;
}

Result<std::uint32_t> Port::take_place() {
  if (places_.empty())
    return fail(Code::limit, "all {} places of the rail's directory are taken: share fewer regions", kPlaces - 1);
  const std::uint32_t place = places_.front();
  places_.pop_front();
  return place;
}

void Port::give_place(std::uint32_t place) {
  publish(place, {0, 0});
  places_.push_back(static_cast<std::uint16_t>(place));
}

// The key last: who finds it finds the rest.
void Port::publish(std::uint32_t place, DirectoryEntry entry) {
  auto* const at = reinterpret_cast<DirectoryEntry*>(directory_pages_.data()) + place;
  __atomic_store_n(&at->key, std::uint64_t{0}, __ATOMIC_RELEASE);
  __atomic_store_n(&at->value, entry.value, __ATOMIC_RELEASE);
  __atomic_store_n(&at->key, entry.key, __ATOMIC_RELEASE);
}

void Port::wake_by_events(bool on) {
  if (on) sys::clear_notifier(wait_.fd());
  events_.wake_by_events(on);
  wakes_ = on;
}

void Port::wake_after_ns(std::int64_t ns) {
  if (ns < 0) {
    if (timed_) timer_.stop();
    timed_ = false;
    return;
  }
  timer_.fire_after_ns(std::max<std::int64_t>(ns, 1));
  timed_ = true;
}

}  // namespace strait::rail::cxi
