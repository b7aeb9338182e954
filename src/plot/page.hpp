// SPDX-License-Identifier: Apache-2.0
// One HTML page that opens from disk: pictures, tables, and what they come from. Nothing in it is fetched.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace strait::plot {

struct Table {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // a cell that begins with a digit or a sign is set to the right
};

struct Page {
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<std::string> pictures;  // SVG
  std::vector<Table> tables;
  std::vector<std::pair<std::string, std::string>> facts;  // machine, versions, command, date
};

[[nodiscard]] std::string page_html(const Page& page);

}  // namespace strait::plot
