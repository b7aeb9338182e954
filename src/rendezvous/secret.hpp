// SPDX-License-Identifier: Apache-2.0
// The shared secret: given as an option, or kept per user in a file that only this user can read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sys/socket.hpp"

namespace strait::rendezvous {

struct Secret {
  std::vector<std::byte> bytes;
  bool given = false;  // by the caller; otherwise it is this user's file, which is good for this host only
};

inline constexpr std::size_t kMinNetworkSecretBytes = 16;  // for addresses that other hosts reach

// Where the file lies. from_environment(): $XDG_RUNTIME_DIR/strait when that is a folder, else /tmp/strait-<uid>.
struct SecretPlace {
  std::string folder;
  [[nodiscard]] static SecretPlace from_environment();
};

// `option` when it is not empty, else what is in `file` when that is not empty: both count as given. Else this user's
// file, made when it is not there (0600 in a 0700 folder, whole or not at all; the first of several processes wins).
// Code::denied when somebody else owns file or folder, or others may read them.
[[nodiscard]] Result<Secret> find_secret(const std::string& option, const std::string& file = {},
                                         const SecretPlace& place = SecretPlace::from_environment());

// Refuses to serve other hosts with the user's file or with a short secret.
[[nodiscard]] Status check_listen(const sys::Endpoint& at, const Secret& secret);

}  // namespace strait::rendezvous
