// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/secret.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "sys/private_file.hpp"
#include "sys/process.hpp"

namespace strait::rendezvous {
namespace {

constexpr std::size_t kMaxSecretBytes = 4096;
constexpr std::size_t kMadeSecretBytes = 32;

Secret given(std::span<const std::byte> bytes) {
  return Secret{{bytes.begin(), bytes.end()}, true};
}

// People write secrets with editors and echo: the newline at the end is not part of it.
void drop_newline(std::vector<std::byte>& bytes) {
  while (!bytes.empty() && (bytes.back() == std::byte{'\n'} || bytes.back() == std::byte{'\r'})) bytes.pop_back();
}

Result<Secret> from_file(const std::string& path) {
  STRAIT_TRY(auto bytes, sys::read_private_file(sys::kHere, path, path, kMaxSecretBytes));
  if (!bytes) return fail(Code::invalid, "the secret file {} does not exist", path);
  drop_newline(*bytes);
  if (bytes->empty()) return fail(Code::invalid, "the secret file {} is empty", path);
  return given(*bytes);
}

Result<Secret> of_this_user(const SecretPlace& place) {
  const std::string shown = place.folder + "/secret";
  STRAIT_TRY(const sys::Fd folder, sys::open_private_folder(place.folder));
  STRAIT_TRY(auto found, sys::read_private_file(folder.get(), "secret", shown, kMaxSecretBytes));
  if (!found) {
    std::array<std::byte, kMadeSecretBytes> random{};
    STRAIT_CHECK(sys::fill_random(random));
    // Text, so that it can be copied to another machine with any editor.
    std::vector<std::byte> made;
    for (const std::byte each : random) {
      for (const char c : fmt::format("{:02x}", std::to_integer<unsigned>(each)))
        made.push_back(static_cast<std::byte>(c));
    }
    STRAIT_TRY(const bool ours, sys::create_private_file(folder.get(), "secret", shown, made));
    if (ours) return Secret{std::move(made), false};
    STRAIT_TRY(found, sys::read_private_file(folder.get(), "secret", shown, kMaxSecretBytes));
  }
  if (found) drop_newline(*found);
  if (!found || found->size() < kMinNetworkSecretBytes) {
    return with_remedy(
        fail(Code::invalid, "the secret file {} holds less than {} bytes", shown, kMinNetworkSecretBytes),
        "Remove it: the next node makes a new one.");
  }
  return Secret{std::move(*found), false};
}

}  // namespace

SecretPlace SecretPlace::from_environment() {
  // A session without a login (a service, a container) often has the variable and not the folder.
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && sys::is_folder(runtime)) {
    return {std::string(runtime) + "/strait"};
  }
  return {fmt::format("/tmp/strait-{}", sys::user_id())};
}

Result<Secret> find_secret(const std::string& option, const std::string& file, const SecretPlace& place) {
  if (!option.empty()) return given(std::as_bytes(std::span(option)));
  if (!file.empty()) return from_file(file);
  return of_this_user(place);
}

Status check_listen(const sys::Endpoint& at, const Secret& secret) {
  if (secret.bytes.empty())
    return fail(Code::invalid, "the rendezvous on {} needs a secret, and it is empty", at.text());
  if (sys::is_loopback(at)) return {};
  if (!secret.given) {
    return with_remedy(
        fail(Code::denied, "the rendezvous will not listen on {}, where other hosts reach it, without a secret",
             at.text()),
        "Give the same one to all nodes with the option `secret` or `secret_file`, or listen on 127.0.0.1.");
  }
  if (secret.bytes.size() < kMinNetworkSecretBytes) {
    return fail(
        Code::denied,
        "the rendezvous will not listen on {}, where other hosts reach it, with a secret of {} bytes: {} are the least",
        at.text(), secret.bytes.size(), kMinNetworkSecretBytes);
  }
  return {};
}

}  // namespace strait::rendezvous
