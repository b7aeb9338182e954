// SPDX-License-Identifier: Apache-2.0
// ProgramFile: a program, looked at before it is run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

class ProgramFile {
 public:
  [[nodiscard]] static Result<ProgramFile> open(const std::string& path);
  // How many bytes there were.
  [[nodiscard]] std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const;
  // Set-user-id, set-group-id or capabilities that make a difference to this user: the loader then is in its secure
  // mode.
  [[nodiscard]] bool changes_rights() const { return changes_rights_; }

 private:
  ProgramFile(Fd fd, bool changes_rights) : fd_(std::move(fd)), changes_rights_(changes_rights) {}
  Fd fd_;
  bool changes_rights_;
};

}  // namespace strait::sys
