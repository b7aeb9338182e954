// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104): proofs that a ticket or a rendezvous message was made by who holds
// the key.
//
// Written out here because it is the only cryptography strait needs, and a library for it would become a dependency of
// everybody who links libstrait. Checked against the published vectors in mac_test.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace strait {

using Digest = std::array<std::byte, 32>;

[[nodiscard]] Digest sha256(std::span<const std::byte> bytes);
[[nodiscard]] Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes);
// Takes the same time wherever the difference lies.
[[nodiscard]] bool same_digest(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace strait
