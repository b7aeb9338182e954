// SPDX-License-Identifier: Apache-2.0
// Lines of the lab's control protocol: words, then name=value pairs in any order. Numbers are decimal or 0x
// hexadecimal.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace strait::lab {

class Words {
 public:
  static Words parse(std::string_view line) {
    Words words;
    while (!line.empty()) {
      const std::size_t blank = line.find(' ');
      const std::string_view word = line.substr(0, blank);
      line = blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
      if (word.empty()) continue;
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) {
        words.plain_.emplace_back(word);
      } else {
        words.named_.insert_or_assign(std::string(word.substr(0, equals)), std::string(word.substr(equals + 1)));
      }
    }
    return words;
  }

  // The plain words: 0 is the command. Empty past the end.
  [[nodiscard]] std::string_view word(std::size_t index) const {
    return index < plain_.size() ? std::string_view(plain_[index]) : std::string_view();
  }
  [[nodiscard]] bool has(std::string_view name) const { return named_.find(name) != named_.end(); }
  [[nodiscard]] Result<std::string> text(std::string_view name) const {
    const auto found = named_.find(name);
    if (found == named_.end()) return fail(Code::invalid, "{}= is missing", name);
    return found->second;
  }
  [[nodiscard]] Result<std::uint64_t> number(std::string_view name) const {
    STRAIT_TRY(const std::string value, text(name));
    return to_number(name, value);
  }
  [[nodiscard]] Result<std::uint64_t> number(std::string_view name, std::uint64_t otherwise) const {
    if (!has(name)) return otherwise;
    return number(name);
  }
  [[nodiscard]] Result<std::uint64_t> number(std::size_t index) const { return to_number("number", word(index)); }

 private:
  static Result<std::uint64_t> to_number(std::string_view name, std::string_view text) {
    const bool hex = text.starts_with("0x");
    const std::string_view digits = hex ? text.substr(2) : text;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
    if (error != std::errc{} || end != digits.data() + digits.size())
      return fail(Code::invalid, "{}: '{}' is not a number", name, text);
    return value;
  }

  std::vector<std::string> plain_;
  std::map<std::string, std::string, std::less<>> named_;
};

}  // namespace strait::lab
