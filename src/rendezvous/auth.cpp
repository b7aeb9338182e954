// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/auth.hpp"

#include "rendezvous/fields.hpp"

namespace strait::rendezvous {
namespace {

Digest keyed(const Secret& secret, std::string_view purpose, Role role, const Nonces& nonces) {
  Writer writer;
  for (const char c : purpose) writer.out().push_back(static_cast<std::byte>(c));
  writer.number(kProtocolVersion);
  writer.number(static_cast<std::uint8_t>(role == Role::client ? 'c' : 's'));
  writer.bytes(nonces.client);
  writer.bytes(nonces.server);
  return hmac_sha256(secret.bytes, writer.out());
}

}  // namespace

Bytes32 proof_of(Role role, const Secret& secret, const Nonces& nonces) {
  return keyed(secret, "strait rendezvous proof", role, nonces);
}

Seal::Seal(Role sender, const Secret& secret, const Nonces& nonces)
    : key_(keyed(secret, "strait rendezvous seal.", sender, nonces)) {}

Digest Seal::mac_of(std::span<const std::byte> frame) const {
  Writer writer;
  writer.number(number_);
  writer.out().insert(writer.out().end(), frame.begin(), frame.end());
  return hmac_sha256(key_, writer.out());
}

void Seal::close(std::vector<std::byte>& frame) {
  const Digest mac = mac_of(frame);
  frame.insert(frame.end(), mac.begin(), mac.end());
  ++number_;
}

bool Seal::open(std::span<const std::byte> frame, std::span<const std::byte> mac) {
  const bool good = same_digest(mac_of(frame), mac);
  ++number_;
  return good;
}

}  // namespace strait::rendezvous
