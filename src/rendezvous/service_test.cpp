// SPDX-License-Identifier: Apache-2.0
// Service and client over real sockets: the good case, strangers of every kind, deadlines, the end.
#include "rendezvous/service.hpp"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "rendezvous/testing.hpp"

namespace strait::rendezvous {
namespace {

struct ServiceTest : testing::Test {
  ServiceTest() {
    settings.secret = secret_of("the secret of these tests");
    settings.greeting_ns = 300'000'000;
    settings.frame_ns = 300'000'000;
  }
  void start() { service = Service::start(settings, node).value(); }
  Result<std::unique_ptr<Client>> connect() { return Client::connect(service->endpoint(), settings.secret, soon()); }

  FakeNode node;
  ServiceSettings settings;
  std::unique_ptr<Service> service;
};

TEST_F(ServiceTest, AnswersEveryRequest) {
  start();
  EXPECT_EQ(service->endpoint().host, "127.0.0.1");
  EXPECT_NE(service->endpoint().port, 0);
  auto client = connect().value();
  ConnectRequest request;
  request.qpn = 100;
  request.name = "me";
  const ConnectReply reply = client->call_for<ConnectReply>(request, soon()).value();
  EXPECT_EQ(reply.qpn, 101u);
  EXPECT_EQ(reply.name, "server for me");
  EXPECT_TRUE(client->call_for<Done>(Ready{100}, soon()));
  EXPECT_EQ(client->call_for<LookupReply>(Lookup{"kv/0"}, soon())->target.rkey, 17u);
  EXPECT_EQ(client->call_for<Described>(Describe{}, soon())->record, "{}");
  EXPECT_EQ(client->call_for<Counted>(Count{}, soon())->record, R"({"counters":{}})");
  EXPECT_EQ(client->call_for<RedeemReply>(Redeem{{std::byte{1}}}, soon())->target.rkey, 19u);
  EXPECT_TRUE(client->alive());
  EXPECT_EQ(service->stats().requests, 6u);
  EXPECT_EQ(service->stats().peers, 1u);
  EXPECT_EQ(service->stats().strangers, 0u);
  EXPECT_EQ(node.seen, (std::set<PeerId>{1}));
  client.reset();
  EXPECT_TRUE(eventually([&] { return node.gone_count() == 1; }));
}

TEST_F(ServiceTest, RefusalsArriveAsTheErrorsTheyWere) {
  start();
  auto client = connect().value();
  const auto missing = client->call_for<LookupReply>(Lookup{"kv/1"}, soon());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::gone);
  EXPECT_EQ(missing.error().text, "nothing is published as \"kv/1\"");
  ConnectRequest full;
  full.qpn = 13;
  const auto limit = client->call(full, soon());
  EXPECT_EQ(limit.error().code, Code::limit);
  EXPECT_EQ(limit.error().remedy, "Close a lane.");
  EXPECT_EQ(client->call(Ready{0}, soon()).error().text, "there is no such queue");
  EXPECT_EQ(client->call(Redeem{}, soon()).error().code, Code::denied);
  full.qpn = 14;
  EXPECT_EQ(client->call(full, soon()).error().text, "the node could not answer: out of everything");
  EXPECT_EQ(client->call(Done{}, soon()).error().text, "a done message is not a request");
  EXPECT_EQ(client->call(Lookup{""}, soon()).error().text,
            "a lookup message cannot be sent: a name is empty or too long");
  EXPECT_EQ(client->call_for<Done>(Lookup{"kv/0"}, soon()).error().text,
            "the peer answered a request with the wrong message (lookup_reply)");
  EXPECT_TRUE(client->call(Lookup{"kv/0"}, soon())) << "none of these ended the connection";
}

TEST_F(ServiceTest, WrongSecretIsRefusedWithoutAReason) {
  start();
  const auto refused = Client::connect(service->endpoint(), secret_of("a guess"), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::denied);
  EXPECT_EQ(refused.error().text, service->endpoint().text() + " did not accept our secret");
  EXPECT_FALSE(refused.error().remedy.empty());
  EXPECT_EQ(service->stats().denied, 1u);
  EXPECT_EQ(service->stats().authenticated, 0u);

  Stranger stranger(service->endpoint());
  stranger.say(Hello{});
  ASSERT_TRUE(std::holds_alternative<Challenge>(stranger.hear().value()));
  stranger.say(Proof{});
  const auto answer = std::get<Refusal>(stranger.hear().value());
  EXPECT_EQ(answer.text, "not accepted");
  EXPECT_TRUE(answer.remedy.empty());
  EXPECT_TRUE(stranger.cut_off());
  EXPECT_EQ(node.gone_count(), 0u) << "it was never a peer";
}

// The server's own answer to its own challenge, fetched over a second connection, must not open the first.
TEST_F(ServiceTest, ReflectionFails) {
  start();
  Stranger first(service->endpoint());
  first.say(Hello{kProtocolVersion, {std::byte{1}}});
  const Bytes32 challenge = std::get<Challenge>(first.hear().value()).nonce;
  Stranger second(service->endpoint());
  second.say(Hello{kProtocolVersion, challenge});
  const Bytes32 other = std::get<Challenge>(second.hear().value()).nonce;
  EXPECT_NE(challenge, other) << "every challenge is fresh";
  // What a server would send as its proof, and the client's proof with the nonces exchanged.
  for (const Nonces& nonces : {Nonces{{std::byte{1}}, challenge}, Nonces{challenge, {std::byte{1}}}}) {
    const Bytes32 right = proof_of(Role::client, settings.secret, {{std::byte{1}}, challenge});
    EXPECT_NE(proof_of(Role::server, settings.secret, nonces), right);
  }
  first.say(Proof{proof_of(Role::server, settings.secret, {{std::byte{1}}, challenge})});
  EXPECT_EQ(std::get<Refusal>(first.hear().value()).code, Code::denied);
}

TEST_F(ServiceTest, AProofCannotBeReplayed) {
  start();
  const Bytes32 mine{std::byte{1}};
  Stranger first(service->endpoint());
  first.say(Hello{kProtocolVersion, mine});
  const Bytes32 challenge = std::get<Challenge>(first.hear().value()).nonce;
  const Body proof = Proof{proof_of(Role::client, settings.secret, {mine, challenge})};
  first.say(proof);
  EXPECT_EQ(std::get<Proof>(first.hear().value()).mac, proof_of(Role::server, settings.secret, {mine, challenge}));
  Stranger second(service->endpoint());
  second.say(Hello{kProtocolVersion, mine});
  (void)second.hear().value();
  second.say(proof);
  EXPECT_EQ(std::get<Refusal>(second.hear().value()).code, Code::denied);
}

TEST_F(ServiceTest, GarbageIsAnsweredAndClosed) {
  start();
  Stranger browser(service->endpoint());
  browser.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto refused = std::get<Refusal>(browser.hear().value());
  EXPECT_EQ(refused.text, "this is not a rendezvous message: it says it has 1195725860 bytes, allowed are 256");
  EXPECT_TRUE(browser.cut_off());

  Stranger early(service->endpoint());
  early.say(Lookup{"kv/0"});
  EXPECT_EQ(std::get<Refusal>(early.hear().value()).text, "a lookup message does not belong into a greeting");
  EXPECT_TRUE(early.cut_off());

  Stranger twice(service->endpoint());
  twice.say(Hello{});
  (void)twice.hear().value();
  twice.say(Hello{});
  EXPECT_EQ(std::get<Refusal>(twice.hear().value()).text, "a hello message does not belong into a greeting");

  Stranger newer(service->endpoint());
  newer.say(Hello{9, {}});
  EXPECT_EQ(std::get<Refusal>(newer.hear().value()).text, "this node speaks version 3 of the rendezvous, not 9");

  Stranger malformed(service->endpoint());
  malformed.say(std::string_view("\0\0\0\x08\0\x01\0\0\0\0\0\0", 12));
  EXPECT_EQ(std::get<Refusal>(malformed.hear().value()).text,
            "a hello message is malformed: it ends in the middle of a field");
  EXPECT_EQ(service->stats().garbage, 5u);
  EXPECT_TRUE(connect()) << "others are served";
}

// A peer, driven by hand: authenticated, then sending what no Client would.
struct Peer : Stranger {
  Peer(const sys::Endpoint& to, const Secret& secret) : Stranger(to) {
    Nonces nonces{{std::byte{1}}, {}};
    say(Hello{kProtocolVersion, nonces.client});
    nonces.server = std::get<Challenge>(hear().value()).nonce;
    say(Proof{proof_of(Role::client, secret, nonces)});
    EXPECT_TRUE(std::holds_alternative<Proof>(hear().value()));
    seal = Seal(Role::client, secret, nonces);
  }
  void say_sealed(std::vector<std::byte> frame) {
    seal.close(frame);
    say(frame);
  }
  Result<Body> hear_sealed() {
    STRAIT_TRY(Body body, hear());
    std::array<std::byte, kSealBytes> mac{};
    STRAIT_CHECK(sys::receive_all(fd.get(), mac, soon()));
    return body;
  }
  Seal seal;
};

TEST_F(ServiceTest, UnknownTypeFromAPeerIsAnsweredAndThePeerStays) {
  start();
  Peer peer(service->endpoint(), settings.secret);
  auto frame = encode({5, Done{}}).value();
  frame[5] = std::byte{99};
  peer.say_sealed(frame);
  const auto refused = std::get<Refusal>(peer.hear_sealed().value());
  EXPECT_EQ(refused.code, Code::unsupported);
  EXPECT_EQ(refused.text, "message type 99 is not known to this version (3)");
  peer.say_sealed(encode({6, Lookup{"kv/0"}}).value());
  EXPECT_TRUE(std::holds_alternative<LookupReply>(peer.hear_sealed().value()));
}

TEST_F(ServiceTest, MalformedFromAPeerEndsIt) {
  start();
  Peer peer(service->endpoint(), settings.secret);
  auto frame = encode({5, Lookup{"kv/0"}}).value();
  frame[kHeaderBytes + 1] = std::byte{200};
  peer.say_sealed(frame);
  EXPECT_EQ(std::get<Refusal>(peer.hear_sealed().value()).text,
            "a lookup message is malformed: it ends in the middle of a field");
  EXPECT_TRUE(peer.cut_off());
  EXPECT_TRUE(eventually([&] { return node.gone_count() == 1; }));
}

TEST_F(ServiceTest, MessagesOfSomebodyElseOnAPeersConnectionEndIt) {
  start();
  Peer replayed(service->endpoint(), settings.secret);
  auto frame = encode({5, Lookup{"kv/0"}}).value();
  replayed.seal.close(frame);
  replayed.say(frame);
  EXPECT_TRUE(std::holds_alternative<LookupReply>(replayed.hear_sealed().value()));
  replayed.say(frame);  // the same bytes again
  EXPECT_EQ(std::get<Refusal>(replayed.hear_sealed().value()).text,
            "a message was not made by the one who opened this connection");
  EXPECT_TRUE(replayed.cut_off());
}

TEST_F(ServiceTest, SeveralRequestsInOneWriteAreAllAnswered) {
  start();
  Peer peer(service->endpoint(), settings.secret);
  std::vector<std::byte> all;
  for (std::uint32_t id = 1; id <= 100; ++id) {
    auto frame = encode({id, Lookup{"kv/0"}}).value();
    peer.seal.close(frame);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  peer.say(all);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(std::holds_alternative<LookupReply>(peer.hear_sealed().value())) << i;
}

TEST_F(ServiceTest, SilentAndSlowStrangersAreDroppedOthersAreServed) {
  settings.max_strangers = 4;
  start();
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(std::make_unique<Stranger>(service->endpoint()));
  silent[0]->say(std::string_view("\0", 1));  // one byte does not buy more time
  ASSERT_TRUE(eventually([&] { return service->stats().strangers == 4; }));
  const std::int64_t before = sys::now_ns();
  EXPECT_TRUE(connect()) << "waits behind them, and is served when they are dropped";
  EXPECT_LT(sys::now_ns() - before, 3'000'000'000);
  for (auto& each : silent) EXPECT_TRUE(each->cut_off());
  EXPECT_EQ(service->stats().timed_out, 4u);
}

TEST_F(ServiceTest, AnIdlePeerStaysAHalfSentFrameDoesNot) {
  start();
  Peer idle(service->endpoint(), settings.secret);
  Peer half(service->endpoint(), settings.secret);
  half.say(std::string_view("\0\0\0\x20\0", 5));
  EXPECT_TRUE(half.cut_off());
  EXPECT_EQ(service->stats().timed_out, 1u);
  idle.say_sealed(encode({6, Lookup{"kv/0"}}).value());
  EXPECT_TRUE(idle.hear_sealed());
}

TEST_F(ServiceTest, PeersBeyondTheLimitAreToldSo) {
  settings.max_peers = 1;
  start();
  auto first = connect().value();
  const auto second = connect();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::limit);
  EXPECT_EQ(second.error().text, "this node serves 1 peers already, which is its limit");
  first.reset();
  EXPECT_TRUE(eventually([&] { return service->stats().peers == 0; }));
  EXPECT_TRUE(connect());
}

TEST_F(ServiceTest, ASlowHandlerCostsNobodyTheirDeadline) {
  start();
  auto client = connect().value();
  node.connect_takes_ms = 600;  // twice what a stranger gets
  std::thread slow([&] { EXPECT_TRUE(client->call(ConnectRequest{}, soon())); });
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(node.mutex);
    return !node.seen.empty();
  }));
  EXPECT_TRUE(connect());
  slow.join();
  EXPECT_EQ(service->stats().timed_out, 0u);
}

TEST_F(ServiceTest, PortInUse) {
  start();
  ServiceSettings second = settings;
  second.at = service->endpoint();
  const auto refused = Service::start(second, node);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys_errno, EADDRINUSE);
  EXPECT_TRUE(refused.error().text.starts_with("cannot listen on " + service->endpoint().text()))
      << refused.error().text;
  EXPECT_FALSE(refused.error().remedy.empty());
}

TEST_F(ServiceTest, OtherHostsOnlyWithAGivenSecret) {
  const int before = sys::count_open_fds();
  settings.at = {"0.0.0.0", 0};
  settings.secret.given = false;
  const auto refused = Service::start(settings, node);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::denied);
  EXPECT_EQ(sys::count_open_fds(), before);
  settings.secret.given = true;
  EXPECT_TRUE(Service::start(settings, node));
}

TEST_F(ServiceTest, StopWithOpenClients) {
  start();
  auto client = connect().value();
  auto busy = connect().value();
  Stranger stranger(service->endpoint());
  node.connect_takes_ms = 200;
  std::thread calling([&] { (void)busy->call(ConnectRequest{}, soon()); });
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(node.mutex);
    return !node.seen.empty();
  }));
  service->stop();
  service->stop();  // once more is harmless
  calling.join();
  EXPECT_EQ(node.gone_count(), 2u) << "before stop returned";
  EXPECT_TRUE(stranger.cut_off());
  EXPECT_FALSE(client->alive());
  const auto lost = client->call(Lookup{"kv/0"}, soon());
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::gone);
  EXPECT_EQ(lost.error().text, "the node at " + service->endpoint().text() + " closed the connection");
  EXPECT_EQ(Client::connect(service->endpoint(), settings.secret, soon()).error().sys_errno, ECONNREFUSED);
}

TEST_F(ServiceTest, DescriptorsBalance) {
  const int before = sys::count_open_fds();
  for (int round = 0; round < 5; ++round) {
    start();
    auto client = connect().value();
    (void)Client::connect(service->endpoint(), secret_of("wrong"), soon());
    Stranger stranger(service->endpoint());
    stranger.say("garbage garbage garbage");
    (void)client->call(Lookup{"kv/0"}, soon());
    service.reset();
    node.seen.clear();  // the next service numbers its peers from the start
    node.gone.clear();
  }
  EXPECT_EQ(sys::count_open_fds(), before);
}

TEST_F(ServiceTest, SurvivesRunningOutOfDescriptors) {
  start();
  auto client = connect().value();
  Stranger late;  // its socket takes the lowest free number, so that no free one is below the limit set now
  late.fd = sys::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit saved{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &saved), 0);
  rlimit none = saved;
  none.rlim_cur = static_cast<rlim_t>(late.fd.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);

  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(service->endpoint().port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected = ::connect(late.fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  const auto served = client->call(Lookup{"kv/0"}, soon());
  const auto refused = Client::connect(service->endpoint(), settings.secret, soon());
  const std::uint64_t accepted = service->stats().accepted;
  ::setrlimit(RLIMIT_NOFILE, &saved);

  EXPECT_EQ(connected, 0) << "the kernel took it, the service could not";
  EXPECT_TRUE(served) << "who is in is still served";
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::limit);
  EXPECT_EQ(accepted, 1u);
  late.say(Hello{});
  EXPECT_TRUE(std::holds_alternative<Challenge>(late.hear().value())) << "and who waited is let in later";
}

TEST_F(ServiceTest, AForkedChildHoldsNothing) {
  start();
  auto client = connect().value();
  const pid_t child = ::fork();
  if (child == 0) {
    // The answers travel in the exit status: the child must not run the test framework.
    const auto dead = client->call(Lookup{"kv/0"}, soon());
    const bool says_so = !dead && dead.error().code == Code::gone &&
                         dead.error().text.find("belongs to the process that forked this one") != std::string::npos;
    const bool closed = !client->alive();
    client.reset();
    service.reset();
    ::_exit(says_so && closed ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  EXPECT_TRUE(client->call(Lookup{"kv/0"}, soon())) << "the child's end did not touch ours";
  EXPECT_EQ(node.gone_count(), 0u);
}

TEST_F(ServiceTest, PortIsFreeWhileAForkedChildLivesOn) {
  start();
  const sys::Endpoint at = service->endpoint();
  auto client = connect().value();
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  client.reset();
  EXPECT_TRUE(eventually([&] { return node.gone_count() == 1; })) << "the child's copy would keep the connection open";
  service.reset();
  settings.at = at;
  const auto again = Service::start(settings, node);
  EXPECT_TRUE(again) << again.error().text;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace strait::rendezvous
