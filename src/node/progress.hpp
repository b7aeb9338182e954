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
#include "sys/event.hpp"
#include "sys/event_set.hpp"

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
  // The thread has something to look at that no NIC announces (a region that drains).
  void wake() const { wake_.raise(); }
  [[nodiscard]] int event_fd() const { return events_.fd(); }
  // 1: sleep on event_fd; 0: there is work.
  [[nodiscard]] bool arm();
  // In a forked child the thread does not exist.
  void abandon();

 private:
  explicit Progress(Core& core) : core_(core) {}
  void run();

  Core& core_;
  sys::Event wake_;
  sys::EventSet events_;  // every NIC's descriptor and wake_
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// While it lives the NICs are driven: for calls that wait on a socket while the peer's NIC talks to ours. Does nothing
// when the Node has its own thread.
class DriveMeanwhile {
 public:
  explicit DriveMeanwhile(Core& core);
  ~DriveMeanwhile();
  DriveMeanwhile(const DriveMeanwhile&) = delete;
  DriveMeanwhile& operator=(const DriveMeanwhile&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace strait::node
