// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/connection.hpp"

#include <cerrno>
#include <cstring>
#include <vector>

#include "soft/cassini_host/lock_within.hpp"
#include "sys/process.hpp"
#include "sys/socket.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::int64_t kReachPatienceNs = 10'000'000'000;
// The server answers at once; one that does not is stopped or stuck.
constexpr std::int64_t kCallPatienceNs = 60'000'000'000;

protocol::Ask make_ask(protocol::Kind kind, std::initializer_list<std::uint64_t> words) {
  protocol::Ask ask{};
  ask.magic = protocol::kMagic;
  ask.kind = kind;
  std::size_t i = 0;
  for (const std::uint64_t word : words) ask.words[i++] = word;
  return ask;
}

void sign(protocol::Ask& ask, const sys::Caller& caller) {
  ask.uid = caller.uid;
  ask.gid = caller.gid;
  ask.network = caller.network;
  ask.admin = caller.admin ? 1 : 0;
  ask.net_raw = caller.net_raw ? 1 : 0;
}

Result<Told> call(int socket, const protocol::Ask& ask, std::span<const std::byte> rest = {},
                  std::span<const int> files = {}) {
  const auto deadline = sys::Deadline::after_ns(kCallPatienceNs);
  std::vector<std::byte> out(sizeof ask + rest.size());
  std::memcpy(out.data(), &ask, sizeof ask);
  if (!rest.empty()) std::memcpy(out.data() + sizeof ask, rest.data(), rest.size());
  const auto gone = [](const Error& error) {
    if (error.code == Code::limit) return error;  // of this process: no descriptor is left for what it sent
    return fail_errno(EIO, fmt::format("strait-cassini does not answer: {}", error.text));
  };
  for (;;) {
    const Status sent = sys::send_packet(socket, out, files);
    if (sent) break;
    if (sent.error().code != Code::again || !sys::wait_ready(socket, true, deadline)) return gone(sent.error());
  }
  for (;;) {
    auto got = sys::receive_packet(socket, protocol::kMostBytes);
    if (!got) {
      if (got.error().code == Code::again && sys::wait_ready(socket, false, deadline)) continue;
      return gone(got.error());
    }
    Told told;
    if (got->bytes.size() < sizeof told.answer) return fail_errno(EIO, "strait-cassini sent half an answer");
    std::memcpy(&told.answer, got->bytes.data(), sizeof told.answer);
    told.text.assign(reinterpret_cast<const char*>(got->bytes.data()) + sizeof told.answer,
                     got->bytes.size() - sizeof told.answer);
    if (!got->fds.empty()) told.file = std::move(got->fds.front());
    return told;
  }
}

int result_of(const Result<Told>& told) {
  return told ? static_cast<int>(told->answer.result) : -EIO;
}

// What the server reads to learn whether it reaches this process.
constinit const std::uint64_t probe_word = 0x4361737369'6e6921;

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const ServerPlace& place, std::uint32_t device,
                                                     const sys::Caller& caller, const TrialSettings& trial) {
  STRAIT_TRY(sys::Fd socket, reach_server(place, sys::Deadline::after_ns(kReachPatienceNs)));
  if (const auto server = sys::peer_credentials(socket.get())) sys::allow_access_by(server->pid);
  STRAIT_TRY(sys::PacketPair pair, sys::packet_pair());
  std::unique_ptr<Connection> made(new Connection(std::move(socket), std::move(pair.one)));
  protocol::Ask hello = make_ask(
      protocol::Kind::hello, {protocol::kVersion, device, reinterpret_cast<std::uint64_t>(&probe_word), probe_word});
  sign(hello, caller);
  hello.strict = trial.strict ? 1 : 0;
  hello.strict_seed = trial.seed;
  const int other = pair.other.get();
  STRAIT_TRY(Told told, made->ask(hello, std::as_bytes(std::span(trial.faults)), {&other, 1}));
  if (told.answer.result < 0)
    return fail_errno(static_cast<int>(-told.answer.result), fmt::format("strait-cassini has no device cxi{}", device));
  if (!told.file.valid()) return fail_errno(EIO, "strait-cassini sent no pages");
  made->pages_ = std::move(told.file);
  made->id_ = static_cast<std::uint32_t>(told.answer.words[0]);
  if (told.answer.words[1] != 0) STRAIT_CHECK(made->helper_.start());
  return made;
}

Result<Told> Connection::ask(const protocol::Ask& ask, std::span<const std::byte> rest, std::span<const int> files) {
  if (!socket_.valid()) return fail_errno(EIO, "this device belongs to the process that opened it");
  const std::lock_guard lock(mutex_);
  return call(socket_.get(), ask, rest, files);
}

long Connection::write(std::span<const std::byte> command, const sys::Caller& caller,
                       std::span<const NamedMemory> memory) {
  protocol::Ask head = make_ask(protocol::Kind::write, {});
  sign(head, caller);
  head.carried = static_cast<std::uint8_t>(memory.size());
  std::vector<std::byte> rest(memory.size() * sizeof(protocol::Carried) + command.size());
  std::vector<int> files;
  std::byte* at = rest.data();
  for (const NamedMemory& each : memory) {
    std::memcpy(at, &each.said, sizeof each.said);
    at += sizeof each.said;
    if (each.said.error == 0 && each.said.memory == 0) files.push_back(each.file);
  }
  if (!command.empty()) std::memcpy(at, command.data(), command.size());
  const auto told = ask(head, rest, files);
  return told ? static_cast<long>(told->answer.result) : -EIO;
}

int Connection::map(std::uint64_t offset, std::uint64_t bytes, Client::Page& page) {
  const auto told = ask(make_ask(protocol::Kind::map, {offset, bytes}));
  if (told) page = static_cast<Client::Page>(told->answer.words[0]);
  return result_of(told);
}

void Connection::unmap(std::uint64_t offset) {
  (void)ask(make_ask(protocol::Kind::unmap, {offset}));
}

Result<sys::Fd> Connection::wait(std::uint32_t wait) {
  STRAIT_TRY(Told told, ask(make_ask(protocol::Kind::wait, {wait})));
  if (told.answer.result < 0)
    return fail_errno(static_cast<int>(-told.answer.result), fmt::format("no descriptor of wait object {}", wait));
  if (!told.file.valid()) return fail_errno(EIO, "strait-cassini sent no descriptor");
  return Result<sys::Fd>(std::move(told.file));
}

int Connection::share(std::uint64_t address, std::uint64_t bytes, int fd, std::uint64_t offset) {
  return result_of(ask(make_ask(protocol::Kind::share, {address, bytes, offset}), {}, {&fd, 1}));
}

int Connection::unshare(std::uint64_t address) {
  return result_of(ask(make_ask(protocol::Kind::unshare, {address})));
}

void Connection::tear_down(std::uint32_t md) {
  (void)ask(make_ask(protocol::Kind::tear_down, {md}));
}

void Connection::lend_port(std::uint32_t memory, const strait_memory_port* port) {
  helper_.lend(memory, port);
  (void)helper_.start();  // if it cannot, copies fail by time
}

std::string Connection::counters() {
  auto told = ask(make_ask(protocol::Kind::counters, {}));
  return told ? std::move(told->text) : std::string();
}

std::vector<Finding> Connection::findings() {
  if (!socket_.valid()) return {};
  const std::unique_lock lock = lock_within(mutex_, kEndPatienceNs);
  if (!lock.owns_lock()) return {};
  const auto told = call(socket_.get(), make_ask(protocol::Kind::findings, {}));
  return told && told->answer.result == 0 ? parse_findings(told->text) : std::vector<Finding>();
}

Result<std::string> ask_counters(int server) {
  STRAIT_TRY(Told told, call(server, make_ask(protocol::Kind::counters, {})));
  return Result<std::string>(std::move(told.text));
}

Result<std::uint64_t> ask_number(int server, protocol::Number which, std::uint32_t device) {
  STRAIT_TRY(Told told, call(server, make_ask(protocol::Kind::number, {static_cast<std::uint64_t>(which), device})));
  if (told.answer.result < 0) return fail_errno(static_cast<int>(-told.answer.result), "no such number");
  return told.answer.words[0];
}

}  // namespace strait::soft::cassini
