// SPDX-License-Identifier: Apache-2.0
#include "sys/copy.hpp"

#include <cstdint>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

}  // namespace strait::sys
