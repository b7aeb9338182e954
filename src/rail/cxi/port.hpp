// SPDX-License-Identifier: Apache-2.0
// Port: what one rail has on a CXI device: an LNI, a PID, one transmit queue, one target queue, one event queue, and
// two portal entries, for memory and for messages. And the directory, by which peers find the beginning of memory they
// have a key to: a list entry is addressed from its first byte, work requests are not.
//
// Used under the rail's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rail/cxi/address.hpp"
#include "rail/cxi/command_queue.hpp"
#include "rail/cxi/encode.hpp"
#include "rail/cxi/event_queue.hpp"
#include "rail/cxi/objects.hpp"
#include "sys/clock.hpp"
#include "sys/event_set.hpp"
#include "sys/timer.hpp"

namespace strait::rail::cxi {

struct PortRequest {
  DeviceChoice device;
  std::uint32_t vni = 0;  // 0: the service's first
  std::uint32_t service = w::kDefaultService;
};

class Port {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Port>> open(const PortRequest& request);
  // The same over a device that is open.
  [[nodiscard]] static Result<std::unique_ptr<Port>> open(std::unique_ptr<Device> device, const PortRequest& request);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port() = default;

  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] const Lni& lni() const { return lni_; }
  [[nodiscard]] const Address& address() const { return address_; }
  [[nodiscard]] CommandQueue& transmit() { return transmit_; }
  [[nodiscard]] EventQueue& events() { return events_; }
  [[nodiscard]] const Portal& memory_portal() const { return memory_; }
  [[nodiscard]] const Portal& message_portal() const { return messages_; }
  [[nodiscard]] Way way(const Address& to, std::uint32_t index) const {
    return way_to(to.nid, to.pid, to.pid_bits, index, address_.match_id(), events_.number());
  }

  // ---- Events that are still to come: never more than the event queue holds.
  [[nodiscard]] bool take_transmit_credit();
  void give_transmit_credit() { ++transmit_credits_; }
  // A name for a receive, which its events have; negative: there is none now.
  [[nodiscard]] int take_receive_id();
  void give_receive_id(std::uint32_t id) { receive_ids_.push_back(static_cast<std::uint16_t>(id)); }

  // ---- Target commands. Waits for room; false: the device has stopped reading.
  [[nodiscard]] bool tell_target(const void* command, std::uint32_t bytes);
  template <class Cmd>
  [[nodiscard]] bool tell_target(const Cmd& command) {
    return tell_target(&command, sizeof command);
  }
  void ring();  // shows both queues what was added
  // Immediate messages need it once before the first.
  [[nodiscard]] bool prepare_messages();

  // What events are handed to. Set by the rail before anything else is done.
  std::function<void(const Event&)> dispatch;
  // Takes what events there are, `most` at a time. How many.
  int take_events(int most);
  // Until `done` says so. False: the time has passed.
  [[nodiscard]] bool await(const sys::Deadline& deadline, const std::function<bool()>& done);
  [[nodiscard]] Status enable_portals();

  // LINK and UNLINK of the memory portal, by buffer id; `code` is what the device answered.
  [[nodiscard]] Result<w::ReturnCode> append_and_wait(const ListEntry& entry);
  void unlink_and_wait(std::uint32_t portal, std::uint32_t buffer_id);
  // True: the event was for one of these two.
  [[nodiscard]] bool on_list_event(const Event& event);

  // ---- Directory
  // A free place for a key; Code::limit when there is none.
  [[nodiscard]] Result<std::uint32_t> take_place();
  void give_place(std::uint32_t place);
  [[nodiscard]] std::uint32_t next_generation(std::uint32_t place) { return ++generations_[place]; }
  void publish(std::uint32_t place, DirectoryEntry entry);

  // ---- Sleeping
  [[nodiscard]] int event_fd() const { return sleepers_.fd(); }
  void wake_by_events(bool on);
  void wake_after_ns(std::int64_t ns);  // negative: not at all

  std::uint64_t events_taken = 0, state_changes = 0, command_failures = 0, lost_events = 0;

 private:
  explicit Port(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  [[nodiscard]] Status make(const PortRequest& request);
  [[nodiscard]] Result<std::uint32_t> choose_vni(const PortRequest& request);

  std::unique_ptr<Device> device_;
  Lni lni_;
  Profile profile_;
  Domain domain_;
  Wait wait_;
  EventQueue events_;
  CommandQueue transmit_;
  CommandQueue target_;
  sys::Mapping directory_pages_;
  Memory directory_memory_;
  Portal memory_;
  Portal messages_;
  sys::EventSet sleepers_;
  sys::Timer timer_;
  Address address_;

  bool prepared_messages_ = false;
  bool wakes_ = false;
  bool timed_ = false;
  std::uint32_t transmit_credits_ = 0;
  std::vector<std::uint16_t> receive_ids_;
  std::deque<std::uint16_t> places_;  // the one that was free longest first
  std::vector<std::uint16_t> generations_;
  std::uint32_t enabled_ = 0;
  // The append or unlink that somebody waits for.
  bool listing_ = false;
  w::EventType listing_type_ = w::EventType::link;
  std::uint32_t listing_portal_ = 0;
  std::uint32_t listing_id_ = 0;
  w::ReturnCode listed_ = w::ReturnCode::no_event;
};

}  // namespace strait::rail::cxi
