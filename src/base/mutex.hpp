// SPDX-License-Identifier: Apache-2.0
// A mutex that clang understands. Which lock guards a member, and which lock a function needs, is said where it is
// declared; a path that does not hold it is a warning of clang's (-Wthread-safety), and so an error. Other compilers
// see a std::mutex and nothing else. Constructors and destructors are not looked into: there is nobody else yet, or any
// more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#if defined(__clang__)
#define STRAIT_LOCK_RULE(rule) __attribute__((rule))
#else
#define STRAIT_LOCK_RULE(rule)
#endif

// Of a member: touched with the lock held.
#define STRAIT_GUARDED_BY(mutex) STRAIT_LOCK_RULE(guarded_by(mutex))
// Of a function: called with the lock held, or (for those that take it themselves) never with it held.
#define STRAIT_REQUIRES(mutex) STRAIT_LOCK_RULE(requires_capability(mutex))
#define STRAIT_EXCLUDES(mutex) STRAIT_LOCK_RULE(locks_excluded(mutex))

namespace strait {

class STRAIT_LOCK_RULE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() STRAIT_LOCK_RULE(acquire_capability()) { mutex_.lock(); }
  void unlock() STRAIT_LOCK_RULE(release_capability()) { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() STRAIT_LOCK_RULE(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class Locked;
  std::mutex mutex_;
};

// Holds a Mutex to the end of its scope, but for where it is unlocked in between.
class STRAIT_LOCK_RULE(scoped_lockable) Locked {
 public:
  explicit Locked(Mutex& mutex) STRAIT_LOCK_RULE(acquire_capability(mutex)) : lock_(mutex.mutex_) {}
  // Of one that try_lock() took.
  Locked(Mutex& mutex, std::adopt_lock_t adopt) STRAIT_LOCK_RULE(requires_capability(mutex))
      : lock_(mutex.mutex_, adopt) {}
  ~Locked() STRAIT_LOCK_RULE(release_capability()) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  void unlock() STRAIT_LOCK_RULE(release_capability()) { lock_.unlock(); }
  void lock() STRAIT_LOCK_RULE(acquire_capability()) { lock_.lock(); }
  // Lets go until `changed` is notified, or so long, or for no reason: look again at what is waited for.
  void wait(std::condition_variable& changed, std::int64_t at_most_ns) {
    changed.wait_for(lock_, std::chrono::nanoseconds(at_most_ns));
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace strait
