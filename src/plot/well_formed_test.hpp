// SPDX-License-Identifier: Apache-2.0
// Tests only: is a text well-formed XML, as far as what is written here needs it? Tags nest and end, attributes are
// quoted, and nothing is left unescaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strait::plot {

// Empty when it is; otherwise what is wrong, and where.
inline std::string why_not_well_formed(std::string_view text) {
  std::vector<std::string> open;
  std::size_t roots = 0;
  const auto wrong = [&](std::size_t at, const std::string& what) {
    return what + " at byte " + std::to_string(at) + ": " + std::string(text.substr(at, 40));
  };
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '&') {
      const std::size_t end = text.find(';', at);
      const std::string_view name = text.substr(at, end == std::string_view::npos ? 1 : end + 1 - at);
      if (name != "&amp;" && name != "&lt;" && name != "&gt;" && name != "&quot;") return wrong(at, "a bare ampersand");
      at = end + 1;
    } else if (text[at] != '<') {
      if (open.empty() && text[at] != '\n') return wrong(at, "text outside of the root");
      ++at;
    } else if (text.substr(at, 15) == "<!DOCTYPE html>" && roots == 0) {
      at += 15;
    } else {
      const std::size_t end = text.find('>', at);
      if (end == std::string_view::npos) return wrong(at, "a tag without end");
      std::string_view tag = text.substr(at + 1, end - at - 1);
      if (tag.find('<') != std::string_view::npos) return wrong(at, "a tag in a tag");
      std::size_t quotes = 0;
      for (const char letter : tag) quotes += letter == '"' ? 1u : 0u;
      if (quotes % 2 != 0) return wrong(at, "an open quote");
      const std::string name(tag.substr(0, tag.find_first_of(" \n/", 1)));
      if (tag.starts_with('/')) {
        if (open.empty() || "/" + open.back() != tag) return wrong(at, "an end without its beginning");
        open.pop_back();
      } else {
        if (open.empty() && ++roots > 1) return wrong(at, "a second root");
        if (!tag.ends_with('/')) open.push_back(name);
      }
      at = end + 1;
    }
  }
  if (!open.empty()) return "<" + open.back() + "> is never closed";
  return roots == 1 ? std::string() : std::string("there is no root");
}

}  // namespace strait::plot
