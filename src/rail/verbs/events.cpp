// SPDX-License-Identifier: Apache-2.0
#include "rail/verbs/events.hpp"

#include <cerrno>
#include <utility>

#include "sys/socket.hpp"

namespace strait::rail::verbs {

const EventCalls& verbs_event_calls() {
  static constexpr EventCalls kCalls{
      [](ibv_context* context) { return sys::wait_ready(context->async_fd, false, sys::Deadline::after_ns(0)); },
      [](ibv_context* context, ibv_async_event* event) { return ibv_get_async_event(context, event); },
      [](ibv_async_event* event) { ibv_ack_async_event(event); }};
  return kCalls;
}

bool DeviceEvents::take() {
  bool changed = false;
  while (calls_->ready(context_)) {
    ibv_async_event event{};
    if (calls_->get(context_, &event) != 0) {
      // Readable for ever, with nothing to read: the driver let the device go (EIO), said or not.
      if (errno == EIO) changed = !std::exchange(gone_, true) || changed;
      break;
    }
    ++count_;
    changed = note(event) || changed;
    calls_->acknowledge(&event);
  }
  return changed;
}

bool DeviceEvents::note(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL: return !std::exchange(gone_, true);
    case IBV_EVENT_PORT_ERR: return event.element.port_num == port_ && !std::exchange(down_, true);
    case IBV_EVENT_PORT_ACTIVE: return event.element.port_num == port_ && std::exchange(down_, false);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      if (queue_broken(event.element.qp->qp_num)) return false;
      broken_.push_back(event.element.qp->qp_num);
      return true;
    default: return false;  // limits reached, path migrated, tables changed: nothing that strait uses
  }
}

std::uint8_t DeviceEvents::why(std::uint32_t qpn, wire::mlx5::Syndrome syndrome) const {
  using wire::mlx5::Syndrome;
  if (syndrome == Syndrome::flushed && gone_) return kVendorDeviceGone;
  if (syndrome == Syndrome::flushed && queue_broken(qpn)) return kVendorQueueFatal;
  if (syndrome == Syndrome::transport_retry_exceeded && down_) return kVendorPortDown;
  return 0;
}

Status DeviceEvents::usable() const {
  if (!gone_) return {};
  return with_remedy(fail(Code::gone, "the NIC {} is no longer there (IBV_EVENT_DEVICE_FATAL)", name_),
                     "Was it removed, or its driver unloaded? Open the Node again when it is back.");
}

Status DeviceEvents::connectable() const {
  STRAIT_CHECK(usable());
  if (!down_) return {};
  return with_remedy(fail(Code::gone, "port {} of the NIC {} is down (IBV_EVENT_PORT_ERR)", port_, name_),
                     "Look at the cable and the switch; it works again as soon as the port is active.");
}

}  // namespace strait::rail::verbs
