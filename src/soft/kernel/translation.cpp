// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/translation.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace strait::soft::kernel {
namespace {

Translation& self(void* context) {
  return *static_cast<Translation*>(context);
}

// Eight aligned bytes in one store: a CPU that polls a word never sees half of it.
void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t length_bytes) {
  if (length_bytes == 8 && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, 8);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), word, __ATOMIC_RELEASE);
    return;
  }
  std::memcpy(to, from, length_bytes);
}

template <class Word, class Change>
std::uint64_t change_atomically(std::byte* at, Change change) {
  auto* word = reinterpret_cast<Word*>(at);
  Word old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(word, &old, static_cast<Word>(change(old)), false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
  }
  return old;
}

}  // namespace

class Translation::TableChange {
 public:
  explicit TableChange(Translation& table) : table_(table) {
    ++table_.changes_wait_;
    table_.mutex_.lock();
    --table_.changes_wait_;
  }
  ~TableChange() { table_.mutex_.unlock(); }
  TableChange(const TableChange&) = delete;
  TableChange& operator=(const TableChange&) = delete;

 private:
  Translation& table_;
};

Translation::Translation(std::uint64_t iova, std::uint64_t length_bytes) : iova_(iova), length_bytes_(length_bytes) {
  port_.abi_version = STRAIT_PLUGIN_ABI;
  port_.struct_size = sizeof port_;
  port_.context = this;
  port_.read = &read;
  port_.write = &write;
  port_.compare_swap = &compare_swap;
  port_.fetch_add = &fetch_add;
  port_.order = [](void*) { std::atomic_thread_fence(std::memory_order_seq_cst); };
}

void Translation::set(const std::vector<Segment>& segments) {
  const TableChange change(*this);
  if (state_ == State::revoked) return;
  table_.clear();
  std::uint64_t at = 0;
  for (const Segment& each : segments) {
    table_.push_back({at, each});
    at += each.length_bytes;
  }
  state_ = State::ready;
}

void Translation::zap() {
  const TableChange change(*this);
  table_.clear();
  if (state_ == State::ready) state_ = State::away;
}

void Translation::revoke() {
  const TableChange change(*this);
  table_.clear();
  state_ = State::revoked;
}

bool Translation::revoked() const {
  const std::shared_lock lock(mutex_);
  return state_ == State::revoked;
}

std::byte* Translation::together() const {
  const std::shared_lock lock(mutex_);
  return state_ == State::ready && table_.size() == 1 ? table_.front().segment.at : nullptr;
}

void Translation::at_bytes(std::uint64_t bytes, std::function<void()> happens) {
  happens_ = std::move(happens);
  happens_at_ = bytes;
}

// use(bytes, n) for each piece of the range, in order.
template <class Use>
std::int32_t Translation::access_part(std::uint64_t offset, std::uint64_t length_bytes, Use use) {
  for (;;) {
    {
      while (changes_wait_.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
      const std::shared_lock lock(mutex_);
      if (state_ == State::revoked) return kRevoked;
      if (state_ == State::ready) {
        auto each = std::upper_bound(table_.begin(), table_.end(), offset,
                                     [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.first; });
        for (--each; length_bytes != 0; ++each) {
          const std::uint64_t skip = offset - each->first;
          const std::uint64_t n = std::min(length_bytes, each->segment.length_bytes - skip);
          use(each->segment.at + skip, n);
          offset += n;
          length_bytes -= n;
        }
        return 0;
      }
    }
    const int failed = fault_ ? fault_() : EFAULT;
    if (failed != 0) return failed;
  }
}

template <class Use>
std::int32_t Translation::access(std::uint64_t address, std::uint64_t length_bytes, bool divisible, Use use) {
  const std::uint64_t offset = address - iova_;
  if (address < iova_ || offset > length_bytes_ || length_bytes > length_bytes_ - offset) return EFAULT;
  if (length_bytes == 0) return 0;
  const std::uint64_t before = moved_.fetch_add(length_bytes, std::memory_order_relaxed);
  if (before > happens_at_ || happens_at_ - before >= length_bytes) return access_part(offset, length_bytes, use);
  // What was planned for this byte happens between two halves of one access.
  const std::uint64_t first = divisible ? happens_at_ - before : 0;
  if (first != 0) {
    if (const std::int32_t failed = access_part(offset, first, use)) return failed;
  }
  happens_();
  return access_part(offset + first, length_bytes - first, use);
}

std::int32_t Translation::read(void* context, std::uint64_t address, void* into, std::uint64_t length_bytes) {
  auto* to = static_cast<std::byte*>(into);
  return self(context).access(address, length_bytes, true, [&](const std::byte* from, std::uint64_t n) {
    std::memcpy(to, from, n);
    to += n;
  });
}

std::int32_t Translation::write(void* context, std::uint64_t address, const void* from, std::uint64_t length_bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  return self(context).access(address, length_bytes, true, [&](std::byte* to, std::uint64_t n) {
    copy_bytes(to, source, n);
    source += n;
  });
}

template <class Change>
std::int32_t Translation::update(std::uint64_t address, std::uint32_t width, std::uint64_t* old, Change change) {
  if (width != 4 && width != 8) return EINVAL;
  std::int32_t wrong = 0;
  const std::int32_t failed = access(address, width, false, [&](std::byte* at, std::uint64_t n) {
    if (n != width || reinterpret_cast<std::uintptr_t>(at) % width != 0) {
      wrong = EINVAL;
      return;
    }
    *old = width == 4 ? change_atomically<std::uint32_t>(at, change) : change_atomically<std::uint64_t>(at, change);
  });
  return failed != 0 ? failed : wrong;
}

std::int32_t Translation::compare_swap(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t compare,
                                       std::uint64_t compare_mask, std::uint64_t swap, std::uint64_t swap_mask,
                                       std::uint64_t* old) {
  const std::uint64_t word = width == 4 ? 0xffffffffu : ~std::uint64_t{0};
  return self(context).update(address, width, old, [&](std::uint64_t now) {
    if ((now & compare_mask & word) != (compare & compare_mask & word)) return now;
    return (now & ~swap_mask) | (swap & swap_mask);
  });
}

std::int32_t Translation::fetch_add(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t add,
                                    std::uint64_t boundary, std::uint64_t* old) {
  // Added field by field: nothing is carried past a boundary bit.
  return self(context).update(address, width, old, [&](std::uint64_t now) {
    return ((now & ~boundary) + (add & ~boundary)) ^ ((now ^ add) & boundary);
  });
}

}  // namespace strait::soft::kernel
