// SPDX-License-Identifier: Apache-2.0
// Rows between two processes: kernels on both sides, libstrait and its software NIC in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace bench::gpu {

struct Beside {
  std::vector<double> other;  // in the unit of the row, launch by launch
  std::vector<double> ours;
  std::string other_name;
  std::string note;
};

class Across {
 public:
  // near: "gpu", or "host" to play it on CPU threads. Starts the other process and connects to it.
  explicit Across(const std::string& near);
  ~Across();

  // Microseconds: 8 bytes and a signal there and back, beside two flags in host memory. own_memory: payload in the
  // memory of the device.
  Beside round_trip(bool own_memory, unsigned launches);
  // GB/s: puts of 1 MiB, 16 in flight, between memory of two devices (here: one, seen by two processes), beside the
  // slower of the copies from and to the device.
  Beside stream(unsigned launches);
  // M/s: as many warps with a queue each, the NIC executing. Nothing is beside it.
  Beside sustained(unsigned warps, unsigned launches);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// What the other process does: the arguments behind --far.
int run_far_side(int line_fd, int shared_memory, const std::string& near);

}  // namespace bench::gpu
