// SPDX-License-Identifier: Apache-2.0
#include "soft/host/elf.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace strait::soft::host {
namespace {

constexpr std::size_t kMostHeaders = 1024;           // a program has a dozen
constexpr std::size_t kMostInterpreterBytes = 4096;  // PATH_MAX
constexpr std::size_t kMostNoteBytes = 4096;

// Integers of the file, whatever its width and byte order.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, bool little) : bytes_(bytes), little_(little) {}
  // 0 past the end: the callers give spans that are long enough.
  [[nodiscard]] std::uint64_t get(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = little_ ? offset + size - 1 - i : offset + i;
      value = value << 8 | std::to_integer<std::uint64_t>(bytes_[at]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool little_;
};

struct Segment {
  std::uint64_t type, offset, size;
};

Segment segment(std::span<const std::byte> bytes, const ElfFacts& facts) {
  const Fields at(bytes, facts.little);
  if (facts.wide)
    return {at.get(offsetof(Elf64_Phdr, p_type), 4), at.get(offsetof(Elf64_Phdr, p_offset), 8),
            at.get(offsetof(Elf64_Phdr, p_filesz), 8)};
  return {at.get(offsetof(Elf32_Phdr, p_type), 4), at.get(offsetof(Elf32_Phdr, p_offset), 4),
          at.get(offsetof(Elf32_Phdr, p_filesz), 4)};
}

Result<std::string> read_interpreter(const ReadAt& read_at, const Segment& where) {
  if (where.size == 0 || where.size > kMostInterpreterBytes)
    return fail(Code::invalid, "the name of its loader is {} bytes long", where.size);
  std::array<std::byte, kMostInterpreterBytes> bytes;
  const std::size_t size = static_cast<std::size_t>(where.size);
  if (read_at(where.offset, std::span(bytes).first(size)) != size)
    return fail(Code::invalid, "the name of its loader lies behind its end");
  const char* text = reinterpret_cast<const char*>(bytes.data());
  const std::size_t length = strnlen(text, size);
  if (length == size || length == 0) return fail(Code::invalid, "the name of its loader does not end");
  return std::string(text, length);
}

// A note named "Go", which holds the build id.
bool has_go_note(const ReadAt& read_at, const Segment& where, bool little) {
  std::array<std::byte, kMostNoteBytes> bytes;
  const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(where.size, bytes.size()));
  const std::size_t got = std::min(read_at(where.offset, std::span(bytes).first(want)), want);
  const Fields fields(std::span<const std::byte>(bytes.data(), got), little);
  std::uint64_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= got) {
    const std::uint64_t name = fields.get(at, 4);
    const std::uint64_t described = fields.get(at + 4, 4);
    const std::uint64_t text = at + sizeof(Elf64_Nhdr);
    if (name == 4 && text + 4 <= got && std::memcmp(bytes.data() + text, "Go\0", 4) == 0) return true;
    at = text + ((name + 3) & ~std::uint64_t{3}) + ((described + 3) & ~std::uint64_t{3});
  }
  return false;
}

}  // namespace

std::uint16_t own_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#else
#error "say which EM_ number programs of this machine have"
#endif
}

Result<std::optional<ElfFacts>> read_elf(const ReadAt& read_at) {
  std::array<std::byte, sizeof(Elf64_Ehdr)> head{};
  const std::size_t got = read_at(0, head);
  if (got < SELFMAG || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return std::optional<ElfFacts>();
  ElfFacts facts;
  const auto ident = [&](std::size_t at) { return std::to_integer<unsigned>(head[at]); };
  facts.wide = ident(EI_CLASS) == ELFCLASS64;
  facts.little = ident(EI_DATA) == ELFDATA2LSB;
  if ((!facts.wide && ident(EI_CLASS) != ELFCLASS32) || (!facts.little && ident(EI_DATA) != ELFDATA2MSB) ||
      got < (facts.wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
    return fail(Code::invalid, "its header is damaged");
  const Fields fields(head, facts.little);
  facts.machine = static_cast<std::uint16_t>(fields.get(offsetof(Elf64_Ehdr, e_machine), 2));
  const std::uint64_t type = fields.get(offsetof(Elf64_Ehdr, e_type), 2);
  facts.executable = type == ET_EXEC || type == ET_DYN;
  const std::uint64_t table =
      facts.wide ? fields.get(offsetof(Elf64_Ehdr, e_phoff), 8) : fields.get(offsetof(Elf32_Ehdr, e_phoff), 4);
  const std::uint64_t entry =
      fields.get(facts.wide ? offsetof(Elf64_Ehdr, e_phentsize) : offsetof(Elf32_Ehdr, e_phentsize), 2);
  const std::uint64_t count = fields.get(facts.wide ? offsetof(Elf64_Ehdr, e_phnum) : offsetof(Elf32_Ehdr, e_phnum), 2);
  const std::size_t size = facts.wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  if (count != 0 && entry != size) return fail(Code::invalid, "its segments are described in {} bytes each", entry);
  if (count > kMostHeaders) return fail(Code::invalid, "it has {} segments", count);

  std::array<std::byte, sizeof(Elf64_Phdr)> bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = table + i * size;
    if (offset < table || read_at(offset, std::span(bytes).first(size)) != size)
      return fail(Code::invalid, "its segments are described behind its end");
    const Segment found = segment(bytes, facts);
    if (found.type == PT_INTERP && facts.interpreter.empty()) {
      STRAIT_TRY(facts.interpreter, read_interpreter(read_at, found));
    } else if (found.type == PT_NOTE) {
      facts.go = facts.go || has_go_note(read_at, found, facts.little);
    }
  }
  return std::optional<ElfFacts>(std::move(facts));
}

std::optional<std::string> script_interpreter(const ReadAt& read_at) {
  std::array<char, 256> line;  // what the kernel looks at
  const std::size_t got = read_at(0, std::as_writable_bytes(std::span(line)));
  const std::string_view text(line.data(), std::min(got, line.size()));
  if (!text.starts_with("#!")) return std::nullopt;
  const std::string_view first = text.substr(2, text.find('\n') == text.npos ? text.npos : text.find('\n') - 2);
  const std::size_t begin = first.find_first_not_of(" \t");
  if (begin == first.npos) return std::nullopt;
  const std::size_t end = first.find_first_of(" \t", begin);
  return std::string(first.substr(begin, end == first.npos ? end : end - begin));
}

}  // namespace strait::soft::host
