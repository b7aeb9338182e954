// SPDX-License-Identifier: Apache-2.0
// Proofs: how two ends show each other that they know the secret, and that later messages come from the same two.
//
// Both nonces go into every proof, so nothing can be replayed; the role goes in too, so that nobody can have a server
// answer its own challenge (reflection). From then on each direction has a key of its own, and each message carries a
// MAC over its number and bytes: who took over the connection cannot add, drop or repeat one. Nothing is encrypted.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/mac.hpp"
#include "rendezvous/codec.hpp"
#include "rendezvous/secret.hpp"

namespace strait::rendezvous {

enum class Role { client, server };

struct Nonces {
  Bytes32 client{};
  Bytes32 server{};
};

[[nodiscard]] Bytes32 proof_of(Role role, const Secret& secret, const Nonces& nonces);

inline constexpr std::size_t kSealBytes = 32;

// The messages of one direction; `sender` says which. One at each end, in step.
class Seal {
 public:
  Seal() = default;
  Seal(Role sender, const Secret& secret, const Nonces& nonces);
  void close(std::vector<std::byte>& frame);                                                  // appends the MAC
  [[nodiscard]] bool open(std::span<const std::byte> frame, std::span<const std::byte> mac);  // checks it

 private:
  [[nodiscard]] Digest mac_of(std::span<const std::byte> frame) const;
  Digest key_{};
  std::uint64_t number_ = 0;
};

}  // namespace strait::rendezvous
