// SPDX-License-Identifier: Apache-2.0
// What the communication manager needs of a NIC and of the program's memory. Tests have their own of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "soft/cm/message.hpp"

namespace strait::soft::cm {

struct GidInfo {
  IpAddress address;
  std::uint8_t mtu_code = 5;    // the largest path MTU of its interface
  std::uint64_t node_guid = 0;  // of the NIC that serves it, where there are several; 0: Device::node_guid()
};

class Device {
 public:
  // On whatever thread drives the NIC, with its lock held: may not call the device.
  using Receiver = std::function<void(const IpAddress& from, const IpAddress& to, std::span<const std::byte> mad)>;

  virtual ~Device() = default;
  [[nodiscard]] virtual std::uint64_t node_guid() const = 0;
  [[nodiscard]] virtual const std::vector<GidInfo>& gids() const = 0;
  // Begins to receive. After stop() has returned the receiver is not called any more.
  [[nodiscard]] virtual Status start(Receiver receiver) = 0;
  virtual void stop() = 0;
  virtual void send(std::uint8_t sgid_index, const IpAddress& to, const Mad& mad) = 0;
  // The program ends: whether send() may still be called. Not where a signal interrupted the NIC and exit() was called.
  [[nodiscard]] virtual bool may_send_at_exit() { return true; }
  // Called by the thread of the communication manager while it waits: lets the NIC work if nobody else does. -1: it
  // needs no help, otherwise a descriptor to wait on.
  virtual int help() { return -1; }
};

// The program's memory as a kernel would reach it: a bad pointer is an answer, never a crash.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual bool copy_in(std::uint64_t from, void* into, std::size_t bytes) const = 0;
  [[nodiscard]] virtual bool copy_out(std::uint64_t to, const void* from, std::size_t bytes) const = 0;
};

}  // namespace strait::soft::cm
