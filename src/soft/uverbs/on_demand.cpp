// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/on_demand.hpp"

#include <atomic>
#include <cerrno>

#include "soft/nic/memory.hpp"

namespace strait::soft::uverbs {

namespace {

const OnDemand& self(void* context) {
  return *static_cast<const OnDemand*>(context);
}

// Atomics are not done through the system: the memory is looked at, and then touched.
template <class Word, class Change>
std::uint64_t change_word(Word* word, Change change) {
  Word old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(word, &old, change(old), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return old;
}

}  // namespace

OnDemand::OnDemand(const UserMemory& memory, std::uint64_t offset) : memory_(memory), offset_(offset) {
  port_.abi_version = STRAIT_PLUGIN_ABI;
  port_.struct_size = sizeof port_;
  port_.context = this;
  port_.read = &read;
  port_.write = &write;
  port_.compare_swap = &compare_swap;
  port_.fetch_add = &fetch_add;
  port_.order = [](void*) { std::atomic_thread_fence(std::memory_order_seq_cst); };
}

int OnDemand::read(void* context, std::uint64_t address, void* into, std::uint64_t length_bytes) {
  const OnDemand& me = self(context);
  return me.memory_.copy_in(address + me.offset_, into, length_bytes) ? 0 : EFAULT;
}

int OnDemand::write(void* context, std::uint64_t address, const void* from, std::uint64_t length_bytes) {
  const OnDemand& me = self(context);
  return me.memory_.copy_out(address + me.offset_, from, length_bytes) ? 0 : EFAULT;
}

template <class Word>
Word* OnDemand::word_at(std::uint64_t address) const {
  if ((address + offset_) % sizeof(Word) != 0) return nullptr;
  return reinterpret_cast<Word*>(memory_.lasting(address + offset_, sizeof(Word), true));
}

int OnDemand::compare_swap(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t compare,
                           std::uint64_t compare_mask, std::uint64_t swap, std::uint64_t swap_mask,
                           std::uint64_t* old) {
  const auto run = [&](auto* word) {
    if (word == nullptr) return EFAULT;
    using Word = std::remove_pointer_t<decltype(word)>;
    *old = change_word(word, [&](Word now) {
      if ((now & compare_mask) != (compare & compare_mask)) return now;
      return static_cast<Word>((now & ~swap_mask) | (swap & swap_mask));
    });
    return 0;
  };
  const OnDemand& me = self(context);
  return width == 4 ? run(me.word_at<std::uint32_t>(address)) : run(me.word_at<std::uint64_t>(address));
}

int OnDemand::fetch_add(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t add,
                        std::uint64_t boundary, std::uint64_t* old) {
  const auto run = [&](auto* word) {
    if (word == nullptr) return EFAULT;
    using Word = std::remove_pointer_t<decltype(word)>;
    *old = change_word(word, [&](Word now) { return static_cast<Word>(nic::add_fields(now, add, boundary)); });
    return 0;
  };
  const OnDemand& me = self(context);
  return width == 4 ? run(me.word_at<std::uint32_t>(address)) : run(me.word_at<std::uint64_t>(address));
}

}  // namespace strait::soft::uverbs
