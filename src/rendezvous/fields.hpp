// SPDX-License-Identifier: Apache-2.0
// Writer and Reader: one list of fields per message serves both directions, so that they cannot drift apart.
//
// Both have the same calls. The Writer appends; the Reader fills in, and once a field is missing or out of bounds it
// remembers why and leaves the rest alone.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strait::rendezvous {

// Texts reach terminals and logs of the other side: no control characters.
[[nodiscard]] inline bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

class Writer {
 public:
  template <std::unsigned_integral T>
  void number(const T& value) {
    for (std::size_t i = sizeof value; i-- > 0;) {
      bytes_.push_back(static_cast<std::byte>((std::uint64_t{value} >> (8 * i)) & 0xff));
    }
  }
  template <std::size_t N>
  void bytes(const std::array<std::byte, N>& value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  // Any bytes.
  void name(const std::string& value, std::size_t min, std::size_t max) {
    if (value.size() < min || value.size() > max) return refuse("a name is empty or too long");
    number(static_cast<std::uint16_t>(value.size()));
    for (const char c : value) bytes_.push_back(static_cast<std::byte>(c));
  }
  // For people: shortened and cleaned rather than refused, because it may be the only word about a failure.
  void text(const std::string& value, std::size_t max) {
    const std::string_view kept = std::string_view(value).substr(0, max);
    number(static_cast<std::uint16_t>(kept.size()));
    for (const char c : kept) bytes_.push_back(static_cast<std::byte>(is_control(c) ? ' ' : c));
  }
  template <class T>
  void choice(const T& value, std::uint8_t, std::uint8_t) {
    number(static_cast<std::uint8_t>(value));
  }

  [[nodiscard]] std::vector<std::byte>& out() { return bytes_; }
  [[nodiscard]] const char* problem() const { return problem_; }

 private:
  void refuse(const char* why) {
    if (problem_ == nullptr) problem_ = why;
  }
  std::vector<std::byte> bytes_;
  const char* problem_ = nullptr;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> left) : left_(left) {}

  template <std::unsigned_integral T>
  void number(T& value) {
    std::uint64_t got = 0;
    for (const std::byte each : take(sizeof value)) got = got << 8 | std::to_integer<std::uint64_t>(each);
    value = static_cast<T>(got);
  }
  template <std::size_t N>
  void bytes(std::array<std::byte, N>& value) {
    std::ranges::copy(take(N), value.begin());
  }
  void name(std::string& value, std::size_t min, std::size_t max) {
    std::uint16_t length = 0;
    number(length);
    if (problem_ == nullptr && (length < min || length > max)) refuse("a name is empty or too long");
    for (const std::byte each : take(length)) value.push_back(std::to_integer<char>(each));
  }
  void text(std::string& value, std::size_t max) {
    name(value, 0, max);
    if (std::ranges::any_of(value, is_control)) refuse("a text has control characters");
  }
  template <class T>
  void choice(T& value, std::uint8_t least, std::uint8_t most) {
    std::uint8_t got = 0;
    number(got);
    if (problem_ == nullptr && (got < least || got > most)) refuse("a number is out of range");
    if (problem_ == nullptr) value = static_cast<T>(got);
  }

  // Null when every field was there and nothing is left over.
  [[nodiscard]] const char* problem() const {
    if (problem_ != nullptr) return problem_;
    return left_.empty() ? nullptr : "there are bytes after its last field";
  }

 private:
  std::span<const std::byte> take(std::size_t count) {
    if (problem_ == nullptr && count > left_.size()) refuse("it ends in the middle of a field");
    if (problem_ != nullptr) return {};
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  void refuse(const char* why) {
    if (problem_ == nullptr) problem_ = why;
  }
  std::span<const std::byte> left_;
  const char* problem_ = nullptr;
};

}  // namespace strait::rendezvous
