// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "soft/host/store.hpp"

namespace strait::soft::host {
namespace {

// Bytes of an instruction, one after the other; asking for more than there are makes it bad.
class CodeBytes {
 public:
  explicit CodeBytes(std::span<const std::uint8_t> code) : code_(code) {}
  std::uint8_t next() {
    if (at_ >= code_.size()) {
      bad_ = true;
      return 0;
    }
    return code_[at_++];
  }
  // Little-endian, sign-extended.
  std::int64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{next()} << (8 * i);
    const unsigned unused = static_cast<unsigned>(64 - 8 * bytes);
    return static_cast<std::int64_t>(value << unused) >> unused;
  }
  [[nodiscard]] bool bad() const { return bad_; }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  std::span<const std::uint8_t> code_;
  std::size_t at_ = 0;
  bool bad_ = false;
};

struct Prefixes {
  bool operand16 = false, f2 = false, f3 = false, other = false;
  bool wide = false;                      // REX.W
  unsigned reg = 0, index = 0, base = 0;  // bit 3 of the register numbers
  bool rex = false, vex = false;
};

struct Operand {
  unsigned reg = 0;  // the register field
  std::uint64_t address = 0;
  bool relative = false;  // to the next instruction: its address is added at the end
};

// ModRM, SIB and displacement of a memory operand; nullopt for a register operand.
std::optional<Operand> memory_operand(CodeBytes& code, const Prefixes& prefixes, const sys::ProcessorState& state) {
  const std::uint8_t modrm = code.next();
  const unsigned mod = modrm >> 6, rm = modrm & 7u;
  Operand out;
  out.reg = (modrm >> 3 & 7u) | prefixes.reg;
  if (mod == 3) return std::nullopt;
  if (rm == 4) {
    const std::uint8_t sib = code.next();
    const unsigned index = (sib >> 3 & 7u) | prefixes.index, base = sib & 7u;
    if (index != 4) out.address += state.registers[index] << (sib >> 6);
    if (base == 5 && mod == 0) {
      out.address += static_cast<std::uint64_t>(code.number(4));
    } else {
      out.address += state.registers[base | prefixes.base];
    }
  } else if (rm == 5 && mod == 0) {
    out.relative = true;
    out.address = static_cast<std::uint64_t>(code.number(4));
  } else {
    out.address = state.registers[rm | prefixes.base];
  }
  if (mod == 1) out.address += static_cast<std::uint64_t>(code.number(1));
  if (mod == 2) out.address += static_cast<std::uint64_t>(code.number(4));
  return out;
}

// Legacy prefixes and REX, or VEX; the first byte of the opcode, or -1. A VEX instruction's map has to be 0F.
int read_prefixes(CodeBytes& code, Prefixes& out, bool& map_0f) {
  map_0f = false;
  for (int i = 0; i < 15; ++i) {
    const std::uint8_t byte = code.next();
    if (code.bad()) return -1;
    if (byte == 0x66) {
      out.operand16 = true;
    } else if (byte == 0xf2) {
      out.f2 = true;
    } else if (byte == 0xf3) {
      out.f3 = true;
    } else if (byte == 0x3e) {
      // A hint, of branches.
    } else if (byte == 0x67 || byte == 0xf0 || byte == 0x2e || byte == 0x26 || byte == 0x36 || byte == 0x64 ||
               byte == 0x65) {
      out.other = true;  // other addresses than the ones computed here, or locked
    } else if ((byte & 0xf0) == 0x40) {
      out.rex = true;
      out.wide = (byte & 8u) != 0;
      out.reg = (byte & 4u) << 1;
      out.index = (byte & 2u) << 2;
      out.base = (byte & 1u) << 3;
      const std::uint8_t opcode = code.next();
      map_0f = opcode == 0x0f;
      return map_0f ? code.next() : opcode;
    } else if (byte == 0xc5 || byte == 0xc4) {
      out.vex = true;
      unsigned last = code.next();
      out.reg = (last & 0x80u) != 0 ? 0 : 8;
      if (byte == 0xc4) {
        out.index = (last & 0x40u) != 0 ? 0 : 8;
        out.base = (last & 0x20u) != 0 ? 0 : 8;
        if ((last & 0x1fu) != 1) return -1;
        last = code.next();
        out.wide = (last & 0x80u) != 0;
      }
      if ((last & 0x78u) != 0x78 || (last & 4u) != 0) return -1;  // a third operand, or 32 bytes
      out.operand16 = (last & 3u) == 1;
      out.f3 = (last & 3u) == 2;
      out.f2 = (last & 3u) == 3;
      map_0f = true;
      return code.next();
    } else {
      map_0f = byte == 0x0f;
      return map_0f ? code.next() : byte;
    }
  }
  return -1;
}

enum class Source { none, general, vector, immediate };

struct Shape {
  Source source = Source::none;
  std::uint32_t width = 0;
};

Shape shape_of(int opcode, bool map_0f, const Prefixes& p) {
  const std::uint32_t general = p.wide ? 8 : p.operand16 ? 2 : 4;
  if (!map_0f) {
    if (p.vex || p.f2 || p.f3) return {};
    switch (opcode) {
      case 0x88: return {Source::general, 1};
      case 0x89: return {Source::general, general};
      case 0xc6: return {Source::immediate, 1};
      case 0xc7: return {Source::immediate, general};
      default: return {};
    }
  }
  switch (opcode) {
    case 0xc3:
      return p.vex || p.operand16 || p.f2 || p.f3 ? Shape{} : Shape{Source::general, p.wide ? 8u : 4u};   // movnti
    case 0x7e: return p.operand16 && !p.f3 && !p.f2 ? Shape{Source::vector, p.wide ? 8u : 4u} : Shape{};  // movd, movq
    case 0xd6: return p.operand16 && !p.f3 && !p.f2 ? Shape{Source::vector, 8} : Shape{};                 // movq
    case 0x11: return p.f2 ? Shape{Source::vector, 8} : p.f3 ? Shape{Source::vector, 4} : Shape{};  // movsd, movss
    case 0x13: return p.f2 || p.f3 ? Shape{} : Shape{Source::vector, 8};                            // movlps, movlpd
    default: return {};
  }
}

}  // namespace

std::optional<Store> decode_store_x86(std::span<const std::uint8_t> bytes, const sys::ProcessorState& state) {
  CodeBytes code(bytes);
  Prefixes prefixes;
  bool map_0f = false;
  const int opcode = read_prefixes(code, prefixes, map_0f);
  if (opcode < 0 || prefixes.other) return std::nullopt;
  const Shape shape = shape_of(opcode, map_0f, prefixes);
  if (shape.source == Source::none) return std::nullopt;
  const auto operand = memory_operand(code, prefixes, state);
  if (!operand) return std::nullopt;
  Store out;
  out.width = shape.width;
  if (shape.source == Source::immediate) {
    if ((operand->reg & 7u) != 0) return std::nullopt;  // C6 and C7 are stores with 0 there only
    out.values[0] = static_cast<std::uint64_t>(code.number(shape.width == 8 ? 4 : shape.width));
  } else if (shape.source == Source::vector) {
    out.values[0] = state.vectors[operand->reg];
  } else if (shape.width == 1 && !prefixes.rex && operand->reg >= 4) {
    out.values[0] = state.registers[operand->reg - 4] >> 8;  // ah, ch, dh, bh
  } else {
    out.values[0] = state.registers[operand->reg];
  }
  if (shape.width < 8) out.values[0] &= (std::uint64_t{1} << (8 * shape.width)) - 1;
  if (code.bad()) return std::nullopt;
  out.length = static_cast<std::uint32_t>(code.at());
  out.address = operand->address + (operand->relative ? state.at + out.length : 0);
  return out;
}

std::optional<std::uint32_t> wide_store_x86(std::span<const std::uint8_t> bytes) {
  CodeBytes code(bytes);
  Prefixes prefixes;
  std::uint8_t byte = code.next();
  while (byte == 0x66 || byte == 0xf2 || byte == 0xf3) {
    prefixes.operand16 = prefixes.operand16 || byte == 0x66;
    prefixes.f2 = prefixes.f2 || byte == 0xf2;
    prefixes.f3 = prefixes.f3 || byte == 0xf3;
    byte = code.next();
  }
  unsigned map = 1, kind = 0;
  bool other_operand = false;
  if ((byte & 0xf0) == 0x40) byte = code.next();  // REX: which registers, not how many bytes
  if (byte == 0x0f) {
    kind = prefixes.operand16 ? 1 : prefixes.f3 ? 2 : prefixes.f2 ? 3 : 0;
  } else if (byte == 0xc5) {
    const unsigned last = code.next();
    kind = last & 3u;
    other_operand = (last & 0x78u) != 0x78;
  } else if (byte == 0xc4 || byte == 0x62) {  // EVEX begins like three bytes of VEX and has one more
    map = code.next() & (byte == 0x62 ? 7u : 0x1fu);
    const unsigned last = code.next();
    kind = last & 3u;
    other_operand = (last & 0x78u) != 0x78;
    if (byte == 0x62) (void)code.next();
  } else {
    return std::nullopt;
  }
  const std::uint8_t opcode = code.next();
  const bool plain = kind <= 1;                                                           // neither F3 nor F2
  const bool stores = ((opcode == 0x11 || opcode == 0x29 || opcode == 0x2b) && plain) ||  // movups, movaps, movntps
                      (opcode == 0x7f && (kind == 1 || kind == 2 || (kind == 3 && byte == 0x62))) ||  // movdqa, movdqu
                      (opcode == 0xe7 && kind == 1);                                                  // movntdq
  if (map != 1 || other_operand || !stores) return std::nullopt;
  if (!memory_operand(code, prefixes, {}) || code.bad()) return std::nullopt;
  return static_cast<std::uint32_t>(code.at());
}

#if defined(__x86_64__)
std::optional<std::uint32_t> wide_store(std::span<const std::uint8_t> code) {
  return wide_store_x86(code);
}
std::optional<Store> decode_store(std::span<const std::uint8_t> code, const sys::ProcessorState& state) {
  return decode_store_x86(code, state);
}
#endif

}  // namespace strait::soft::host
