// SPDX-License-Identifier: Apache-2.0
#include "sys/report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "sys/fd.hpp"

namespace strait::sys {
namespace {

std::atomic<int> code{0};

// The last word at exit(): everything else has been flushed by then.
void leave() {
  if (const int with = code.load(); with != 0) {
    std::fflush(nullptr);
    ::_exit(with);
  }
}

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

void deliver(const Report& report) {
  if (!report.quiet) write_all(STDERR_FILENO, report.text);
  if (!report.file.empty()) {
    // Appended in one piece, so that processes may share the file.
    const Fd file(::open(report.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (file.valid()) write_all(file.get(), report.json + "\n");
  }
  if (report.exit_code == 0) return;
  static std::once_flag once;
  std::call_once(once, [] { std::atexit(leave); });
  code.store(report.exit_code);
}

}  // namespace strait::sys
