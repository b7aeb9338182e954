// SPDX-License-Identifier: Apache-2.0
// Progress: who drives the software NICs. A thread of the Node that sleeps when nothing happens and keeps out of the
// way of callers that poll; or the caller; or the caller when a descriptor becomes readable.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "node/settings.hpp"
#include "sys/event_set.hpp"
#include "sys/event_thread.hpp"

namespace strait::node {

class Core;

class Progress {
 public:
  // The NICs are open. Starts the thread when the mode asks for one.
  [[nodiscard]] static Result<std::unique_ptr<Progress>> start(Core& core);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void stop();
  [[nodiscard]] int event_fd() const { return events_.fd(); }
  // True: sleep on event_fd, whoever drives a NIC meanwhile will say so. False: there is work.
  [[nodiscard]] bool arm();
  // In a forked child the thread does not exist.
  void abandon();

 private:
  explicit Progress(Core& core) : core_(core) {}
  void run();

  Core& core_;
  sys::EventSet events_;  // every NIC's descriptor and the sleeper's
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// While it lives the NICs are driven: for calls that wait on a socket while the peer's NIC shakes hands
// with ours, whatever the progress mode and however deep the progress thread sleeps.
class DriveMeanwhile {
 public:
  explicit DriveMeanwhile(Core& core);

 private:
  sys::EventThread thread_;
};

}  // namespace strait::node
