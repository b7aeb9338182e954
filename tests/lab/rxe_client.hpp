// SPDX-License-Identifier: Apache-2.0
// On the host: RxeClient speaks to the rxe_peer in a guest (its head has the protocol) and names queue pairs for it.
//
//   auto guest = Guest::boot({.name = "mine"});            // guest.hpp
//   RxeClient rxe(**guest);
//   auto port = rxe.open(Family::v4, 1024);                // gid of the guest
//   auto far = rxe.make(QueueKind::rc);                    // qpn, psn, rkey, va: what the other side must know
//   rxe.connect(far->id, {.gid = mine, .qpn = 0x12, .psn = 5});
//   rxe.post(far->id, {.op = "write", .bytes = 3000, .va = va, .rkey = rkey, .seed = 7});
//   auto done = rxe.wait(far->id);                         // done->status == 0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "guest.hpp"
#include "words.hpp"

namespace strait::lab {

enum class Family { v4, v6 };
enum class QueueKind { rc, uc, ud };
using Gid = std::array<std::uint8_t, 16>;

[[nodiscard]] inline std::string gid_text(const Gid& gid) {
  std::string text;
  for (const std::uint8_t byte : gid) text += fmt::format("{:02x}", byte);
  return text;
}

struct RxeQueue {
  std::uint64_t id = 0;
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;  // of the first packet that it sends
  Gid gid{};
  std::uint32_t rkey = 0;
  std::uint64_t va = 0;
  std::uint64_t bytes = 0;
  std::uint32_t qkey = 0;
};

struct RxeRemote {
  Gid gid{};
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  std::uint32_t qkey = 0;
  std::string more{};  // of connect: "timeout=14 retries=3 rnr_retries=0"
};

struct RxeWork {
  std::string op = "send";  // send, send_imm, send_inval (of rkey), write, write_imm, read, fetch_add, cmp_swap
  std::uint64_t wr = 1;
  std::uint64_t at = 0;
  std::uint32_t bytes = 0;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;
  std::uint64_t add = 0;
  std::uint64_t compare = 0;
  std::uint64_t swap = 0;
  std::uint32_t sges = 1;
  bool unsignaled = false;
  bool fence = false;
  std::optional<std::uint64_t> seed{};  // fill the memory first
  std::optional<RxeRemote> to{};        // UD
};

struct RxeCompletion {
  std::uint64_t wr = 0;
  int status = 0;    // ibv_wc_status
  std::string text;  // of it, blanks as _
  int opcode = 0;    // ibv_wc_opcode
  std::uint32_t bytes = 0;
  std::uint32_t imm = 0;
  std::uint32_t src_qp = 0;
};

class RxeClient {
 public:
  explicit RxeClient(Guest& guest) : guest_(guest) {}

  [[nodiscard]] Result<Gid> open(Family family, std::uint32_t pmtu_bytes) {
    STRAIT_TRY(const Words said, ask(fmt::format("open {} {}", family == Family::v4 ? "v4" : "v6", pmtu_bytes)));
    return gid_of(said);
  }

  [[nodiscard]] Result<RxeQueue> make(QueueKind kind, std::uint64_t memory_bytes = 1 << 20) {
    RxeQueue queue;
    queue.id = ++last_id_;
    STRAIT_TRY(const Words said, ask(fmt::format("qp {} {} memory={}", queue.id,
                                                 kind == QueueKind::rc   ? "rc"
                                                 : kind == QueueKind::uc ? "uc"
                                                                         : "ud",
                                                 memory_bytes)));
    STRAIT_TRY(queue.gid, gid_of(said));
    STRAIT_TRY(queue.qpn, number32(said, "qpn"));
    STRAIT_TRY(queue.psn, number32(said, "psn"));
    STRAIT_TRY(queue.rkey, number32(said, "rkey"));
    STRAIT_TRY(queue.qkey, number32(said, "qkey"));
    STRAIT_TRY(queue.va, said.number("va"));
    STRAIT_TRY(queue.bytes, said.number("bytes"));
    return queue;
  }

  [[nodiscard]] Status connect(std::uint64_t id, const RxeRemote& to) {
    return done(
        ask(fmt::format("connect {} gid={} qpn={:#x} psn={:#x} {}", id, gid_text(to.gid), to.qpn, to.psn, to.more)));
  }

  [[nodiscard]] Status post(std::uint64_t id, const RxeWork& work) {
    std::string line = fmt::format("post {} {} wr={} at={} bytes={} va={:#x} rkey={:#x} imm={:#x} sges={}", id, work.op,
                                   work.wr, work.at, work.bytes, work.va, work.rkey, work.imm, work.sges);
    if (work.op == "fetch_add") line += fmt::format(" add={:#x}", work.add);
    if (work.op == "cmp_swap") line += fmt::format(" compare={:#x} swap={:#x}", work.compare, work.swap);
    if (work.unsignaled) line += " unsignaled=1";
    if (work.fence) line += " fence=1";
    if (work.seed) line += fmt::format(" seed={}", *work.seed);
    if (work.to)
      line += fmt::format(" gid={} qpn={:#x} qkey={:#x}", gid_text(work.to->gid), work.to->qpn, work.to->qkey);
    return done(ask(line));
  }

  [[nodiscard]] Status receive(std::uint64_t id, std::uint64_t wr, std::uint64_t at, std::uint32_t bytes) {
    return done(ask(fmt::format("receive {} wr={} at={} bytes={}", id, wr, at, bytes)));
  }

  // Nothing: none came within the time.
  [[nodiscard]] Result<std::optional<RxeCompletion>> poll(std::uint64_t id, std::uint32_t ms) {
    STRAIT_TRY(const Words said, ask(fmt::format("wait {} {}", id, ms), 60'000'000'000 + ms * std::int64_t{1'000'000}));
    if (said.has("none")) return std::optional<RxeCompletion>();
    RxeCompletion completion;
    STRAIT_TRY(completion.wr, said.number("wr"));
    STRAIT_TRY(const std::uint32_t status, number32(said, "status"));
    STRAIT_TRY(const std::uint32_t opcode, number32(said, "op"));
    completion.status = static_cast<int>(status);
    completion.opcode = static_cast<int>(opcode);
    STRAIT_TRY(completion.text, said.text("text"));
    STRAIT_TRY(completion.bytes, number32(said, "bytes"));
    STRAIT_TRY(completion.imm, number32(said, "imm"));
    STRAIT_TRY(completion.src_qp, number32(said, "src_qp"));
    return std::optional(completion);
  }
  // The same, where none is an error.
  [[nodiscard]] Result<RxeCompletion> wait(std::uint64_t id, std::uint32_t ms = 60'000) {
    STRAIT_TRY(const std::optional<RxeCompletion> got, poll(id, ms));
    if (!got) return fail(Code::timeout, "queue pair {} of the guest completed nothing in {} ms", id, ms);
    return *got;
  }

  [[nodiscard]] Result<std::uint32_t> fill(std::uint64_t id, std::uint64_t at, std::uint64_t bytes,
                                           std::uint64_t seed) {
    STRAIT_TRY(const Words said, ask(fmt::format("fill {} {} {} {}", id, at, bytes, seed)));
    return number32(said, "crc32");
  }
  [[nodiscard]] Result<std::uint32_t> crc(std::uint64_t id, std::uint64_t at, std::uint64_t bytes) {
    STRAIT_TRY(const Words said, ask(fmt::format("crc {} {} {}", id, at, bytes)));
    return number32(said, "crc32");
  }
  [[nodiscard]] Result<std::uint64_t> peek(std::uint64_t id, std::uint64_t at) {
    STRAIT_TRY(const Words said, ask(fmt::format("peek {} {}", id, at)));
    return said.number("value");
  }
  [[nodiscard]] Status poke(std::uint64_t id, std::uint64_t at, std::uint64_t value) {
    return done(ask(fmt::format("poke {} {} {:#x}", id, at, value)));
  }
  [[nodiscard]] Result<std::string> state(std::uint64_t id) {
    STRAIT_TRY(const Words said, ask(fmt::format("state {}", id)));
    return said.text("state");
  }
  [[nodiscard]] Status fail_queue(std::uint64_t id) { return done(ask(fmt::format("fail {}", id))); }
  [[nodiscard]] Status close(std::uint64_t id) { return done(ask(fmt::format("close {}", id))); }
  // rxe's own counters: number("duplicate_request", 0), number("rcvd_seq_err", 0), ...
  [[nodiscard]] Result<Words> counters() { return ask("counters"); }

 private:
  Result<Words> ask(const std::string& line, std::int64_t within_ns = 60'000'000'000) {
    STRAIT_TRY(const std::string answer, guest_.ask(line, within_ns));
    return Words::parse(answer);
  }
  static Status done(const Result<Words>& answer) {
    if (!answer) return answer.error();
    return {};
  }
  static Result<std::uint32_t> number32(const Words& words, std::string_view name) {
    STRAIT_TRY(const std::uint64_t value, words.number(name));
    return static_cast<std::uint32_t>(value);
  }
  static Result<Gid> gid_of(const Words& words) {
    STRAIT_TRY(const std::string text, words.text("gid"));
    Gid gid{};
    if (text.size() != 2 * gid.size()) return fail(Code::device, "the guest says the GID '{}'", text);
    for (std::size_t i = 0; i < gid.size(); ++i)
      std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, gid[i], 16);
    return gid;
  }

  Guest& guest_;
  std::uint64_t last_id_ = 0;
};

}  // namespace strait::lab
