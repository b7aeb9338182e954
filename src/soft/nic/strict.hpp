// SPDX-License-Identifier: Apache-2.0
// Strict: the software NIC as a sanitizer for RDMA programs. It does what the model (docs/model.md) allows and hardware
// rarely shows, and reports what a program may not do.
//
// Hostile: payload lands late and in shuffled order, line by line. Findings: each names process, NIC, queue pair and
// work request, the rule that was broken and the remedy, once per cause; as text on stderr, as JSON lines in a file,
// and as the exit code of the process.
//
// While a payload that fills whole pages waits to be landed, those pages cannot be read: a program that looks at them
// before it was told is caught in the act (SIGSEGV, handled in sys/guard, after which it goes on). A system call that
// is given such memory fails with EFAULT instead.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fault_plan.hpp"
#include "soft/nic/decode.hpp"
#include "soft/nic/memory.hpp"

namespace strait::soft::nic {

struct QueuePair;

enum class Rule : std::uint8_t {
  source_changed,
  target_read_early,
  last_byte_polled,
  send_queue_overrun,
  completion_queue_overrun,
  used_after_deregistration,
  unflushed_read,
  receive_too_late,
  queue_cannot_drain,
};
inline constexpr std::size_t kRules = 9;
[[nodiscard]] const char* rule_name(Rule rule);  // "source-changed"
[[nodiscard]] const char* rule_text(Rule rule);  // what may not be done
[[nodiscard]] const char* rule_remedy(Rule rule);

struct StrictConfig {
  std::string report;  // file that gets one JSON object a line; empty: stderr only
  int exit_code = 66;  // of the process, when anything was found; 0: left alone
  std::uint64_t seed = 1;
  bool quiet = false;  // nothing on stderr (tests)
  // The guard of a put goes when nothing of it has come for so long. Nothing says that a peer has given up half-way;
  // where packets get lost the next one is here much sooner.
  std::int64_t silence_ns = 100'000'000;
};

// Option strict_seed: 0 is the seed of the plan of faults, or 1 where there is none.
[[nodiscard]] std::uint64_t strict_seed_of(std::uint64_t option, const std::optional<FaultPlan>& faults);

class Strict {
 public:
  Strict(std::string nic, StrictConfig config);
  ~Strict();
  Strict(const Strict&) = delete;
  Strict& operator=(const Strict&) = delete;

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  // `wqe`: of this side's queue pair. `message`: of its peer, counted from 0; where a write has no WQE on this side.
  void found(Rule rule, std::uint32_t qpn, std::uint64_t wqe, const std::string& what, std::uint64_t message = kNone);
  // How often, and how many different causes, which is how many were reported.
  [[nodiscard]] std::uint64_t count(Rule rule) const { return counts_[static_cast<std::size_t>(rule)]; }
  [[nodiscard]] std::uint64_t causes(Rule rule) const;
  [[nodiscard]] std::uint64_t causes() const { return reported_.size(); }

  // Requester: a work request starts (perhaps again, after a loss), and is complete.
  void started(QueuePair& qp, std::uint64_t index, const SendWork& work, MemoryTable& memory);
  void completed(QueuePair& qp, std::uint64_t index, MemoryTable& memory);
  void forget(const QueuePair& qp);

  // Keys
  void deregistered(std::uint32_t key) { dead_keys_.insert(key); }
  void key_unknown(std::uint32_t key, std::uint32_t qpn, std::uint64_t wqe);

  // Landing. `where` must not be looked at until land() was called.
  void guard(std::byte* where, std::uint64_t length, std::uint32_t qpn, std::uint32_t message);
  // The same for what work request `wqe` of this side reads.
  void guard_answer(std::byte* where, std::uint64_t length, std::uint32_t qpn, std::uint64_t wqe);
  void unguard(std::byte* where, std::uint64_t length);
  // The NIC itself is about to touch memory that somebody, another NIC of the process perhaps, may have guarded.
  static void open(const std::byte* where, std::uint64_t length);
  void land(std::byte* where, std::span<const std::byte> bytes);
  // How many passes of the engine the next payload waits.
  [[nodiscard]] std::uint32_t lateness();
  [[nodiscard]] std::int64_t silence_ns() const { return config_.silence_ns; }
  // What the signal handler saw since the last call becomes findings.
  void collect();

 private:
  struct Range {
    std::uint64_t address;
    std::uint64_t length;
    std::uint32_t key;
  };
  struct Work {
    std::uint64_t sum = 0;
    bool has_source = false;
    bool writes = false;  // changes remote memory
    bool reads = false;   // changes local memory, later
    Range remote{};
    std::vector<Range> local;
  };
  [[nodiscard]] std::uint64_t random();
  [[nodiscard]] static bool overlap(const Range& a, const Range& b);
  [[nodiscard]] static std::uint64_t sum_of(const Work& work, MemoryTable& memory);

  [[nodiscard]] bool is_being_read_into(const std::byte* where, std::uint64_t length) const;

  std::string nic_;
  StrictConfig config_;
  std::uint64_t state_;
  std::uint64_t counts_[kRules] = {};
  std::set<std::pair<Rule, std::uint64_t>> reported_;  // once per cause: rule and queue pair
  std::set<std::uint32_t> dead_keys_;
  std::map<const std::byte*, std::uint64_t> answers_;                           // guarded: what reads bring
  std::unordered_map<std::uint32_t, std::map<std::uint64_t, Work>> under_way_;  // by queue pair and WQE
  std::unordered_map<std::uint32_t, std::uint32_t> unsignaled_;                 // blocks since the last signaled WQE
};

}  // namespace strait::soft::nic
