// SPDX-License-Identifier: Apache-2.0
// What a device says by itself: that it is gone, that its port went down or came back, that a queue pair is broken.
//
// Threads: one at a time; VerbsRail's lock.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::rail::verbs {

// What libibverbs is asked; a test has its own.
struct EventCalls {
  bool (*ready)(ibv_context* context);  // never blocks
  int (*get)(ibv_context* context, ibv_async_event* event);
  void (*acknowledge)(ibv_async_event* event);
};
[[nodiscard]] const EventCalls& verbs_event_calls();

// Beside a syndrome, where a NIC has its own byte: why the device flushed, or why nobody answered. node/lane.cpp makes
// sentences of them.
inline constexpr std::uint8_t kVendorDeviceGone = 0xa3;
inline constexpr std::uint8_t kVendorPortDown = 0xa4;
inline constexpr std::uint8_t kVendorQueueFatal = 0xa5;

class DeviceEvents {
 public:
  DeviceEvents(ibv_context* context, std::string name, std::uint8_t port, const EventCalls& calls = verbs_event_calls())
      : context_(context), name_(std::move(name)), port_(port), calls_(&calls) {}

  // Takes everything there is, and acknowledges it: a queue pair with an event that nobody took cannot be destroyed.
  // True: something changed. A system call.
  bool take();

  [[nodiscard]] bool device_gone() const { return gone_; }
  [[nodiscard]] bool port_down() const { return down_; }
  [[nodiscard]] bool queue_broken(std::uint32_t qpn) const { return std::ranges::find(broken_, qpn) != broken_.end(); }
  void forget_queue(std::uint32_t qpn) { std::erase(broken_, qpn); }
  // The byte to show beside a syndrome of that queue pair; 0: the device has said nothing that explains it.
  [[nodiscard]] std::uint8_t why(std::uint32_t qpn, wire::mlx5::Syndrome syndrome) const;
  [[nodiscard]] std::uint64_t count() const { return count_; }
  // Nothing new is begun on a device that is gone, and no connection over a port that is down: Code::gone, with the
  // event that said so.
  [[nodiscard]] Status usable() const;
  [[nodiscard]] Status connectable() const;

 private:
  bool note(const ibv_async_event& event);

  ibv_context* context_;
  std::string name_;
  std::uint8_t port_;
  const EventCalls* calls_;
  bool gone_ = false;
  bool down_ = false;
  std::vector<std::uint32_t> broken_;
  std::uint64_t count_ = 0;
};

}  // namespace strait::rail::verbs
