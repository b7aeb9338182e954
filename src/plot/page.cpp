// SPDX-License-Identifier: Apache-2.0
#include "plot/page.hpp"

#include <fmt/format.h>

#include "plot/svg.hpp"

namespace strait::plot {
namespace {

constexpr const char* kPageStyle =
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;"
    "background:#ffffff;color:#1f2328}"
    "h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.1rem;margin-top:2rem}"
    "figure{margin:1.5rem 0;overflow-x:auto}svg{max-width:100%;height:auto}"
    ".wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.25rem .7rem;border-bottom:1px solid #dfe3e8;text-align:left;white-space:nowrap}"
    "td.figure{text-align:right}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}"
    "dt{color:#59636e}dd{margin:0;overflow-wrap:anywhere}"
    "@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}"
    "th,td{border-color:#2a313a}dt{color:#9aa4af}}";

bool is_figure(const std::string& cell) {
  return !cell.empty() && ((cell[0] >= '0' && cell[0] <= '9') || cell[0] == '<' || cell == "-");
}

void add_table(std::string& out, const Table& table) {
  out += fmt::format("<h2>{}</h2>\n<div class=\"wide\"><table>\n<thead><tr>", escaped(table.title));
  for (const std::string& cell : table.head) out += fmt::format("<th scope=\"col\">{}</th>", escaped(cell));
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row)
      out += fmt::format("<td{}>{}</td>", is_figure(cell) ? " class=\"figure\"" : "", escaped(cell));
    out += "</tr>\n";
  }
  out += "</tbody>\n</table></div>\n";
}

}  // namespace

std::string page_html(const Page& page) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      escaped(page.title), kPageStyle);
  for (const std::string& paragraph : page.paragraphs) out += fmt::format("<p>{}</p>\n", escaped(paragraph));
  for (const std::string& picture : page.pictures) out += "<figure>\n" + picture + "</figure>\n";
  for (const Table& table : page.tables) add_table(out, table);
  if (!page.facts.empty()) {
    out += "<h2>Where it comes from</h2>\n<dl>\n";
    for (const auto& [name, value] : page.facts)
      out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
    out += "</dl>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace strait::plot
