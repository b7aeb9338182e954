// SPDX-License-Identifier: Apache-2.0
// What a bad neighbour does. All of it with the rights of any program: to its own memory, its own descriptors, and to
// what it shares with others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "queue.hpp"

namespace hostile {

// A stream of numbers that is the same in every run.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t roll();
  std::uint64_t below(std::uint64_t n) { return roll() % n; }

 private:
  std::uint64_t state_;
};

// The rings that are shared with other engines (docs/grant-ring.md): random bytes all over, or messages that are well
// numbered and wrong otherwise. How many rings there were; none: nothing is shared.
std::size_t scribble_grants(Dice& dice, bool well_numbered);
// Work requests, completions, doorbell records and registers of a queue pair.
std::string scribble_queue(const Queue& queue, Dice& dice);
// RDMA_VERBS_IOCTL with what comes to mind, on the descriptor of the device.
void call_ioctls(const Device& device, Dice& dice, int count);
// Commands for /dev/infiniband/rdma_cm. Empty text: it took them, or refused them.
std::string command_cm(Dice& dice, int count);
// Every descriptor but the standard streams; raw: with the system call itself.
void close_everything(bool raw);

}  // namespace hostile
