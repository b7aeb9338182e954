// SPDX-License-Identifier: Apache-2.0
#include "plot/svg.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace strait::plot {
namespace {

struct Hue {
  const char* light;
  const char* dark;
};
// Told apart by most eyes, on white and on nearly black.
constexpr Hue kPalette[kHues] = {{"#0969c3", "#58a6ff"}, {"#c4500a", "#ff9d5c"}, {"#0a7f5a", "#3fd0a0"},
                                 {"#6e7781", "#9aa4af"}, {"#8a3fb8", "#d2a0f5"}, {"#9a6b00", "#e3b341"}};

std::string style() {
  std::string css =
      "text{font-family:system-ui,'DejaVu Sans',sans-serif;font-size:13px}"
      ".head{font-size:16px;font-weight:600}"
      ".paper{fill:#ffffff}.ink,.head{fill:#1f2328}.dim{fill:#59636e}"
      ".grid{stroke:#dfe3e8;fill:none}.axis{stroke:#59636e;fill:none}"
      ".dashed{stroke-dasharray:7 5}.thin{stroke-width:1.2;stroke-opacity:.75}";
  std::string dark =
      ".paper{fill:#0d1117}.ink,.head{fill:#e6edf3}.dim{fill:#9aa4af}.grid{stroke:#2a313a}.axis{stroke:#9aa4af}";
  for (int i = 0; i < kHues; ++i) {
    css += fmt::format(
        ".hue{0}{{stroke:{1};fill:none;stroke-width:2}}.fill{0}{{fill:{1}}}.band{0}{{fill:{1};fill-opacity:.16}}", i,
        kPalette[i].light);
    dark += fmt::format(".hue{0}{{stroke:{1}}}.fill{0},.band{0}{{fill:{1}}}", i, kPalette[i].dark);
  }
  css += ".thin{stroke-width:1.2}";  // behind the hues: the later rule wins
  return css + "@media (prefers-color-scheme:dark){" + dark + "}";
}

// The bytes of the character that begins here; 0: not UTF-8, or one that XML has no place for.
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 || byte(0) == '\n' || byte(0) == '\t' ? 1 : 0;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (length == 0 || byte(0) > 0xf4 || length > text.size()) return 0;
  std::uint32_t point = byte(0) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3fu);
  }
  const bool shortest = length == 2 || (length == 3 && point >= 0x800) || (length == 4 && point >= 0x10000);
  const bool allowed = (point < 0xd800 || point > 0xdfff) && point != 0xfffe && point != 0xffff && point <= 0x10ffff;
  return shortest && allowed ? length : 0;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_at(text);
    switch (text[0]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += length == 0 ? std::string_view("?") : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

Svg::Svg(double width, double height, std::string_view title, std::string_view description)
    : out_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
                       "role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n<style>{4}</style>\n",
                       width, height, escaped(title), escaped(description), style())) {
  rect(0, 0, width, height, "paper");
}

void Svg::text(double x, double y, const char* anchor, std::string_view words, const char* look) {
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor, look,
                      escaped(words));
}

void Svg::text_up(double x, double y, std::string_view words, const char* look) {
  out_ += fmt::format(
      "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"middle\" class=\"{}\">{}</text>\n", x, y,
      look, escaped(words));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view look) {
  out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                      look);
}

void Svg::rect(double x, double y, double width, double height, std::string_view look) {
  out_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"/>\n", x, y,
                      width, height, look);
}

void Svg::path(std::string_view steps, std::string_view look) {
  out_ += fmt::format("<path d=\"{}\" class=\"{}\"/>\n", steps, look);
}

void Svg::marker(double x, double y, int number) {
  const std::string look = fmt::format("fill{}", number % kHues);
  switch (number % 4) {
    case 0: out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.2\" class=\"{}\"/>\n", x, y, look); break;
    case 1: rect(x - 3.8, y - 3.8, 7.6, 7.6, look); break;
    case 2: path(fmt::format("M{:.1f} {:.1f}l4.8 8.4h-9.6z", x, y - 5.2), look); break;
    default: path(fmt::format("M{:.1f} {:.1f}l5.4 5.4-5.4 5.4-5.4-5.4z", x, y - 5.4), look); break;
  }
}

std::string Svg::finish() && {
  return std::move(out_) + "</svg>\n";
}

}  // namespace strait::plot
