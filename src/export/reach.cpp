// SPDX-License-Identifier: Apache-2.0
#include "export/reach.hpp"

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

// Tries the ways in order; what is not taken leaves its reason in `out.rejected`.
class Search {
 public:
  Search(const buffer::Claim& claim, buffer::Range range, const NicAbilities& nic, const Policy& policy)
      : claim_(claim), nic_(nic), policy_(policy) {
    out_.range = range;
  }

  Result<Exported> run() {
    // Every way is judged, also after one was taken: the list of those not taken is to be complete.
    if (take(Way::host_pages, why_not_host_pages())) {
      out_.text = "host pages, registered by address";
      lend_pages();
    }
    if (take(Way::dmabuf, why_not_dmabuf())) {
      out_.text =
          fmt::format("dma-buf fd {} at offset {}, made by {}", out_.fd.fd(), out_.fd.offset(), claim_.device->kind);
    }
    (void)take(Way::peer_memory, why_not_peer_memory());
    (void)take(Way::p2p_pages, why_not_p2p_pages());
    if (take(Way::staged, why_not_staged())) {
      out_.text = fmt::format("staged: {} cannot be reached by {}, every byte is copied through host memory",
                              claim_.device->name, nic_.name);
    }
    if (found_) return std::move(out_);
    return nothing_left();
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
    return std::nullopt;
  }

  std::optional<std::string> why_not_dmabuf() {
    if (found_) return "not needed: these are host pages";
    if (!claim_.can_export()) return fmt::format("{} cannot export its memory", claim_.device->name);
    if (!nic_.imports_fds) return fmt::format("{} registers no memory by file descriptor", nic_.name);
    auto fd = ExportedFd::make(*claim_.provider, out_.range);
    if (!fd) {
      export_error_ = fd.error();
      return export_error_->text;
    }
    out_.fd = std::move(*fd);
    // Without it the NIC can still try the dma-buf, and says what it thinks of that.
    if (nic_.wants_pages) {
      if (auto pages = ExportedFd::make_pages(*claim_.provider, out_.range)) out_.pages = std::move(*pages);
    }
    return std::nullopt;
  }

  std::optional<std::string> why_not_peer_memory() const {
    if (found_) return fmt::format("not needed: reached by {}", way_name(out_.way));
    if (!nic_.peer_memory) return "not on this NIC";
    return fmt::format("{} has no peer-memory client that this version knows", claim_.device->kind);
  }

  std::optional<std::string> why_not_p2p_pages() const {
    if (found_) return fmt::format("not needed: reached by {}", way_name(out_.way));
    if (claim_.device->kind != "cuda")
      return fmt::format("only NVIDIA GPUs have them, this is {}", claim_.device->kind);
    return nic_.p2p_pages ? "not supported by this version" : "not on this NIC";
  }

  std::optional<std::string> why_not_staged() const {
    if (found_) return "never silent, and not needed";
    if (!policy_.allow_staging) return "never silent: allow it with STRAIT_ALLOW_STAGING=1";
    if ((claim_.capabilities & STRAIT_CAN_COPY) == 0) return fmt::format("{} has no copy engine", claim_.device->name);
    if (!nic_.host_pages) return fmt::format("{} could not register the bounce buffer either", nic_.name);
    return std::nullopt;
  }

  Error nothing_left() const {
    if (export_error_) return *export_error_;
    std::string reasons;
    for (const Rejected& each : out_.rejected) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", way_name(each.way), each.reason);
    }
    return with_remedy(
        fail(Code::unsupported, "cannot reach {} memory from {} ({})", claim_.device->name, nic_.name, reasons),
        policy_.allow_staging ? "" : kAllowStaging);
  }

  const buffer::Claim& claim_;
  const NicAbilities& nic_;
  const Policy& policy_;
  bool found_ = false;
  std::optional<Error> export_error_;
  Exported out_;
};

}  // namespace

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
