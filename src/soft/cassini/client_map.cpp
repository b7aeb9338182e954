// SPDX-License-Identifier: Apache-2.0
// Memory descriptors: which memory, widened to which pages, at which IOVA of which address context.
#include <bit>
#include <cerrno>

#include "soft/cassini/address_context.hpp"
#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"
#include "soft/cassini/strict.hpp"

namespace strait::soft::cassini {
namespace {

constexpr int kSinglePtg = 0, kDefaultPtg = 1, kLastPtg = 3;
constexpr int kMaxTableShift = 15, kMinTableShift = 3;
// Above it a base page grows, so that tables stay small.
constexpr int kTableThreshold = kMaxTableShift - 1;
// Above it there is no mapping of any process.
constexpr std::uint64_t kUserEnd = std::uint64_t{1} << 47;

std::uint64_t down(std::uint64_t value, int shift) {
  return value >> shift << shift;
}
std::uint64_t up(std::uint64_t value, int shift) {
  return down(value + (std::uint64_t{1} << shift) - 1, shift);
}

void widen(Md& md, std::uint64_t address, std::uint64_t bytes, int shift) {
  md.va = down(address, shift);
  md.length = up(address + bytes, shift) - md.va;
}

// The largest of the sizes that the driver makes of an accelerator's pages.
int device_huge_shift(const Md& md) {
  const int aligned = std::countr_zero(md.va | std::bit_floor(md.length));
  return aligned >= 26 ? 26 : static_cast<int>(wire::kDefaultHugeShift);
}

}  // namespace

// Finds the memory and widens the range: md.memory, md.at, md.va, md.length and the shifts. Nothing is pinned yet.
int Client::place_memory(const wire::AtuMapCmd& c, const wire::MdHints& hints, Md& md, bool& tries_sizes) {
  if ((md.flags & wire::kMapDevice) != 0) {
    const bool by_file = hints.dmabuf_valid != 0 && hints.dmabuf_fd != wire::kNoDmabufFd;
    if (!by_file) md.page_shift = static_cast<int>(files_->device_page_shift(c.va));
    widen(md, c.va, c.len, md.page_shift);
    int failed = 0;
    if (by_file) {
      if (hints.dmabuf_offset + c.len < c.len) return -EINVAL;
      const std::uint64_t first = down(hints.dmabuf_offset, md.page_shift);
      const std::uint64_t end = up(hints.dmabuf_offset + c.len, md.page_shift);
      failed = files_->dmabuf(hints.dmabuf_fd, first, end - first, md.owned);
    } else {
      failed = files_->device_pages(md.va, md.length, md.owned);
    }
    if (failed != 0) return -failed;
    md.memory = md.owned.get();
    md.at = 0;
    md.huge_shift = device_huge_shift(md);
    return 0;
  }
  if (c.va >= kUserEnd) return -EFAULT;
  int align = md.page_shift;
  if (const auto huge = static_cast<int>(memory_.huge_shift(c.va, c.len)); huge != 0) {
    if (hints.page_shift != 0) {
      // Sizes to try out, for the administrator. Of memory in ordinary pages they say nothing.
      if (hints.huge_shift > huge) return -EINVAL;
      md.page_shift = hints.page_shift;
      md.huge_shift = hints.huge_shift;
      tries_sizes = true;
    } else {
      md.huge_shift = huge;
      if (huge - md.page_shift > kTableThreshold) md.page_shift = huge - kTableThreshold;
    }
    align = md.huge_shift;
    if (align < 0 || align > 40) return -EINVAL;
  }
  widen(md, c.va, c.len, align);
  md.memory = &memory_;
  md.at = md.va;
  return 0;
}

// What is checked when the pages are really wanted.
int Client::mirror(Md& md) {
  // A descriptor without pages: its addresses are kept, and nothing is behind them.
  if ((md.flags & wire::kMapAllocMd) != 0) {
    md.dead = true;
    return 0;
  }
  if ((md.flags & wire::kMapDevice) != 0) return 0;
  const bool writable = (md.flags & wire::kMapWrite) != 0;
  if ((md.flags & wire::kMapPin) != 0) {
    if (memory_.reaches(md.va, md.length, writable)) return 0;
    // Pages that may only be read are asked for once more, for reading alone, by clients that learn it this way.
    return writable && memory_.reaches(md.va, md.length, false) ? -EINVAL : -EFAULT;
  }
  // On demand: only who asks for all pages at once is told that some are not there.
  if ((md.flags & wire::kMapFault) != 0) return memory_.reaches(md.va, md.length, writable) ? 0 : -EINVAL;
  return 0;
}

int Client::atu_map(const wire::AtuMapCmd& c) {
  Lni* owner = lni(c.lni);
  if (owner == nullptr || c.len == 0) return -EINVAL;
  if (c.va + c.len < c.va) return -EOVERFLOW;
  wire::MdHints hints = c.hints;
  if (!who_.admin) {
    hints.page_shift = 0;
    hints.ptg_mode_valid = 0;
  }
  if ((c.flags & wire::kMapPin) != 0 && (c.flags & (wire::kMapFault | wire::kMapPrefetch)) != 0) return -EINVAL;
  if (hints.ptg_mode_valid != 0 && (hints.ptg_mode < 0 || hints.ptg_mode > kLastPtg)) return -EINVAL;
  if ((c.flags & wire::kMapAts) != 0) return -EOPNOTSUPP;
  // The first hardware takes no page faults.
  const bool faults = card_.settings().version != wire::CassiniVersion::v1_0;
  if ((c.flags & wire::kMapPin) == 0 && !faults) return -EOPNOTSUPP;

  Md* md = card_.mds.make();
  if (md == nullptr) return -ENOSPC;
  md->lni = owner;
  md->flags = c.flags | wire::kMapUserAddr;
  bool tries_sizes = false;
  int failed = place_memory(c, hints, *md, tries_sizes);
  const int ptg_mode = hints.ptg_mode_valid != 0 ? hints.ptg_mode : kDefaultPtg;
  if (failed == 0 && ptg_mode == kSinglePtg) md->huge_shift = md->page_shift;
  const int table = md->huge_shift - md->page_shift;
  if (failed == 0 && (table > kMaxTableShift || (ptg_mode != kSinglePtg && table < kMinTableShift))) failed = -EINVAL;
  AddressContext* context = nullptr;
  if (failed == 0) failed = context_for(card_, *owner, *md, ptg_mode, tries_sizes, context);
  // The context stays even if the pages are refused.
  if (failed == 0) failed = mirror(*md);
  if (failed != 0) {
    card_.mds.give_back(md->id);
    return failed;
  }
  context->by_iova[md->iova] = md;
  md->flags &= ~(wire::kMapFault | wire::kMapPrefetch);
  ++owner->refs;
  wire::AtuMapResp answer{};
  answer.id = md->id;
  answer.md.iova = md->iova;
  answer.md.va = md->va;
  answer.md.len = md->length;
  answer.md.lac = md->lac;
  answer.md.page_shift = md->page_shift;
  answer.md.huge_shift = md->huge_shift;
  answer.md.id = md->id;
  failed = respond(c.resp, answer);
  if (failed != 0) drop(*md);
  return failed;
}

int Client::atu_unmap(const wire::AtuUnmapCmd& c) {
  Md* md = own(card_.mds, c.id);
  if (md == nullptr) return -EINVAL;
  if (md->refs != 0) return -EBUSY;
  if (strict_) strict_->unmapping(card_, *md);
  drop(*md);
  return 0;
}

void Client::drop(Md& md) {
  md.lni->acs[md.lac]->remove(md);
  --md.lni->refs;
  card_.mds.give_back(md.id);
}

// Only one thing can be asked: that the pages of a part of a descriptor on demand are there now.
int Client::atu_update_md(const wire::AtuUpdateMdCmd& c) {
  const Md* md = own(card_.mds, c.id);
  if (md == nullptr) return -EINVAL;
  if (c.va + c.len < c.va) return -EOVERFLOW;
  if (c.va < md->va || c.va + c.len > md->va + md->length) return -EINVAL;
  if ((c.flags & wire::kMapFault) == 0 || (md->flags & wire::kMapPin) != 0) return -EINVAL;
  const std::uint64_t first = down(c.va, md->page_shift);
  const std::uint64_t bytes = up(c.va + c.len, md->page_shift) - first;
  if ((md->flags & wire::kMapDevice) != 0 || bytes == 0) return 0;
  return memory_.reaches(first, bytes, (md->flags & wire::kMapWrite) != 0) ? 0 : -EINVAL;
}

void Client::tear_down(std::uint32_t md) {
  if (Md* found = own(card_.mds, md); found != nullptr) found->dead = true;
}

}  // namespace strait::soft::cassini
