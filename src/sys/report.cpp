// SPDX-License-Identifier: Apache-2.0
#include "sys/report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "sys/fd.hpp"

namespace strait::sys {
namespace {

std::atomic<int> code{0};

// A destructor of the library, not atexit(): those run after everything that the program itself has to do at exit, and
// one of atexit() would run when the library is unloaded.
__attribute__((destructor)) void leave() {
  if (const int with = code.load(); with != 0) {
    std::fflush(nullptr);
    ::_exit(with);
  }
}

Fd open_file(const std::string& path) {
  return Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

// Bytes of the UTF-8 character that starts here; 0: none does.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  const unsigned second = byte(1);
  if (first >= 0xe0 && first < 0xf0) {
    const bool in_range = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second < 0xa0);  // shortest; no half
    return in_range && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool in_range = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second < 0x90);
    return in_range && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t n = character_bytes(text);
    const char c = text.front();
    if (n == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  out += '"';
  return out;
}

Status check_report_file(const std::string& file) {
  if (!open_file(file).valid()) return fail_errno(errno, fmt::format("cannot append findings to \"{}\"", file));
  return {};
}

void deliver(const Report& report) {
  if (!report.quiet) write_all(STDERR_FILENO, report.text);
  if (!report.file.empty()) {
    // Appended in one piece, so that processes may share the file.
    const Fd file = open_file(report.file);
    if (file.valid()) write_all(file.get(), report.json + "\n");
  }
  if (report.exit_code == 0) return;
  code.store(report.exit_code);
}

}  // namespace strait::sys
