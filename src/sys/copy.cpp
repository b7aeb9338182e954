// SPDX-License-Identifier: Apache-2.0
#include "sys/copy.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "sys/clock.hpp"

namespace strait::sys {

#ifdef __SSE2__

void copy_past_cache(std::byte* to, const std::byte* from, std::size_t n_bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kVectors = kLine / sizeof(__m128i);
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (n_bytes < head + kLine) {
    std::memcpy(to, from, n_bytes);
    return;
  }
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + kLine <= n_bytes; at += kLine) {  // whole lines: a part of one would go out as several writes
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const line = reinterpret_cast<__m128i*>(to + at);
    __m128i held[kVectors];
    for (std::size_t i = 0; i < kVectors; ++i) held[i] = _mm_loadu_si128(source + i);
    for (std::size_t i = 0; i < kVectors; ++i) _mm_stream_si128(line + i, held[i]);
  }
  std::memcpy(to + at, from + at, n_bytes - at);
  _mm_sfence();  // such stores are ordered by nothing else
}

#else

void copy_past_cache(std::byte* to, const std::byte* from, std::size_t n_bytes) {
  std::memcpy(to, from, n_bytes);
}

#endif

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::uint32_t kPiecesPerTrial = 64;  // of the slower way, for one of what may have become the quicker

// What a piece took by either way, averaged. Per process by nature: it is about the machine. Several threads may write
// over each other; all that can come of it is a piece copied by the slower way.
struct Tempo {
  std::atomic<std::uint32_t> by_memcpy_ns{0};
  std::atomic<std::uint32_t> past_cache_ns{0};
  std::atomic<std::uint32_t> pieces{0};
};
Tempo tempo;

void copy_piece(std::byte* to, const std::byte* from) {
  const std::uint32_t by_memcpy = tempo.by_memcpy_ns.load(std::memory_order_relaxed);
  const std::uint32_t past_cache = tempo.past_cache_ns.load(std::memory_order_relaxed);
  const bool trial = tempo.pieces.fetch_add(1, std::memory_order_relaxed) % kPiecesPerTrial == 0;
  const bool past = (past_cache <= by_memcpy) != trial;
  const std::int64_t before = now_ns();
  if (past) {
    copy_past_cache(to, from, kPieceBytes);
  } else {
    std::memcpy(to, from, kPieceBytes);
  }
  const auto took = static_cast<std::uint32_t>(std::clamp<std::int64_t>(now_ns() - before, 1, UINT32_MAX / 8));
  std::atomic<std::uint32_t>& average = past ? tempo.past_cache_ns : tempo.by_memcpy_ns;
  const std::uint32_t so_far = past ? past_cache : by_memcpy;
  average.store(so_far == 0 ? took : (so_far * 7 + took) / 8, std::memory_order_relaxed);
}

}  // namespace

void copy_large(std::byte* to, const std::byte* from, std::size_t n_bytes) {
  std::size_t at = 0;
  for (; n_bytes - at >= kPieceBytes; at += kPieceBytes) copy_piece(to + at, from + at);
  std::memcpy(to + at, from + at, n_bytes - at);
}

}  // namespace strait::sys
