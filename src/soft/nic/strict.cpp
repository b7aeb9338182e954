// SPDX-License-Identifier: Apache-2.0
// Strict: findings, and what a program does to memory that belongs to an operation.
#include "soft/nic/strict.hpp"

#include <algorithm>
#include <cstring>

#include "soft/nic/queue_pair.hpp"
#include "sys/guard.hpp"
#include "sys/host.hpp"
#include "sys/report.hpp"

namespace strait::soft::nic {
namespace m = wire::mlx5;

namespace {

constexpr std::uint32_t kLatest = 16;       // passes
constexpr std::uint64_t kIsWqe = 1u << 31;  // in a guard's tag, beside the 24 bits of a queue pair's number

struct RuleText {
  const char* name;
  const char* text;
  const char* remedy;
};
constexpr RuleText kTexts[kRules] = {
    {"source-changed", "the source changed between post and completion",
     "keep the source as it is until its completion was taken, or use another buffer"},
    {"target-read-early", "the target was read before its signal or completion",
     "wait for the signal, the receive or the completion, and read only then"},
    {"last-byte-polled", "the last byte of the target was polled to find out whether the data has arrived",
     "bytes land in any order: wait for a signal, an immediate or a message instead"},
    {"send-queue-overrun", "more work was posted than the send queue holds",
     "take completions before posting into slots that are still in use"},
    {"completion-queue-overrun", "a completion found its queue full",
     "make the completion queue as long as all work that can be under way, or take completions sooner"},
    {"used-after-deregistration", "memory was used after it was deregistered",
     "deregister only when every operation that uses the memory is complete, and post none afterwards"},
    {"unflushed-read", "an operation reads what an earlier one, not yet complete, is writing",
     "wait for or flush the earlier operation first; for a get or atomic before it a fence is enough"},
    {"receive-too-late", "a message arrived before a receive was posted for it",
     "post receives before the peer may send; the sender had to wait and try again"},
    {"queue-cannot-drain", "the send queue is full of work of which none asked for a completion",
     "ask for a completion at least once in every queue length"},
};

// One aligned word in one piece: a CPU that polls it never sees half of it, as with an ordinary NIC.
void store_line(std::byte* to, const std::byte* from, std::size_t n) {
  if (n != 8 || reinterpret_cast<std::uintptr_t>(to) % 8 != 0) {
    std::memcpy(to, from, n);
    return;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, from, 8);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), word, __ATOMIC_RELEASE);
}

}  // namespace

const char* rule_name(Rule rule) {
  return kTexts[static_cast<std::size_t>(rule)].name;
}
const char* rule_text(Rule rule) {
  return kTexts[static_cast<std::size_t>(rule)].text;
}
const char* rule_remedy(Rule rule) {
  return kTexts[static_cast<std::size_t>(rule)].remedy;
}

std::uint64_t strict_seed_of(std::uint64_t option, const std::optional<FaultPlan>& faults) {
  return option != 0 ? option : faults ? faults->seed : 1;
}

Strict::Strict(std::string nic, StrictConfig config)
    : nic_(std::move(nic)), config_(std::move(config)), state_(config_.seed * 2654435761u + 1) {
  sys::catch_guarded_reads();
}

Strict::~Strict() {
  collect();
}

std::uint64_t Strict::random() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_ >> 11;
}

std::uint32_t Strict::lateness() {
  return 1 + static_cast<std::uint32_t>(random() % kLatest);
}

void Strict::found(Rule rule, std::uint32_t qpn, std::uint64_t wqe, const std::string& what, std::uint64_t message) {
  ++counts_[static_cast<std::size_t>(rule)];
  if (!reported_.emplace(rule, qpn).second) return;
  std::string place = fmt::format("queue pair {:#x}", qpn);
  if (wqe != kNone) place += fmt::format(", WQE {}", wqe & 0xffff);
  if (message != kNone) place += fmt::format(", message {} of its peer", message);
  const auto number = [](std::uint64_t value, std::uint64_t mask) {
    return value == kNone ? std::string("null") : std::to_string(value & mask);
  };
  sys::Report report;
  report.text = fmt::format(
      "strict: process {}, {}, {}: {}\n  {}\n  rule {}; remedy: {}\n  seed {} (option strict_seed)\n",
      sys::process_id(), nic_, place, rule_text(rule), what, rule_name(rule), rule_remedy(rule), config_.seed);
  report.json = fmt::format(
      R"({{"process":{},"nic":{},"queue_pair":{},"wqe":{},"message":{},"rule":"{}","text":{},"what":{},"remedy":{},"seed":{}}})",
      sys::process_id(), sys::json_string(nic_), qpn, number(wqe, 0xffff), number(message, kNone), rule_name(rule),
      sys::json_string(rule_text(rule)), sys::json_string(what), sys::json_string(rule_remedy(rule)), config_.seed);
  report.file = config_.report;
  report.exit_code = config_.exit_code;
  report.quiet = config_.quiet;
  sys::deliver(report);
}

std::uint64_t Strict::causes(Rule rule) const {
  return static_cast<std::uint64_t>(
      std::count_if(reported_.begin(), reported_.end(), [&](const auto& each) { return each.first == rule; }));
}

bool Strict::overlap(const Range& a, const Range& b) {
  return a.key == b.key && a.address < b.address + b.length && b.address < a.address + a.length;
}

std::uint64_t Strict::sum_of(const Work& work, MemoryTable& memory) {
  std::uint64_t sum = 1469598103934665603ull;
  std::byte chunk[4096];
  for (const Range& range : work.local) {
    for (std::uint64_t done = 0; done < range.length; done += sizeof chunk) {
      const std::uint64_t n = std::min<std::uint64_t>(sizeof chunk, range.length - done);
      Registration* const from = memory.find(range.key);
      if (from == nullptr || !from->covers(range.address + done, n)) return 0;  // gone: another rule's business
      if (from->bytes != nullptr) open(from->at(range.address + done), n);
      if (!read_bytes(*from, range.address + done, chunk, n)) return 0;
      for (std::uint64_t i = 0; i < n; ++i) sum = (sum ^ std::to_integer<std::uint64_t>(chunk[i])) * 1099511628211ull;
    }
  }
  return sum == 0 ? 1 : sum;
}

void Strict::started(QueuePair& qp, std::uint64_t index, const SendWork& work, MemoryTable& memory) {
  auto& queue = under_way_[qp.qpn];
  if (queue.contains(index)) return;  // sent again
  Work now;
  const bool payload = work.opcode == m::Opcode::send || work.opcode == m::Opcode::send_imm ||
                       work.opcode == m::Opcode::send_inval || work.opcode == m::Opcode::rdma_write ||
                       work.opcode == m::Opcode::rdma_write_imm;
  const bool write = work.opcode == m::Opcode::rdma_write || work.opcode == m::Opcode::rdma_write_imm;
  const bool read = work.opcode == m::Opcode::rdma_read;
  const bool atomic = !payload && !read && work.opcode != m::Opcode::nop;
  for (std::uint32_t i = 0; i < work.n_pieces; ++i) {
    if (!work.pieces[i].in_ring)
      now.local.push_back({work.pieces[i].address, work.pieces[i].length_bytes, work.pieces[i].lkey});
  }
  now.has_source = payload && !now.local.empty();
  now.writes = write || atomic;
  now.reads = read || atomic;
  // To name memory in a work request is to touch it: the NIC, or the peer's, does so from now on.
  for (const Range& range : now.local) {
    const Registration* const named = memory.find(range.key);
    if (named == nullptr || named->bytes == nullptr || !named->covers(range.address, range.length)) continue;
    // Two reads into the same place bring one or the other: nobody looks at it before they are told.
    if (now.reads && is_being_read_into(named->at(range.address), range.length)) continue;
    sys::touch_guarded_pages(named->at(range.address), range.length);
  }
  if (write || read || atomic) now.remote = {work.raddr, work.total_bytes, work.rkey};

  for (const auto& [other, earlier] : queue) {
    // What it fetches is still being written; a fence is enough only behind reads and atomics.
    if (read && earlier.writes && !earlier.reads && overlap(now.remote, earlier.remote)) {
      found(Rule::unflushed_read, qp.qpn, index,
            fmt::format("it reads {} bytes at {:#x} of the peer, which WQE {} is writing", now.remote.length,
                        now.remote.address, other & 0xffff));
    }
    if (!earlier.reads || work.fence || !now.has_source) continue;
    for (const Range& source : now.local) {
      for (const Range& into : earlier.local) {
        if (!overlap(source, into)) continue;
        found(Rule::unflushed_read, qp.qpn, index,
              fmt::format("its source at {:#x} is what WQE {} brings", source.address, other & 0xffff));
      }
    }
  }

  std::uint32_t& unsignaled = unsignaled_[qp.qpn];
  unsignaled = work.signaled || qp.all_signaled ? 0 : unsignaled + work.blocks;
  if (unsignaled >= qp.sq_blocks) {
    found(Rule::queue_cannot_drain, qp.qpn, index,
          fmt::format("its {} blocks hold work requests without a completion", qp.sq_blocks));
  }
  if (now.has_source) now.sum = sum_of(now, memory);
  collect();
  queue.emplace(index, std::move(now));
}

void Strict::completed(QueuePair& qp, std::uint64_t index, MemoryTable& memory) {
  auto& queue = under_way_[qp.qpn];
  const auto work = queue.find(index);
  if (work == queue.end()) return;
  if (work->second.has_source && work->second.sum != 0) {
    const std::uint64_t sum = sum_of(work->second, memory);
    if (sum != 0 && sum != work->second.sum) {
      const Range& source = work->second.local.front();
      found(
          Rule::source_changed, qp.qpn, index,
          fmt::format("{} bytes from {:#x} are not what they were when it was posted", source.length, source.address));
    }
  }
  queue.erase(work);
}

void Strict::forget(const QueuePair& qp) {
  under_way_.erase(qp.qpn);
  unsignaled_.erase(qp.qpn);
}

// Only this side's own keys: a peer that uses a revoked one is refused and told, as it must expect.
void Strict::key_unknown(std::uint32_t key, std::uint32_t qpn, std::uint64_t wqe) {
  if (!dead_keys_.contains(key)) return;
  found(Rule::used_after_deregistration, qpn, wqe,
        fmt::format("it names the key {:#x} of memory that is not registered any more", key));
}

void Strict::guard(std::byte* where, std::uint64_t length, std::uint32_t qpn, std::uint32_t message) {
  sys::guard_pages(this, where, length, std::uint64_t{message} << 32 | qpn);
}

void Strict::guard_answer(std::byte* where, std::uint64_t length, std::uint32_t qpn, std::uint64_t wqe) {
  sys::guard_pages(this, where, length, (wqe & 0xffff) << 32 | kIsWqe | qpn);
  answers_[where] = std::max(answers_[where], length);
}

void Strict::unguard(std::byte* where, std::uint64_t length) {
  sys::unguard_pages(this, where, length);
  answers_.erase(where);
}

bool Strict::is_being_read_into(const std::byte* where, std::uint64_t length) const {
  return std::ranges::any_of(
      answers_, [&](const auto& each) { return each.first < where + length && where < each.first + each.second; });
}

void Strict::open(const std::byte* where, std::uint64_t length) {
  sys::open_guarded_pages(where, length);
}

// Line by line, the last one first and the others in random order: who looks at the last byte to learn whether all is
// there learns nothing.
void Strict::land(std::byte* where, std::span<const std::byte> bytes) {
  open(where, bytes.size());  // another payload for these pages may be on its way
  const std::size_t head =
      std::min<std::size_t>(bytes.size(), (kLine - reinterpret_cast<std::uintptr_t>(where) % kLine) % kLine);
  std::vector<std::pair<std::size_t, std::size_t>> lines;
  if (head != 0) lines.emplace_back(0, head);
  for (std::size_t at = head; at < bytes.size(); at += kLine)
    lines.emplace_back(at, std::min(kLine, bytes.size() - at));
  if (lines.size() > 1) std::swap(lines.front(), lines.back());
  for (std::size_t i = lines.size(); i > 2; --i) std::swap(lines[i - 1], lines[1 + random() % (i - 1)]);
  for (const auto& [at, n] : lines) store_line(where + at, bytes.data() + at, n);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

void Strict::collect() {
  sys::GuardedRead seen;
  while (sys::take_guarded_read(this, seen)) {
    const bool last = seen.offset + kLine >= seen.length;
    const bool answer = (seen.tag & kIsWqe) != 0;
    const std::uint64_t number = seen.tag >> 32;
    found(last ? Rule::last_byte_polled : Rule::target_read_early, static_cast<std::uint32_t>(seen.tag & ~kIsWqe),
          answer ? number : kNone,
          fmt::format("byte {} of {} at {:#x} was touched while the payload was on its way", seen.offset, seen.length,
                      seen.address),
          answer ? kNone : number);
  }
}

}  // namespace strait::soft::nic
