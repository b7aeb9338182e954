// SPDX-License-Identifier: Apache-2.0
// Ordering between this processor and a device that reads and writes our memory: one named leaf per purpose and target.
//
// Host leaves pair every barrier with an atomic access of the word that hands over (record, doorbell, op_own), because
// thread sanitizers follow atomics and not fences. On a GPU a fence costs as much as the way it has to cover: towards
// the NIC its width follows from where the memory lies (Reach), among posters from who they are (Scope).
#pragma once

#include <cstdint>

#include "strait/device/space.hpp"

namespace strait::device {

#if defined(STRAIT_TARGET_MODEL)

// The explorer in tests/device/explore brings leaves of its own that play a machine with store buffers.
}  // namespace strait::device
#include STRAIT_TARGET_MODEL
namespace strait::device {

#elif defined(STRAIT_TARGET_CUDA)

// A release alone where the instruction set has one: acquire would empty the first-level cache at every doorbell.
STRAIT_HD_INLINE void release_fence(Reach reach) {
#if defined(STRAIT_ONE_SIDED_FENCES)
  if (reach == Reach::gpu)
    asm volatile("fence.release.gpu;" ::: "memory");
  else
    asm volatile("fence.release.sys;" ::: "memory");
#else
  if (reach == Reach::gpu)
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  else
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}
// The NIC may fetch a WQE as soon as it sees the record: all WQE bytes must be visible to it first.
STRAIT_HD_INLINE void order_stores_before_dma(Reach reach) {
  release_fence(reach);
}
// The NIC may read the record when the doorbell arrives.
STRAIT_HD_INLINE void order_before_doorbell(Reach reach) {
  release_fence(reach);
}
// A GPU has no write-combining buffer to flush; the compiler must still not sink the store.
STRAIT_HD_INLINE void order_after_doorbell(Reach) {
  asm volatile("" ::: "memory");
}
// The rest of a CQE must not be read before the word that handed it over, nor what the operation wrote.
STRAIT_HD_INLINE void order_cqe_reads() {
#if defined(STRAIT_ONE_SIDED_FENCES)
  asm volatile("fence.acquire.sys;" ::: "memory");
#else
  asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

STRAIT_HD_INLINE void relax() {
  asm volatile("nanosleep.u32 20;");
}

// A look at a word the device writes. Nothing is ordered by it: order_cqe_reads() follows once it says yes.
STRAIT_HD_INLINE std::uint8_t peek(const std::uint8_t* p) {
  std::uint32_t v;
  asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return static_cast<std::uint8_t>(v);
}
STRAIT_HD_INLINE std::uint32_t peek(const std::uint32_t* p) {
  std::uint32_t v;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
STRAIT_HD_INLINE std::uint64_t peek(const std::uint64_t* p) {
  std::uint64_t v;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
// The words that hand over to the device; the fence before them is the caller's.
STRAIT_HD_INLINE void store_record(std::uint32_t* p, std::uint32_t raw) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(p), "r"(raw) : "memory");
}
STRAIT_HD_INLINE void store_doorbell(std::uint64_t* p, std::uint64_t raw) {
  asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(p), "l"(raw) : "memory");
}
// A byte of a word that the device writes whole: a mark that says whether it has since.
STRAIT_HD_INLINE void store_mark_byte(std::uint8_t* p, std::uint8_t v) {
  asm volatile("st.relaxed.sys.u8 [%0], %1;" ::"l"(p), "r"(static_cast<std::uint32_t>(v)) : "memory");
}

// Counters that posters share among themselves: the scope is that of the posters.
#define STRAIT_BY_SCOPE(before, after, ...)                   \
  if constexpr (C == Scope::block)                            \
    asm volatile(before ".cta" after __VA_ARGS__ : "memory"); \
  else if constexpr (C == Scope::gpu)                         \
    asm volatile(before ".gpu" after __VA_ARGS__ : "memory"); \
  else                                                        \
    asm volatile(before ".sys" after __VA_ARGS__ : "memory")
template <Scope C>
STRAIT_HD_INLINE std::uint64_t load_acquire(const std::uint64_t* p) {
  std::uint64_t v;
  STRAIT_BY_SCOPE("ld.acquire", ".u64 %0, [%1];", : "=l"(v) : "l"(p));
  return v;
}
template <Scope C>
STRAIT_HD_INLINE std::uint64_t load_relaxed(const std::uint64_t* p) {
  std::uint64_t v;
  STRAIT_BY_SCOPE("ld.relaxed", ".u64 %0, [%1];", : "=l"(v) : "l"(p));
  return v;
}
template <Scope C>
STRAIT_HD_INLINE void store_relaxed(std::uint64_t* p, std::uint64_t v) {
  STRAIT_BY_SCOPE("st.relaxed", ".u64 [%0], %1;", ::"l"(p), "l"(v));
}
template <Scope C>
STRAIT_HD_INLINE void store_release(std::uint64_t* p, std::uint64_t v) {
  STRAIT_BY_SCOPE("st.release", ".u64 [%0], %1;", ::"l"(p), "l"(v));
}
template <Scope C>
STRAIT_HD_INLINE std::uint64_t fetch_add(std::uint64_t* p, std::uint64_t v) {
  std::uint64_t old;
  STRAIT_BY_SCOPE("atom.acq_rel", ".add.u64 %0, [%1], %2;", : "=l"(old) : "l"(p), "l"(v));
  return old;
}
// Counts, and orders nothing.
template <Scope C>
STRAIT_HD_INLINE void add_relaxed(std::uint64_t* p, std::uint64_t v) {
  STRAIT_BY_SCOPE("red.relaxed", ".add.u64 [%0], %1;", ::"l"(p), "l"(v));
}
// On failure `expected` becomes what was found.
template <Scope C>
STRAIT_HD_INLINE bool compare_exchange(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  std::uint64_t old;
  STRAIT_BY_SCOPE("atom.acq_rel", ".cas.b64 %0, [%1], %2, %3;", : "=l"(old) : "l"(p), "l"(expected), "l"(desired));
  const bool done = old == expected;
  expected = old;
  return done;
}
// Where only the number matters: with acq_rel the fences around it would cost more than the rest of a post.
template <Scope C>
STRAIT_HD_INLINE bool compare_exchange_relaxed(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  std::uint64_t old;
  STRAIT_BY_SCOPE("atom.relaxed", ".cas.b64 %0, [%1], %2, %3;", : "=l"(old) : "l"(p), "l"(expected), "l"(desired));
  const bool done = old == expected;
  expected = old;
  return done;
}
// Behind the marks that count: what their posters wrote is read after it.
template <Scope C>
STRAIT_HD_INLINE void order_mark_reads() {
  if constexpr (C == Scope::block)
    asm volatile("fence.acq_rel.cta;" ::: "memory");
  else
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
#undef STRAIT_BY_SCOPE

// One store for a whole 16-byte segment; byte stores across PCIe would cost a transaction each.
STRAIT_HD_INLINE void store_segment(void* at, std::uint64_t low, std::uint64_t high) {
  asm volatile("st.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(low), "l"(high) : "memory");
}

#elif defined(STRAIT_TARGET_AMD)

// The compiler's memory model makes the instructions: no store is written in assembly, because a store that the
// compiler does not know of is none that its fences wait for.
//
// System-wide whatever the reach: the second-level cache may hold what it was given until it is told to write it back,
// and only PCIe requests that are configured to be coherent look there.
STRAIT_HD_INLINE void order_stores_before_dma(Reach) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
}
STRAIT_HD_INLINE void order_before_doorbell(Reach) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
}
// A GPU has no write-combining buffer to flush; the compiler must still not sink the store.
STRAIT_HD_INLINE void order_after_doorbell(Reach) {
  asm volatile("" ::: "memory");
}
// The rest of a CQE must not be read before the word that handed it over, nor what the operation wrote.
STRAIT_HD_INLINE void order_cqe_reads() {
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}

STRAIT_HD_INLINE void relax() {
  __builtin_amdgcn_s_sleep(1);  // 64 cycles
}

// A look at a word the device writes. Nothing is ordered by it: order_cqe_reads() follows once it says yes.
template <class T>
STRAIT_HD_INLINE T peek(const T* p) {
  return __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
// The words that hand over to the device; the fence before them is the caller's.
STRAIT_HD_INLINE void store_record(std::uint32_t* p, std::uint32_t raw) {
  __hip_atomic_store(p, raw, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
STRAIT_HD_INLINE void store_doorbell(std::uint64_t* p, std::uint64_t raw) {
  __hip_atomic_store(p, raw, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
STRAIT_HD_INLINE void store_mark_byte(std::uint8_t* p, std::uint8_t v) {
  __hip_atomic_store(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

// Counters that posters share among themselves: the scope is that of the posters.
template <Scope C>
inline constexpr int kHipScope = C == Scope::block ? __HIP_MEMORY_SCOPE_WORKGROUP
                                 : C == Scope::gpu ? __HIP_MEMORY_SCOPE_AGENT
                                                   : __HIP_MEMORY_SCOPE_SYSTEM;
template <Scope C>
STRAIT_HD_INLINE std::uint64_t load_acquire(const std::uint64_t* p) {
  return __hip_atomic_load(p, __ATOMIC_ACQUIRE, kHipScope<C>);
}
template <Scope C>
STRAIT_HD_INLINE std::uint64_t load_relaxed(const std::uint64_t* p) {
  return __hip_atomic_load(p, __ATOMIC_RELAXED, kHipScope<C>);
}
template <Scope C>
STRAIT_HD_INLINE void store_relaxed(std::uint64_t* p, std::uint64_t v) {
  __hip_atomic_store(p, v, __ATOMIC_RELAXED, kHipScope<C>);
}
template <Scope C>
STRAIT_HD_INLINE void store_release(std::uint64_t* p, std::uint64_t v) {
  __hip_atomic_store(p, v, __ATOMIC_RELEASE, kHipScope<C>);
}
template <Scope C>
STRAIT_HD_INLINE std::uint64_t fetch_add(std::uint64_t* p, std::uint64_t v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_ACQ_REL, kHipScope<C>);
}
template <Scope C>
STRAIT_HD_INLINE void add_relaxed(std::uint64_t* p, std::uint64_t v) {
  (void)__hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, kHipScope<C>);
}
// On failure `expected` becomes what was found.
template <Scope C>
STRAIT_HD_INLINE bool compare_exchange(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  return __hip_atomic_compare_exchange_strong(p, &expected, desired, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE, kHipScope<C>);
}
template <Scope C>
STRAIT_HD_INLINE bool compare_exchange_relaxed(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  return __hip_atomic_compare_exchange_strong(p, &expected, desired, __ATOMIC_RELAXED, __ATOMIC_RELAXED, kHipScope<C>);
}
template <Scope C>
STRAIT_HD_INLINE void order_mark_reads() {
  if constexpr (C == Scope::block)
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  else
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}

// One store for a whole 16-byte segment; byte stores across PCIe would cost a transaction each.
STRAIT_HD_INLINE void store_segment(void* at, std::uint64_t low, std::uint64_t high) {
  typedef std::uint64_t Segment __attribute__((ext_vector_type(2), may_alias));
  *static_cast<Segment*>(at) = Segment{low, high};
}

#else  // hosts

#if defined(STRAIT_TARGET_X86)
// x86 keeps stores to ordinary memory in order; only the compiler could move them.
STRAIT_HD_INLINE void order_stores_before_dma(Reach) {
  asm volatile("" ::: "memory");
}
// The doorbell page is usually write-combining, and such a store may overtake the record's. One to ordinary memory does
// not, and a fence would wait for whatever else the program has stored.
STRAIT_HD_INLINE void order_before_doorbell(Reach reach) {
  if (reach == Reach::cpu)
    asm volatile("" ::: "memory");
  else
    asm volatile("sfence" ::: "memory");
}
// Pushes the doorbell out of the write-combining buffer now and not when the buffer happens to be evicted.
STRAIT_HD_INLINE void order_after_doorbell(Reach reach) {
  if (reach == Reach::cpu)
    asm volatile("" ::: "memory");
  else
    asm volatile("sfence" ::: "memory");
}
// Loads from ordinary memory stay in order on x86. rdma-core issues lfence here for the sake of write-combining memory,
// where no queue of ours lies; the kernel's dma_rmb() is a compiler barrier too.
STRAIT_HD_INLINE void order_cqe_reads() {
  asm volatile("" ::: "memory");
}
STRAIT_HD_INLINE void relax() {
  asm volatile("pause");
}
#elif defined(STRAIT_TARGET_ARM64)
STRAIT_HD_INLINE void order_stores_before_dma(Reach) {
  asm volatile("dmb oshst" ::: "memory");
}
// Another processor sees the record before the doorbell by the order in the store itself.
STRAIT_HD_INLINE void order_before_doorbell(Reach reach) {
  if (reach != Reach::cpu) asm volatile("dsb st" ::: "memory");
}
STRAIT_HD_INLINE void order_after_doorbell(Reach reach) {
  if (reach != Reach::cpu) asm volatile("dsb st" ::: "memory");
}
STRAIT_HD_INLINE void order_cqe_reads() {
  asm volatile("dmb oshld" ::: "memory");
}
STRAIT_HD_INLINE void relax() {
  asm volatile("yield");
}
#else
#error "strait/device/order.hpp: no barriers for this host"
#endif

// Every look and every store that hands over is atomic with its order in it: thread sanitizers see that and no fence.
template <class T>
STRAIT_HD_INLINE T peek(const T* p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
STRAIT_HD_INLINE void store_record(std::uint32_t* p, std::uint32_t raw) {
  __atomic_store_n(p, raw, __ATOMIC_RELEASE);
}
STRAIT_HD_INLINE void store_doorbell(std::uint64_t* p, std::uint64_t raw) {
  __atomic_store_n(p, raw, __ATOMIC_RELEASE);
}
STRAIT_HD_INLINE void store_mark_byte(std::uint8_t* p, std::uint8_t v) {
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

template <Scope>
STRAIT_HD_INLINE std::uint64_t load_acquire(const std::uint64_t* p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <Scope>
STRAIT_HD_INLINE std::uint64_t load_relaxed(const std::uint64_t* p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
template <Scope>
STRAIT_HD_INLINE void store_relaxed(std::uint64_t* p, std::uint64_t v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
}
template <Scope>
STRAIT_HD_INLINE void store_release(std::uint64_t* p, std::uint64_t v) {
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
template <Scope>
STRAIT_HD_INLINE std::uint64_t fetch_add(std::uint64_t* p, std::uint64_t v) {
  return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
}
template <Scope>
STRAIT_HD_INLINE void add_relaxed(std::uint64_t* p, std::uint64_t v) {
  (void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}
// On failure `expected` becomes what was found.
template <Scope>
STRAIT_HD_INLINE bool compare_exchange(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
template <Scope>
STRAIT_HD_INLINE bool compare_exchange_relaxed(std::uint64_t* p, std::uint64_t& expected, std::uint64_t desired) {
  return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
// Marks of other posters, one at a time: a look costs little here.
inline constexpr unsigned kMarkWindow = 1;
template <Scope C>
STRAIT_HD_INLINE std::uint64_t load_mark(const std::uint64_t* p) {
  return load_acquire<C>(p);
}
template <Scope>
STRAIT_HD_INLINE void order_mark_reads() {}
STRAIT_HD_INLINE void store_segment(void* at, std::uint64_t low, std::uint64_t high) {
  __builtin_memcpy(at, &low, 8);
  __builtin_memcpy(static_cast<std::uint8_t*>(at) + 8, &high, 8);
}
// Up to 8 bytes from any alignment, zero-filled.
STRAIT_HD_INLINE std::uint64_t load_bytes(const std::uint8_t* p, std::uint32_t n) {
  std::uint64_t v = 0;
  if (n >= 8) {
    __builtin_memcpy(&v, p, 8);
    return v;
  }
  // Three tests and not memcpy(n): a library call for at most seven bytes would be most of the work.
  std::uint32_t at = 0;
  if (n & 4) {
    std::uint32_t part;
    __builtin_memcpy(&part, p, 4);
    v = part;
    at = 4;
  }
  if (n & 2) {
    std::uint16_t part;
    __builtin_memcpy(&part, p + at, 2);
    v |= static_cast<std::uint64_t>(part) << (8 * at);
    at += 2;
  }
  if (n & 1) v |= static_cast<std::uint64_t>(p[at]) << (8 * at);
  return v;
}

#endif

#if defined(STRAIT_TARGET_CUDA) || defined(STRAIT_TARGET_AMD)
// Looks at marks that other posters leave, several under way at once; one fence behind those that count.
inline constexpr unsigned kMarkWindow = 8;
template <Scope C>
STRAIT_HD_INLINE std::uint64_t load_mark(const std::uint64_t* p) {
  return load_relaxed<C>(p);
}

// Up to 8 bytes from any alignment, zero-filled.
STRAIT_HD_INLINE std::uint64_t load_bytes(const std::uint8_t* p, std::uint32_t n) {
  std::uint64_t v = 0;
  for (std::uint32_t i = 0; i < 8; ++i)
    if (i < n) v |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return v;
}
#endif

}  // namespace strait::device
