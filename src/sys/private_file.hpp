// SPDX-License-Identifier: Apache-2.0
// Files that only this user may read: secrets. Ownership and mode are checked on the open descriptor, never on a path.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sys/fd.hpp"

namespace strait::sys {

[[nodiscard]] bool is_folder(const std::string& path);
[[nodiscard]] unsigned user_id();

inline constexpr int kHere = -100;  // AT_FDCWD: instead of a folder

// Opens the folder, made 0700 when it is not there. Code::denied when it is a link, belongs to another user, or lets
// others in.
[[nodiscard]] Result<Fd> open_private_folder(const std::string& path);

// The file `name` in that folder (kHere: a path of its own); nullopt when there is none. Code::denied when it is not a
// plain file of this user with no rights for others; Code::invalid when longer than `max_bytes`. `shown` is its path,
// for the sentences.
[[nodiscard]] Result<std::optional<std::vector<std::byte>>> read_private_file(int folder, const std::string& name,
                                                                              const std::string& shown,
                                                                              std::size_t max_bytes);
// Creates it 0600, whole or not at all. False when somebody else created it first: read theirs.
[[nodiscard]] Result<bool> create_private_file(int folder, const std::string& name, const std::string& shown,
                                               std::span<const std::byte> bytes);

}  // namespace strait::sys
