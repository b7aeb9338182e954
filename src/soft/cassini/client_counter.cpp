// SPDX-License-Identifier: Apache-2.0
// Counting events: their doorbell page and where they are written back.
#include <cerrno>

#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"
#include "soft/cassini/strict.hpp"
#include "sys/clock.hpp"
#include "sys/pause.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::uint64_t kWordBytes = 8;
constexpr std::int64_t kDrainNs = 1'000'000;

}  // namespace

// The client's own memory if it can be pinned, else an accelerator's, found by its address. There is no dma-buf here.
int Client::place_write_back(std::uint64_t address, Place& place, std::unique_ptr<UserMemory>& owned) {
  // The device is told the address without its lowest three bits.
  address &= ~(kWordBytes - 1);
  if (memory_.reaches(address, kWordBytes, true)) {
    place = {.memory = &memory_, .address = address, .direct = memory_.direct(address, kWordBytes)};
    return 0;
  }
  const std::uint64_t page = std::uint64_t{1} << files_->device_page_shift(address);
  const std::uint64_t first = address & ~(page - 1);
  if (const int failed = files_->device_pages(first, page, owned); failed != 0) return -failed;
  const std::uint64_t offset = address - first;
  place = {.memory = owned.get(), .address = offset, .direct = owned->direct(offset, kWordBytes)};
  return 0;
}

int Client::ct_alloc(const wire::CtAllocCmd& c) {
  Lni* owner = lni(c.lni);
  if (owner == nullptr || c.wb % kWordBytes != 0) return -EINVAL;
  int failed = take(card_, *owner->service, Resource::ct);
  if (failed != 0) return failed;
  Place place;
  std::unique_ptr<UserMemory> owned;
  if (c.wb != 0) failed = place_write_back(c.wb, place, owned);
  Ct* ct = failed == 0 ? card_.counters.make() : nullptr;
  if (ct == nullptr) {
    give_back(card_, *owner->service, Resource::ct);
    return failed != 0 ? failed : -ENOSPC;
  }
  ct->lni = owner;
  ct->write_back = place;
  ct->owned = std::move(owned);
  ++owner->refs;
  wire::CtAllocResp answer{};
  answer.ctn = ct->id;
  Cookie* doorbell = make_cookie(Page::doorbell, wire::kMappedPageBytes, ct->mapped, answer.doorbell);
  failed = doorbell == nullptr ? -ENOMEM : 0;
  if (doorbell != nullptr) ct->doorbell_page = reinterpret_cast<std::uint64_t*>(doorbell->mapping.data());
  if (failed == 0) card_.started(*ct);
  if (failed == 0) failed = respond(c.resp, answer);
  if (failed != 0) drop(*ct);
  return failed;
}

int Client::ct_free(const wire::CtFreeCmd& c) {
  Ct* ct = own(card_.counters, c.ctn);
  if (ct == nullptr) return -EINVAL;
  if (ct->mapped != 0) return -EBUSY;
  if (strict_) strict_->freeing(*ct);
  drop(*ct);
  return 0;
}

void Client::drop(Ct& ct) {
  card_.stopping(ct);
  drop_cookies(ct.mapped);
  --ct.lni->refs;
  ct.lni->retired_cts.push_back(ct.id);
  card_.counters.retire(ct.id);
}

// The new word is pinned, write-backs are stopped and drained, the new address is set, the old word is let go.
int Client::ct_wb_update(const wire::CtWbUpdateCmd& c) {
  Ct* ct = own(card_.counters, c.ctn);
  if (ct == nullptr || c.wb == 0) return -EINVAL;
  Place place;
  std::unique_ptr<UserMemory> owned;
  if (const int failed = place_write_back(c.wb, place, owned); failed != 0) return failed;
  if (ct->write_back.valid()) {
    // The engine writes back before it does anything else, so that only a fault keeps one under way.
    const sys::Deadline deadline = sys::Deadline::after_ns(kDrainNs);
    for (std::uint32_t turn = 0; card_.write_backs_hang; ++turn) {
      if (deadline.passed()) return -ETIMEDOUT;
      sys::pause_turn(turn);
    }
  }
  ct->write_back = place;
  ct->owned = std::move(owned);
  return 0;
}

}  // namespace strait::soft::cassini
