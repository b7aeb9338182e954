// SPDX-License-Identifier: Apache-2.0
// What posters of a CXI queue touch, made reachable for the device they run on: rings, words and events as memory,
// launch and doorbell pages of hardware as I/O memory. Whole pages, counted with everybody else's; all or nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "buffer/host_pages.hpp"
#include "rail/cxi/device_queue.hpp"
#include "strait/plugin.h"

namespace strait::node {

struct KiReach {
  std::vector<buffer::HostPages::Hold> holds;  // let go before the queue
  rail::cxi::KiQueue::View view;
};

// `state`: where the poster's state lies, by its own address. Refusals say which part it was, and why.
[[nodiscard]] inline Result<KiReach> reach_parts(const std::vector<rail::cxi::KiQueue::Part>& parts,
                                                 buffer::HostPages& pages, const buffer::HostPages::Way& way,
                                                 std::uint32_t device, std::uint64_t state) {
  KiReach out;
  out.view.state = state;
  for (const rail::cxi::KiQueue::Part& part : parts) {
    const buffer::Range range{reinterpret_cast<std::uint64_t>(part.pages.data()), part.pages.size()};
    auto hold = pages.reach(way, device, range, part.registers ? STRAIT_HOST_IO_MEMORY : 0u);
    if (!hold) {
      Error error = hold.error();
      error.text = std::string(part.what) + " cannot be reached from " + way.name(way.self, device) + ": " + error.text;
      return error;
    }
    out.view.parts.push_back(hold->device_address());
    out.holds.push_back(std::move(*hold));
  }
  return out;
}

}  // namespace strait::node
