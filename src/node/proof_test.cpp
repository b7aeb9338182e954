// SPDX-License-Identifier: Apache-2.0
// The door of a Node gives a grant for a target as its rendezvous handed it out, and for nothing else: who has no
// proof, or changed what it proves, is denied.
#include <gtest/gtest.h>

#include <functional>

#include "node/core.hpp"
#include "node/peer.hpp"
#include "rendezvous/client.hpp"
#include "rendezvous/secret.hpp"
#include "strait/strait.hpp"

namespace strait::node {
namespace {

constexpr std::uint64_t kProvenBytes = 64 * 1024;
constexpr const char* kProofSecret = "the secret of the tests of proofs";

NodeOptions proof_settings() {
  NodeOptions options;
  options.settings = {{"secret", kProofSecret}, {"soft_library", STRAIT_SOFT_LIBRARY}, {"accelerators", "none"}};
  return options;
}

sys::Deadline proof_deadline() {
  return sys::Deadline::after_ns(30'000'000'000);
}

// One who knows the secret and has been told of a target, and goes to the door by itself.
class Proof : public ::testing::Test {
 protected:
  void publish(access::Access rights) {
    const rendezvous::Secret secret = rendezvous::find_secret(kProofSecret).value();
    auto client =
        rendezvous::Client::connect(sys::parse_endpoint(owner_.address()).value(), secret, proof_deadline()).value();
    const Peer peer = asker_.connect(owner_.address()).value();  // to learn what the Node is called
    visits_ = grant::Visits::start().value();
    host_ = grant::Host::visit(peer.raw()->node_id, proof_deadline()).value();
    ASSERT_TRUE(visits_->add(host_));
    region_.emplace(owner_.share(memory_, rights).value());
    published_.emplace(owner_.publish("proven", *region_).value());
    const rendezvous::Target target =
        client->call_for<rendezvous::LookupReply>(rendezvous::Lookup{"proven"}, proof_deadline()).value().target;
    ASSERT_EQ(target.grantable, 1u);
    told_ = {target.region_id, target.epoch, target.address, target.length_bytes, target.access, target.rkey};
    proof_ = target.proof;
  }
  [[nodiscard]] Result<grant::Way> ask(const grant::Subject& subject, const grant::Proof& proof) const {
    return host_->ask(subject, proof, proof_deadline());
  }
  void expect_denied(const char* what, const grant::Subject& subject, const grant::Proof& proof) const {
    const auto asked = ask(subject, proof);
    ASSERT_FALSE(asked) << what;
    EXPECT_EQ(asked.error().code, Code::denied) << what << ": " << asked.error().text;
    EXPECT_EQ(host_->window_count(), 0u) << what;
  }

  Node owner_ = Node::open(proof_settings()).value();
  Node asker_ = Node::open(proof_settings()).value();
  Memory memory_ = owner_.allocate(kProvenBytes).value();
  std::unique_ptr<grant::Visits> visits_;
  std::shared_ptr<grant::Host> host_;
  std::optional<Region> region_;
  std::optional<Published> published_;
  grant::Subject told_;
  grant::Proof proof_{};
};

TEST_F(Proof, IsAskedForOfEverybody) {
  publish(access::all);
  expect_denied("none", told_, {});
  for (std::size_t byte = 0; byte < proof_.size(); ++byte) {
    grant::Proof other = proof_;
    other[byte] ^= std::byte{0x10};
    expect_denied("one bit is not that of the proof", told_, other);
  }
  EXPECT_EQ(ask(told_, proof_).value(), grant::Way::map) << "what was refused is the proof and nothing else";
}

TEST_F(Proof, IsForNothingElse) {
  publish(access::remote_read);
  const std::pair<const char*, std::function<void(grant::Subject&)>> lies[] = {
      {"more rights", [](grant::Subject& s) { s.access |= STRAIT_REMOTE_WRITE; }},
      {"other rights", [](grant::Subject& s) { s.access = STRAIT_REMOTE_ATOMIC; }},
      {"a longer range", [](grant::Subject& s) { s.length_bytes += 4096; }},
      {"a shorter one", [](grant::Subject& s) { s.length_bytes /= 2; }},
      {"another place", [](grant::Subject& s) { s.address += 4096; }},
      {"a later epoch", [](grant::Subject& s) { ++s.epoch; }},
      {"an earlier epoch", [](grant::Subject& s) { --s.epoch; }},
      {"another key", [](grant::Subject& s) { s.rkey ^= 1; }},
      {"another region", [](grant::Subject& s) { ++s.region_id; }},
  };
  for (const auto& [what, change] : lies) {
    grant::Subject subject = told_;
    change(subject);
    expect_denied(what, subject, proof_);
  }
  EXPECT_EQ(ask(told_, proof_).value(), grant::Way::map);
}

// The proof is right for ever; what it is about is not.
TEST_F(Proof, OutlivesNoRegion) {
  publish(access::all);
  ASSERT_TRUE(region_->revoke());
  const auto asked = ask(told_, proof_);
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Code::gone) << asked.error().text;
}

}  // namespace
}  // namespace strait::node
