// SPDX-License-Identifier: Apache-2.0
// The ordering leaves of the explorer: every one is a step of the machine in machine.hpp. order.hpp includes this file
// in the place of its own leaves when STRAIT_TARGET_MODEL names it. The strengths are those of a GPU, the weakest
// target: a peek and a store that hands over order nothing, the fences beside them do.
#pragma once

#include <cstdint>

#include "strait/device/space.hpp"

namespace explore {

enum class Leaf : std::uint8_t {
  order_stores_before_dma,
  order_before_doorbell,
  order_after_doorbell,
  order_cqe_reads,
  order_mark_reads,
  peek,
  store_record,
  store_doorbell,
  load_acquire,
  load_relaxed,
  store_relaxed,
  store_release,
  fetch_add,
  compare_exchange,
  compare_exchange_relaxed,
  store_segment,
  device_read,
  device_write,
  none,
};

void fence(Leaf leaf);
std::uint64_t load(Leaf leaf, const void* at, unsigned bytes);
void store(Leaf leaf, void* at, unsigned bytes, std::uint64_t value);
std::uint64_t add(void* at, std::uint64_t value);
bool exchange(Leaf leaf, void* at, std::uint64_t& expected, std::uint64_t desired);
void pause();
std::uint64_t clock();

}  // namespace explore

namespace strait::device {

inline void order_stores_before_dma(Reach) {
  explore::fence(explore::Leaf::order_stores_before_dma);
}
inline void order_before_doorbell(Reach) {
  explore::fence(explore::Leaf::order_before_doorbell);
}
inline void order_after_doorbell(Reach) {
  explore::fence(explore::Leaf::order_after_doorbell);
}
inline void order_cqe_reads() {
  explore::fence(explore::Leaf::order_cqe_reads);
}
inline void relax() {
  explore::pause();
}
inline std::uint64_t model_now_ns() {
  return explore::clock();
}

template <class T>
inline T peek(const T* p) {
  return static_cast<T>(explore::load(explore::Leaf::peek, p, sizeof(T)));
}
inline void store_record(std::uint32_t* p, std::uint32_t raw) {
  explore::store(explore::Leaf::store_record, p, 4, raw);
}
inline void store_doorbell(std::uint64_t* p, std::uint64_t raw) {
  explore::store(explore::Leaf::store_doorbell, p, 8, raw);
}

inline void store_mark_byte(std::uint8_t* p, std::uint8_t v) {
  explore::store(explore::Leaf::store_relaxed, p, 1, v);
}

// The model knows no scopes; that a queue shared by a whole GPU is not ordered for one block only is checked here.
template <Scope C>
inline std::uint64_t load_acquire(const std::uint64_t* p) {
  static_assert(C != Scope::block);
  return explore::load(explore::Leaf::load_acquire, p, 8);
}
template <Scope C>
inline std::uint64_t load_relaxed(const std::uint64_t* p) {
  static_assert(C != Scope::block);
  return explore::load(explore::Leaf::load_relaxed, p, 8);
}
template <Scope C>
inline void store_relaxed(std::uint64_t* p, std::uint64_t v) {
  static_assert(C != Scope::block);
  explore::store(explore::Leaf::store_relaxed, p, 8, v);
}
template <Scope C>
inline void store_release(std::uint64_t* p, std::uint64_t v) {
  static_assert(C != Scope::block);
  explore::store(explore::Leaf::store_release, p, 8, v);
}
template <Scope C>
inline std::uint64_t fetch_add(std::uint64_t* p, std::uint64_t v) {
  static_assert(C != Scope::block);
  return explore::add(p, v);
}
template <Scope C>
inline bool compare_exchange(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  static_assert(C != Scope::block);
  return explore::exchange(explore::Leaf::compare_exchange, p, expected, desired);
}
template <Scope C>
inline bool compare_exchange_relaxed(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  static_assert(C != Scope::block);
  return explore::exchange(explore::Leaf::compare_exchange_relaxed, p, expected, desired);
}

inline constexpr unsigned kMarkWindow = 2;
template <Scope C>
inline std::uint64_t load_mark(const std::uint64_t* p) {
  return load_relaxed<C>(p);
}
template <Scope C>
inline void order_mark_reads() {
  static_assert(C != Scope::block);
  explore::fence(explore::Leaf::order_mark_reads);
}

inline void store_segment(void* at, std::uint64_t low, std::uint64_t high) {
  explore::store(explore::Leaf::store_segment, at, 8, low);
  explore::store(explore::Leaf::store_segment, static_cast<std::uint8_t*>(at) + 8, 8, high);
}
// The caller's own memory, which nobody else looks at: no step of the machine.
inline std::uint64_t load_bytes(const std::uint8_t* p, std::uint32_t n) {
  std::uint64_t v = 0;
  for (std::uint32_t i = 0; i < 8 && i < n; ++i) v |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return v;
}

}  // namespace strait::device
