// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini/atomics.hpp"

#include <cfenv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "soft/cassini/translation.hpp"

namespace strait::soft::cassini {

using wire::AtomicOp;
using wire::AtomicType;
using wire::CswapOp;
using wire::ReturnCode;

namespace {

bool is_integer(AtomicType type) {
  return type <= AtomicType::uint64;
}
bool is_float(AtomicType type) {
  return type == AtomicType::float32 || type == AtomicType::float64;
}
bool is_complex(AtomicType type) {
  return type == AtomicType::complex_float32 || type == AtomicType::complex_float64;
}

template <class T>
T value_of(const std::uint64_t (&words)[2], std::size_t index = 0) {
  T value;
  std::memcpy(&value, reinterpret_cast<const std::byte*>(words) + index * sizeof(T), sizeof value);
  return value;
}
template <class T>
void set_value(std::uint64_t (&words)[2], T value, std::size_t index = 0) {
  std::memcpy(reinterpret_cast<std::byte*>(words) + index * sizeof(T), &value, sizeof value);
}

template <class T>
bool holds(CswapOp op, T compare, T memory) {
  switch (op) {
    case CswapOp::eq: return compare == memory;
    case CswapOp::ne: return compare != memory;
    case CswapOp::le: return compare <= memory;
    case CswapOp::lt: return compare < memory;
    case CswapOp::ge: return compare >= memory;
    case CswapOp::gt: return compare > memory;
  }
  return false;
}

template <class T>
T add_numbers(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    // The compiler may not move the addition past the look at the flags.
    volatile T left = a;
    volatile T right = b;
    volatile T sum = left + right;
    const T result = sum;
    // A sum that is tiny is exact, and the processor says nothing. Who wants underflow signalled wants this one.
    if (std::fpclassify(result) == FP_SUBNORMAL) std::feraiseexcept(FE_UNDERFLOW);
    return result;
  }
}

template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fmin(a, b);
  return a < b ? a : b;
}
template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fmax(a, b);
  return a > b ? a : b;
}

// One number: integers and floats.
template <class T>
void apply_number(const AtomicCommand& command, const std::uint64_t (&memory)[2], Applied& out) {
  const T old = value_of<T>(memory);
  const T one = value_of<T>(command.operand1);
  const T two = value_of<T>(command.operand2);
  T result = old;
  switch (command.op) {
    case AtomicOp::min: result = smaller(old, one); break;
    case AtomicOp::max: result = larger(old, one); break;
    case AtomicOp::sum: result = add_numbers(old, one); break;
    case AtomicOp::swap: result = one; break;
    case AtomicOp::cswap:
      out.stores = holds(command.cswap, two, old);
      result = out.stores ? one : old;
      break;
    default:
      if constexpr (std::is_integral_v<T>) {
        switch (command.op) {
          case AtomicOp::lor: result = static_cast<T>(old != 0 || one != 0); break;
          case AtomicOp::land: result = static_cast<T>(old != 0 && one != 0); break;
          case AtomicOp::lxor: result = static_cast<T>((old != 0) != (one != 0)); break;
          case AtomicOp::bor: result = static_cast<T>(old | one); break;
          case AtomicOp::band: result = static_cast<T>(old & one); break;
          case AtomicOp::bxor: result = static_cast<T>(old ^ one); break;
          case AtomicOp::axor: result = static_cast<T>((old & static_cast<T>(~two)) ^ one); break;
          default: break;
        }
      }
      break;
  }
  set_value(out.value, result);
}

// Two numbers side by side: SUM, SWAP, and CSWAP for equal or not.
template <class T>
void apply_complex(const AtomicCommand& command, const std::uint64_t (&memory)[2], Applied& out) {
  for (std::size_t i = 0; i < 2; ++i) {
    const T old = value_of<T>(memory, i);
    const T one = value_of<T>(command.operand1, i);
    set_value(out.value, command.op == AtomicOp::sum ? add_numbers(old, one) : one, i);
  }
  if (command.op != AtomicOp::cswap) return;
  const bool equal = value_of<T>(command.operand2, 0) == value_of<T>(memory, 0) &&
                     value_of<T>(command.operand2, 1) == value_of<T>(memory, 1);
  out.stores = equal == (command.cswap == CswapOp::eq);
  if (!out.stores) std::memcpy(out.value, memory, sizeof out.value);
}

void apply_wide(const AtomicCommand& command, const std::uint64_t (&memory)[2], Applied& out) {
  out.stores = std::memcmp(command.operand2, memory, sizeof memory) == 0;
  std::memcpy(out.value, out.stores ? command.operand1 : memory, sizeof out.value);
}

void apply_typed(const AtomicCommand& command, const std::uint64_t (&memory)[2], Applied& out) {
  switch (command.type) {
    case AtomicType::int8: return apply_number<std::int8_t>(command, memory, out);
    case AtomicType::uint8: return apply_number<std::uint8_t>(command, memory, out);
    case AtomicType::int16: return apply_number<std::int16_t>(command, memory, out);
    case AtomicType::uint16: return apply_number<std::uint16_t>(command, memory, out);
    case AtomicType::int32: return apply_number<std::int32_t>(command, memory, out);
    case AtomicType::uint32: return apply_number<std::uint32_t>(command, memory, out);
    case AtomicType::int64: return apply_number<std::int64_t>(command, memory, out);
    case AtomicType::uint64: return apply_number<std::uint64_t>(command, memory, out);
    case AtomicType::float32: return apply_number<float>(command, memory, out);
    case AtomicType::float64: return apply_number<double>(command, memory, out);
    case AtomicType::complex_float32: return apply_complex<float>(command, memory, out);
    case AtomicType::complex_float64: return apply_complex<double>(command, memory, out);
    case AtomicType::uint128: return apply_wide(command, memory, out);
  }
}

std::uint32_t floating_flags() {
  const int raised = std::fetestexcept(FE_INVALID | FE_UNDERFLOW | FE_OVERFLOW | FE_INEXACT);
  return ((raised & FE_INVALID) != 0 ? kFpInvalid : 0) | ((raised & FE_UNDERFLOW) != 0 ? kFpUnderflow : 0) |
         ((raised & FE_OVERFLOW) != 0 ? kFpOverflow : 0) | ((raised & FE_INEXACT) != 0 ? kFpInexact : 0);
}

// invalid, underflow, overflow, inexact follow each other as codes too.
ReturnCode code_of_floating(std::uint32_t flags) {
  std::uint32_t code = static_cast<std::uint32_t>(ReturnCode::amo_fp_invalid);
  for (; (flags & 1) == 0; flags >>= 1) ++code;
  return static_cast<ReturnCode>(code);
}

void judge(const Applied& applied, std::uint32_t refuse, Landed& out) {
  out.floating = applied.floating;
  const bool refused = applied.code == ReturnCode::ok && (applied.floating & refuse) != 0;
  out.code = refused ? code_of_floating(applied.floating & refuse) : applied.code;
}

// Tries until nobody came in between. `refuse`: see land().
template <class Word>
Landed land_word(const AtomicCommand& command, std::byte* at, std::uint32_t refuse) {
  Landed out;
  auto* const word = reinterpret_cast<Word*>(at);
  Word seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  for (;;) {
    out.fetched[0] = seen;
    const Applied applied = apply(command, out.fetched);
    judge(applied, refuse, out);
    if (out.code != ReturnCode::ok || !applied.stores) return out;
    const auto wanted = static_cast<Word>(applied.value[0]);
    if (__atomic_compare_exchange_n(word, &seen, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return out;
  }
}

// 16 bytes: compare-and-swap where the processor has one (every x86-64 that Linux is still built for), else not
// exclusive with processors. Written out: a compiler makes it a call into a library unless all of the program is built
// for cx16.
#if defined(__x86_64__)
bool exchange_wide(std::byte* at, const std::uint64_t (&old)[2], const std::uint64_t (&wanted)[2]) {
  struct Pair {
    std::uint64_t halves[2];
  };
  std::uint64_t low = old[0];
  std::uint64_t high = old[1];
  bool done = false;
  __asm__ __volatile__("lock cmpxchg16b %1"
                       : "=@ccz"(done), "+m"(*reinterpret_cast<Pair*>(at)), "+a"(low), "+d"(high)
                       : "b"(wanted[0]), "c"(wanted[1])
                       : "memory");
  return done;
}
#else
bool exchange_wide(std::byte* at, const std::uint64_t (&old)[2], const std::uint64_t (&wanted)[2]) {
  if (std::memcmp(at, old, sizeof old) != 0) return false;
  std::memcpy(at, wanted, sizeof wanted);
  return true;
}
#endif

Landed land_wide(const AtomicCommand& command, std::byte* at, std::uint32_t refuse) {
  for (;;) {
    Landed out;
    // Two loads may see halves of different values; the exchange then fails and it is tried again.
    out.fetched[0] = __atomic_load_n(reinterpret_cast<std::uint64_t*>(at), __ATOMIC_ACQUIRE);
    out.fetched[1] = __atomic_load_n(reinterpret_cast<std::uint64_t*>(at) + 1, __ATOMIC_ACQUIRE);
    const Applied applied = apply(command, out.fetched);
    judge(applied, refuse, out);
    if (out.code != ReturnCode::ok) return out;
    // Also when nothing is stored: that is how the fetched value is known to have been whole.
    if (exchange_wide(at, out.fetched, applied.stores ? applied.value : out.fetched)) return out;
  }
}

}  // namespace

bool has_atomic(const AtomicCommand& command) {
  const AtomicType type = command.type;
  if (wire::bytes_of(type) == 0) return false;
  switch (command.op) {
    case AtomicOp::min:
    case AtomicOp::max: return is_integer(type) || is_float(type);
    case AtomicOp::sum:
    case AtomicOp::swap: return type != AtomicType::uint128;
    case AtomicOp::lor:
    case AtomicOp::land:
    case AtomicOp::lxor:
    case AtomicOp::bor:
    case AtomicOp::band:
    case AtomicOp::bxor:
    case AtomicOp::axor: return is_integer(type);
    case AtomicOp::cswap:
      if (command.cswap > CswapOp::gt) return false;
      if (type == AtomicType::uint128) return command.cswap == CswapOp::eq;
      return !is_complex(type) || command.cswap <= CswapOp::ne;
  }
  return false;
}

Applied apply(const AtomicCommand& command, const std::uint64_t (&memory)[2]) {
  Applied out;
  if (!has_atomic(command)) {
    out.code = ReturnCode::amo_inval_op_error;
    return out;
  }
  out.stores = true;
  if (is_integer(command.type) || command.type == AtomicType::uint128) {
    apply_typed(command, memory, out);
    return out;
  }
  std::fenv_t before;
  std::feholdexcept(&before);
  apply_typed(command, memory, out);
  out.floating = floating_flags();
  std::fesetenv(&before);
  return out;
}

Landed land(const AtomicCommand& command, const Extents& at, std::uint32_t refuse) {
  Landed out;
  const std::uint32_t bytes = wire::bytes_of(command.type);
  if (!has_atomic(command)) {
    out.code = ReturnCode::amo_inval_op_error;
    return out;
  }
  if (at.empty() || at.front().bytes < bytes) {
    out.code = at.empty() ? ReturnCode::no_translation : ReturnCode::amo_align_error;
    return out;
  }
  std::byte* const direct = at.front().direct;
  const std::uint64_t address =
      at.front().memory != nullptr ? at.front().address : reinterpret_cast<std::uintptr_t>(direct);
  if (address % bytes != 0) {
    out.code = ReturnCode::amo_align_error;
    return out;
  }
  if (direct != nullptr && reinterpret_cast<std::uintptr_t>(direct) % bytes == 0) {
    switch (bytes) {
      case 1: return land_word<std::uint8_t>(command, direct, refuse);
      case 2: return land_word<std::uint16_t>(command, direct, refuse);
      case 4: return land_word<std::uint32_t>(command, direct, refuse);
      case 8: return land_word<std::uint64_t>(command, direct, refuse);
      default: return land_wide(command, direct, refuse);
    }
  }
  out.code = read(at, out.fetched, bytes);
  if (out.code != ReturnCode::ok) return out;
  const Applied applied = apply(command, out.fetched);
  judge(applied, refuse, out);
  if (out.code == ReturnCode::ok && applied.stores) out.code = write(at, applied.value, bytes);
  return out;
}

}  // namespace strait::soft::cassini
