// SPDX-License-Identifier: Apache-2.0
// Relay: a body of code that no system call can stop.
//
// A copy to or from another process waits in the kernel until its pages are there, and who has the pages decides when
// that is (userfaultfd, FUSE). Linux has no copy that ends by a deadline, and ends such a wait only together with the
// process. So the body has a stack of its own, and a thread carries it. For a call the body steps aside, and its
// carrier makes the call. Whoever ran the body watches: where a call is left behind, a new thread goes on with the body
// from there, as if the call had failed, and the old one ends when its call comes back, if ever. A call costs two
// changes of stack; the thread is the same as long as nothing is left behind.
//
// The body: what is of the thread (thread_local, errno) may be another thread's after a call. No exception leaves it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>

#include "base/error.hpp"

namespace strait::sys {

class Relay {
 public:
  static constexpr std::int64_t kTickNs = 10'000'000;
  // `owner` of a call has kept its thread waiting in the kernel for one more tick; a thread that is only waiting for a
  // CPU is not counted. True: leave it behind. Called by the watching thread alone.
  using Enough = std::function<bool(std::uint64_t owner)>;
  explicit Relay(Enough enough);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  // Returns when the body has. Once. Code::limit: the system has no thread or memory for it, and nothing has run.
  [[nodiscard]] Status run(std::function<void()> body);

  enum class End : std::uint8_t { yes, no, left_behind };  // the first two: what the call said
  // Outside of the body it is simply made. `call` is copied, and the copy is called; when it is left behind, it goes on
  // for who knows how long: what it touches must not be used again.
  template <class Call>
  [[nodiscard]] End call(std::uint64_t owner, const Call& call) {
    static_assert(std::is_trivially_copyable_v<Call> && sizeof(Call) <= sizeof Errand::bytes);
    Errand errand;
    errand.go = [](const std::byte* bytes) { return (*std::launder(reinterpret_cast<const Call*>(bytes)))(); };
    std::memcpy(errand.bytes, &call, sizeof call);
    return step_aside(owner, errand);
  }
  // How many calls were left behind so far.
  [[nodiscard]] std::uint64_t left_behind() const;

 private:
  struct Errand {
    bool (*go)(const std::byte*);
    alignas(8) std::byte bytes[56];
  };
  struct Core;
  [[nodiscard]] End step_aside(std::uint64_t owner, const Errand& errand);
  const Enough enough_;
  std::shared_ptr<Core> core_;  // a thread that was left behind may be the last who has it
};

}  // namespace strait::sys
