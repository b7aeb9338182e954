// SPDX-License-Identifier: Apache-2.0
#include "tool/reach_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tool/text.hpp"

namespace strait::tool {
namespace {

struct WayColumn {
  const char* key;
  const char* title;
  std::size_t width;
};
constexpr WayColumn kWayColumns[] = {{"dmabuf", "dma-buf", 9},
                                     {"peermem", "peer memory", 13},
                                     {"p2p", "p2p pages", 11},
                                     {"host", "host pages", 12},
                                     {"staged", "staged", 8}};
constexpr std::size_t kNameWidth = 10;
constexpr std::size_t kNoteIndent = 7;

// The same sentence has one number, wherever it stands.
class Footnotes {
 public:
  std::size_t number(const std::string& text) {
    const auto known = std::find(texts_.begin(), texts_.end(), text);
    if (known != texts_.end()) return static_cast<std::size_t>(known - texts_.begin()) + 1;
    texts_.push_back(text);
    return texts_.size();
  }
  [[nodiscard]] std::string page() const {
    std::string out;
    for (std::size_t i = 0; i < texts_.size(); ++i)
      out += fmt::format("{:>5}  {}", i + 1, wrap(texts_[i], kNoteIndent, kNoteIndent).substr(kNoteIndent));
    return out;
  }

 private:
  std::vector<std::string> texts_;
};

std::string cell_text(const Json& cell, std::string_view way, Footnotes& notes) {
  const std::string state = cell.value("state", "?");
  if (state == "proved") return way == "staged" ? "held" : "yes";
  if (state == "unneeded") return "-";
  return fmt::format("{} {}", state == "unknown" ? "?" : "no", notes.number(cell.value("text", "no reason given")));
}

std::string without_end_blanks(const std::string& line) {
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string reach_page(const Json& reach) {
  const Json rows = reach.value("reach", Json::array());
  if (rows.empty()) return wrap("there is no NIC, so nothing was tried", 2, 2);
  std::string out = fmt::format("  {:<{}}{:<{}}", "memory", kNameWidth, "NIC", kNameWidth);
  for (const WayColumn& column : kWayColumns) out += fmt::format("{:<{}}", column.title, column.width);
  out = without_end_blanks(out) + "\n";
  Footnotes notes;
  for (const Json& row : rows) {
    std::string line = fmt::format("  {:<{}} {:<{}} ", row.value("memory", "?"), kNameWidth - 1, row.value("nic", "?"),
                                   kNameWidth - 1);
    const Json ways = row.value("ways", Json::object());
    // Long names take a line of their own: the columns stay where they are.
    if (line.size() > 2 + 2 * kNameWidth) {
      out += without_end_blanks(line) + "\n";
      line = std::string(2 + 2 * kNameWidth, ' ');
    }
    for (const WayColumn& column : kWayColumns)
      line += fmt::format("{:<{}}", cell_text(ways.value(column.key, Json::object()), column.key, notes), column.width);
    out += without_end_blanks(line) + "\n";
  }
  out += wrap("yes: tried just now, and it works. held: works, and is used only with allow_staging=1. -: needs none.",
              2, 2);
  out += notes.page();
  const Json untried = reach.value("reach_untried", Json::array());
  if (!untried.empty()) {
    out += wrap(fmt::format("{} of the same kinds {} not tried: --every-device does.",
                            untried.size() == 1 ? "1 device" : fmt::format("{} devices", untried.size()),
                            untried.size() == 1 ? "was" : "were"),
                2, 2);
  }
  return out;
}

std::string requirements_page(const Json& reach) {
  constexpr std::size_t kState = 9;
  constexpr std::size_t kTextColumn = 2 + kNameWidth + kState;
  std::string out;
  std::string name;
  const auto line = [&](const std::string& state, const std::string& text) {
    if (name.size() >= kNameWidth) {
      out += fmt::format("  {}\n", name);
      name.clear();
    }
    out += fmt::format("  {:<{}}{:<{}}{}", name, kNameWidth, state, kState,
                       wrap(text, kTextColumn, kTextColumn).substr(kTextColumn));
    name.clear();
  };
  for (const Json& each : reach.value("requirements", Json::array())) {
    name = each.value("of", "?");
    const std::string because = each.value("because", "");
    if (!because.empty()) line("absent", because);
    for (const Json& need : each.value("needs", Json::array())) {
      const std::string state = need.value("state", "?");
      const std::string text = need.value("text", "");
      // Of what is not here only what it lacks, and once.
      if (!because.empty() && (state != "missing" || text == because)) continue;
      line(state, fmt::format("{}: {}", need.value("what", "?"), text));
    }
  }
  return out;
}

}  // namespace strait::tool
