// SPDX-License-Identifier: Apache-2.0
// EventQueue: what the device tells. Memory of this process that the device writes, and a page that says how far it was
// read.
//
//   bytes 0..63 status | 64 ... events of 16, 32 or 64 bytes, none across a multiple of 64 ... end, then 64 again
//
// Events that do not fit are lost, and the device says so once: who makes events counts them, so that they always fit.
// One thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "rail/cxi/objects.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::rail::cxi {

// A copy of one, so that its place can be given back at once.
struct Event {
  w::EventType type = w::EventType::null_event;
  w::ReturnCode code = w::ReturnCode::no_event;
  std::uint32_t bytes = 0;
  alignas(8) std::uint64_t words[8];

  template <class As>
  [[nodiscard]] As as() const {
    static_assert(sizeof(As) <= sizeof words);
    As out;
    std::memcpy(&out, words, sizeof out);
    return out;
  }
  [[nodiscard]] bool ok() const { return code == w::ReturnCode::ok; }
};

class EventQueue {
 public:
  EventQueue() = default;
  // `wait`: what wakes who sleeps; may be null.
  [[nodiscard]] static Result<EventQueue> make(const Lni& lni, std::uint64_t bytes, const Wait* wait,
                                               std::uint64_t flags = 0);

  // The next event. False: there is none now.
  [[nodiscard]] bool next(Event& out);
  [[nodiscard]] bool any();  // without taking it
  // Gives back what next() took. Not for each: it is a store to the device.
  void acknowledge();
  // Whether an event wakes who waits. Off while somebody looks anyway.
  void wake_by_events(bool on);
  // Events that were lost since the last time; acknowledges it.
  [[nodiscard]] bool lost_any();

  [[nodiscard]] std::uint32_t number() const { return handle_.number(); }
  // Where the device writes them.
  [[nodiscard]] std::span<std::byte> memory() const { return {memory_.data(), memory_.size()}; }
  // How many events fit, each counted as the largest: two blocks are never used.
  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(bytes_ / w::kEventBlockBytes) - 3; }

 private:
  [[nodiscard]] std::uint64_t* word(std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t*>(memory_.data() + offset);
  }
  // Where the next event is whole, past NULL events; its size, or 0.
  [[nodiscard]] std::uint32_t whole();
  void consume(std::uint32_t bytes);
  void store_state();

  sys::Mapping memory_;
  Memory reached_;
  Handle<w::EqFreeCmd, &w::EqFreeCmd::eq> handle_;
  Pages page_;
  std::uint64_t bytes_ = 0;
  std::uint64_t at_ = w::kEventBlockBytes;
  std::uint64_t acknowledged_ = w::kEventBlockBytes;
  w::EqSwState state_{};
};

}  // namespace strait::rail::cxi
