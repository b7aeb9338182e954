// SPDX-License-Identifier: Apache-2.0
#include "export/reach.hpp"

#include <algorithm>
#include <optional>

#include "buffer/provider.hpp"

namespace strait::exports {
namespace {

constexpr const char* kAllowStaging = "Allow a copy through host memory with STRAIT_ALLOW_STAGING=1.";

Status check_inside(const buffer::Claim& claim, buffer::Range range) {
  const buffer::Range& whole = claim.whole;
  const bool inside = range.length_bytes != 0 && range.address >= whole.address &&
                      range.address - whole.address <= whole.length_bytes &&
                      range.length_bytes <= whole.length_bytes - (range.address - whole.address);
  if (inside) return {};
  return fail(Code::invalid, "{} bytes at {:#x} are not inside the claimed {} at {:#x}", range.length_bytes,
              range.address, buffer::size_text(whole.length_bytes), whole.address);
}

// Long reasons by their beginning, with the errno at the end: an error has room for one sentence about each way.
std::string brief(const std::string& reason) {
  constexpr std::size_t kLong = 120;
  if (reason.size() <= kLong) return reason;
  const std::size_t cut = std::min(reason.find_first_of(":;("), kLong);
  const std::size_t number = reason.ends_with(')') ? reason.rfind(" (") : std::string::npos;
  std::string out = reason.substr(0, cut);
  if (number != std::string::npos && number > cut) out += reason.substr(number);
  return out;
}

// Tries the ways in order; what is not taken leaves its reason in `out.rejected`.
class Search {
 public:
  Search(const buffer::Claim& claim, buffer::Range range, const NicAbilities& nic, const Policy& policy)
      : claim_(claim), nic_(nic), policy_(policy) {
    out_.range = range;
    out_.persistent = nic.persistent && has_p2p_pages(*claim.device);
  }

  Result<Exported> run() {
    // Every way is judged, also after one was taken: the list of those not taken is to be complete.
    if (take(Way::host_pages, why_not_host_pages())) {
      out_.text = "host pages, registered by address";
      lend_pages();
    }
    if (take(Way::dmabuf, why_not_dmabuf())) {
      out_.text = fmt::format("dma-buf at offset {}, made by {}", out_.fd.offset(), claim_.device->kind);
    }
    if (take(Way::peer_memory, why_not_peer_memory())) {
      out_.text = fmt::format("device address of {}, for a peer-memory client to answer for", claim_.device->name);
    }
    if (take(Way::p2p_pages, why_not_p2p_pages())) {
      out_.text = fmt::format("device address of {}, for nvidia_p2p pages", claim_.device->name);
    }
    if (take(Way::staged, why_not_staged())) {
      out_.text = fmt::format("staged: {} cannot be reached by {}, every byte is copied through host memory",
                              claim_.device->name, nic_.name);
    }
    if (found_) return std::move(out_);
    return nothing_left();
  }

  // One way and no other; its own reason when it is none.
  Result<Exported> run_only(Way way) {
    std::optional<std::string> why_not;
    switch (way) {
      case Way::host_pages: why_not = why_not_host_pages(); break;
      case Way::dmabuf: why_not = why_not_dmabuf(); break;
      case Way::peer_memory: why_not = why_not_peer_memory(); break;
      case Way::p2p_pages: why_not = why_not_p2p_pages(); break;
      case Way::staged: why_not = why_not_staged(); break;
    }
    if (export_error_) return *export_error_;
    if (why_not) return fail(Code::unsupported, "{}", *why_not);
    out_.way = way;
    return std::move(out_);
  }

 private:
  bool take(Way way, std::optional<std::string> why_not) {
    if (why_not) {
      out_.rejected.push_back({way, std::move(*why_not)});
      return false;
    }
    out_.way = way;
    found_ = true;
    return true;
  }

  // Memory that strait allocated also has a file: with it a software NIC can map what it reads, and does without a
  // system call per copy. Nothing is lost when there is none.
  void lend_pages() {
    if (claim_.identity == 0 || !nic_.imports_fds) return;
    if (auto fd = ExportedFd::make(*claim_.provider, out_.range)) out_.fd = std::move(*fd);
  }

  std::optional<std::string> why_not_host_pages() const {
    if (!claim_.cpu_accessible()) return fmt::format("{} is not host memory", claim_.device->name);
    if (!nic_.host_pages) return fmt::format("{} registers no host memory by address", nic_.name);
    // A NIC that pins would write into pages which the memory has left.
    if (claim_.sort == STRAIT_SORT_MANAGED && !nic_.follows_pages)
      return fmt::format("managed memory of {} migrates, and {} pins pages", claim_.device->name, nic_.name);
    return std::nullopt;
  }

  std::optional<std::string> why_not_dmabuf() {
    if (found_) return "not needed: these are host pages";
    if (auto other = asked_otherwise(Reach::dmabuf)) return other;
    if (auto said = refused(Way::dmabuf)) return said;
    if (claim_.sort == STRAIT_SORT_MANAGED)
      return fmt::format("managed memory of {} migrates and is never exported", claim_.device->name);
    if (!claim_.can_export()) return fmt::format("{} cannot export its memory", claim_.device->name);
    if (!nic_.imports_fds) return fmt::format("{} registers no memory by file descriptor", nic_.name);
    auto fd = ExportedFd::make(*claim_.provider, out_.range);
    if (!fd) {
      export_error_ = fd.error();
      return export_error_->text;
    }
    out_.fd = std::move(*fd);
    out_.port = claim_.provider->port();
    // Without it the NIC can still try the dma-buf, and says what it thinks of that.
    if (nic_.wants_pages) {
      if (auto pages = ExportedFd::make_pages(*claim_.provider, out_.range)) out_.pages = std::move(*pages);
    }
    return std::nullopt;
  }

  std::optional<std::string> why_not_peer_memory() const {
    if (found_) return fmt::format("not needed: reached by {}", way_name(out_.way));
    if (auto other = asked_otherwise(Reach::peer_memory)) return other;
    if (auto said = refused(Way::peer_memory)) return said;
    if ((claim_.capabilities & STRAIT_CAN_PEER_MEMORY) == 0)
      return fmt::format("no peer-memory client serves this memory of {}", claim_.device->name);
    // Where only a registration tells, one is tried when there is nothing to lose.
    if (nic_.peer_memory || (nic_.plain_unknown && (policy_.reach == Reach::peer_memory || !policy_.refused.empty())))
      return std::nullopt;
    return fmt::format("no peer-memory client is known to {}", nic_.name);
  }

  std::optional<std::string> why_not_p2p_pages() const {
    if (found_) return fmt::format("not needed: reached by {}", way_name(out_.way));
    if (auto other = asked_otherwise(Reach::p2p_pages)) return other;
    if (auto said = refused(Way::p2p_pages)) return said;
    if (!has_p2p_pages(*claim_.device))
      return fmt::format("only NVIDIA GPUs have them, this is {}", claim_.device->kind);
    if ((claim_.capabilities & STRAIT_CAN_PEER_MEMORY) == 0)
      return fmt::format("the driver gives no pages of this memory of {}", claim_.device->name);
    if (nic_.p2p_pages || (nic_.plain_unknown && policy_.reach == Reach::p2p_pages)) return std::nullopt;
    return "not on this NIC";
  }

  std::optional<std::string> refused(Way way) const {
    for (const Rejected& each : policy_.refused) {
      if (each.way == way) return each.reason;
    }
    return std::nullopt;
  }

  // Host memory needs none of the ways that can be asked for.
  std::optional<std::string> asked_otherwise(Reach mine) const {
    if (policy_.reach == Reach::automatic || policy_.reach == mine) return std::nullopt;
    return fmt::format("option reach={} asks for another way", reach_name(policy_.reach));
  }

  std::optional<std::string> why_not_staged() const {
    if (found_) return "never silent, and not needed";
    if (auto other = asked_otherwise(Reach::staged)) return other;
    if (!policy_.allow_staging && policy_.reach != Reach::staged)
      return "never silent: allow it with STRAIT_ALLOW_STAGING=1";
    if ((claim_.capabilities & STRAIT_CAN_COPY) == 0) return fmt::format("{} has no copy engine", claim_.device->name);
    if (!nic_.host_pages) return fmt::format("{} could not register the bounce buffer either", nic_.name);
    return std::nullopt;
  }

  Error nothing_left() const {
    if (export_error_) return *export_error_;
    std::string reasons;
    for (const Rejected& each : out_.rejected) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", way_name(each.way), brief(each.reason));
    }
    return with_remedy(
        fail(Code::unsupported, "cannot reach {} memory from {} ({})", claim_.device->name, nic_.name, reasons),
        policy_.reach != Reach::automatic ? "The option reach=auto takes the best way there is."
        : policy_.allow_staging           ? ""
                                          : kAllowStaging);
  }

  const buffer::Claim& claim_;
  const NicAbilities& nic_;
  const Policy& policy_;
  bool found_ = false;
  std::optional<Error> export_error_;
  Exported out_;
};

}  // namespace

bool has_p2p_pages(const buffer::Device& device) {
  return device.kind != "rocm" && device.kind != "gaudi";
}

Result<Exported> reach_by(const buffer::Claim& claim, buffer::Range range, const NicAbilities& nic, Way way) {
  STRAIT_CHECK(check_inside(claim, range));
  // Asked for by name: then the last way is allowed, and the two by address are tried where nobody knows.
  constexpr Reach kReaches[] = {Reach::automatic, Reach::dmabuf, Reach::peer_memory, Reach::p2p_pages, Reach::staged};
  const Policy policy{true, kReaches[static_cast<std::size_t>(way)]};
  return Search(claim, range, nic, policy).run_only(way);
}

Result<Exported> make_reachable(const buffer::Claim& claim, buffer::Range range, const NicAbilities& nic,
                                const Policy& policy) {
  STRAIT_CHECK(check_inside(claim, range));
  if (nic.max_bytes != 0 && range.length_bytes > nic.max_bytes) {
    return fail(Code::unsupported, "{} registers at most {} at once, {} were asked for", nic.name,
                buffer::size_text(nic.max_bytes), buffer::size_text(range.length_bytes));
  }
  return Search(claim, range, nic, policy).run();
}

}  // namespace strait::exports
