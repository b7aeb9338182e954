// SPDX-License-Identifier: Apache-2.0
#include "buffer/gaudi/copies.hpp"

#include <algorithm>

#include "sys/pause.hpp"

namespace strait::buffer::gaudi {

Copies::~Copies() {
  for (const auto& [ticket, running] : running_) {
    for (std::uint32_t turn = 0; libraries_.synapse.event_query(running.event) == kSynBusy; ++turn)
      sys::pause_turn(turn);
    end(running);
  }
}

void Copies::end(const Running& running) {
  (void)libraries_.synapse.event_destroy(running.event);
  if (running.mapped != nullptr) (void)libraries_.synapse.host_unmap(running.device->syn_id(), running.mapped);
  for (void* const turn : running.turns) {
    if (turn != nullptr) (void)libraries_.synapse.event_destroy(turn);
  }
  if (running.stop != 0) (void)running.device->free(running.stop);
}

Result<std::uint64_t> Copies::keep(Running running, std::uint64_t length_bytes) {
  started_.add();
  bytes_.add(length_bytes);
  const std::lock_guard lock(mutex_);
  running_.emplace(++last_ticket_, std::move(running));
  return last_ticket_;
}

Result<std::uint64_t> Copies::start(const std::shared_ptr<Acquired>& target, std::uint64_t to,
                                    const std::shared_ptr<Acquired>& source, std::uint64_t from,
                                    std::uint64_t length_bytes) {
  if (!libraries_.has_synapse) {
    return with_remedy(fail(Code::unsupported, "hl-thunk has no copies, and SynapseAI is not there: {}",
                            libraries_.no_synapse_because),
                       "Install SynapseAI.");
  }
  const Synapse& synapse = libraries_.synapse;
  Running running;
  running.device = source ? source : target;
  if (source && target && source != target) running.other = target;
  const Acquired& device = *running.device;
  const auto lane = !source ? Acquired::kIn : !target ? Acquired::kOut : Acquired::kInside;
  const int direction = !source ? kHostToDevice : !target ? kDeviceToHost : kDeviceToDevice;
  const auto refused = [&](int status, const char* what) {
    failed_.add();
    return fail(Code::device, "cannot {} of a copy of {} bytes from {:#x} to {:#x} by {}: SynapseAI answers {}", what,
                length_bytes, from, to, device.name(), status);
  };
  if (!source || !target) {
    const auto* const host = reinterpret_cast<const void*>(source ? to : from);
    if (const int status = synapse.host_map(device.syn_id(), length_bytes, host); status != kSynOk)
      return refused(status, "map the host side");
    running.mapped = host;
  }
  int status = synapse.event_create(&running.event, device.syn_id(), 0);
  if (status == kSynOk) {
    void* const stream = device.stream(lane);
    status = synapse.copy(stream, from, length_bytes, to, direction);  // size before destination
    if (status == kSynOk) status = synapse.event_record(running.event, stream);
    if (status != kSynOk) (void)synapse.event_destroy(running.event);
  }
  if (status != kSynOk) {
    if (running.mapped != nullptr) (void)synapse.host_unmap(device.syn_id(), running.mapped);
    return refused(status, "start the engine");
  }
  return keep(std::move(running), length_bytes);
}

// Each leg on a stream of its own: while a piece goes over the link the next one goes over PCIe. Events keep the two
// apart: a half of the stop is read when it is full, and filled again when it was read.
int Copies::queue_pieces(Running& running, std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes,
                         FarHost host) {
  const Synapse& synapse = libraries_.synapse;
  const Acquired& device = *running.device;
  const bool inward = host == FarHost::source;
  void* const first = device.stream(inward ? Acquired::kIn : Acquired::kInside);
  void* const second = device.stream(inward ? Acquired::kInside : Acquired::kOut);
  int status = kSynOk;
  const auto then = [&status](auto&& call) {
    if (status == kSynOk) status = call();
  };
  for (void*& turn : running.turns) then([&] { return synapse.event_create(&turn, device.syn_id(), 0); });
  std::uint64_t piece = 0;
  for (std::uint64_t offset = 0; offset < length_bytes && status == kSynOk; offset += kStopBytes, ++piece) {
    const std::uint64_t bytes = std::min(kStopBytes, length_bytes - offset);
    const std::uint64_t half = running.stop + piece % 2 * kStopBytes;
    void* const full = running.turns[piece % 2];
    void* const empty = running.turns[2 + piece % 2];
    if (piece >= 2) then([&] { return synapse.stream_wait_event(first, empty, 0); });
    then([&] { return synapse.copy(first, from + offset, bytes, half, inward ? kHostToDevice : kDeviceToDevice); });
    then([&] { return synapse.event_record(full, first); });
    then([&] { return synapse.stream_wait_event(second, full, 0); });
    then([&] { return synapse.copy(second, half, bytes, to + offset, inward ? kDeviceToDevice : kDeviceToHost); });
    then([&] { return synapse.event_record(empty, second); });
  }
  then([&] { return synapse.event_record(running.event, second); });
  return status;
}

Result<std::uint64_t> Copies::start_far(const std::shared_ptr<Acquired>& device, std::uint64_t to, std::uint64_t from,
                                        std::uint64_t length_bytes, FarHost host) {
  const Synapse& synapse = libraries_.synapse;
  Running running;
  running.device = device;
  void* const stream = device->stream(Acquired::kInside);
  const auto refused = [&](int status) {
    failed_.add();
    end(running);
    return with_remedy(
        fail(Code::gone, "{} cannot copy {} bytes from {:#x} to {:#x} over the link: SynapseAI answers {}",
             device->name(), length_bytes, from, to, status),
        "The process that owns the other device may have ended, or given the device back.");
  };
  int status = synapse.event_create(&running.event, device->syn_id(), 0);
  if (status != kSynOk) return refused(status);
  if (host != FarHost::none) {
    auto stop = device->allocate(std::min(length_bytes, 2 * kStopBytes));
    if (!stop) {
      end(running);
      return stop.error();
    }
    running.stop = *stop;
    const auto* const memory = reinterpret_cast<const void*>(host == FarHost::source ? from : to);
    status = synapse.host_map(device->syn_id(), length_bytes, memory);
    if (status != kSynOk) return refused(status);
    running.mapped = memory;
  }
  if (host != FarHost::none) {
    status = queue_pieces(running, to, from, length_bytes, host);
  } else {
    status = synapse.copy(stream, from, length_bytes, to, kDeviceToDevice);
    if (status == kSynOk) status = synapse.event_record(running.event, stream);
  }
  if (status != kSynOk) {
    for (const auto lane : {Acquired::kIn, Acquired::kInside, Acquired::kOut})
      (void)synapse.stream_wait(device->stream(lane));  // some of it may be under way
    return refused(status);
  }
  far_bytes_.add(length_bytes);
  return keep(std::move(running), length_bytes);
}

std::int32_t Copies::done(std::uint64_t ticket) {
  if (ticket == 0) return 1;
  Running running;
  int status = kSynOk;
  {
    const std::lock_guard lock(mutex_);
    if (ticket > last_ticket_) return -static_cast<std::int32_t>(Code::invalid);
    const auto found = running_.find(ticket);
    if (found == running_.end()) return 1;  // answered before
    status = libraries_.synapse.event_query(found->second.event);
    if (status == kSynBusy) return 0;
    running = std::move(found->second);
    running_.erase(found);
  }
  end(running);
  (status == kSynOk ? finished_ : failed_).add();
  return status == kSynOk ? 1 : -static_cast<std::int32_t>(Code::device);
}

Status Copies::wait(std::uint64_t ticket) {
  for (std::uint32_t turn = 0;; ++turn) {
    const std::int32_t state = done(ticket);
    if (state == 1) return {};
    if (state < 0) return fail(static_cast<Code>(-state), "a copy by a Gaudi failed");
    sys::pause_turn(turn < 4096 ? turn % 64 : turn);
  }
}

std::string Copies::counters() const {
  return fmt::format("copies={},copies_done={},copies_failed={},bytes_copied={},far_bytes={}", started_.load(),
                     finished_.load(), failed_.load(), bytes_.load(), far_bytes_.load());
}

}  // namespace strait::buffer::gaudi
