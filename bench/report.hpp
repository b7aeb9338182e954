// SPDX-License-Identifier: Apache-2.0
// Results as people read them: a table on the terminal, sections of docs/performance.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bench {

// What several runs measured, the oldest first: of a row that more than one has, the last. `runs` says of each what it
// was, and every row which run it is of.
nlohmann::json join(const std::vector<nlohmann::json>& runs);

// These take what join() made. 80 columns, plain text.
std::string table_text(const nlohmann::json& results);
// Markdown, to stand between the markers of docs/performance.md.
std::string docs_text(const nlohmann::json& results);
// Puts `text` between the markers in `file`; an empty string when done, else what is wrong.
std::string replace_between_markers(const std::string& file, const std::string& text);
// Is `text` what stands there? An empty string, or what is wrong.
std::string compare_between_markers(const std::string& file, const std::string& text);
// A row whose goal was missed, or that failed.
bool all_reached(const nlohmann::json& results);

}  // namespace bench
