// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/spec.hpp"

#include <charconv>
#include <cstdlib>

#include "base/options.hpp"
#include "soft/accel/window_list.hpp"

namespace strait::soft::accel {
namespace {

constexpr std::array<const char*, kVendors> kVendorNames{"cuda", "rocm", "gaudi"};
constexpr std::int64_t kLeastSpecMemory = std::int64_t{2} << 20;
constexpr std::int64_t kMostSpecMemory = std::int64_t{1} << 40;

Error refuse_part(std::string_view part, std::string_view why) {
  return with_remedy(fail(Code::invalid, "accelerators: \"{}\" {}", part, why),
                     "Write for example cuda:2,rocm:1,gaudi:8 or cuda:2x64M (64 MiB each).");
}

// What each vendor may have behind an @.
constexpr std::array<const char*, kVendors> kVariants{kMapVariant, "bar", "2021"};

Result<VendorSpec> parse_amount(std::string_view part, std::size_t vendor, std::string_view amount) {
  VendorSpec spec;
  if (const std::size_t at = amount.find('@'); at != std::string_view::npos) {
    spec.variant = amount.substr(at + 1);
    if (spec.variant.empty() || spec.variant != kVariants[vendor])
      return refuse_part(part,
                         "names a variant that does not exist: there are cuda:N@map, rocm:N@bar and gaudi:N@2021");
    amount = amount.substr(0, at);
  }
  const std::size_t cross = amount.find('x');
  const std::string_view count = amount.substr(0, cross);
  const auto [end, ec] = std::from_chars(count.data(), count.data() + count.size(), spec.devices);
  if (ec != std::errc{} || end != count.data() + count.size() || spec.devices > kMostSpecDevices)
    return refuse_part(part, fmt::format("does not say how many devices, from 0 to {}", kMostSpecDevices));
  if (cross == std::string_view::npos) return spec;
  const auto memory = parse_bytes(amount.substr(cross + 1));
  if (!memory || *memory < kLeastSpecMemory || *memory > kMostSpecMemory)
    return refuse_part(part, "does not say how much memory each has, from 2M to 1024G, behind its x");
  spec.memory_bytes = static_cast<std::uint64_t>(*memory);
  return spec;
}

}  // namespace

const char* vendor_name(Vendor vendor) {
  return kVendorNames[static_cast<std::size_t>(vendor)];
}

Result<Spec> parse_spec(std::string_view text) {
  Spec spec;
  std::array<bool, kVendors> seen{};
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (comma != std::string_view::npos && text.empty()) return refuse_part(part, "is followed by nothing");
    const std::size_t colon = part.find(':');
    std::size_t vendor = 0;
    while (vendor < kVendors && part.substr(0, colon) != kVendorNames[vendor]) ++vendor;
    if (colon == std::string_view::npos || vendor == kVendors)
      return refuse_part(part, "is not cuda:N, rocm:N or gaudi:N");
    if (seen[vendor]) return refuse_part(part, "names a vendor for the second time");
    seen[vendor] = true;
    STRAIT_TRY(spec.vendors[vendor], parse_amount(part, vendor, part.substr(colon + 1)));
  }
  return spec;
}

VendorSpec spec_from_environment(Vendor vendor) {
  const char* text = std::getenv(kSpecVariable);
  if (text == nullptr) return {};
  const auto spec = parse_spec(text);
  return spec ? spec->of(vendor) : VendorSpec{};
}

}  // namespace strait::soft::accel
