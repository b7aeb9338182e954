// SPDX-License-Identifier: Apache-2.0
#include "buffer/host_pages.hpp"

#include <algorithm>
#include <memory>

#include "sys/mapping.hpp"

namespace strait::buffer {

HostPages& HostPages::of_process(const std::string& kind) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<HostPages>>* const all =
      new std::map<std::string, std::unique_ptr<HostPages>>;  // never destroyed: a Node may close while statics go
  const std::lock_guard lock(mutex);
  auto& one = (*all)[kind];
  if (!one) one = std::make_unique<HostPages>();
  return *one;
}

HostPages::Way HostPages::way_of(Provider& provider) {
  return {&provider,
          [](void* self, std::uint32_t index, Range pages, std::uint32_t how) {
            return static_cast<Provider*>(self)->reach_host(index, pages, how);
          },
          [](void* self, Range pages) { return static_cast<Provider*>(self)->release_host(pages); },
          [](void* self, std::uint32_t index) { return static_cast<Provider*>(self)->devices()[index].name; }};
}

Result<HostPages::Hold> HostPages::reach(Provider& provider, std::uint32_t device, Range range, std::uint32_t flags) {
  return reach(way_of(provider), device, range, flags);
}

Result<HostPages::Hold> HostPages::reach(const Way& way, std::uint32_t device, Range range, std::uint32_t flags) {
  if (range.address == 0 || range.length_bytes == 0 || range.length_bytes > UINT64_MAX / 2 ||
      range.address > UINT64_MAX / 2)
    return fail(Code::invalid, "{} bytes at {:#x} are no host memory", range.length_bytes, range.address);
  const std::uint64_t page = sys::page_bytes();
  const std::uint64_t first = range.address / page * page;
  const std::uint64_t end = sys::round_up(range.end(), page);
  const std::lock_guard lock(mutex_);
  Hold hold;
  hold.pages_ = this;
  hold.way_ = way;
  Status taken = take_locked(hold, device, {first, end - first}, flags);
  if (!taken) {
    release_locked(hold);
    hold.pages_ = nullptr;
    return taken.error();
  }
  hold.device_address_ += range.address - first;
  return hold;
}

// Walks from the first page to the last: what is registered is counted, gaps are registered.
Status HostPages::take_locked(Hold& hold, std::uint32_t device, Range pages, std::uint32_t flags) {
  std::uint64_t at = pages.address;
  while (at < pages.end()) {
    auto after = table_.upper_bound(at);
    auto found = after == table_.begin() ? table_.end() : std::prev(after);
    if (found == table_.end() || at - found->first >= found->second.length_bytes) {
      const std::uint64_t until = after == table_.end() ? pages.end() : std::min(pages.end(), after->first);
      Registered made;
      made.length_bytes = until - at;
      made.flags = flags;
      STRAIT_TRY(made.device_address, hold.way_.reach(hold.way_.self, device, {at, made.length_bytes}, flags));
      ++counts_.registered;
      found = table_.emplace(at, made).first;
    } else if (found->second.flags != flags) {
      return fail(Code::unsupported, "the page at {:#x} is needed as {} memory and is registered as {} memory", at,
                  (flags & STRAIT_HOST_IO_MEMORY) != 0 ? "I/O" : "plain",
                  (flags & STRAIT_HOST_IO_MEMORY) != 0 ? "plain" : "I/O");
    }
    ++found->second.uses;
    hold.starts_.push_back(found->first);
    const std::uint64_t seen_at = found->second.device_address + (at - found->first);
    if (at == pages.address) {
      hold.device_address_ = seen_at;
    } else if (seen_at - hold.device_address_ != at - pages.address) {
      return fail(Code::unsupported, "{} sees the pages around {:#x} apart from each other, as they were registered",
                  hold.way_.name(hold.way_.self, device), at);
    }
    at = found->first + found->second.length_bytes;
  }
  return {};
}

void HostPages::release_locked(Hold& hold) {
  while (!hold.starts_.empty()) {
    const auto found = table_.find(hold.starts_.back());
    hold.starts_.pop_back();
    if (--found->second.uses != 0) continue;
    // A driver that will not is not asked again: the pages are its own from now on, as after a reset of the device.
    (void)hold.way_.release(hold.way_.self, {found->first, found->second.length_bytes});
    ++counts_.released;
    table_.erase(found);
  }
}

void HostPages::Hold::reset() {
  if (pages_ == nullptr) return;
  HostPages& pages = *std::exchange(pages_, nullptr);
  const std::lock_guard lock(pages.mutex_);
  pages.release_locked(*this);
}

HostPages::Counts HostPages::counts() const {
  const std::lock_guard lock(mutex_);
  Counts now = counts_;
  now.now = table_.size();
  return now;
}

}  // namespace strait::buffer
