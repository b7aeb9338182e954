// SPDX-License-Identifier: Apache-2.0
// A Cassini on paper: a thread that reads command rings byte by byte, moves bytes within this process, counts, and
// writes counters back only when the hardware would. It shares nothing with device/ but the memory. It can be stopped,
// it can deliver in any order, and it remembers what was wrong with what it read.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace paper {

class Cassini {
 public:
  struct Ring {
    const std::uint8_t* blocks = nullptr;
    std::uint32_t count = 0;
    const std::uint64_t* write_pointer = nullptr;
    bool triggered = false;
    // The device's own.
    std::uint32_t next = 4;
    bool failed = false;
    std::uint8_t c_state[32] = {};
    std::uint64_t commands = 0, gaps = 0;
  };
  struct Count {
    std::uint64_t success = 0;
    std::uint32_t failure = 0;
    std::uint64_t* word = nullptr;
    std::uint64_t* page = nullptr;  // of memory: additions; resets rest at all ones
    std::uint64_t writes = 0;
  };

  explicit Cassini(bool reorder = false) : reorder_(reorder), thread_([this] { run(); }) {}
  ~Cassini() {
    stop_ = true;
    thread_.join();
  }
  Cassini(const Cassini&) = delete;
  Cassini& operator=(const Cassini&) = delete;

  // The ring begins as the kernel leaves it.
  void serve(Ring* ring) {
    const std::lock_guard lock(mutex_);
    store_status(*ring, 1);
    rings_.push_back(ring);
  }
  void count_on(std::uint32_t number, std::uint64_t* word, std::uint64_t* page, std::uint64_t success = 0) {
    const std::lock_guard lock(mutex_);
    counts_[number] = Count{success, 0, word, page, 0};
  }
  // Local addresses are IOVAs; `lac` has to fit.
  void allow_local(std::uint32_t lac, void* address, std::size_t length) {
    const std::lock_guard lock(mutex_);
    local_.push_back({lac, reinterpret_cast<std::uint64_t>(address), length});
  }
  // A list entry at (dfa, index_ext), with the counter of its owner or 0.
  void append(std::uint32_t dfa, std::uint32_t index_ext, void* address, std::size_t length, std::uint32_t ct) {
    const std::lock_guard lock(mutex_);
    entries_[{dfa, index_ext}] = {static_cast<std::uint8_t*>(address), length, ct};
  }
  void events_to(std::uint8_t* queue, std::uint32_t bytes) {
    const std::lock_guard lock(mutex_);
    events_ = queue;
    event_bytes_ = bytes;
  }
  // While it is stopped it looks at nothing; it has stopped when this returns.
  void stall(bool stalled) {
    const std::lock_guard lock(mutex_);
    stalled_ = stalled;
  }
  Count count(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    return counts_[number];
  }
  std::size_t armed() {
    const std::lock_guard lock(mutex_);
    return triggers_.size();
  }
  std::string complaint() {
    const std::lock_guard lock(mutex_);
    return complaint_;
  }

 private:
  struct Local {
    std::uint32_t lac;
    std::uint64_t address;
    std::size_t length;
  };
  struct Entry {
    std::uint8_t* address;
    std::size_t length;
    std::uint32_t ct;
  };
  struct Trigger {
    std::uint32_t watched;
    std::uint64_t threshold;
    std::vector<std::uint8_t> dma;  // empty: write back
  };
  struct Work {
    std::vector<std::uint8_t> command;
    std::vector<std::uint8_t> state;  // of an immediate one
  };

  static constexpr std::uint64_t kSuccess = (std::uint64_t{1} << 48) - 1;

  static std::uint64_t field(const std::uint8_t* bytes, unsigned bit, unsigned width) {
    std::uint64_t v = 0;
    for (unsigned i = 0; i < width; ++i)
      v |= static_cast<std::uint64_t>(bytes[(bit + i) / 8] >> (bit + i) % 8 & 1) << i;
    return v;
  }

  void run() {
    std::mt19937 random(7);
    while (!stop_) {
      bool busy = false;
      {
        const std::lock_guard lock(mutex_);
        if (!stalled_) {
          for (Ring* ring : rings_) busy = pass(*ring) || busy;
          busy = doorbells() || busy;
          busy = deliver(random) || busy;
        }
      }
      if (!busy) std::this_thread::yield();
    }
  }

  void complain(const Ring& ring, const std::string& what) {
    if (complaint_.empty())
      complaint_ =
          (ring.triggered ? "triggered ring, block " : "ring, block ") + std::to_string(ring.next) + ": " + what;
  }

  void store_status(Ring& ring, unsigned code) {
    auto* const status = reinterpret_cast<std::uint64_t*>(const_cast<std::uint8_t*>(ring.blocks));
    __atomic_store_n(status, std::uint64_t{code} << 48 | ring.next, __ATOMIC_RELEASE);
  }

  bool pass(Ring& ring) {
    const std::uint64_t shown = __atomic_load_n(ring.write_pointer, __ATOMIC_ACQUIRE);
    if (shown == 0 || shown == ring.next || ring.failed) return false;
    if (shown < 4 || shown >= ring.count) {
      complain(ring, "the write pointer is " + std::to_string(shown));
      ring.failed = true;
      return true;
    }
    while (ring.next != shown && !ring.failed) {
      const std::uint32_t used = take(ring);
      if (used == 0) {
        ring.failed = true;
        store_status(ring, 49);
        return true;
      }
      for (std::uint32_t i = 0; i < used; ++i) {
        if (ring.next == shown) complain(ring, "a command ends beyond the write pointer");
        if (++ring.next == ring.count) ring.next = 4;
      }
    }
    store_status(ring, 1);
    return true;
  }

  // One block, or a command of several; how many blocks. 0: nothing that a device would take.
  std::uint32_t take(Ring& ring) {
    const std::uint8_t* const at = ring.blocks + std::size_t{ring.next} * 64;
    std::uint32_t offset = 0;
    while (offset < 64) {
      const std::uint8_t* const command = at + offset;
      const unsigned type = command[0] & 3;
      const unsigned opcode = command[0] >> 4;
      const std::uint32_t bytes = 32u << (command[0] >> 2 & 3);
      if (ring.triggered && (type != 2 || bytes < 64 || bytes > 128)) return refuse(ring, "not a counter command");
      if (!ring.triggered && type >= 2) return refuse(ring, "a counter or target command");
      if ((std::size_t{ring.next} * 64 + offset) % bytes != 0) return refuse(ring, "a command that is not aligned");
      if (opcode == 0) {
        if (field(command, 8, 56) != 0) return refuse(ring, "a NOOP with something in it");
        ++ring.gaps;
      } else {
        if (ring.next + (bytes + 63) / 64 > ring.count) return refuse(ring, "a command across the wrap");
        ++ring.commands;
        const bool fine = ring.triggered ? counter_command(command, bytes) : enqueue(ring, command, bytes);
        if (!fine) return refuse(ring, "opcode " + std::to_string(opcode) + " of type " + std::to_string(type));
      }
      if (bytes > 64) return bytes / 64;
      offset += bytes;
    }
    return 1;
  }
  std::uint32_t refuse(Ring& ring, const std::string& why) {
    complain(ring, why);
    return 0;
  }

  bool enqueue(Ring& ring, const std::uint8_t* command, std::uint32_t bytes) {
    if ((command[0] & 3) == 0 && command[0] >> 4 == 10) {  // CSTATE
      if (command[1] != 32) return false;
      std::memcpy(ring.c_state, command, 32);
      return true;
    }
    Work work;
    work.command.assign(command, command + bytes);
    if ((command[0] & 3) == 0) work.state.assign(ring.c_state, ring.c_state + 32);
    work_.push_back(std::move(work));
    return true;
  }

  bool counter_command(const std::uint8_t* command, std::uint32_t bytes) {
    const unsigned opcode = command[0] >> 4;
    const auto ct = static_cast<std::uint32_t>(field(command, 16, 11));
    const auto watched = static_cast<std::uint32_t>(field(command, 32, 11));
    const std::uint64_t threshold = field(command, 128, 48);
    switch (opcode) {
      case 1:
        if (field(command, 126, 1) != 0) counts_[ct].success = field(command, 64, 48);
        if (field(command, 127, 1) != 0) counts_[ct].failure = static_cast<std::uint32_t>(field(command, 112, 7));
        write_back(counts_[ct]);
        fire(ct);
        return bytes == 64;
      case 2: write_back(counts_[ct]); return bytes == 64;
      case 4: std::erase_if(triggers_, [&](const Trigger& t) { return t.watched == ct; }); return bytes == 64;
      case 5: {
        if (bytes != 128) return false;
        Trigger trigger{watched, threshold, {}};
        trigger.dma.assign(command + 24, command + 120);
        trigger.dma.resize(128);
        triggers_.push_back(std::move(trigger));
        fire(watched);
        return true;
      }
      case 8:
        triggers_.push_back({watched, threshold, {}});
        fire(watched);
        return bytes == 64;
      default: return false;
    }
  }

  static void write_back(Count& count) {
    ++count.writes;
    if (count.word == nullptr) return;
    __atomic_store_n(count.word, count.success | std::uint64_t{count.failure} << 48 | std::uint64_t{1} << 63,
                     __ATOMIC_RELEASE);
  }
  void fire(std::uint32_t ct) {
    Count& count = counts_[ct];
    for (std::size_t i = 0; i < triggers_.size();) {
      if (triggers_[i].watched != ct || count.success < triggers_[i].threshold) {
        ++i;
        continue;
      }
      Trigger trigger = std::move(triggers_[i]);
      triggers_.erase(triggers_.begin() + static_cast<std::ptrdiff_t>(i));
      if (trigger.dma.empty())
        write_back(count);
      else
        work_.push_back({std::move(trigger.dma), {}});
    }
  }
  void count_success(std::uint32_t ct, std::uint64_t n) {
    if (ct == 0) return;
    counts_[ct].success = (counts_[ct].success + n) & kSuccess;
    fire(ct);
  }
  void count_failure(std::uint32_t ct, std::uint32_t n) {
    if (ct == 0) return;
    Count& count = counts_[ct];
    const bool first = count.failure == 0;
    count.failure = (count.failure + n) & 127;
    if (first) write_back(count);
  }

  // Words of doorbell pages in memory: additions are taken whole; a reset word that is not all ones is one.
  bool doorbells() {
    bool busy = false;
    for (auto& [number, count] : counts_) {
      if (count.page == nullptr) continue;
      if (__atomic_load_n(&count.page[0], __ATOMIC_ACQUIRE) != 0) {
        count_success(number, __atomic_exchange_n(&count.page[0], 0, __ATOMIC_ACQ_REL) & kSuccess);
        busy = true;
      }
      if (__atomic_load_n(&count.page[8], __ATOMIC_ACQUIRE) != 0) {
        count_failure(number, static_cast<std::uint32_t>(__atomic_exchange_n(&count.page[8], 0, __ATOMIC_ACQ_REL)));
        busy = true;
      }
      for (const unsigned word : {16u, 24u}) {
        if (__atomic_load_n(&count.page[word], __ATOMIC_ACQUIRE) == ~std::uint64_t{0}) continue;
        __atomic_store_n(&count.page[word], ~std::uint64_t{0}, __ATOMIC_RELEASE);
        if (word == 16)
          count.success = 0;
        else
          count.failure = 0;
        write_back(count);
        busy = true;
      }
    }
    return busy;
  }

  // Data arrives, and is acknowledged, one operation at a time: in order, or in none.
  bool deliver(std::mt19937& random) {
    if (work_.empty()) return false;
    // Let some pile up, so that there is something to mix.
    if (reorder_ && work_.size() < 8 && random() % 16 != 0) return true;
    const std::size_t which = reorder_ ? random() % work_.size() : 0;
    const Work work = std::move(work_[which]);
    work_.erase(work_.begin() + static_cast<std::ptrdiff_t>(which));
    execute(work);
    return true;
  }

  std::uint8_t* local(std::uint64_t address, std::size_t length, std::uint32_t lac) {
    for (const Local& l : local_)
      if (l.lac == lac && address >= l.address && address - l.address <= l.length &&
          length <= l.length - (address - l.address))
        return reinterpret_cast<std::uint8_t*>(address);
    return nullptr;
  }

  void execute(const Work& work) {
    const std::uint8_t* const c = work.command.data();
    const bool immediate = !work.state.empty();
    const std::uint8_t* const tell = immediate ? work.state.data() : c;
    const unsigned opcode = c[0] >> 4;
    const auto dfa = static_cast<std::uint32_t>(field(c, 32, 32));
    const auto index_ext = static_cast<std::uint32_t>(immediate ? field(tell, 64, 5) : field(c, 8, 5));
    const std::uint64_t offset = field(c, 64, 56);
    const auto ct = static_cast<std::uint32_t>(field(tell, 224, 11));
    const bool replies = opcode == 2 || opcode == 5;
    const bool counts = field(tell, replies ? 22 : 23, 1) != 0;
    std::size_t length = immediate && opcode == 1 ? c[1] - 16u : field(c, 192, 32);
    if (immediate && opcode != 1) length = 8;
    const unsigned code = move(c, immediate, tell, opcode, entries_.find({dfa, index_ext}), offset, length);
    if (code == 1) {
      if (counts) count_success(ct, field(tell, 24, 1) != 0 ? length : 1);
      return;
    }
    if (counts) count_failure(ct, 1);
    if (field(tell, 240, 11) != 0) event(field(immediate ? tell : c, immediate ? 128 : 448, 64), code);
  }

  using Found = std::map<std::pair<std::uint32_t, std::uint32_t>, Entry>::iterator;
  unsigned move(const std::uint8_t* c, bool immediate, const std::uint8_t* tell, unsigned opcode, Found found,
                std::uint64_t offset, std::size_t length) {
    if (found == entries_.end()) return 26;
    const Entry& entry = found->second;
    if (offset > entry.length || length > entry.length - offset) return 6;
    std::uint8_t* const remote = entry.address + offset;
    if (opcode == 1 || opcode == 2) {
      const std::uint8_t* from = c + 16;
      if (!immediate) {
        std::uint8_t* const mine = local(field(c, 128, 57), length, static_cast<std::uint32_t>(field(c, 16, 3)));
        if (mine == nullptr) return 36;
        if (opcode == 2) {
          std::memcpy(mine, remote, length);
          count_success(entry.ct, 1);
          return 1;
        }
        from = mine;
      }
      if (length != 0) std::memcpy(remote, from, length);
      count_success(entry.ct, 1);
      return 1;
    }
    if (opcode != 4 && opcode != 5) return 46;
    // Atomics of 64 bits: add or compare and swap.
    const bool small = immediate && length == 8 && (c[0] >> 2 & 3) == 0;
    const unsigned op = immediate ? c[small ? 16 : 24] & 15 : c[72] & 15;
    const unsigned type = immediate ? c[small ? 17 : 25] & 15 : c[73] & 15;
    if (type != 7) return 40;
    std::uint64_t operand = field(c, small ? 192 : 256, 64);
    std::uint64_t compare = immediate ? (small ? 0 : field(c, 384, 64)) : field(c, 640, 64);
    if (!immediate) {
      const std::uint8_t* const mine = local(field(c, 128, 57), 8, static_cast<std::uint32_t>(field(c, 16, 3)));
      if (mine == nullptr) return 36;
      operand = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(mine), __ATOMIC_ACQUIRE);
    }
    auto* const word = reinterpret_cast<std::uint64_t*>(remote);
    std::uint64_t old = compare;
    if (op == 2)
      old = __atomic_fetch_add(word, operand, __ATOMIC_ACQ_REL);
    else if (op == 11)
      (void)__atomic_compare_exchange_n(word, &old, operand, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    else
      return 40;
    if (opcode == 5) {
      const std::uint64_t to = immediate ? field(c, 128, 57) : field(c, 512, 57);
      const auto lac = static_cast<std::uint32_t>(immediate ? field(tell, 16, 3) : field(c, 608, 3));
      std::uint8_t* const result = local(to, 8, lac);
      if (result == nullptr) return 36;
      std::memcpy(result, &old, 8);
    }
    count_success(entry.ct, 1);
    return 1;
  }

  // A short initiator event, its last byte with the last store.
  void event(std::uint64_t user_ptr, unsigned code) {
    if (events_ == nullptr || event_at_ + 16 > event_bytes_) return;
    auto* const at = reinterpret_cast<std::uint64_t*>(events_ + event_at_);
    __atomic_store_n(&at[0], user_ptr, __ATOMIC_RELAXED);
    __atomic_store_n(&at[1], std::uint64_t{1 | 9u << 2} << 48 | std::uint64_t{code} << 56, __ATOMIC_RELEASE);
    event_at_ += 16;
  }

  const bool reorder_;
  std::mutex mutex_;
  std::vector<Ring*> rings_;
  std::map<std::uint32_t, Count> counts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Entry> entries_;
  std::vector<Local> local_;
  std::vector<Trigger> triggers_;
  std::vector<Work> work_;
  std::uint8_t* events_ = nullptr;
  std::uint32_t event_bytes_ = 0;
  std::uint32_t event_at_ = 64;
  std::string complaint_;
  bool stalled_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the rest
};

}  // namespace paper
