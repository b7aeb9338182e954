// SPDX-License-Identifier: Apache-2.0
// Host: a peer Node of the same host, seen from who uses its memory; Visits: all of them, with the thread that listens
// to what they revoke.
//
// Threads: find() and the marks belong to lanes, one thread each; everything else takes the host's lock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "grant/window.hpp"
#include "sys/calls.hpp"
#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/event_thread.hpp"
#include "sys/fork.hpp"
#include "sys/peer_file.hpp"

namespace strait::grant {

class Host {
 public:
  // Greets the door of the Node `node`. Code::gone: there is none within reach. `no_copies`: why this side makes none;
  // empty: it does.
  [[nodiscard]] static Result<std::shared_ptr<Host>> visit(const NodeId& node, sys::Deadline deadline,
                                                           const sys::Calls& calls = sys::real_calls(),
                                                           std::string no_copies = {},
                                                           WhoIs who_is = sys::peer_credentials);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // ---- Lanes
  [[nodiscard]] Mark* take_mark();  // null: all are taken
  void give_back(Mark* mark);
  // Inside only. Null: not granted, or not any more.
  [[nodiscard]] const Window* find(std::uint64_t region_id, std::uint64_t address, std::uint32_t rkey) const {
    if (gone_.load(std::memory_order_relaxed)) [[unlikely]]
      return nullptr;
    return table_.load(std::memory_order_acquire)->find(region_id, address, rkey);
  }
  // Has it ever granted a map? Without one nothing short has to be looked up.
  [[nodiscard]] bool has_maps() const { return has_maps_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool needs_fence() const { return needs_fence_; }
  // After raising a signal.
  void wake_sleepers() const {
    if (reinterpret_cast<const LedgerEntry*>(ledger_.data())[kSleepersEntry].load() != 0) wake_.raise();
  }
  [[nodiscard]] std::int32_t pid() const { return pid_; }
  // Is the process that greeted still there? A system call: for copies by process id.
  [[nodiscard]] bool is_there() const;
  [[nodiscard]] bool is_gone() const { return gone_.load(std::memory_order_relaxed); }

  // ---- Anybody
  // Asks for a grant of the region, of any kind or of one only. What it is refused for is an error; a copy grant where
  // this process may not read the other's memory is one too.
  [[nodiscard]] Result<Way> ask(const Subject& subject, const Proof& proof, sys::Deadline deadline,
                                Way only = Way::none);
  [[nodiscard]] const std::string& no_copies_because() const { return no_copies_because_; }
  [[nodiscard]] std::size_t window_count();

  // ---- Visits
  [[nodiscard]] int socket() const { return socket_.get(); }
  // Takes in what the owner said, and lets go of what it took back. False: it is gone. `again`: somebody is still
  // inside.
  [[nodiscard]] bool listen(bool& again);

 private:
  Host() = default;
  struct Answer {
    Note note;
    std::vector<sys::Fd> fds;
  };
  [[nodiscard]] Status greet(sys::Deadline deadline, const sys::Calls& calls, WhoIs who_is);
  [[nodiscard]] Result<Way> open_locked(const Subject& subject, Answer answer) STRAIT_REQUIRES(mutex_);
  void add_locked(std::unique_ptr<Window> window) STRAIT_REQUIRES(mutex_);
  void next_generation_locked() STRAIT_REQUIRES(mutex_);
  void on_revoked_locked(std::uint64_t stamp) STRAIT_REQUIRES(mutex_);
  // Frees what no lane can be looking at any more.
  [[nodiscard]] bool let_go_locked() STRAIT_REQUIRES(mutex_);
  [[nodiscard]] std::vector<std::uint64_t> marks_now() const;
  [[nodiscard]] Mark& mark(std::uint32_t i) const { return reinterpret_cast<Mark*>(marks_.data())[i]; }

  struct Retired {
    std::unique_ptr<Window> window;
    std::unique_ptr<WindowTable> table;
    std::vector<std::uint64_t> marks;  // as they were when it went out of use
    std::uint64_t stamp = 0;
  };

  sys::ForkMark fork_mark_;
  sys::ProcessFd socket_;
  std::int32_t pid_ = 0;
  bool needs_fence_ = false;
  std::string no_copies_because_;
  sys::Mapping marks_;
  sys::Mapping ledger_;
  sys::Event wake_;
  alignas(64) std::atomic<WindowTable*> table_{nullptr};
  std::atomic<bool> gone_{false};
  std::atomic<bool> has_maps_{false};

  alignas(64) Mutex mutex_;
  std::condition_variable answered_;
  std::map<std::uint64_t, std::optional<Answer>> questions_ STRAIT_GUARDED_BY(mutex_);
  std::uint64_t next_question_ STRAIT_GUARDED_BY(mutex_) = 1;
  std::uint64_t taken_marks_ STRAIT_GUARDED_BY(mutex_) = 0;
  // Of the table, and of the owner being there; lanes read it in their marks.
  std::uint64_t generation_ STRAIT_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<WindowTable> own_table_ STRAIT_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::vector<std::unique_ptr<Window>>> windows_ STRAIT_GUARDED_BY(mutex_);  // by stamp
  std::vector<Retired> retired_ STRAIT_GUARDED_BY(mutex_);
};

class Visits {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Visits>> start();
  [[nodiscard]] Status add(std::shared_ptr<Host> host);

 private:
  Visits() = default;
  [[nodiscard]] std::int64_t listen_to_all();

  Mutex mutex_;
  std::vector<std::weak_ptr<Host>> hosts_ STRAIT_GUARDED_BY(mutex_);
  sys::EventThread thread_;
};

}  // namespace strait::grant
