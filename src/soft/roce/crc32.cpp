// SPDX-License-Identifier: Apache-2.0
// CRC-32 three ways. The table is the reference that always works; the others are picked when the CPU has them.
//
// Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009): 128 bits of
// the message that stand n bits before the end may be replaced by their product with x^n mod P, so lanes of the message
// are multiplied forward onto later ones until 128 bits are left, which are reduced at the end.
#include "soft/roce/crc32.hpp"

#include <cstring>

#include "soft/roce/crc32_math.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace strait::soft::roce {
namespace {

// ---- table ---------------------------------------------------------------------------------------------------------

struct Tables {
  std::uint32_t at[8][256];  // at[k][b]: byte b, followed by k zero bytes
};

constexpr Tables make_tables() {
  Tables t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t state = b;
    for (int bit = 0; bit < 8; ++bit) state = crc_math::times_x(state);
    t.at[0][b] = state;
  }
  for (std::uint32_t b = 0; b < 256; ++b) {
    for (int k = 1; k < 8; ++k) t.at[k][b] = t.at[k - 1][b] >> 8 ^ t.at[0][t.at[k - 1][b] & 0xff];
  }
  return t;
}
constexpr Tables kTables = make_tables();

std::uint32_t load_le32(const std::byte* at) {
  std::uint8_t b[4];
  std::memcpy(b, at, 4);
  return static_cast<std::uint32_t>(b[0]) | static_cast<std::uint32_t>(b[1]) << 8 |
         static_cast<std::uint32_t>(b[2]) << 16 | static_cast<std::uint32_t>(b[3]) << 24;
}

std::uint32_t table_update(std::uint32_t state, const std::byte* at, std::size_t count) {
  const auto& t = kTables.at;
  for (; count >= 8; count -= 8, at += 8) {
    const std::uint32_t low = load_le32(at) ^ state;
    const std::uint32_t high = load_le32(at + 4);
    state = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^ t[3][high & 0xff] ^
            t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff] ^ t[0][high >> 24];
  }
  if (count >= 4) {
    const std::uint32_t low = load_le32(at) ^ state;
    state = t[3][low & 0xff] ^ t[2][low >> 8 & 0xff] ^ t[1][low >> 16 & 0xff] ^ t[0][low >> 24];
    count -= 4;
    at += 4;
  }
  for (; count > 0; --count, ++at) state = state >> 8 ^ t[0][(state ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
  return state;
}

std::uint32_t table_head_and_body(const std::byte* head, const std::byte* at, std::size_t count) {
  return table_update(table_update(0, head, kCrcHeadBytes), at, count);
}

#if defined(__x86_64__)

// ---- carry-less multiplication -------------------------------------------------------------------------------------

// A reflected product of 64 by 64 bits comes out one bit low, so constants are x^n times x: 33 bits wide.
constexpr std::uint64_t fold_constant(std::uint64_t n) {
  return std::uint64_t{crc_math::power_of_x(n)} << 1;
}
// Of a lane of 128 bits that moves `bits` ahead: the low half stands 64 bits further from the end.
constexpr std::uint64_t low_half(std::uint64_t bits) {
  return fold_constant(bits + 32);
}
constexpr std::uint64_t high_half(std::uint64_t bits) {
  return fold_constant(bits - 32);
}
// P itself and the quotient of x^64 by P, both with 33 bits, reflected.
constexpr std::uint64_t kReflectedP = std::uint64_t{crc_math::kPolynomial} << 1 | 1;
constexpr std::uint64_t reflected_quotient() {
  std::uint64_t quotient = 0;
  std::uint64_t rest = crc_math::kPolynomial;  // x^32 mod P, the first quotient bit being 1
  quotient = 1;
  for (int i = 1; i <= 32; ++i) {
    const std::uint64_t top = rest & 1;  // the coefficient of x^31: becomes that of x^32
    quotient |= top << i;
    rest = crc_math::times_x(static_cast<std::uint32_t>(rest));
  }
  return quotient;
}
static_assert(low_half(512) == 0x154442bd4 && high_half(512) == 0x1c6e41596);
static_assert(low_half(128) == 0x1751997d0 && high_half(128) == 0x0ccaa009e);
static_assert(fold_constant(64) == 0x163cd6124 && kReflectedP == 0x1db710641 && reflected_quotient() == 0x1f7011641);

#define STRAIT_CLMUL __attribute__((target("pclmul,sse4.1")))
#define STRAIT_WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.1")))

__m128i pair(std::uint64_t low, std::uint64_t high) {
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}
__m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

STRAIT_CLMUL inline __m128i fold(__m128i lane, __m128i constants, __m128i onto) {
  const __m128i low = _mm_clmulepi64_si128(lane, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

// 128 bits to 32: fold twice, then divide by Barrett's method.
STRAIT_CLMUL inline std::uint32_t reduce(__m128i x) {
  const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
  const __m128i half = _mm_clmulepi64_si128(x, pair(high_half(128), 0), 0x00);
  x = _mm_xor_si128(_mm_srli_si128(x, 8), half);
  const __m128i word = _mm_clmulepi64_si128(_mm_and_si128(x, low32), pair(fold_constant(64), 0), 0x00);
  x = _mm_xor_si128(_mm_srli_si128(x, 4), word);
  const __m128i divide = pair(kReflectedP, reflected_quotient());
  const __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(x, low32), divide, 0x10);
  const __m128i product = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), divide, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(x, product), 1));
}

// One lane left: whole lanes of what remains, the reduction, and less than a lane by table.
STRAIT_CLMUL inline std::uint32_t finish(__m128i lane, const std::byte* at, std::size_t count) {
  const __m128i by_lane = pair(low_half(128), high_half(128));
  for (; count >= 16; count -= 16, at += 16) lane = fold(lane, by_lane, load(at));
  const std::uint32_t state = reduce(lane);
  return count == 0 ? state : table_update(state, at, count);
}

STRAIT_CLMUL inline std::uint32_t four_lanes(__m128i a, __m128i b, __m128i c, __m128i d, const std::byte* at,
                                             std::size_t count) {
  const __m128i by_four = pair(low_half(512), high_half(512));
  for (; count >= 64; count -= 64, at += 64) {
    a = fold(a, by_four, load(at));
    b = fold(b, by_four, load(at + 16));
    c = fold(c, by_four, load(at + 32));
    d = fold(d, by_four, load(at + 48));
  }
  const __m128i by_lane = pair(low_half(128), high_half(128));
  return finish(fold(fold(fold(a, by_lane, b), by_lane, c), by_lane, d), at, count);
}

STRAIT_CLMUL std::uint32_t clmul_update(std::uint32_t state, const std::byte* at, std::size_t count) {
  if (count < 16) return table_update(state, at, count);
  const __m128i first = _mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(state)));
  if (count < 64) return finish(first, at + 16, count - 16);
  return four_lanes(first, load(at + 16), load(at + 32), load(at + 48), at + 64, count - 64);
}

STRAIT_CLMUL std::uint32_t clmul_head_and_body(const std::byte* head, const std::byte* at, std::size_t count) {
  return four_lanes(load(head), load(head + 16), load(head + 32), load(head + 48), at, count);
}

// ---- the same, 64 bytes in a register ------------------------------------------------------------------------------

STRAIT_WIDE inline __m512i load_wide(const std::byte* at) {
  return _mm512_loadu_si512(at);
}
STRAIT_WIDE inline __m512i fold_wide(__m512i lanes, __m512i constants, __m512i onto) {
  const __m512i low = _mm512_clmulepi64_epi128(lanes, constants, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(lanes, constants, 0x11);
  return _mm512_ternarylogic_epi64(low, high, onto, 0x96);  // the exclusive or of three
}
STRAIT_WIDE inline __m512i four_times(__m128i constants) {
  return _mm512_maskz_broadcast_i32x4(0xffff, constants);  // g++ 12 warns about the unmasked form's own header
}

// Four registers of four lanes, 256 bytes at a time; then one register; then as above.
STRAIT_WIDE inline std::uint32_t wide_lanes(__m512i a, const std::byte* at, std::size_t count) {
  const __m512i by_64 = four_times(pair(low_half(512), high_half(512)));
  if (count >= 192 + 256) {
    __m512i b = load_wide(at);
    __m512i c = load_wide(at + 64);
    __m512i d = load_wide(at + 128);
    at += 192;
    count -= 192;
    const __m512i by_256 = four_times(pair(low_half(2048), high_half(2048)));
    for (; count >= 256; count -= 256, at += 256) {
      a = fold_wide(a, by_256, load_wide(at));
      b = fold_wide(b, by_256, load_wide(at + 64));
      c = fold_wide(c, by_256, load_wide(at + 128));
      d = fold_wide(d, by_256, load_wide(at + 192));
    }
    a = fold_wide(fold_wide(fold_wide(a, by_64, b), by_64, c), by_64, d);
  }
  for (; count >= 64; count -= 64, at += 64) a = fold_wide(a, by_64, load_wide(at));
  const __m128i by_lane = pair(low_half(128), high_half(128));
  alignas(64) std::byte lanes[64];
  _mm512_store_si512(lanes, a);
  __m128i lane = load(lanes);
  for (int i = 16; i < 64; i += 16) lane = fold(lane, by_lane, load(lanes + i));
  return finish(lane, at, count);
}

STRAIT_WIDE std::uint32_t wide_update(std::uint32_t state, const std::byte* at, std::size_t count) {
  if (count < 64) return clmul_update(state, at, count);
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  return wide_lanes(_mm512_xor_si512(load_wide(at), start), at + 64, count - 64);
}

STRAIT_WIDE std::uint32_t wide_head_and_body(const std::byte* head, const std::byte* at, std::size_t count) {
  return wide_lanes(load_wide(head), at, count);
}

bool has_instruction() {
  return __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
}
bool has_wide() {
  return has_instruction() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
}

#elif defined(__aarch64__)

// ---- the CRC instructions of arm64 ---------------------------------------------------------------------------------

// Not <arm_acle.h>: it has the functions only when the whole file is compiled for CPUs that have the instructions.
#if defined(__clang__)
#define STRAIT_CRC __attribute__((target("crc")))
#define STRAIT_CRC32X __builtin_arm_crc32d
#else
#define STRAIT_CRC __attribute__((target("+crc")))
#define STRAIT_CRC32X __builtin_aarch64_crc32x
#endif

STRAIT_CRC std::uint32_t clmul_update(std::uint32_t state, const std::byte* at, std::size_t count) {
  for (; count >= 8; count -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state = STRAIT_CRC32X(state, word);
  }
  return table_update(state, at, count);
}
std::uint32_t clmul_head_and_body(const std::byte* head, const std::byte* at, std::size_t count) {
  return clmul_update(clmul_update(0, head, kCrcHeadBytes), at, count);
}
constexpr auto wide_update = clmul_update;
constexpr auto wide_head_and_body = clmul_head_and_body;
bool has_instruction() {
  return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
bool has_wide() {
  return false;
}

#else

constexpr auto clmul_update = table_update;
constexpr auto clmul_head_and_body = table_head_and_body;
constexpr auto wide_update = table_update;
constexpr auto wide_head_and_body = table_head_and_body;
bool has_instruction() {
  return false;
}
bool has_wide() {
  return false;
}

#endif

const CrcPath kBest = has_wide() ? CrcPath::wide : has_instruction() ? CrcPath::instruction : CrcPath::table;

}  // namespace

bool crc_path_works(CrcPath path) {
  switch (path) {
    case CrcPath::table: return true;
    case CrcPath::instruction: return has_instruction();
    case CrcPath::wide: return has_wide();
  }
  return false;
}

CrcPath best_crc_path() {
  return kBest;
}

const char* crc_path_name(CrcPath path) {
  switch (path) {
    case CrcPath::table: return "table";
#if defined(__aarch64__)
    case CrcPath::instruction: return "crc32x";
#else
    case CrcPath::instruction: return "pclmul";
#endif
    case CrcPath::wide: return "vpclmul";
  }
  return "unknown";
}

std::uint32_t crc32_update(std::uint32_t state, std::span<const std::byte> bytes, CrcPath path) {
  switch (path) {
    case CrcPath::table: return table_update(state, bytes.data(), bytes.size());
    case CrcPath::instruction: return clmul_update(state, bytes.data(), bytes.size());
    case CrcPath::wide: break;
  }
  return wide_update(state, bytes.data(), bytes.size());
}

std::uint32_t crc32_update(std::uint32_t state, std::span<const std::byte> bytes) {
  return crc32_update(state, bytes, kBest);
}

std::uint32_t crc32_head_and_body(const std::byte* head, std::span<const std::byte> body, CrcPath path) {
  switch (path) {
    case CrcPath::table: return table_head_and_body(head, body.data(), body.size());
    case CrcPath::instruction: return clmul_head_and_body(head, body.data(), body.size());
    case CrcPath::wide: break;
  }
  return wide_head_and_body(head, body.data(), body.size());
}

std::uint32_t crc32_head_and_body(const std::byte* head, std::span<const std::byte> body) {
  return crc32_head_and_body(head, body, kBest);
}

}  // namespace strait::soft::roce
