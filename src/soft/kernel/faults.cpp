// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/faults.hpp"

#include <cerrno>
#include <charconv>
#include <utility>

namespace strait::soft::kernel {
namespace {

constexpr std::array<const char*, kSteps> kStepNames = {"attach",    "pin",     "map",     "acquire",
                                                        "get_pages", "dma_map", "p2p_get", "p2p_map"};

constexpr std::array<std::pair<std::string_view, int>, 11> kErrnoNames = {{{"EPERM", EPERM},
                                                                           {"EIO", EIO},
                                                                           {"EAGAIN", EAGAIN},
                                                                           {"ENOMEM", ENOMEM},
                                                                           {"EFAULT", EFAULT},
                                                                           {"EBUSY", EBUSY},
                                                                           {"ENODEV", ENODEV},
                                                                           {"EINVAL", EINVAL},
                                                                           {"EMFILE", EMFILE},
                                                                           {"EOPNOTSUPP", EOPNOTSUPP},
                                                                           {"ENOTSUPP", kNotSupported524}}};

std::optional<std::uint64_t> plain_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> fault_bytes(std::string_view text) {
  unsigned shift = 0;
  if (text.ends_with('K')) shift = 10;
  if (text.ends_with('M')) shift = 20;
  if (text.ends_with('G')) shift = 30;
  if (shift != 0) text.remove_suffix(1);
  const auto value = plain_number(text);
  if (!value || *value > (~std::uint64_t{0} >> shift)) return std::nullopt;
  return *value << shift;
}

std::optional<int> fault_errno(std::string_view text) {
  for (const auto& [name, value] : kErrnoNames) {
    if (text == name) return value;
  }
  const auto value = plain_number(text);
  if (!value || *value == 0 || *value > 4095) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

const char* step_name(Step step) {
  return kStepNames[static_cast<std::size_t>(step)];
}

KernelFaults::KernelFaults(const KernelFaults& other) {
  *this = other;
}

// The plan, not what happened under it so far.
KernelFaults& KernelFaults::operator=(const KernelFaults& other) {
  if (this == &other) return *this;
  topology = other.topology;
  no_p2p = other.no_p2p;
  reset = other.reset;
  static_moves = other.static_moves;
  bar_bytes = other.bar_bytes;
  move_at = other.move_at;
  invalidate_at = other.invalidate_at;
  items_ = other.items_;
  for (auto& calls : calls_) calls = 0;
  injected_ = 0;
  return *this;
}

Status KernelFaults::take(std::string_view item) {
  if (item == "topology") return topology = true, Status();
  if (item == "no_p2p") return no_p2p = true, Status();
  if (item == "reset") return reset = true, Status();
  if (item == "static_moves") return static_moves = true, Status();
  const std::size_t cut = item.find_first_of("=@");
  const std::string_view name = item.substr(0, cut);
  const std::string_view value = cut == std::string_view::npos ? std::string_view() : item.substr(cut + 1);
  const bool equals = cut != std::string_view::npos && item[cut] == '=';
  if (equals ? name == "bar" : name == "move" || name == "invalidate") {
    const auto size = fault_bytes(value);
    if (!size || (equals && *size == 0))
      return fail(Code::invalid, "kernel faults: \"{}\" needs a number of bytes, for example 64K", item);
    if (equals) bar_bytes = *size;
    if (name == "move") move_at = *size;
    if (name == "invalidate") invalidate_at = *size;
    return {};
  }
  for (std::size_t i = 0; equals && i < kSteps; ++i) {
    if (name != kStepNames[i]) continue;
    const std::size_t at = value.find('@');
    const auto error = fault_errno(value.substr(0, at));
    const auto nth =
        at == std::string_view::npos ? std::optional<std::uint64_t>(0) : plain_number(value.substr(at + 1));
    if (!error || !nth || (at != std::string_view::npos && *nth == 0))
      return fail(Code::invalid, "kernel faults: \"{}\" is not STEP=ERRNO or STEP=ERRNO@N, as map=EPERM@2", item);
    items_.push_back({static_cast<Step>(i), *error, *nth});
    return {};
  }
  return fail(Code::invalid,
              "kernel faults: there is no \"{}\", only attach=, pin=, map=, acquire=, get_pages=, dma_map=, p2p_get=, "
              "p2p_map=, bar=, move@, invalidate@, topology, no_p2p, reset and static_moves",
              item);
}

Result<KernelFaults> KernelFaults::parse(std::string_view text) {
  KernelFaults out;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find_first_of(",;"));
    text.remove_prefix(item.size() == text.size() ? item.size() : item.size() + 1);
    STRAIT_CHECK(out.take(item));
  }
  return out;
}

int KernelFaults::on(Step step) {
  const std::uint64_t call = calls_[static_cast<std::size_t>(step)].fetch_add(1, std::memory_order_relaxed) + 1;
  for (const Item& item : items_) {
    if (item.step != step || (item.nth != 0 && item.nth != call)) continue;
    injected_.fetch_add(1, std::memory_order_relaxed);
    return -item.error;
  }
  return 0;
}

}  // namespace strait::soft::kernel
