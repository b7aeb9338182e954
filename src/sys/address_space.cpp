// SPDX-License-Identifier: Apache-2.0
#include "sys/address_space.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

#include "sys/mapping.hpp"

namespace strait::sys {
namespace {

using Kind = RangeAccess::Kind;

// PROCMAP_QUERY of Linux 6.11; the headers of Debian 12 are older than that, so its layout is repeated here.
struct ProcmapQuery {
  std::uint64_t size;
  std::uint64_t query_flags;
  std::uint64_t query_addr;
  std::uint64_t vma_start;
  std::uint64_t vma_end;
  std::uint64_t vma_flags;
  std::uint64_t vma_page_size;
  std::uint64_t vma_offset;
  std::uint64_t inode;
  std::uint32_t dev_major;
  std::uint32_t dev_minor;
  std::uint32_t vma_name_size;
  std::uint32_t build_id_size;
  std::uint64_t vma_name_addr;
  std::uint64_t build_id_addr;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long kQuery = _IOWR('f', 17, ProcmapQuery);
constexpr std::uint64_t kReadable = 1;
constexpr std::uint64_t kWritable = 2;
constexpr std::uint64_t kShared = 8;

Kind kind_of(bool readable, bool writable) {
  if (readable && writable) return Kind::read_write;
  return readable ? Kind::read_only : Kind::no_access;
}

// Collects the weakest kind while walking a range from its start.
class Walk {
 public:
  Walk(std::uint64_t address, std::uint64_t length_bytes) : at_(address), last_(address + (length_bytes - 1)) {
    found_.kind = Kind::read_write;
    found_.anonymous = true;
  }
  [[nodiscard]] bool more() const { return !ended_; }
  [[nodiscard]] std::uint64_t at() const { return at_; }
  // [start, end) is one mapping, the first that ends behind at().
  void mapping(std::uint64_t start, std::uint64_t end, Kind kind, bool anonymous) {
    if (start > at_) return hole();
    note(kind);
    found_.anonymous = found_.anonymous && anonymous;
    if (end > last_) {
      ended_ = true;
    } else {
      at_ = end;
    }
  }
  void hole() {
    note(Kind::unmapped);
    found_.anonymous = false;
    ended_ = true;  // nothing is weaker
  }
  [[nodiscard]] RangeAccess found() const { return found_; }

 private:
  void note(Kind kind) {
    if (kind <= found_.kind) return;
    found_.kind = kind;
    found_.weak_from = at_;
  }
  std::uint64_t at_;
  std::uint64_t last_;
  bool ended_ = false;
  RangeAccess found_;
};

// 1: found. 0: nothing there. -1: the ioctl does not exist.
int query_mapping(int maps, std::uint64_t address, ProcmapQuery& out) {
  out = {};
  out.size = sizeof out;
  out.query_addr = address;
  if (::ioctl(maps, kQuery, &out) == 0) return 1;
  return errno == ENOENT ? 0 : -1;
}

void look_query(int maps, Walk& walk) {
  while (walk.more()) {
    ProcmapQuery vma{};
    if (query_mapping(maps, walk.at(), vma) != 1) return walk.hole();
    walk.mapping(vma.vma_start, vma.vma_end,
                 kind_of((vma.vma_flags & kReadable) != 0, (vma.vma_flags & kWritable) != 0),
                 (vma.vma_flags & kShared) == 0 && vma.inode == 0);
  }
}

// One line: "7f12a000-7f13b000 rw-p 00000000 00:00 0 [heap]".
bool parse_line(std::string_view line, std::uint64_t& start, std::uint64_t& end, Kind& kind, bool& anonymous) {
  const char* const stop = line.data() + line.size();
  const auto first = std::from_chars(line.data(), stop, start, 16);
  if (first.ec != std::errc{} || first.ptr == stop || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, stop, end, 16);
  if (second.ec != std::errc{} || stop - second.ptr < 5) return false;
  kind = kind_of(second.ptr[1] == 'r', second.ptr[2] == 'w');
  // "rw-p 00000000 00:00 0": after offset and device comes the inode, 0 for memory of no file.
  std::string_view rest(second.ptr + 5, static_cast<std::size_t>(stop - second.ptr - 5));
  for (int skipped = 0; skipped < 2; ++skipped) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  anonymous = second.ptr[4] == 'p' && rest.starts_with('0') && (rest.size() == 1 || rest[1] == ' ');
  return true;
}

// The whole file. Read with its own descriptor: two threads must not share a file position.
std::string read_maps(const std::string& path) {
  std::string text;
  const Fd maps(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!maps.valid()) return text;
  for (;;) {
    const std::size_t had = text.size();
    text.resize(had + 65536);
    const ssize_t got = ::read(maps.get(), text.data() + had, 65536);
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return {};
  }
}

// False: the list could not be read (no descriptors left).
bool look_text(const std::string& path, Walk& walk) {
  const std::string text = read_maps(path);
  if (text.empty()) return false;
  std::string_view rest(text);
  while (walk.more() && !rest.empty()) {
    const std::size_t eol = std::min(rest.find('\n'), rest.size() - 1);
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    Kind kind{};
    bool anonymous = false;
    if (parse_line(rest.substr(0, eol), start, end, kind, anonymous) && end > walk.at())
      walk.mapping(start, end, kind, anonymous);
    rest.remove_prefix(eol + 1);
  }
  if (walk.more()) walk.hole();
  return true;
}

// [start, end) of the mapping at an address and the size of its pages; false: there is none, or nobody can tell.
bool page_bytes_query(int maps, std::uint64_t address, std::uint64_t& end, std::uint64_t& page) {
  ProcmapQuery vma{};
  if (query_mapping(maps, address, vma) != 1) return false;
  end = vma.vma_end;
  page = vma.vma_page_size;
  return true;
}

bool page_bytes_text(const std::string& text, std::uint64_t address, std::uint64_t& end, std::uint64_t& page) {
  constexpr std::string_view kSize = "KernelPageSize:";
  std::string_view rest(text);
  bool inside = false;
  while (!rest.empty()) {
    const std::size_t eol = std::min(rest.find('\n'), rest.size() - 1);
    const std::string_view line = rest.substr(0, eol);
    std::uint64_t start = 0;
    std::uint64_t stop = 0;
    Kind kind{};
    bool anonymous = false;
    if (parse_line(line, start, stop, kind, anonymous)) {
      inside = address >= start && address < stop;
      if (inside) end = stop;
    } else if (inside && line.starts_with(kSize)) {
      const std::size_t digits = line.find_first_of("0123456789");
      if (digits == std::string_view::npos) return false;
      std::uint64_t kib = 0;
      std::from_chars(line.data() + digits, line.data() + line.size(), kib);
      page = kib * 1024;
      return true;
    }
    rest.remove_prefix(eol + 1);
  }
  return false;
}

bool can_read(const Calls& calls, std::uint64_t address) {
  char byte = 0;
  const iovec into{&byte, 1};
  const iovec from{reinterpret_cast<void*>(address), 1};
  return calls.process_vm_readv(::getpid(), &into, 1, &from, 1, 0) == 1;
}

RangeAccess look_probe(const Calls& calls, std::uint64_t address, std::uint64_t length_bytes) {
  if (!can_read(calls, address)) return {Kind::unmapped, address, false};
  const std::uint64_t last = address + (length_bytes - 1);
  if (!can_read(calls, last)) return {Kind::unmapped, last, false};
  return {Kind::read_write, 0, false};
}

}  // namespace

Result<AddressSpace> AddressSpace::open_with(Source source, const Calls& calls) {
  if (source == Source::probe) return AddressSpace(source, Fd(), calls);
  Fd maps(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  if (!maps.valid()) return with_remedy(fail_errno(errno, "cannot open /proc/self/maps"), "Is /proc mounted?");
  if (source == Source::text) return AddressSpace(source, Fd(), calls);
  ProcmapQuery vma{};
  if (query_mapping(maps.get(), reinterpret_cast<std::uint64_t>(&vma), vma) != 1) {
    return fail(Code::unsupported,
                "this kernel cannot be asked about one mapping (PROCMAP_QUERY came with Linux 6.11)");
  }
  return AddressSpace(source, std::move(maps), calls);
}

AddressSpace AddressSpace::open(const Calls& calls) {
  for (const Source source : {Source::query, Source::text}) {
    if (auto space = open_with(source, calls)) return std::move(*space);
  }
  return AddressSpace(Source::probe, Fd(), calls);
}

Result<AddressSpace> AddressSpace::open_of(pid_t pid, const Calls& calls) {
  std::string path = "/proc/" + std::to_string(pid) + "/maps";
  Fd maps(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!maps.valid()) return fail_errno(errno, "cannot open " + path);
  ProcmapQuery vma{};
  // An address with nothing at it is an answer too.
  if (query_mapping(maps.get(), reinterpret_cast<std::uint64_t>(&vma), vma) >= 0)
    return AddressSpace(Source::query, std::move(maps), calls, std::move(path));
  return AddressSpace(Source::text, Fd(), calls, std::move(path));
}

RangeAccess AddressSpace::look(std::uint64_t address, std::uint64_t length_bytes) const {
  Walk walk(address, length_bytes);
  switch (source_) {
    case Source::query: look_query(maps_.get(), walk); return walk.found();
    case Source::text:
      if (look_text(path_, walk)) return walk.found();
      if (path_ != "/proc/self/maps") return {Kind::unmapped, address, false};  // probes reach this process only
      break;
    case Source::probe: break;
  }
  return look_probe(*calls_, address, length_bytes);
}

std::uint32_t AddressSpace::huge_shift(std::uint64_t address, std::uint64_t length_bytes) const {
  constexpr std::uint32_t kLeavesThem = 21;
  if (source_ == Source::probe) return 0;
  // "/proc/7/maps" and "/proc/7/smaps".
  const std::string text =
      source_ == Source::text ? read_maps(path_.substr(0, path_.size() - 4) + "smaps") : std::string();
  std::uint32_t smallest = 0;
  const std::uint64_t last = address + (length_bytes - 1);
  for (std::uint64_t at = address;;) {
    std::uint64_t end = 0;
    std::uint64_t page = 0;
    const bool found =
        source_ == Source::query ? page_bytes_query(maps_.get(), at, end, page) : page_bytes_text(text, at, end, page);
    const std::uint32_t shift = found && page > page_bytes() ? static_cast<std::uint32_t>(std::countr_zero(page)) : 0;
    if (shift == 0) return smallest == 0 ? 0 : kLeavesThem;
    smallest = smallest == 0 ? shift : std::min(smallest, shift);
    if (end > last) return smallest;
    at = end;
  }
}

}  // namespace strait::sys
