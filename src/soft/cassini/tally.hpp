// SPDX-License-Identifier: Apache-2.0
// What a card counts for people who watch it. Looked up once: a count by name takes a lock.
#pragma once

#include "base/counters.hpp"

namespace strait::soft::cassini {

struct Tally {
  explicit Tally(Counters& numbers)
      : commands(numbers.get("commands")),
        failed_commands(numbers.get("failed_commands")),
        puts(numbers.get("puts")),
        gets(numbers.get("gets")),
        atomics(numbers.get("atomics")),
        bytes(numbers.get("bytes")),
        events(numbers.get("events")),
        dropped_events(numbers.get("dropped_events")),
        triggered(numbers.get("triggered")),
        flushes(numbers.get("flushes")),
        restricted(numbers.get("restricted")),
        landed(numbers.get("landed")) {}
  Counter& commands;
  Counter& failed_commands;
  Counter& puts;
  Counter& gets;
  Counter& atomics;
  Counter& bytes;
  Counter& events;
  Counter& dropped_events;
  Counter& triggered;
  // Of the card that was asked.
  Counter& flushes;     // requests that ask for their bytes to be seen before the answer
  Counter& restricted;  // requests without a place in an order
  Counter& landed;      // requests that found their entry
};

}  // namespace strait::soft::cassini
