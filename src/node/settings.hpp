// SPDX-License-Identifier: Apache-2.0
// The options a Node uses, read once when it opens so that no path looks one up by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "export/abilities.hpp"

namespace strait::node {

enum class ProgressMode { thread, caller, eventfd };
enum class Grants { automatic, map, copy, ring };

struct Settings {
  ProgressMode progress = ProgressMode::thread;
  std::int64_t deadline_ns = 0;
  std::int64_t connect_deadline_ns = 0;
  std::int64_t ack_timeout_ns = 0;
  std::int64_t spin_ns = 0;
  std::int64_t ticket_lifetime_ns = 0;
  std::uint32_t retries = 0;
  std::uint32_t rnr_retries = 0;
  std::uint32_t lane_depth = 0;
  bool allow_staging = false;
  Grants grants = Grants::automatic;
  bool trusts_let_go = true;
  exports::Reach reach = exports::Reach::automatic;
  std::uint64_t staging_piece_bytes = 0;

  [[nodiscard]] static Settings from(const Options& options);
};

// "soft:2" asks for two; "none" or "" for none. Code::invalid names what is not known.
// "verbs:rxe0" and "cxi:cxi0" name one, "verbs" and "cxi" take the first there is.
struct Wanted {
  std::string kind;
  std::uint32_t count = 1;
  std::string device{};  // verbs: its name, and /INDEX of a GID; cxi: and /VNI
};
[[nodiscard]] Result<std::vector<Wanted>> parse_wanted(const std::string& option, const std::string& text);

// Of "cuda:cpu_copies=off;rocm:ipc_cache=8": by the vendor's kind. Code::invalid names what is no vendor's.
[[nodiscard]] Result<std::map<std::string, std::string>> parse_provider_config(const std::string& text);

}  // namespace strait::node
