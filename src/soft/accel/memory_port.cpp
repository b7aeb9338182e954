// SPDX-License-Identifier: Apache-2.0
#include "soft/accel/memory_port.hpp"

#include <atomic>
#include <cstring>

#include "soft/accel/accelerator.hpp"

namespace {

using strait::Code;
using strait::Result;
using strait::soft::accel::Accelerator;
using strait::soft::accel::Side;

constexpr std::int32_t code(Code value) {
  return static_cast<std::int32_t>(value);
}

// Device memory at `address`, or the code that says why not; nothing thrown crosses the C boundary.
template <class Use>
std::int32_t with_memory(void* context, std::uint64_t address, std::uint64_t length_bytes, Use use) noexcept {
  try {
    const Result<Side> memory = static_cast<Accelerator*>(context)->device_side(address, length_bytes);
    if (!memory) return code(memory.error().code);
    return use(memory->bytes);
  } catch (...) {
    return code(Code::limit);
  }
}

std::int32_t read(void* context, std::uint64_t address, void* into, std::uint64_t length_bytes) {
  return with_memory(context, address, length_bytes, [&](const std::byte* bytes) {
    std::memcpy(into, bytes, length_bytes);
    return 0;
  });
}

std::int32_t write(void* context, std::uint64_t address, const void* from, std::uint64_t length_bytes) {
  return with_memory(context, address, length_bytes, [&](std::byte* bytes) {
    std::memcpy(bytes, from, length_bytes);
    return 0;
  });
}

// Replaces the word by next(old) in one atomic step; next returns false to leave it as it is.
template <class Word, class Next>
std::int32_t update(std::byte* bytes, std::uint64_t* old, Next next) {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(bytes));
  Word seen = word.load(std::memory_order_acquire);
  Word wanted{};
  do {
    if (!next(seen, wanted)) break;
  } while (!word.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel, std::memory_order_acquire));
  *old = seen;
  return 0;
}

template <class Next>
std::int32_t atomic(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t* old, Next next) {
  if ((width != 4 && width != 8) || address % width != 0 || old == nullptr) return code(Code::invalid);
  return with_memory(context, address, width, [&](std::byte* bytes) {
    return width == 8 ? update<std::uint64_t>(bytes, old, next) : update<std::uint32_t>(bytes, old, next);
  });
}

std::int32_t compare_swap(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t compare,
                          std::uint64_t compare_mask, std::uint64_t swap, std::uint64_t swap_mask, std::uint64_t* old) {
  return atomic(context, address, width, old, [&]<class Word>(Word seen, Word& wanted) {
    if ((seen & static_cast<Word>(compare_mask)) != static_cast<Word>(compare & compare_mask)) return false;
    wanted = static_cast<Word>((seen & ~swap_mask) | (swap & swap_mask));
    return true;
  });
}

// Adds the fields between the boundary bits each on their own: without the carry out of a field's top bit.
template <class Word>
Word add_in_fields(Word a, Word b, Word boundary) {
  const Word inner = static_cast<Word>((a & ~boundary) + (b & ~boundary));  // cannot carry past a boundary bit
  return static_cast<Word>(inner ^ ((a ^ b) & boundary));
}

std::int32_t fetch_add(void* context, std::uint64_t address, std::uint32_t width, std::uint64_t add,
                       std::uint64_t boundary, std::uint64_t* old) {
  return atomic(context, address, width, old, [&]<class Word>(Word seen, Word& wanted) {
    wanted = add_in_fields<Word>(seen, static_cast<Word>(add), static_cast<Word>(boundary));
    return true;
  });
}

void order(void*) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace

extern "C" int32_t strait_soft_memory_port(strait_provider* provider, strait_memory_port* out) {
  if (provider == nullptr || out == nullptr) return code(Code::invalid);
  strait_memory_port port{};  // its reads and writes are loads and stores: there is nothing to begin and wait for
  port.abi_version = STRAIT_PLUGIN_ABI;
  port.struct_size = sizeof port;
  port.context = provider;
  port.read = read;
  port.write = write;
  port.compare_swap = compare_swap;
  port.fetch_add = fetch_add;
  port.order = order;
  *out = port;
  return 0;
}
