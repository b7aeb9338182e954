// SPDX-License-Identifier: Apache-2.0
#include "soft/gaudi/nodes.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include "sys/file_hold.hpp"

namespace strait::soft::gaudi {
namespace {

constexpr unsigned kAccelMajor = 261;  // of the kernel's accel subsystem
constexpr unsigned kOtherMajor = 240;  // habanalabs takes any: one of those for local use
constexpr std::int64_t kNodePatience = 10'000'000'000;

struct NodeName {
  std::uint32_t slot = 0;
  bool control = false;
  bool old = false;
};
struct Prefix {
  std::string_view text;
  bool control;
  bool old;
};
// The longer of two that begin alike comes first.
constexpr Prefix kPrefixes[] = {
    {"/dev/accel/accel_controlD", true, false},
    {"/dev/accel/accel", false, false},
    {"/dev/hl_controlD", true, true},
    {"/dev/hl", false, true},
};

std::optional<NodeName> parse_node(std::string_view node) {
  for (const Prefix& prefix : kPrefixes) {
    if (!node.starts_with(prefix.text)) continue;
    const std::string_view digits = node.substr(prefix.text.size());
    NodeName name{0, prefix.control, prefix.old};
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), name.slot);
    if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return {};
    if (name.slot >= accel::kMostSpecDevices) return {};
    return name;
  }
  return {};
}

std::uint64_t number_of(const NodeName& name) {
  if (!name.control && !name.old) return makedev(kAccelMajor, name.slot);
  return makedev(kOtherMajor, 2 * name.slot + (name.control ? 1 : 0));
}

std::string node_of(const NodeName& name) {
  const auto prefix = std::find_if(std::begin(kPrefixes), std::end(kPrefixes), [&](const Prefix& each) {
    return each.control == name.control && each.old == name.old;
  });
  return fmt::format("{}{}", prefix->text, name.slot);
}

class NodeFamily final : public host::Family {
 public:
  explicit NodeFamily(std::string root) : folder_(std::move(root) + "/gaudi/") {}
  [[nodiscard]] bool owns(std::string_view node) const override { return parse_node(node).has_value(); }
  [[nodiscard]] std::uint64_t device_number(std::string_view node) const override {
    return number_of(parse_node(node).value_or(NodeName{}));
  }

  [[nodiscard]] Result<host::Opened> open(std::string_view node, int /*flags*/) override {
    const auto name = parse_node(node);
    if (!name) return fail_errno(ENOENT, fmt::format("there is no device behind {}", node));
    const char* const file = name->control ? "control" : "compute";
    STRAIT_TRY(sys::Fd fd, sys::open_path(fmt::format("{}{}{}", folder_, file, name->slot)));
    if (!name->control) STRAIT_CHECK(take_alone(fd, name->slot));
    if (!sys::hold_file_before(fd.get(), sys::Deadline::after_ns(kNodePatience)))
      return fail_errno(EBUSY, fmt::format("{} is busy", node));
    return host::Opened{std::move(fd), std::make_shared<host::File>()};
  }

 private:
  // No other owner, and no dma-buf of its memory is open anywhere.
  [[nodiscard]] Status take_alone(const sys::Fd& compute, std::uint32_t slot) const {
    bool free = sys::take_file_alone(compute.get());
    for (std::uint32_t segment = 0; free; ++segment) {
      const auto memory = sys::open_path(fmt::format("{}hbm{}.{}", folder_, slot, segment));
      if (!memory) break;  // there are no more
      free = !sys::is_held_elsewhere(memory->get());
    }
    if (!free) return fail_errno(EBUSY, fmt::format("Gaudi {} has an owner, or a dma-buf of it is open", slot));
    return {};
  }
  const std::string folder_;
};

}  // namespace

std::string bus_id_of(std::uint32_t slot) {
  return fmt::format("0000:{:02x}:00.0", 0x30 + slot);
}

Status write_nodes(host::Root& root, const accel::VendorSpec& spec) {
  const bool old = spec.variant == "2021";
  const std::string of_class = old ? "/sys/class/habanalabs" : "/sys/class/accel";
  STRAIT_CHECK(root.claim(of_class));
  if (!old) STRAIT_CHECK(root.claim("/dev/accel"));
  const std::uint32_t count = old ? std::min(spec.devices, kMostOldNodes) : spec.devices;
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    for (const bool control : {false, true}) {
      const NodeName name{slot, control, old};
      const std::string node = node_of(name);
      STRAIT_CHECK(root.node(node, number_of(name)));
      if (old) STRAIT_CHECK(root.claim(node));  // after it: a claim makes a folder where there is nothing
      const std::string entry = of_class + node.substr(node.rfind('/'));
      STRAIT_CHECK(root.file(entry + "/dev", fmt::format("{}:{}", major(number_of(name)), minor(number_of(name)))));
      if (control) continue;
      // The kernel's documentation has these at "device" since there is a class accel, before that in the entry itself.
      const std::string about = old ? entry : entry + "/device";
      STRAIT_CHECK(root.file(about + "/pci_addr", bus_id_of(slot)));
      STRAIT_CHECK(root.file(about + "/device_type", old ? "GAUDI" : "GAUDI2"));
      STRAIT_CHECK(root.file(about + "/status", "operational"));
      STRAIT_CHECK(root.file(about + "/module_id", fmt::format("{}", slot)));
    }
  }
  return {};
}

std::unique_ptr<host::Family> make_node_family(std::string root) {
  return std::make_unique<NodeFamily>(std::move(root));
}

}  // namespace strait::soft::gaudi
