// SPDX-License-Identifier: Apache-2.0
// Events on their way from the engine to the program: a channel is a descriptor of the program's, a target is what an
// object's events are called there and how many went out.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "soft/nic/verbs.hpp"
#include "strait/wire/prm.hpp"
#include "sys/event_pipe.hpp"

namespace strait::soft::uverbs {

class Channel {
 public:
  explicit Channel(sys::EventPipe pipe) : pipe_(std::move(pipe)) {}
  template <class Event>
  void send(const Event& event) {
    const std::scoped_lock lock(mutex_);
    pipe_.send(std::as_bytes(std::span(&event, 1)));
  }
  // Takes the events back that begin with `element` and were not read; how many.
  std::uint32_t take_back(std::uint64_t element);
  [[nodiscard]] bool is_program_end(int fd) const { return pipe_.is_reader(fd); }
  [[nodiscard]] bool abandoned() const { return pipe_.abandoned(); }

 private:
  std::mutex mutex_;  // of its own: the engine sends while it holds its lock
  sys::EventPipe pipe_;
};

class EventFan;

// A DevX program wants to hear of one kind of event of one object.
struct Subscription {
  wire::prm::EventType type;
  std::shared_ptr<Channel> channel;
  std::uint64_t cookie = 0;
  bool with_data = false;  // the event itself behind the cookie
};

// Part of an object, and what the engine is given as its `user`. The engine forgets it before the object goes.
struct EventTarget {
  std::uint64_t element = 0;  // the program's name for the object
  std::shared_ptr<Channel> async;
  EventFan* fan = nullptr;               // not null: it has no name of its own, and stands for all of these
  std::shared_ptr<Channel> completions;  // of a completion queue; null: the program does not wait for it
  std::uint32_t async_sent = 0;
  std::uint32_t completions_sent = 0;

  void subscribe(std::vector<Subscription> wanted);
  // The number is the object's.
  void tell_subscribers(wire::prm::EventType type, std::uint32_t number);

  // How many of each kind the program has read, after taking the others back.
  [[nodiscard]] std::uint32_t async_read();
  [[nodiscard]] std::uint32_t completions_read();

 private:
  std::mutex mutex_;  // of its own, as the channels'
  std::vector<Subscription> subscriptions_;
};

// Who hears of the events of an object that several contexts have opened, each under its own name for it.
class EventFan {
 public:
  void add(EventTarget& target);
  // From now on nothing goes to it.
  void remove(const EventTarget& target);
  void send(const nic::AsyncEvent& event);

 private:
  std::mutex mutex_;  // as that of Channel
  std::vector<EventTarget*> targets_;
};

class EventRouter final : public nic::EventSink {
 public:
  void on_completion(std::uint32_t cqn, std::uint64_t user) override;
  void on_async(const nic::AsyncEvent& event) override;
  // Events of the device itself go to every context's channel, as long as it lives.
  void listen(const std::shared_ptr<Channel>& channel);

 private:
  std::mutex mutex_;  // as that of Channel
  std::vector<std::weak_ptr<Channel>> listeners_;
};

}  // namespace strait::soft::uverbs
