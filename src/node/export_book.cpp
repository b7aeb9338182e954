// SPDX-License-Identifier: Apache-2.0
// Finding and making exports.
#include "node/export_book.hpp"

#include <utility>

namespace strait::node {

std::uint64_t key_identity(const buffer::Claim& claim) {
  if (claim.identity == 0 || claim.block_identity == 0) return claim.identity;
  // Other physical memory under the same allocation is other memory to a NIC.
  const std::uint64_t both = claim.identity * 0x9e3779b97f4a7c15u ^ (claim.block_identity + 0x7f4a7c15u);
  return both != 0 ? both : 1;
}

Reached::Reached(exports::Exported how, const buffer::Claim& claim, Files& files,
                 std::vector<exports::Rejected> refused)
    : how_(std::move(how)),
      refused_(std::move(refused)),
      claim_(claim),
      has_fd_(how_.fd.valid()),
      has_pages_(how_.pages.valid()) {
  if (!has_fd_) return;
  files = std::make_shared<ExportFiles>();
  files->fd = std::move(how_.fd);
  files->pages = std::move(how_.pages);
  open_now_ = files;
}

std::string Reached::rejected_text() const {
  std::string text;
  for (const exports::Rejected& no : how_.rejected)
    text += fmt::format("; {}: {}", exports::way_name(no.way), no.reason);
  return text;
}

Taken Reached::taken() const {
  Taken out{how_.way, {}};
  for (const exports::Rejected& no : how_.rejected) {
    if (no.way < how_.way && no.way != exports::Way::host_pages) out.before.push_back(no);
  }
  return out;
}

void Reached::note_refusal(std::size_t rail, std::string why) {
  const Locked lock(mutex_);
  refused_by_[rail] = std::move(why);
}

std::string Reached::refusal_of(std::size_t rail) const {
  const Locked lock(mutex_);
  const auto found = refused_by_.find(rail);
  return found == refused_by_.end() ? std::string() : found->second;
}

bool Reached::still_the_same() const {
  const auto now = claim_.provider->classify(how_.range.address);
  return now && now->block_identity == claim_.block_identity &&
         claim_.provider->identity(claim_.whole) == claim_.identity;
}

Result<Reached::Files> Reached::open() {
  if (!has_fd_) return Files();
  const Locked lock(mutex_);
  if (Files open = open_now_.lock()) return open;
  if (!can_open_again()) return fail(Code::gone, "the descriptor of this memory of {} was closed", claim_.device->name);
  auto files = std::make_shared<ExportFiles>();
  STRAIT_TRY(files->fd, exports::ExportedFd::make(*claim_.provider, how_.range));
  if (has_pages_) {
    STRAIT_TRY(files->pages, exports::ExportedFd::make_pages(*claim_.provider, how_.range));
  }
  // Asked after the export: a descriptor holds its memory, so what is there now is what was exported.
  if (!still_the_same())
    return fail(Code::gone, "the memory of {} at {:#x} was freed; something else is there now", claim_.device->name,
                how_.range.address);
  open_now_ = files;
  return files;
}

Result<ExportBook::Shared> ExportBook::get(const buffer::Claim& claim, const exports::NicAbilities& nic,
                                           const exports::Policy& policy, Reached::Files& files) {
  // Without an identity the address may have a new owner: only a fresh export is known to be of this memory. Host pages
  // are registered by address, and nothing is exported.
  const bool plain = claim.sort == STRAIT_SORT_HOST && claim.identity == 0;
  if (plain && (nic.max_bytes == 0 || claim.whole.length_bytes <= nic.max_bytes)) {
    const Locked lock(mutex_);
    if (plain_host_) return plain_host_;
  }
  const Key key{claim.whole.address, claim.whole.length_bytes, key_identity(claim)};
  if (claim.identity != 0) {
    const Locked lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      if (Shared shared = found->second.lock()) return shared;
    }
  }
  auto found = find_out(claim, nic, policy, files);
  if (plain && found && (*found)->way() == exports::Way::host_pages && !(*found)->has_files()) {
    const Locked lock(mutex_);
    plain_host_ = *found;
  }
  return found;
}

Result<ExportBook::Shared> ExportBook::find_out(const buffer::Claim& claim, const exports::NicAbilities& nic,
                                                const exports::Policy& policy, Reached::Files& files) {
  STRAIT_TRY(exports::Exported exported, exports::make_reachable(claim, claim.whole, nic, policy));
  auto shared = std::make_shared<Reached>(std::move(exported), claim, files, policy.refused);
  const Key key{claim.whole.address, claim.whole.length_bytes, key_identity(claim)};
  const Locked lock(mutex_);
  if (entries_.size() >= sweep_at_) {  // now and then, so that a hundred thousand regions do not cost their square
    std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * entries_.size() + 64;
  }
  entries_[key] = shared;
  return shared;
}

void ExportBook::forget(const buffer::Range& range) {
  const Locked lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    const auto [address, length_bytes, identity] = entry.first;
    return address < range.address + range.length_bytes && range.address < address + length_bytes;
  });
}

void ExportBook::registered(const Reached& how) {
  const bool first_way = how.way() == exports::Way::dmabuf;
  // Mostly there is nothing to take back, which is known without the lock.
  if (first_way && !some_last_.load(std::memory_order_acquire)) return;
  const Locked lock(mutex_);
  if (first_way) {
    last_.erase(how.claim().device->name);
  } else {
    last_[how.claim().device->name] = how.taken();
  }
  some_last_.store(!last_.empty(), std::memory_order_release);
}

std::optional<Taken> ExportBook::last_of(const std::string& device) const {
  const Locked lock(mutex_);
  const auto found = last_.find(device);
  if (found == last_.end()) return std::nullopt;
  return found->second;
}

}  // namespace strait::node
