// SPDX-License-Identifier: Apache-2.0
#include "soft/gaudi/synapse_state.hpp"

#include <cerrno>

#include "sys/pause.hpp"

namespace strait::soft::gaudi::syn {
namespace {

// Never destroyed, as the driver.
struct Holder {
  std::mutex mutex;
  std::unique_ptr<State> state;
};

Holder& holder() {
  static auto* one = new Holder;
  return *one;
}

}  // namespace

State::Use State::use() {
  if (Driver::get() == nullptr) return {};
  Use use{std::unique_lock(holder().mutex), nullptr};
  use.state = holder().state.get();
  return use;
}

Answer State::initialize() {
  Driver* driver = Driver::get();
  if (driver == nullptr) return kFail;
  const std::lock_guard lock(holder().mutex);
  if (holder().state) return kAlreadyInitialized;
  if (driver->devices() == 0) return kNoDeviceFound;
  holder().state = std::make_unique<State>();
  holder().state->driver = driver;
  return kSuccess;
}

Answer State::destroy() {
  if (Driver::get() == nullptr) return kUninitialized;
  const std::lock_guard lock(holder().mutex);
  if (!holder().state) return kUninitialized;
  while (!holder().state->devices.empty()) (void)holder().state->release(holder().state->devices.begin()->first);
  holder().state.reset();
  return kSuccess;
}

Acquired* State::find(DeviceId device) {
  if (device == UINT32_MAX) return devices.empty() ? nullptr : &devices.begin()->second;
  const auto found = devices.find(device);
  return found == devices.end() ? nullptr : &found->second;
}

Answer State::acquire(std::uint32_t slot, DeviceId& out) {
  if (slot >= driver->devices()) return kNoDeviceFound;
  if (devices.contains(slot)) return kDeviceAlreadyAcquired;
  const int fd = driver->open_compute(slot);
  if (fd < 0) return fd == -EBUSY ? kBusy : kFail;
  Pool pool;
  if (driver->make_pool(fd, pool) != 0) {
    driver->close(fd);
    return kOutOfDeviceMemory;
  }
  devices[slot].fd = fd;
  out = slot;
  return kSuccess;
}

Answer State::release(DeviceId device) {
  const auto found = devices.find(device);
  if (found == devices.end()) return kInvalidArgument;
  finish_all();
  std::erase_if(streams, [&](const auto& each) { return each.second->device == device; });
  std::erase_if(events, [&](const auto& each) { return each.second->device == device; });
  found->second.pool.reset();  // or it would keep the device busy
  driver->close(found->second.fd);
  devices.erase(found);
  return kSuccess;
}

int State::pool_dmabuf() {
  Acquired* first = find(UINT32_MAX);
  if (first == nullptr) return -1;
  Pool whole;
  if (!first->pool.valid() && driver->pool(first->fd, whole) == 0) {
    const int made =
        driver->export_mapped(first->fd, whole.allocated_base, whole.total_bytes, whole.base - whole.allocated_base, 0);
    if (made >= 0) first->pool = sys::Fd(made);
  }
  return first->pool.valid() ? first->pool.get() : -1;
}

bool State::host_side(DeviceId device, std::uint64_t address, std::uint64_t length_bytes) const {
  const auto acquired = devices.find(device);
  if (acquired == devices.end()) return false;
  auto after = acquired->second.host.upper_bound(address);
  if (after == acquired->second.host.begin()) return false;
  --after;
  return address - after->first <= after->second && length_bytes <= after->second - (address - after->first);
}

Answer State::copy(Stream& stream, std::uint64_t from, std::uint64_t length_bytes, std::uint64_t to,
                   std::int32_t direction) {
  Counts& counts = driver->counts();
  if (direction < kHostToDram || direction > kDramToDram || length_bytes == 0) return kInvalidArgument;
  if (driver->status(stream.device) != 0) return kDeviceReset;
  accel::Side source, target;
  DeviceBytes at_source, at_target;
  const bool from_host = direction == kHostToDram, to_host = direction == kDramToHost;
  if ((from_host && !host_side(stream.device, from, length_bytes)) ||
      (to_host && !host_side(stream.device, to, length_bytes))) {
    counts.copies_refused.add();
    return kMappingNotFound;
  }
  // The far end of a link may be a device of another process; at most one end is.
  FarBytes far;
  const auto reach = [&](std::uint64_t address, DeviceBytes& out) {
    if (driver->reach(address, length_bytes, out)) return true;
    if (direction != kDramToDram || far.at != nullptr || !driver->reach_far(address, length_bytes, far)) return false;
    out = {far.at, far.slot};
    return true;
  };
  if ((!from_host && !reach(from, at_source)) || (!to_host && !reach(to, at_target))) {
    counts.copies_refused.add();
    return kInvalidArgument;
  }
  // A stream moves memory of its own device; on a link the other end is another's.
  const bool own_source = from_host || at_source.slot == stream.device;
  const bool own_target = to_host || at_target.slot == stream.device;
  if (direction == kDramToDram ? !own_source && !own_target : !own_source || !own_target) {
    counts.copies_refused.add();
    return kInvalidArgument;
  }
  source.bytes = from_host ? reinterpret_cast<std::byte*>(from) : at_source.at;
  target.bytes = to_host ? reinterpret_cast<std::byte*>(to) : at_target.at;
  const auto ticket = engine_.submit(target, source, length_bytes);
  if (!ticket) return kFail;
  if (*ticket != 0) newest_ = stream.last = *ticket;
  if (*ticket != 0 && far.at != nullptr) far_.emplace(*ticket, std::move(far));
  counts.copies.add();
  if (direction != kDramToDram)
    counts.host_bytes.add(length_bytes);
  else if (at_source.slot == at_target.slot)
    counts.local_bytes.add(length_bytes);
  else
    driver->count_link(at_source.slot, at_target.slot, length_bytes);
  return kSuccess;
}

bool State::is_over(std::uint64_t ticket) {
  std::erase_if(far_, [&](const auto& each) { return engine_.state(each.first) != accel::CopyEngine::State::running; });
  return ticket == 0 || engine_.state(ticket) != accel::CopyEngine::State::running;
}

void State::finish(std::uint64_t ticket) {
  for (std::uint32_t turn = 0; !is_over(ticket); ++turn) sys::pause_turn(turn);
}

}  // namespace strait::soft::gaudi::syn
