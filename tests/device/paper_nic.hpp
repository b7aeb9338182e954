// SPDX-License-Identifier: Apache-2.0
// A NIC on paper: a thread that reads send rings by decode.hpp, moves bytes within this process, and answers with CQEs.
// It shares nothing with device/ but the memory. It can be stopped, so that tests see what waits do then.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "decode.hpp"

namespace paper {

// Where the two ends of a connection have their rings.
struct End {
  std::uint8_t* send = nullptr;  // blocks of 64 bytes
  std::uint32_t blocks = 0;
  std::uint8_t* receive = nullptr;  // entries of 16 bytes
  std::uint32_t receives = 0;
  std::uint32_t* record = nullptr;  // be32: receive, send
  std::uint8_t* sends_done = nullptr;
  std::uint32_t send_entries = 0;
  std::uint8_t* receives_done = nullptr;
  std::uint32_t receive_entries = 0;
  std::uint32_t qpn = 0;
  End* other = nullptr;

  // The NIC's own.
  std::uint64_t next = 0, taken = 0, sent_cqes = 0, received_cqes = 0;
  bool failed = false;
};

class Nic {
 public:
  Nic() : thread_([this] { run(); }) {}
  ~Nic() {
    stop_ = true;
    thread_.join();
  }
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  void serve(End* end) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(end);
  }
  // Peer memory under `key` begins at `address`.
  void allow(std::uint32_t key, void* address, std::size_t length) {
    const std::lock_guard lock(mutex_);
    keys_[key] = {reinterpret_cast<std::uintptr_t>(address), length};
  }
  // While it is stopped it looks at nothing; true once it has stopped.
  void stall(bool stalled) {
    const std::lock_guard lock(mutex_);
    stalled_ = stalled;
    left_ = UINT64_MAX;
  }
  // It goes on for so many work requests, and then stops.
  void go_on_for(std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    stalled_ = false;
    left_ = count;
  }

 private:
  struct Range {
    std::uintptr_t address;
    std::size_t length;
  };

  void run() {
    while (!stop_) {
      bool busy = false;
      {
        const std::lock_guard lock(mutex_);
        if (!stalled_)
          for (End* end : ends_) busy = (!stalled_ && pass(*end)) || busy;
      }
      if (!busy) std::this_thread::yield();
    }
  }

  static unsigned behind(const std::uint32_t* word, std::uint64_t from) {
    const std::uint32_t raw = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    return (__builtin_bswap32(raw) - static_cast<std::uint32_t>(from)) & 0xffffu;
  }

  bool pass(End& end) {
    unsigned ready = behind(end.record + 1, end.next);
    bool busy = false;
    while (ready != 0 && ready <= end.blocks) {
      const Wqe wqe = decode(end.send, end.blocks, end.next);
      const unsigned used = wqe.blocks() == 0 ? 1 : wqe.blocks();
      unsigned syndrome = end.failed ? 0x05 : 0x02;
      if (!end.failed && wqe.well_formed && used <= ready && wqe.qpn == end.qpn && wqe.index == (end.next & 0xffff)) {
        syndrome = execute(end, wqe);
        if (syndrome == kLater) return busy;
      }
      if (syndrome != 0 || (wqe.flags & 0x0c) == 0x08) complete(end, wqe, syndrome);
      if (syndrome != 0) end.failed = true;
      end.next += used;
      ready = used < ready ? ready - used : 0;
      busy = true;
      stalled_ = --left_ == 0;
      if (stalled_) return busy;
    }
    return busy;
  }

  std::uint8_t* find(std::uint32_t key, std::uint64_t address, std::uint64_t length) {
    const auto found = keys_.find(key);
    if (found == keys_.end() || address < found->second.address) return nullptr;
    const std::uint64_t offset = address - found->second.address;
    if (offset > found->second.length || length > found->second.length - offset) return nullptr;
    return reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(address));
  }

  static constexpr unsigned kLater = 0x100;

  // The syndrome; 0: done. kLater: a message that finds no receive yet.
  unsigned execute(End& end, const Wqe& wqe) {
    if (wqe.opcode == 0x00) return 0;
    std::vector<std::uint8_t> bytes = wqe.payload;
    std::uint64_t length = bytes.size();
    for (const Pointer& pointer : wqe.pointers) {
      const std::uint8_t* const local = find(pointer.key, pointer.addr, pointer.length);
      if (local == nullptr) return 0x04;
      if (wqe.opcode == 0x08 || wqe.opcode == 0x0a || wqe.opcode == 0x0b)
        bytes.insert(bytes.end(), local, local + pointer.length);
      else
        length += pointer.length;
    }
    if (wqe.opcode == 0x0a || wqe.opcode == 0x0b) return deliver(end, wqe, bytes);
    if (wqe.opcode == 0x08) length = bytes.size();
    std::uint8_t* const remote = find(wqe.rkey, wqe.raddr, length);
    if (remote == nullptr) return 0x13;
    if (wqe.opcode == 0x08) {
      if (!bytes.empty()) std::memcpy(remote, bytes.data(), bytes.size());
      return 0;
    }
    std::uint8_t* const result =
        wqe.pointers.empty() ? nullptr : find(wqe.pointers[0].key, wqe.pointers[0].addr, length);
    if (result == nullptr) return 0x04;
    if (wqe.opcode == 0x10) {
      std::memcpy(result, remote, length);
      return 0;
    }
    auto* const word = reinterpret_cast<std::uint64_t*>(remote);
    std::uint64_t old = 0;
    if (wqe.opcode == 0x12) {
      old = __atomic_fetch_add(word, wqe.operands[0], __ATOMIC_ACQ_REL);
    } else if (wqe.opcode == 0x11) {
      old = wqe.operands[1];
      (void)__atomic_compare_exchange_n(word, &old, wqe.operands[0], false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    } else {
      return 0x02;
    }
    std::memcpy(result, &old, 8);
    return 0;
  }

  unsigned deliver(End& end, const Wqe& wqe, const std::vector<std::uint8_t>& bytes) {
    End& to = *end.other;
    if (to.receives == 0) return 0x16;
    if (behind(to.record, to.taken) == 0) return kLater;
    const std::uint8_t* const entry = to.receive + to.taken % to.receives * 16;
    const auto room = static_cast<std::uint32_t>(big(entry, 4));
    if (room < bytes.size()) return 0x12;
    if (!bytes.empty()) {
      std::uint8_t* const into = find(static_cast<std::uint32_t>(big(entry + 4, 4)), big(entry + 8, 8), bytes.size());
      if (into == nullptr) return 0x14;
      std::memcpy(into, bytes.data(), bytes.size());
    }
    std::uint8_t cqe[64] = {};
    put(cqe + 44, bytes.size(), 4);
    std::memcpy(cqe + 36, wqe.imm, 4);
    put(cqe + 56, to.qpn, 4);
    put(cqe + 60, to.taken & 0xffff, 2);
    write(to.receives_done, to.receive_entries, to.received_cqes++, cqe, wqe.opcode == 0x0b ? 3 : 2);
    ++to.taken;
    return 0;
  }

  void complete(End& end, const Wqe& wqe, unsigned syndrome) {
    std::uint8_t cqe[64] = {};
    cqe[55] = static_cast<std::uint8_t>(syndrome);
    cqe[54] = syndrome == 0x13 ? 0x88 : 0;
    put(cqe + 56, static_cast<std::uint64_t>(wqe.opcode) << 24 | end.qpn, 4);
    put(cqe + 60, end.next & 0xffff, 2);
    write(end.sends_done, end.send_entries, end.sent_cqes++, cqe, syndrome == 0 ? 0 : 13);
  }

  static void put(std::uint8_t* at, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
  }
  // All bytes, then the one that hands over.
  static void write(std::uint8_t* ring, std::uint32_t entries, std::uint64_t number, const std::uint8_t* cqe,
                    unsigned opcode) {
    std::uint8_t* const entry = ring + number % entries * 64;
    for (unsigned i = 0; i < 63; ++i) entry[i] = cqe[i];
    const unsigned owner = number / entries & 1;
    __atomic_store_n(entry + 63, static_cast<std::uint8_t>(opcode << 4 | owner), __ATOMIC_RELEASE);
  }

  std::mutex mutex_;
  std::vector<End*> ends_;
  std::map<std::uint32_t, Range> keys_;
  std::uint64_t left_ = UINT64_MAX;
  bool stalled_ = false;
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the rest
};

}  // namespace paper
