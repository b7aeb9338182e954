// SPDX-License-Identifier: Apache-2.0
// XRC domains of a device and the targets in them. All contexts of the program share them: a domain goes by the file
// that it was opened with, and a target in it by its number. Other processes have domains of their own.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "soft/nic/engine.hpp"
#include "soft/uverbs/events.hpp"
#include "sys/fd.hpp"
#include "sys/files.hpp"

namespace strait::soft::uverbs {

// A queue pair of which every context that opened it has a handle.
struct XrcTarget {
  std::uint32_t number = 0;
  std::uint32_t users = 0;  // handles
  EventTarget events;
  EventFan fan;
};

struct XrcDomain {
  std::uint32_t number = 0;
  std::uint32_t users = 0;  // handles
  sys::Fd file;             // held, so that its identity stays its own; invalid: nobody else can open this one
  sys::FileId id;
  std::map<std::uint32_t, std::unique_ptr<XrcTarget>> targets;
};

// Functions return 0 or -errno.
class XrcDomains {
 public:
  // As the kernel does it. fd < 0: a new one. Otherwise that of the file, which is made if O_CREAT is among the flags.
  [[nodiscard]] int open(nic::Engine& engine, int fd, std::uint32_t open_flags, XrcDomain*& out);
  int close(nic::Engine& engine, XrcDomain& domain);

  // Both add `events` to those who hear of it.
  [[nodiscard]] int make_target(nic::Engine& engine, XrcDomain& domain, EventTarget& events, XrcTarget*& out);
  [[nodiscard]] int open_target(XrcDomain& domain, std::uint32_t number, EventTarget& events, XrcTarget*& out);
  // The last one destroys it.
  int release(nic::Engine& engine, XrcDomain& domain, XrcTarget& target, const EventTarget& events);

 private:
  std::mutex mutex_;
  std::list<XrcDomain> domains_;
};

}  // namespace strait::soft::uverbs
