// SPDX-License-Identifier: Apache-2.0
// Stopwatch: what moving bytes costs in this process, found out by doing it. Only for who asks how (strait_explain):
// each figure takes some milliseconds once and is then remembered; opening a Node and moving bytes never ask.
//
// Threads: any, one at a time measures.
#pragma once

#include <map>
#include <string>

#include "base/mutex.hpp"
#include "buffer/providers.hpp"
#include "plan/planner.hpp"

namespace strait::node {

class Stopwatch {
 public:
  // Between memories of two devices ("host", "cuda:0"), by whoever copies between them: memcpy, a copy engine, a link.
  // Takes a device into use where the vendor has such a step. Unknown if it gives no memory or does not copy.
  [[nodiscard]] plan::Cost copy(buffer::Providers& providers, const std::string& from, const std::string& to);
  // By process_vm_writev. From this process to itself, which takes the kernel the same steps as to another.
  [[nodiscard]] plan::Cost call();
  // Put by a software NIC between two Nodes made for it: `carrier` "grant" (the ring) or "roce" (packets over
  // loopback).
  [[nodiscard]] plan::Cost carrier(const std::string& carrier, const std::string& soft_library);

 private:
  template <class Measure>
  [[nodiscard]] plan::Cost remembered(const std::string& key, Measure&& measure);

  Mutex mutex_;
  std::map<std::string, plan::Cost> known_ STRAIT_GUARDED_BY(mutex_);
};

}  // namespace strait::node
