// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/address_context.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>

#include "soft/cassini/services.hpp"
#include "sys/process.hpp"

namespace strait::soft::cassini {
namespace {

constexpr unsigned kLacShift = 54;  // of 57 bits of IOVA

// Room for `bytes`: behind everything first, because that is quick, then between. 0: there is none.
std::uint64_t find_room(AddressContext& context, std::uint64_t bytes) {
  const std::uint64_t end = context.base + context.bytes;
  if (bytes > context.bytes) return 0;
  if (end - context.next >= bytes) {
    const std::uint64_t found = context.next;
    context.next += bytes;
    return found;
  }
  std::uint64_t at = context.base;
  for (const auto& [iova, md] : context.by_iova) {
    if (iova - at >= bytes) return at;
    at = iova + md->length;
  }
  return end - at >= bytes ? at : 0;
}

int make_context(Card& card, Lni& lni, const Md& md, int ptg_mode, AddressContext*& out) {
  if (const int failed = take(card, *lni.service, Resource::ac); failed != 0) return failed;
  std::uint32_t lac = 0;
  while (lac < lni.acs.size() && lni.acs[lac]) ++lac;
  std::uint32_t ac = 1;  // 0 is none, and the last one is the device's
  while (ac < wire::kNumAcs - 1 && card.acs.test(ac)) ++ac;
  if (lac == lni.acs.size() || ac == wire::kNumAcs - 1) {
    give_back(card, *lni.service, Resource::ac);
    return -ENOSPC;
  }
  auto context = std::make_unique<AddressContext>();
  context->ac = ac;
  context->lni = &lni;
  context->page_shift = md.page_shift;
  context->huge_shift = md.huge_shift;
  context->ptg_mode = ptg_mode;
  context->flag_class = flag_class(md.flags);
  context->bytes = std::max(kContextBytes, std::bit_ceil(md.length));
  // Random, so that a client that guesses or keeps an address of another map is found out. Never 0.
  std::uint32_t salt = 0;
  (void)sys::fill_random(std::as_writable_bytes(std::span(&salt, 1)));
  const std::uint64_t span = std::uint64_t{1} << kLacShift;
  std::uint64_t offset = ((std::uint64_t{salt} << 20) | kContextBytes) & ~(context->bytes - 1) & (span - 1);
  if (offset == 0 && context->bytes < span) offset = context->bytes;
  context->base = std::uint64_t{lac} << kLacShift | offset;
  context->next = context->base;
  card.acs.set(ac);
  out = context.get();
  lni.acs[lac] = std::move(context);
  return 0;
}

}  // namespace

int context_for(Card& card, Lni& lni, Md& md, int ptg_mode, bool alone, AddressContext*& out) {
  const auto place = [&](std::uint32_t lac) {
    AddressContext& context = *lni.acs[lac];
    md.iova = find_room(context, md.length);
    md.lac = static_cast<std::uint8_t>(lac);
    out = &context;
    return md.iova != 0;
  };
  for (std::uint32_t lac = 0; lac < lni.acs.size() && !alone; ++lac) {
    const AddressContext* context = lni.acs[lac].get();
    if (context != nullptr && context->lni == &lni && context->page_shift == md.page_shift &&
        context->huge_shift == md.huge_shift && context->ptg_mode == ptg_mode &&
        context->flag_class == flag_class(md.flags) && place(lac))
      return 0;
  }
  if (md.length > std::uint64_t{1} << (kLacShift - 1)) return -ENOSPC;
  if (const int failed = make_context(card, lni, md, ptg_mode, out); failed != 0) return failed;
  for (std::uint32_t lac = 0; lac < lni.acs.size(); ++lac) {
    if (lni.acs[lac].get() == out && place(lac)) return 0;
  }
  return -ENOSPC;
}

}  // namespace strait::soft::cassini
