// SPDX-License-Identifier: Apache-2.0
#include "buffer/opened_handles.hpp"

namespace strait::buffer {

Result<std::uint64_t> OpenedHandles::open(const Key& key, std::uint64_t offset, std::uint64_t length_bytes,
                                          const std::function<Result<Opened>()>& open) {
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    Key from = key;
    from.identity = 0;
    from.device = 0;
    for (auto entry = entries_.lower_bound(from); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (entry->first.peer != key.peer || entry->first.base != key.base) break;
      if (entry->second.uses == 0 && entry->first.identity != key.identity) drop_locked(entry);
      entry = next;
    }
    STRAIT_TRY(Opened opened, open());
    ++counts_.opens;
    found = entries_.emplace(key, Entry{std::move(opened)}).first;
  } else {
    ++counts_.hits;
    if (found->second.uses == 0) idle_.erase(found->second.idle);
  }
  Entry& entry = found->second;
  const std::uint64_t size = entry.opened.length_bytes;
  if (offset >= size || length_bytes > size - offset) {
    if (entry.uses == 0) entry.idle = idle_.insert(idle_.end(), key);
    trim_locked();
    return fail(Code::invalid, "a memory handle names {} bytes at offset {} of an allocation of {}", length_bytes,
                offset, size);
  }
  ++entry.uses;
  const std::uint64_t address = entry.opened.base + offset;
  given_.emplace(address, key);
  return address;
}

bool OpenedHandles::close(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto given = given_.find(address);
  if (given == given_.end()) return false;
  const Key key = given->second;
  given_.erase(given);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  if (--found->second.uses == 0) found->second.idle = idle_.insert(idle_.end(), key);
  trim_locked();
  return true;
}

void OpenedHandles::trim_locked() {
  while (idle_.size() > idle_most_) drop_locked(entries_.find(idle_.front()));
}

void OpenedHandles::drop_locked(Entries::iterator entry) {
  if (entry->second.uses == 0) idle_.erase(entry->second.idle);
  entry->second.opened.close();
  ++counts_.closes;
  entries_.erase(entry);
}

void OpenedHandles::clear() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) {
    entry.opened.close();
    ++counts_.closes;
  }
  entries_.clear();
  idle_.clear();
  given_.clear();
}

void OpenedHandles::forget() {
  entries_.clear();
  idle_.clear();
  given_.clear();
}

OpenedHandles::Counts OpenedHandles::counts() const {
  const std::lock_guard lock(mutex_);
  Counts now = counts_;
  now.open_now = entries_.size();
  return now;
}

}  // namespace strait::buffer
