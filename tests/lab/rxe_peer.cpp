// SPDX-License-Identifier: Apache-2.0
// Runs in the lab's guest: plain libibverbs on rxe, at the command of a test outside. rxe_client.hpp is the other end.
//
//   rxe_peer DEVICE    on the guest's port strait.control (`run --control`)
//
// The protocol is lines of text. The peer begins with "ready"; then each request is answered by one line, "ok ..." or
// "error SENTENCE", in order. ID is a number that the test chooses for a queue pair. Values are decimal or 0x
// hexadecimal; a GID is 32 hexadecimal digits, ::ffff:a.b.c.d for IPv4. Offsets count in the queue pair's own memory.
//
//   open v4|v6 PMTU                      -> gid= mtu=           before all else, and again while there is no queue
//   pair;
//                                        PMTU in bytes
//   qp ID rc|uc|ud [memory=BYTES]        -> qpn= psn= gid= rkey= va= bytes= qkey=     (memory: 1 MiB)
//   info ID                              -> the same again
//   connect ID gid= qpn= psn= [timeout= retries= rnr_retries= rnr_timer= reads=]      RC, UC: to RTS with that remote
//   side connect ID                                                                        UD: to RTS fill ID OFFSET
//   BYTES SEED            -> crc32=              pattern.hpp crc ID OFFSET BYTES                  -> crc32= peek ID
//   OFFSET                       -> value=              8 bytes, as the CPU reads them poke ID OFFSET VALUE post ID
//   send|send_imm|send_inval|write|write_imm|read|fetch_add|cmp_swap wr=N at=OFFSET bytes=N [va= rkey=] [imm=]
//           [add=] [compare= swap=] [gid= qpn= qkey=] [sges=N] [unsignaled=1] [fence=1] [seed=N]
//                                        the last: fill() first. gid, qpn and qkey: where a UD send goes
//   receive ID wr=N at=OFFSET bytes=N    UD: 40 bytes of GRH come first, and count in bytes
//   wait ID MILLISECONDS                 -> one completion: wr= status= text= op= bytes= imm= src_qp= | none=1
//   state ID                             -> state=RTS
//   fail ID                              to ERR: everything outstanding is flushed
//   close ID
//   counters                             -> rxe's own counters that are not 0
//   quit
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "pattern.hpp"
#include "rxe_queue.hpp"
#include "words.hpp"

namespace strait::lab {
namespace {

using Answer = Result<std::string>;  // what follows "ok"

std::string gid_text(const ibv_gid& gid) {
  std::string text;
  for (const std::uint8_t byte : gid.raw) text += fmt::format("{:02x}", byte);
  return text;
}

Result<ibv_gid> parse_gid(const std::string& text) {
  ibv_gid gid{};
  bool good = text.size() == 2 * sizeof gid.raw;
  for (std::size_t i = 0; good && i < sizeof gid.raw; ++i) {
    const char* at = text.data() + 2 * i;
    good = std::from_chars(at, at + 2, gid.raw[i], 16).ptr == at + 2;
  }
  if (!good) return fail(Code::invalid, "'{}' is no GID of 32 hexadecimal digits", text);
  return gid;
}

Result<Remote> parse_remote(const Words& words) {
  Remote remote;
  STRAIT_TRY(const std::string gid, words.text("gid"));
  STRAIT_TRY(remote.gid, parse_gid(gid));
  STRAIT_TRY(const std::uint64_t qpn, words.number("qpn"));
  STRAIT_TRY(const std::uint64_t psn, words.number("psn", 0));
  STRAIT_TRY(const std::uint64_t qkey, words.number("qkey", 0));
  remote.qpn = static_cast<std::uint32_t>(qpn);
  remote.psn = static_cast<std::uint32_t>(psn) & 0xffffffu;
  remote.qkey = static_cast<std::uint32_t>(qkey);
  return remote;
}

class Peer {
 public:
  explicit Peer(std::string device) : device_(std::move(device)) {}

  Answer answer(const Words& words) {
    static const std::map<std::string_view, Answer (Peer::*)(const Words&)> commands = {
        {"open", &Peer::open},    {"qp", &Peer::make},      {"info", &Peer::info},        {"connect", &Peer::connect},
        {"fill", &Peer::fill},    {"crc", &Peer::crc},      {"peek", &Peer::peek},        {"poke", &Peer::poke},
        {"post", &Peer::post},    {"receive", &Peer::recv}, {"wait", &Peer::wait},        {"state", &Peer::state},
        {"fail", &Peer::fail_it}, {"close", &Peer::close},  {"counters", &Peer::counters}};
    const auto found = commands.find(words.word(0));
    if (found == commands.end()) return fail(Code::invalid, "there is no command '{}'", words.word(0));
    return (this->*found->second)(words);
  }

 private:
  Answer open(const Words& words) {
    if (!queues_.empty()) return fail(Code::invalid, "there are queue pairs of what is open now");
    const std::string_view family = words.word(1);
    if (family != "v4" && family != "v6") return fail(Code::invalid, "open v4 or v6, not '{}'", family);
    STRAIT_TRY(const std::uint64_t pmtu, words.number(2));
    STRAIT_TRY(Port port, Port::open(device_, family == "v6", static_cast<std::uint32_t>(pmtu)));
    port_.emplace(std::move(port));  // the one before goes
    return fmt::format("gid={} mtu={}", gid_text(port_->gid), pmtu);
  }

  Answer make(const Words& words) {
    if (!port_) return fail(Code::invalid, "open comes first");
    STRAIT_TRY(const std::uint64_t id, words.number(1));
    if (queues_.contains(id)) return fail(Code::invalid, "there is a queue pair {} already", id);
    const std::string_view type = words.word(2);
    const std::map<std::string_view, ibv_qp_type> types = {{"rc", IBV_QPT_RC}, {"uc", IBV_QPT_UC}, {"ud", IBV_QPT_UD}};
    if (!types.contains(type)) return fail(Code::invalid, "rc, uc or ud, not '{}'", type);
    STRAIT_TRY(const std::uint64_t memory, words.number("memory", 1 << 20));
    STRAIT_TRY(auto queue, Queue::make(*port_, types.at(type), memory));
    queues_.emplace(id, std::move(queue));
    return info(words);
  }

  Answer info(const Words& words) {
    STRAIT_TRY(const Queue* queue, find(words));
    STRAIT_TRY(const std::span<std::byte> memory, queue->memory(0, 0));
    return fmt::format("qpn={:#x} psn={:#x} gid={} rkey={:#x} va={:#x} bytes={} qkey={:#x}", queue->qpn(), queue->psn(),
                       gid_text(port_->gid), queue->rkey(), reinterpret_cast<std::uintptr_t>(memory.data()),
                       queue->memory_bytes(), Queue::kQkey);
  }

  Answer connect(const Words& words) {
    STRAIT_TRY(Queue * queue, find(words));
    Remote remote;
    if (!queue->datagram()) {
      STRAIT_TRY(remote, parse_remote(words));
    }
    Timing timing;
    for (const auto& [name, value] : {std::pair<const char*, std::uint8_t*>{"timeout", &timing.timeout},
                                      {"retries", &timing.retries},
                                      {"rnr_retries", &timing.rnr_retries},
                                      {"rnr_timer", &timing.rnr_timer},
                                      {"reads", &timing.reads}}) {
      STRAIT_TRY(const std::uint64_t given, words.number(name, *value));
      *value = static_cast<std::uint8_t>(given);
    }
    STRAIT_CHECK(queue->connect(remote, timing));
    return std::string();
  }

  Answer fill(const Words& words) {
    STRAIT_TRY(const std::span<std::byte> bytes, span(words));
    STRAIT_TRY(const std::uint64_t seed, words.number(4));
    lab::fill(bytes, seed);
    return fmt::format("crc32={:#x}", crc32(bytes));
  }
  Answer crc(const Words& words) {
    STRAIT_TRY(const std::span<std::byte> bytes, span(words));
    return fmt::format("crc32={:#x}", crc32(bytes));
  }

  Answer peek(const Words& words) {
    STRAIT_TRY(const std::span<std::byte> bytes, word_at(words));
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return fmt::format("value={:#x}", value);
  }
  Answer poke(const Words& words) {
    STRAIT_TRY(const std::span<std::byte> bytes, word_at(words));
    STRAIT_TRY(const std::uint64_t value, words.number(3));
    std::memcpy(bytes.data(), &value, sizeof value);
    return std::string();
  }

  Answer post(const Words& words) {
    static const std::map<std::string_view, ibv_wr_opcode> opcodes = {{"send", IBV_WR_SEND},
                                                                      {"send_imm", IBV_WR_SEND_WITH_IMM},
                                                                      {"send_inval", IBV_WR_SEND_WITH_INV},
                                                                      {"write", IBV_WR_RDMA_WRITE},
                                                                      {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
                                                                      {"read", IBV_WR_RDMA_READ},
                                                                      {"fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD},
                                                                      {"cmp_swap", IBV_WR_ATOMIC_CMP_AND_SWP}};
    STRAIT_TRY(Queue * queue, find(words));
    const auto opcode = opcodes.find(words.word(2));
    if (opcode == opcodes.end()) return fail(Code::invalid, "there is no operation '{}'", words.word(2));
    Work work;
    work.opcode = opcode->second;
    STRAIT_TRY(work.id, words.number("wr"));
    STRAIT_TRY(work.at, words.number("at"));
    STRAIT_TRY(const std::uint64_t bytes, words.number("bytes"));
    STRAIT_TRY(work.remote_address, words.number("va", 0));
    STRAIT_TRY(const std::uint64_t rkey, words.number("rkey", 0));
    STRAIT_TRY(const std::uint64_t immediate, words.number("imm", 0));
    STRAIT_TRY(work.compare_add, words.number(words.has("add") ? "add" : "compare", 0));
    STRAIT_TRY(work.swap, words.number("swap", 0));
    STRAIT_TRY(const std::uint64_t sges, words.number("sges", 1));
    work.length_bytes = static_cast<std::uint32_t>(bytes);
    work.rkey = static_cast<std::uint32_t>(rkey);
    work.immediate = static_cast<std::uint32_t>(immediate);
    work.sges = static_cast<std::uint32_t>(sges);
    work.signaled = !words.has("unsignaled");
    work.fence = words.has("fence");
    if (queue->datagram()) {
      STRAIT_TRY(work.to, parse_remote(words));
    }
    if (words.has("seed")) {
      STRAIT_TRY(const std::uint64_t seed, words.number("seed"));
      STRAIT_TRY(const std::span<std::byte> memory, queue->memory(work.at, work.length_bytes));
      lab::fill(memory, seed);
    }
    STRAIT_CHECK(queue->post(work));
    return std::string();
  }

  Answer recv(const Words& words) {
    STRAIT_TRY(Queue * queue, find(words));
    STRAIT_TRY(const std::uint64_t id, words.number("wr"));
    STRAIT_TRY(const std::uint64_t at, words.number("at"));
    STRAIT_TRY(const std::uint64_t bytes, words.number("bytes"));
    STRAIT_CHECK(queue->receive(id, at, static_cast<std::uint32_t>(bytes)));
    return std::string();
  }

  Answer wait(const Words& words) {
    STRAIT_TRY(Queue * queue, find(words));
    STRAIT_TRY(const std::uint64_t ms, words.number(2));
    STRAIT_TRY(const std::optional<ibv_wc> got,
               queue->wait(sys::Deadline::after_ns(static_cast<std::int64_t>(ms) * 1'000'000)));
    if (!got) return std::string("none=1");
    std::string text = ibv_wc_status_str(got->status);
    std::replace(text.begin(), text.end(), ' ', '_');
    const std::uint32_t immediate = (got->wc_flags & IBV_WC_WITH_IMM) != 0 ? __builtin_bswap32(got->imm_data) : 0;
    return fmt::format("wr={} status={} text={} op={} bytes={} imm={:#x} src_qp={:#x}", got->wr_id,
                       static_cast<int>(got->status), text, static_cast<int>(got->opcode), got->byte_len, immediate,
                       got->src_qp);
  }

  Answer state(const Words& words) {
    STRAIT_TRY(const Queue* queue, find(words));
    STRAIT_TRY(const std::string name, queue->state());
    return "state=" + name;
  }
  Answer fail_it(const Words& words) {
    STRAIT_TRY(Queue * queue, find(words));
    STRAIT_CHECK(queue->fail());
    return std::string();
  }
  Answer close(const Words& words) {
    STRAIT_CHECK(find(words));
    STRAIT_TRY(const std::uint64_t id, words.number(1));
    queues_.erase(id);
    return std::string();
  }

  Answer counters(const Words&) {
    std::string text;
    std::error_code error;
    const std::string folder = "/sys/class/infiniband/" + device_ + "/ports/1/hw_counters";
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      std::uint64_t value = 0;
      if (std::ifstream(entry.path()) >> value && value != 0)
        text += fmt::format("{}={} ", entry.path().filename().string(), value);
    }
    if (error) return fail(Code::system, "cannot read {}", folder);
    return text;
  }

  Result<Queue*> find(const Words& words) {
    STRAIT_TRY(const std::uint64_t id, words.number(1));
    const auto found = queues_.find(id);
    if (found == queues_.end()) return fail(Code::invalid, "there is no queue pair {}", id);
    return found->second.get();
  }
  Result<std::span<std::byte>> span(const Words& words) {
    STRAIT_TRY(const Queue* queue, find(words));
    STRAIT_TRY(const std::uint64_t at, words.number(2));
    STRAIT_TRY(const std::uint64_t bytes, words.number(3));
    return queue->memory(at, bytes);
  }
  Result<std::span<std::byte>> word_at(const Words& words) {
    STRAIT_TRY(const Queue* queue, find(words));
    STRAIT_TRY(const std::uint64_t at, words.number(2));
    return queue->memory(at, sizeof(std::uint64_t));
  }

  std::string device_;
  std::optional<Port> port_;
  std::map<std::uint64_t, std::unique_ptr<Queue>> queues_;  // they go before the port
};

// Nothing names the port in /dev without udev; sysfs does.
Result<sys::Fd> open_control() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/virtio-ports", error)) {
    std::string name;
    if (!(std::ifstream(entry.path() / "name") >> name) || name != "strait.control") continue;
    const std::string path = "/dev/" + entry.path().filename().string();
    sys::Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd.valid()) return fail_errno(errno, "cannot open " + path);
    return fd;
  }
  return fail(Code::invalid, "there is no port strait.control (run --control SOCKET makes it)");
}

bool say(int fd, std::string line) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

int serve(const std::string& device) {
  const auto control = open_control();
  if (!control) {
    std::fprintf(stderr, "rxe_peer: %s\n", control.error().explain().c_str());
    return 2;
  }
  Peer peer(device);
  if (!say(control->get(), "ready")) return 3;
  std::string pending;
  for (char piece[4096];;) {
    const ssize_t n = ::read(control->get(), piece, sizeof piece);
    if (n <= 0) return 3;  // whoever gave the orders is gone
    pending.append(piece, static_cast<std::size_t>(n));
    for (std::size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
      const Words words = Words::parse(std::string_view(pending).substr(0, end));
      if (words.word(0) == "quit") return say(control->get(), "ok") ? 0 : 3;
      const Answer answer = peer.answer(words);
      std::string line = answer ? "ok " + *answer : "error " + answer.error().explain();
      std::replace(line.begin(), line.end(), '\n', ' ');
      if (!say(control->get(), std::move(line))) return 3;
    }
  }
}

}  // namespace
}  // namespace strait::lab

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: rxe_peer DEVICE\n");
    return 2;
  }
  return strait::lab::serve(argv[1]);
}
