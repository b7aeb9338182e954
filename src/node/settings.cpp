// SPDX-License-Identifier: Apache-2.0
// Reading the options table.
#include "node/settings.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

#include "buffer/built_in.hpp"

namespace strait::node {

Settings Settings::from(const Options& options) {
  Settings s;
  const std::string& progress = options.text("progress");
  s.progress = progress == "caller"    ? ProgressMode::caller
               : progress == "eventfd" ? ProgressMode::eventfd
                                       : ProgressMode::thread;
  const std::string& grants = options.text("grant");
  s.grants = grants == "ring"   ? Grants::ring
             : grants == "map"  ? Grants::map
             : grants == "copy" ? Grants::copy
                                : Grants::automatic;
  s.trusts_let_go = options.text("revoked_pages") == "keep";
  s.deadline_ns = options.duration_ns("deadline");
  s.connect_deadline_ns = options.duration_ns("connect_deadline");
  s.ack_timeout_ns = options.duration_ns("ack_timeout");
  s.spin_ns = options.duration_ns("spin");
  s.ticket_lifetime_ns = options.duration_ns("ticket_lifetime");
  s.retries = static_cast<std::uint32_t>(options.integer("retries"));
  s.rnr_retries = static_cast<std::uint32_t>(options.integer("rnr_retries"));
  s.lane_depth =
      std::bit_ceil(static_cast<std::uint32_t>(std::clamp<std::int64_t>(options.integer("lane_depth"), 1, 8192)));
  s.staging_piece_bytes = static_cast<std::uint64_t>(options.integer("staging_piece"));
  s.reach = exports::parse_reach(options.text("reach"));
  s.allow_staging = options.flag("allow_staging") || s.reach == exports::Reach::staged;
  return s;
}

namespace {

bool is_vendor(std::string_view kind) {
  return std::ranges::find(buffer::kVendors, kind) != buffer::kVendors.end();
}

}  // namespace

Result<std::vector<Wanted>> parse_wanted(const std::string& option, const std::string& text) {
  std::vector<Wanted> all;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, comma - at);
    at = comma + 1;
    if (item.empty() || item == "none") continue;
    const std::size_t colon = item.find(':');
    Wanted wanted{item.substr(0, colon), 1};
    if ((wanted.kind == "verbs" || wanted.kind == "cxi") && option == "nics") {
      if (colon != std::string::npos) wanted.device = item.substr(colon + 1);
      all.push_back(std::move(wanted));
      continue;
    }
    if (colon != std::string::npos) {
      const char* first = item.data() + colon + 1;
      const char* last = item.data() + item.size();
      const auto [end, failed] = std::from_chars(first, last, wanted.count);
      if (failed != std::errc{} || end != last || wanted.count > 64) {
        return fail(Code::invalid, "option {}: \"{}\" does not say how many (0 to 64, as in soft:2)", option, item);
      }
    }
    const bool vendor = option == "accelerators" && (wanted.kind == "auto" || is_vendor(wanted.kind));
    if (vendor && colon != std::string::npos) {
      return with_remedy(
          fail(Code::invalid, "option {}: \"{}\": how many there are is for the driver to say", option, item),
          "Its own variable (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, ...) chooses among them.");
    }
    if (wanted.kind != "soft" && !vendor) {
      return with_remedy(fail(Code::invalid, "option {}: strait knows no \"{}\" in this version", option, wanted.kind),
                         fmt::format("{}=soft opens software devices, {}=none opens none{}", option, option,
                                     option == "nics" ? ", nics=verbs:NAME an RDMA device, nics=cxi a Slingshot NIC"
                                                      : ", auto every vendor's whose driver is there"));
    }
    if (wanted.count > 0) all.push_back(std::move(wanted));
  }
  return all;
}

Result<std::map<std::string, std::string>> parse_provider_config(const std::string& text) {
  std::map<std::string, std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const std::string item = text.substr(at, end - at);
    at = end + 1;
    if (item.empty()) continue;
    const std::size_t colon = item.find(':');
    if (colon == std::string::npos || !is_vendor(item.substr(0, colon))) {
      return with_remedy(fail(Code::invalid, "option provider_config: \"{}\" begins with no vendor", item),
                         "Write cuda:, gaudi: or rocm: before it, as in cuda:cpu_copies=off.");
    }
    if (!all.emplace(item.substr(0, colon), item.substr(colon + 1)).second)
      return fail(Code::invalid, "option provider_config: {} is there twice", item.substr(0, colon));
  }
  return all;
}

}  // namespace strait::node
