// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/family.hpp"

#include <cerrno>
#include <charconv>
#include <optional>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/pages.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {

namespace {

constexpr std::string_view kPrefix = "/dev/infiniband/uverbs";

std::optional<unsigned> index_of(std::string_view node) {
  if (!node.starts_with(kPrefix)) return {};
  const std::string_view digits = node.substr(kPrefix.size());
  unsigned index = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return {};
  if (index >= kMostDevices) return {};
  return index;
}

class UverbsFamily final : public host::Family {
 public:
  explicit UverbsFamily(std::shared_ptr<Devices> devices) : devices_(std::move(devices)) {}

  [[nodiscard]] bool owns(std::string_view node) const override { return index_of(node).has_value(); }

  [[nodiscard]] std::uint64_t device_number(std::string_view node) const override {
    return uverbs::device_number(index_of(node).value_or(0));
  }

  [[nodiscard]] Result<host::Opened> open(std::string_view node, int /*flags*/) override {
    const auto index = index_of(node);
    if (!index) return fail_errno(ENOENT, fmt::format("there is no device behind {}", node));
    STRAIT_TRY(auto device, devices_->at(*index));
    STRAIT_TRY(auto pages, sys::make_sealed_memfd("strait-uverbs", pages::kBytes));
    STRAIT_TRY(auto ours, pages.duplicate());
    return host::Opened{std::move(pages), std::make_shared<Context>(std::move(device), std::move(ours))};
  }

 private:
  std::shared_ptr<Devices> devices_;
};

}  // namespace

std::unique_ptr<host::Family> make_family(std::shared_ptr<Devices> devices) {
  return std::make_unique<UverbsFamily>(std::move(devices));
}

}  // namespace strait::soft::uverbs
