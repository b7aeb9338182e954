// SPDX-License-Identifier: Apache-2.0
// An SVG, written from top to bottom. Colours are classes, so that one picture is readable on white and on black; it
// needs nothing from outside itself.
#pragma once

#include <string>
#include <string_view>

namespace strait::plot {

// For text and for attribute values. Characters that XML does not allow at all become a question mark.
[[nodiscard]] std::string escaped(std::string_view text);

inline constexpr int kHues = 6;  // classes "hue0" to "hue5": lines and markers; "fill0" to "fill5": areas

class Svg {
 public:
  // `title` and `description` are for who cannot see it.
  Svg(double width, double height, std::string_view title, std::string_view description);

  // Classes: "ink", "dim", "head". Anchors: start, middle, end.
  void text(double x, double y, const char* anchor, std::string_view words, const char* look = "ink");
  void text_up(double x, double y, std::string_view words, const char* look = "ink");  // read from below, middle at x,y
  // Classes: "grid", "axis", "hueN", and "dashed" or "thin" beside them.
  void line(double x1, double y1, double x2, double y2, std::string_view look);
  void rect(double x, double y, double width, double height, std::string_view look);
  void path(std::string_view steps, std::string_view look);
  // A shape that differs from number to number, for who does not tell colours apart.
  void marker(double x, double y, int number);

  [[nodiscard]] std::string finish() &&;

 private:
  std::string out_;
};

}  // namespace strait::plot
