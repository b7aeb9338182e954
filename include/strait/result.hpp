// SPDX-License-Identifier: Apache-2.0
// Result<T> and Error: how everything in strait answers.
//
// A function that can fail returns Result<T> (or Status when there is nothing to return). The names follow
// std::expected, which needs C++23. value() throws strait::Failure in the caller's own frame; nothing else here throws.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <variant>

namespace strait {

// What the caller can do about it. The numbers are part of the C ABI (strait_code in c.h).
enum class Code : std::int32_t {
  ok = 0,
  invalid = 1,      // wrong use: this call can never succeed as it stands
  unsupported = 2,  // not possible here (this machine, this memory, this NIC)
  again = 3,        // a queue or table is full right now: reap, then try again
  timeout = 4,      // the deadline passed; the operation may still be going on
  denied = 5,       // a key, ticket or secret was not accepted
  gone = 6,         // the peer, region or handle existed and no longer does
  limit = 7,        // a limit of the system was reached (descriptors, memory)
  device = 8,       // the NIC reported an error; see syndrome
  system = 9,       // a system call failed; see sys_errno
};

struct Error {
  Code code = Code::system;
  int sys_errno = 0;           // 0 when no system call failed
  std::uint32_t syndrome = 0;  // the hardware's own code, 0 when there is none
  std::string text;            // one sentence: what could not be done, and the cause
  std::string remedy;          // what to try; empty when nobody knows

  // Text for a person: the cause, and on a second line the remedy.
  [[nodiscard]] std::string explain() const { return remedy.empty() ? text : text + "\n  " + remedy; }
};

// Thrown by value() only, and only in the caller's frame.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)), what_(error_.explain()) {}
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_;
  std::string what_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T held) : state_(std::in_place_index<0>, std::move(held)) {}        // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  // The value is made where it stays, from what its constructor (or its members, in order) take.
  template <class... Args>
  explicit Result(std::in_place_t, Args&&... args) : state_(std::in_place_index<0>, std::forward<Args>(args)...) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  [[nodiscard]] const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

  T& value() & {
    if (!has_value()) throw Failure(error());
    return **this;
  }
  T&& value() && {
    if (!has_value()) throw Failure(std::move(*this).error());
    return std::move(**this);
  }
  template <class U>
  [[nodiscard]] T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool has_value() const noexcept { return !failed_; }
  explicit operator bool() const noexcept { return !failed_; }
  [[nodiscard]] const Error& error() const& noexcept { return error_; }
  [[nodiscard]] Error&& error() && noexcept { return std::move(error_); }
  void value() const {
    if (failed_) throw Failure(error_);
  }

 private:
  bool failed_ = false;
  Error error_{Code::ok, 0, 0, {}, {}};
};

using Status = Result<void>;

}  // namespace strait
