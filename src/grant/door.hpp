// SPDX-License-Identifier: Apache-2.0
// Door: where an owner gives its peers of the same host grants by map and by copy, and takes them back.
//
// Threads: one of its own answers the peers; revoke() may be called from any. The Clerk is asked on the door's thread,
// with no lock of the door held.
//
// Taking back: the ledger's word becomes 0, then a barrier on every CPU, then a look at the marks. A lane that is
// inside the memory was seen, and one that was not will see the 0. It is waited for, and for the peer's word that it
// has unmapped the memory, until the deadline; who did not let go by then is named, and what the owner does about the
// pages is the owner's affair (docs/security.md).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "grant/format.hpp"
#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/event_thread.hpp"
#include "sys/fork.hpp"
#include "sys/peer_file.hpp"

namespace strait::grant {

// What the owner of a region gives for a question.
struct Offer {
  Way way = Way::none;
  sys::Fd memory;   // map: exactly the region's pages
  sys::Fd signals;  // map: a SignalPage; invalid where the peer may raise none
};

class Clerk {
 public:
  virtual ~Clerk() = default;
  // An error is the reason why there is no grant. `only`: the one that the peer would use; none: any.
  virtual Result<Offer> on_ask(const Subject& subject, const Proof& proof, Way only) = 0;
  // Asked again once the grant is in the ledger: a region that was revoked meanwhile is revoked now.
  virtual bool still_shared(const Subject& subject) = 0;
  // Why peers may not read or write this process's memory by themselves; empty: they may.
  [[nodiscard]] virtual std::string why_no_copies() const { return {}; }
};

// A peer that still has a grant when it should not.
struct Holdout {
  std::int32_t pid = 0;
  bool inside = false;  // an operation of it has not come out; otherwise it only has not unmapped the memory
  // "process 4711"; of another PID namespace it has no number here, and the kernel says 0.
  [[nodiscard]] std::string who() const {
    return pid == 0 ? "a process of another PID namespace" : fmt::format("process {}", pid);
  }
};

struct DoorLimits {
  std::size_t guests = 4096;  // at a time; further ones are turned away
  std::uint32_t entries =
      kLedgerEntries;  // of the ledger that are used: one for each region that is granted, one for sleepers
};

struct DoorCounts {
  std::uint64_t guests = 0, maps = 0, copies = 0, refused = 0, revoked = 0, garbage = 0, holdouts = 0;
};

class Door {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Door>> open(const NodeId& node, Clerk& clerk, DoorLimits limits = {},
                                                          WhoIs who_is = sys::peer_credentials);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // No grant of the region is good when this returns. Empty: nobody is inside it or maps it any more.
  [[nodiscard]] std::vector<Holdout> revoke(std::uint64_t region_id, sys::Deadline deadline);
  // Does a peer have a grant of it, or had one and not let go?
  [[nodiscard]] bool is_held(std::uint64_t region_id);
  // Peers that raise a signal look whether somebody sleeps, and raise this event then. Look at the signals once more
  // between the two.
  void begin_sleep() { entry(kSleepersEntry).fetch_add(1); }
  void end_sleep() { entry(kSleepersEntry).fetch_sub(1); }
  [[nodiscard]] const sys::Event& wake() const { return wake_; }
  [[nodiscard]] DoorCounts counts();

 private:
  struct Guest;
  struct Granted {
    std::uint32_t entry = 0;
    std::uint64_t stamp = 0;
    std::vector<Guest*> holders;
  };
  Door(Clerk& clerk, DoorLimits limits, WhoIs who_is);
  void serve_all();
  void accept_all();
  [[nodiscard]] bool serve(Guest& guest);  // false: it is to go
  [[nodiscard]] Status on_hello(Guest& guest, const Note& note, std::vector<sys::Fd> fds);
  void on_ask(Guest& guest, const Note& note);
  [[nodiscard]] Status grant(Guest& guest, const Note& note, Offer offer);
  void on_let_go(Guest& guest, std::uint64_t stamp);
  void forget_locked(Guest& guest) STRAIT_REQUIRES(mutex_);
  [[nodiscard]] Granted* granted_locked(std::uint64_t region_id) STRAIT_REQUIRES(mutex_);
  void end_locked(std::uint64_t region_id, Granted& granted) STRAIT_REQUIRES(mutex_);
  [[nodiscard]] LedgerEntry& entry(std::uint32_t index) const {
    return reinterpret_cast<LedgerEntry*>(ledger_.memory.data())[index];
  }

  Clerk& clerk_;
  const DoorLimits limits_;
  const WhoIs who_is_;
  sys::ProcessFd listener_;
  sys::PublishedFile ledger_;
  sys::Event wake_;
  bool barriers_ = false;
  std::uint64_t probe_ = 0;

  Mutex mutex_;
  std::condition_variable let_go_;
  std::vector<std::unique_ptr<Guest>> guests_ STRAIT_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Granted> granted_ STRAIT_GUARDED_BY(mutex_);  // by region
  // By region: revoked, and not let go.
  std::unordered_map<std::uint64_t, std::vector<Guest*>> leaving_ STRAIT_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::uint64_t> regions_ STRAIT_GUARDED_BY(mutex_);  // by stamp
  std::vector<std::uint32_t> free_entries_ STRAIT_GUARDED_BY(mutex_);
  std::uint32_t next_entry_ STRAIT_GUARDED_BY(mutex_) = kSleepersEntry + 1;
  std::uint64_t next_stamp_ STRAIT_GUARDED_BY(mutex_) = 1;
  DoorCounts counts_ STRAIT_GUARDED_BY(mutex_);
  sys::EventThread thread_;
};

}  // namespace strait::grant
