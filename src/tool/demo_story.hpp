// SPDX-License-Identifier: Apache-2.0
// How the demo tells what happens: as a story while it happens, or as one JSON object at the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tool/demo.hpp"

namespace strait::tool {

class Story {
 public:
  Story(bool as_json, const std::string& device);
  ~Story();
  void found(const std::string& info);
  void shared(const std::string& device, const std::string& region);
  void path(const std::string& lane, const std::string& region);
  void step(Step step);
  void speed(std::vector<SpeedRow> rows, const std::string& device);
  // The part over packets, between two of these.
  void packets_begin(const std::string& lane, const std::string& faults);
  void packets_end(const PacketTotals& totals, const std::string& capture);
  void packets_left_out(const std::string& why);
  void counters(const std::string& info);
  [[nodiscard]] std::string carrier() const { return carrier_of(lane_); }
  // What the caller or the environment set an option to, of the Node that was found.
  [[nodiscard]] std::optional<std::string> given(const std::string& option) const;
  void failed(const Error& error, double seconds);
  // The closing line, or the whole object. True when every check passed.
  [[nodiscard]] bool finish(double seconds);

 private:
  [[nodiscard]] std::optional<std::string> stand_in(const std::string& name) const;
  void say(std::string_view label, std::string_view text);
  void say_device(std::string_view label, const char* kind, const Json& device, const std::string& text);
  bool as_json_;
  std::unique_ptr<Json> document_;
  std::unique_ptr<Json> info_;
  std::string lane_;  // of the steps that come now
  std::string faults_;
  std::string left_out_;  // why there were no packets
  std::size_t checks_ = 0;
  std::size_t wrong_ = 0;
};

}  // namespace strait::tool
