// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/session.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "soft/cassini_host/carried_files.hpp"
#include "soft/cassini_host/trial.hpp"

namespace strait::soft::cassini {
namespace {

constexpr int kSettlePasses = 256;

Who who_of(const protocol::Ask& ask) {
  Who who;
  who.uid = ask.uid;
  who.gid = ask.gid;
  who.netns = ask.network;
  who.admin = ask.admin != 0;
  who.net_raw = ask.net_raw != 0;
  return who;
}

}  // namespace

void settle(Fabric& fabric) {
  for (int i = 0; i < kSettlePasses && fabric.drive() != 0; ++i) {
  }
}

std::string counters_of(Fabric& fabric) {
  std::map<std::string, std::uint64_t> sums;
  for (std::uint32_t i = 0; i < fabric.cards(); ++i) {
    for (const auto& [name, value] : fabric.card(i)->numbers.snapshot()) sums[name] += value;
  }
  std::string out;
  for (const auto& [name, value] : sums) out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, value);
  return out;
}

bool Session::serve() {
  auto packet = sys::receive_packet(socket_.get(), protocol::kMostBytes);
  if (!packet) return packet.error().code == Code::again;
  protocol::Ask ask{};
  if (packet->bytes.size() < sizeof ask) return false;
  std::memcpy(&ask, packet->bytes.data(), sizeof ask);
  if (ask.magic != protocol::kMagic) return false;
  Reply reply;
  answer(ask, std::span<const std::byte>(packet->bytes).subspan(sizeof ask), packet->fds, reply);
  protocol::Answer head{reply.result, {reply.words[0], reply.words[1], reply.words[2]}};
  std::vector<std::byte> out(sizeof head + reply.text.size());
  std::memcpy(out.data(), &head, sizeof head);
  if (!reply.text.empty()) std::memcpy(out.data() + sizeof head, reply.text.data(), reply.text.size());
  const int fd = reply.file.get();
  // One ask at a time: the socket is only full for who asks and never reads. All others would wait for it.
  return static_cast<bool>(sys::send_packet(socket_.get(), out, {&fd, reply.file.valid() ? 1u : 0u}));
}

void Session::hello(const protocol::Ask& ask, std::span<const std::byte> rest, std::vector<sys::Fd>& files,
                    Reply& reply) {
  if (client_ || ask.words[0] != protocol::kVersion || files.size() != 1 || rest.size() > protocol::kMostFaults) {
    reply.result = -EINVAL;
    return;
  }
  const auto options =
      TrialSettings::parse(ask.strict != 0, ask.strict_seed, {reinterpret_cast<const char*>(rest.data()), rest.size()});
  if (!options) {
    reply.result = -EINVAL;
    return;
  }
  Card* const card = fabric_.card(static_cast<std::uint32_t>(ask.words[1]));
  if (card == nullptr || ask.words[1] >= fabric_.cards()) {
    reply.result = -ENODEV;
    return;
  }
  auto pages = sys::make_sealed_memfd("strait-cxi", Client::kPagesBytes);
  auto copy = pages ? pages->duplicate() : Result<sys::Fd>(pages.error());
  if (!copy) {
    reply.result = copy.error().sys_errno != 0 ? -copy.error().sys_errno : -ENOMEM;
    return;
  }
  asker_ = std::make_shared<MemoryAsker>(std::move(files.front()), patience_);
  memory_ = std::make_unique<ProcessMemory>(relay_, peer_.pid, ask.words[2], ask.words[3], asker_, patience_,
                                            may_reach_ && !patience_->given_up());
  client_ = std::make_unique<Client>(*card, id_, who_of(ask), *memory_, std::move(*pages), waits_);
  client_->use(*options);
  reply.words[0] = id_;
  reply.words[1] = memory_->has_to_ask() ? 1 : 0;
  reply.file = std::move(*copy);
}

void Session::write(const protocol::Ask& ask, std::span<const std::byte> rest, std::vector<sys::Fd>& files,
                    Reply& reply) {
  const std::size_t carried = ask.carried;
  if (carried > protocol::kMostCarried || rest.size() < carried * sizeof(protocol::Carried)) {
    reply.result = -EINVAL;
    return;
  }
  CarriedFiles came(asker_);
  std::size_t next_file = 0;
  for (std::size_t i = 0; i < carried; ++i) {
    protocol::Carried piece{};
    std::memcpy(&piece, rest.data() + i * sizeof piece, sizeof piece);
    const bool with_file = piece.error == 0 && piece.memory == 0;
    if (with_file && next_file >= files.size()) {
      reply.result = -EINVAL;
      return;
    }
    came.add(piece, with_file ? std::move(files[next_file++]) : sys::Fd());
  }
  client_->become(who_of(ask));
  reply.result = client_->write(rest.subspan(carried * sizeof(protocol::Carried)), came);
  if (reply.result <= 0) return;
  // A wait object that goes takes its descriptor with it.
  wire::WaitFreeCmd command{};
  const auto bytes = rest.subspan(carried * sizeof(protocol::Carried));
  if (bytes.size() != sizeof command) return;
  std::memcpy(&command, bytes.data(), sizeof command);
  if (command.op == wire::WaitFreeCmd::kOp) waits_.forget(command.wait);
}

void Session::number(const protocol::Ask& ask, Reply& reply) {
  Card* const card = ask.words[1] < fabric_.cards() ? fabric_.card(static_cast<std::uint32_t>(ask.words[1])) : nullptr;
  if (card == nullptr) {
    reply.result = -ENODEV;
    return;
  }
  switch (static_cast<protocol::Number>(ask.words[0])) {
    case protocol::Number::rgids_free: reply.words[0] = card->rgids_available(); return;
    case protocol::Number::odp_requests: reply.words[0] = card->numbers.get("odp_requests").load(); return;
    case protocol::Number::flushes: reply.words[0] = card->tally.flushes.load(); return;
    case protocol::Number::restricted: reply.words[0] = card->tally.restricted.load(); return;
    case protocol::Number::landed: reply.words[0] = card->tally.landed.load(); return;
  }
  reply.result = -EINVAL;
}

void Session::answer(const protocol::Ask& ask, std::span<const std::byte> rest, std::vector<sys::Fd>& files,
                     Reply& reply) {
  switch (ask.kind) {
    case protocol::Kind::hello: return hello(ask, rest, files, reply);
    case protocol::Kind::counters: reply.text = counters_of(fabric_); return;
    case protocol::Kind::number: return number(ask, reply);
    default: break;
  }
  reply.result = -EINVAL;
  if (!client_) return;
  switch (ask.kind) {
    case protocol::Kind::write: return write(ask, rest, files, reply);
    case protocol::Kind::map:
      reply.words[0] = static_cast<std::uint64_t>(client_->page(ask.words[0]));
      reply.result = client_->map(ask.words[0], ask.words[1]);
      return;
    case protocol::Kind::unmap:
      client_->unmap(ask.words[0]);
      reply.result = 0;
      return;
    case protocol::Kind::wait: {
      auto fd = waits_.open(static_cast<std::uint32_t>(ask.words[0]));
      reply.result = fd ? 0 : fd.error().sys_errno != 0 ? -fd.error().sys_errno : -EMFILE;
      if (fd) reply.file = std::move(*fd);
      return;
    }
    case protocol::Kind::share:
      if (files.size() == 1)
        reply.result = memory_->share(ask.words[0], ask.words[1], files.front().get(), ask.words[2]);
      return;
    case protocol::Kind::findings:
      settle(fabric_);
      reply.text = findings_text(client_->take_findings(protocol::kMostFindings));
      reply.result = 0;
      return;
    case protocol::Kind::unshare: reply.result = memory_->unshare(ask.words[0]); return;
    case protocol::Kind::tear_down:
      client_->tear_down(static_cast<std::uint32_t>(ask.words[0]));
      reply.result = 0;
      return;
    default: return;
  }
}

}  // namespace strait::soft::cassini
