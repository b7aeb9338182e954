// SPDX-License-Identifier: Apache-2.0
// A new file that is only appended to.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class OutputFile {
 public:
  OutputFile() = default;
  // Replaces a file of that name. Readable by its owner only: what is captured is other people's data.
  [[nodiscard]] static Result<OutputFile> create(const std::string& path);
  // All of it, or an error that names the file; what was written of it then stays.
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  [[nodiscard]] bool is_open() const { return fd_.valid(); }

 private:
  OutputFile(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Fd fd_;
  std::string path_;
};

}  // namespace strait::sys
