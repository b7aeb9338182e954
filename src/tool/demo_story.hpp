// SPDX-License-Identifier: Apache-2.0
// How the demo tells what happens: as a story while it happens, or as one JSON object at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tool/demo.hpp"

namespace strait::tool {

class Story {
 public:
  Story(bool as_json, const std::string& device);
  void found(const Json& info);
  void shared(const std::string& device, const Json& region);
  void path(const std::string& lane, const Json& region);
  void step(Step step);
  void speed(std::vector<SpeedRow> rows, const std::string& device);
  void failed(const Error& error, double seconds);
  // The closing line, or the whole object. True when every check passed.
  [[nodiscard]] bool finish(double seconds);

 private:
  [[nodiscard]] std::optional<std::string> stand_in(const std::string& name) const;
  void say(std::string_view label, std::string_view text);
  void say_device(std::string_view label, const char* kind, const Json& device, const std::string& text);
  bool as_json_;
  Json document_;
  std::size_t checks_ = 0;
  std::size_t wrong_ = 0;
};

}  // namespace strait::tool
