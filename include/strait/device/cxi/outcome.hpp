// SPDX-License-Identifier: Apache-2.0
// What is said to and answered by a Lane on a CXI queue.
#pragma once

#include <cstdint>

#include "strait/device/space.hpp"
#include "strait/device/wait.hpp"
#include "strait/wire/cxi.hpp"

namespace strait::device::cxi {

// How an operation is posted. The default: it counts on counter 0, is rung at once, and refused when a ring is full.
struct How {
  std::uint32_t counter = 0;
  bool silent = false;           // counts nowhere: nobody can wait for it, only for what comes behind it
  bool ring_later = false;       // shown to the device with the next one that rings, or by ring()
  bool arm = false;              // a wait comes next: its event is armed ahead of the operation, not behind it
  std::uint32_t arm_ahead = 1;   // with arm: for so many operations ahead; each holds one of the device's 2048 places
  std::uint64_t room_ns = 0;     // how long to wait for room in a full ring
  std::uint64_t tag = 0;         // comes back with the cause if it fails
  std::uint64_t match_bits = 0;  // for peers whose portal entry matches; immediate commands have none
};

enum class Posted : std::uint8_t {
  ok,
  full,      // no room within the time given; nothing was changed
  too_long,  // beyond 32 bits of length
  invalid,   // a handle of another version, a range outside its memory, a counter or signal that is not there
  failed,    // the queue, or the place of a signalled put, has failed earlier; cause() says of what
};

// A posted operation. Meaningless unless ok().
struct [[nodiscard]] Pending {
  std::uint64_t goal;     // of a signalled put: what its counter shows when it is over
  std::uint32_t counter;  // or, of a signalled put, its place
  bool signalled;
  Posted posted;

  STRAIT_HD constexpr bool ok() const { return posted == Posted::ok; }
};

// How a wait ended. A counter says how many operations have ended and not which.
struct Outcome {
  Waited waited;
  wire::cxi::ReturnCode code;  // with Waited::error: of the first failure, if the event queue is at hand; else ok
  std::uint8_t reserved[2];
  std::uint32_t failures;  // that the counter shows, up to 127
  std::uint64_t success;   // that it shows, modulo 2^48
  std::uint64_t tag;       // of the operation that failed first
};

struct Seen {
  Waited waited;
  std::uint64_t value;
};

struct Count {
  std::uint64_t success;
  std::uint32_t failure;
};

}  // namespace strait::device::cxi
