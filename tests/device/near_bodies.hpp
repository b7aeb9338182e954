// SPDX-License-Identifier: Apache-2.0
// What kernels under test do where everything lies in the posters' own memory: rings, records, payload and completions,
// and the NIC, which is a thread of the same grid. Run by CPU threads and by a GPU, as lane_bodies.hpp is.
#pragma once

#include "lane_bodies.hpp"

namespace bodies {

// What the NIC found wrong.
enum class Wrong : std::uint64_t {
  nothing,
  too_far_ahead,
  record_behind_doorbell,
  header,
  qpn,
  index,
  segments,
  address
};

// A NIC that knows one WQE: a write of 8 bytes in one block, from memory or out of the ring. It reads the format byte
// by byte and shares nothing with post.hpp and lane.hpp. Its own fences are system-wide, whatever the queue's are.
struct NearNic {
  const std::uint8_t* send;     // blocks of 64 bytes
  const std::uint32_t* record;  // be32: receive, send
  const std::uint64_t* doorbell;
  std::uint8_t* done;    // CQEs of 64 bytes, as many as blocks
  std::uint8_t* seen;    // a copy of every WQE, as it was found
  std::uint64_t* said;   // what is wrong, how many WQEs were executed, how the wait for them ended
  std::uint32_t* abort;  // raised when this goes wrong, so that nobody waits for it
  std::uint8_t *local, *remote;
  std::uint64_t bytes;  // of either
  std::uint64_t first, count, patience_ns;
  std::uint32_t blocks, qpn, rkey, lkey;
  bool by_doorbell;       // it is told by the doorbell, and only then looks at the record
  bool doorbell_is_next;  // the doorbell says the index of the next WQE, not of the newest
  bool collapsed;         // every CQE goes to entry 0

  STRAIT_HD static std::uint64_t big(const std::uint8_t* p, unsigned bytes) {
    std::uint64_t v = 0;
    for (unsigned i = 0; i < bytes; ++i) v = v << 8 | p[i];
    return v;
  }
  STRAIT_HD static std::uint64_t behind(std::uint64_t count16, std::uint64_t next) { return (count16 - next) & 0xffff; }
  STRAIT_HD std::uint64_t recorded(std::uint64_t next) const {
    const std::uint32_t raw = peek(record + 1);
    return behind((raw >> 24 | (raw >> 8 & 0xff00)) & 0xffff, next);
  }

  STRAIT_HD void serve() const {
    std::uint64_t next = first, cqes = 0;
    Wrong wrong = Wrong::nothing;
    const Waited waited = wait_bounded({Deadline::after_ns(patience_ns)}, [&] {
      std::uint64_t ready = 0;
      if (by_doorbell) {
        const std::uint64_t raw = peek(doorbell);
        if (raw == 0) return Turn::idle;  // never rung
        ready = behind((raw & 0xff00) + (raw >> 16 & 0xff) + (doorbell_is_next ? 0 : 1), next);
        order_cqe_reads();
        const std::uint64_t also = recorded(next);
        if (also < ready || also > blocks) wrong = Wrong::record_behind_doorbell;
      } else {
        ready = recorded(next);
      }
      order_cqe_reads();
      if (ready > blocks) wrong = Wrong::too_far_ahead;
      const bool busy = ready != 0;
      for (; ready != 0 && wrong == Wrong::nothing; --ready) {
        wrong = execute(next, cqes);
        if (wrong == Wrong::nothing) ++next;
      }
      if (wrong != Wrong::nothing || next == first + count) return Turn::finished;
      return busy ? Turn::busy : Turn::idle;
    });
    said[0] = static_cast<std::uint64_t>(wrong);
    said[1] = next - first;
    said[2] = code(waited);
    if (wrong != Wrong::nothing || waited != Waited::ok) store_record(abort, 1);
  }

 private:
  STRAIT_HD Wrong execute(std::uint64_t next, std::uint64_t& cqes) const {
    std::uint8_t wqe[64];
    const std::uint8_t* const block = send + next % blocks * 64;
    for (unsigned i = 0; i < 64; ++i) wqe[i] = block[i];
    if (next - first < count)
      for (unsigned i = 0; i < 64; ++i) seen[64 * (next - first) + i] = wqe[i];
    if (wqe[0] != 0 || wqe[3] != 0x08) return Wrong::header;
    if (big(wqe + 1, 2) != (next & 0xffff)) return Wrong::index;
    if (big(wqe + 4, 3) != qpn) return Wrong::qpn;
    const bool inlined = big(wqe + 32, 4) == 0x80000008u;
    if (wqe[7] != 3 || (!inlined && big(wqe + 32, 4) != 8)) return Wrong::segments;
    const std::uint64_t to = big(wqe + 16, 8) - reinterpret_cast<std::uintptr_t>(remote);
    const std::uint64_t from = inlined ? 0 : big(wqe + 40, 8) - reinterpret_cast<std::uintptr_t>(local);
    const bool refused = big(wqe + 24, 4) != rkey || (!inlined && big(wqe + 36, 4) != lkey);
    if (!refused && (to > bytes - 8 || to % 8 != 0 || from > bytes - 8 || from % 8 != 0)) return Wrong::address;
    if (!refused) {
      std::uint64_t value = 0;
      if (inlined) {
        for (unsigned i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(wqe[36 + i]) << 8 * i;
      } else {
        value = *reinterpret_cast<const std::uint64_t*>(local + from);
      }
      *reinterpret_cast<std::uint64_t*>(remote + to) = value;
    }
    if (refused || (wqe[11] & 0x0c) == 0x08) complete(next, cqes++, refused);
    return Wrong::nothing;
  }

  // Word by word; the last one, with counter and op_own in it, hands over.
  STRAIT_HD void complete(std::uint64_t index, std::uint64_t number, bool refused) const {
    auto* const cqe = reinterpret_cast<std::uint32_t*>(done + (collapsed ? 0 : number % blocks * 64));
    for (unsigned i = 0; i < 13; ++i) store_record(cqe + i, 0);
    store_record(cqe + 13, refused ? 0x13880000u : 0u);  // syndrome, vendor's
    store_record(cqe + 14, strait::wire::be32{0x08000000u | qpn}.raw());
    const std::uint32_t owner = collapsed ? 0 : static_cast<std::uint32_t>(number / blocks & 1);
    const std::uint32_t op_own = (refused ? 13u : 0u) << 4 | owner;
    const auto counter = static_cast<std::uint32_t>((index & 0xff) << 8 | (index >> 8 & 0xff));
    order_stores_before_dma(Reach::system);
    if (collapsed || kWholeTail) {
      store_record(cqe + 15, op_own << 24 | counter);
    } else {
      auto* const tail = reinterpret_cast<std::uint8_t*>(cqe + 15);
      tail[0] = static_cast<std::uint8_t>(counter & 0xff);
      tail[1] = static_cast<std::uint8_t>(counter >> 8);
      store_mark_byte(tail + 3, static_cast<std::uint8_t>(op_own));
    }
  }
  // As the poster looks at it: a GPU at the counter with op_own, a CPU at op_own.
#if defined(STRAIT_TARGET_CUDA) || defined(STRAIT_TARGET_AMD)
  static constexpr bool kWholeTail = true;
#else
  static constexpr bool kWholeTail = false;
#endif
};

struct NearStage {
  Queue queue;
  LocalRegion local;
  RemoteRegion remote;
  NearNic nic;
  std::uint64_t* answers;  // of each poster: what went wrong
};

STRAIT_HD inline std::uint64_t* word_of(std::uint64_t address, std::uint64_t index) {
  return reinterpret_cast<std::uint64_t*>(static_cast<std::uintptr_t>(address)) + index;
}

// Block 0: groups put a word of each member's, `rounds` times, out of the ring and from memory in turns, wait for the
// last and look at what has arrived. Block 1: the NIC.
template <Sharing S, class G>
struct PostNear {
  NearStage s;
  unsigned rounds;
  STRAIT_HD void operator()(unsigned block, unsigned thread) const {
    if (block != 0) {
      if (thread == 0) s.nic.serve();
      return;
    }
    Lane<S, G> lane(s.queue);
    const G group;
    How how;
    how.room_ns = s.nic.patience_ns;
    const std::uint64_t place_of_first = thread / group.size() * rounds * group.size() + group.rank();
    std::uint64_t bad = 0;
    Pending last{0, Posted::ok};
    for (unsigned r = 0; r < rounds && last.ok(); ++r) {
      const std::uint64_t place = place_of_first + std::uint64_t{r} * group.size();
      if (r % 2 == 0) {
        last = lane.put_value_each(place + 1, s.remote, 8 * place, how);
      } else {
        *word_of(s.local.address, place) = place + 1;
        last = lane.put_each(s.local, 8 * place, s.remote, 8 * place, 8, how);
      }
    }
    bad += last.ok() ? 0 : 1;
    bad += lane.wait(last, Deadline::after_ns(s.nic.patience_ns)).waited == Waited::ok ? 0 : 1;
    for (unsigned r = 0; r < rounds && bad == 0; ++r) {
      const std::uint64_t place = place_of_first + std::uint64_t{r} * group.size();
      bad += peek(word_of(s.remote.address, place)) == place + 1 ? 0 : 1;
    }
    s.answers[thread] = bad;
  }
};

// The same without a Lane, over completions that all go to one entry: every thread of block 0 posts, looks at that
// entry and waits. With one owner a last write follows whose key nobody gave out. Answers of a thread: what went wrong;
// behind them how the wait for that write ended, and what one more look said.
template <Sharing S>
struct PostCollapsed {
  NearStage s;
  unsigned rounds;
  STRAIT_HD void operator()(unsigned block, unsigned thread) const {
    if (block != 0) {
      if (thread == 0) s.nic.serve();
      return;
    }
    constexpr CompletionMode kMode = CompletionMode::collapsed;
    SendRing& send = s.queue.state->send;
    CompletionRing& cq = s.queue.state->sends;
    const Deadline d = Deadline::after_ns(s.nic.patience_ns);
    const std::uint32_t* const abort = s.queue.state->abort;
    Completion completion{};
    std::uint64_t bad = 0;
    const auto post = [&](std::uint64_t place, std::uint32_t rkey) {
      const std::uint64_t value = place + 1;
      Pending posted{0, Posted::full};
      while (posted.posted == Posted::full && bad == 0) {
        posted = post_write_inline<S>(send, Remote{s.remote.address + 8 * place, rkey}, &value, 8, kSignaled);
        if (posted.posted == Posted::full &&
            (wait_for_space<S, kMode>(send, cq, 1, d, completion, abort) != Waited::ok || d.passed()))
          ++bad;
      }
      ring_doorbell<S>(send);
      return posted;
    };
    for (unsigned r = 0; r < rounds && bad == 0; ++r) {
      const std::uint64_t place = std::uint64_t{thread} * rounds + r;
      const Pending posted = post(place, s.remote.rkey);
      if (!posted.ok() || r % 4 == 1) continue;
      bad += wait_until_done<S, kMode>(send, cq, posted.start, d, completion, abort) == Waited::ok ? 0 : 1;
      if (bad == 0) bad += peek(word_of(s.remote.address, place)) == place + 1 ? 0 : 1;
    }
    s.answers[thread] = bad;
    if constexpr (S == Sharing::one_thread) {
      const Pending wrong = post(0, s.remote.rkey + 1);
      const Waited waited = wait_until_done<S, kMode>(send, cq, wrong.start, d, completion, abort);
      const auto told = [&] {
        return static_cast<std::uint64_t>(completion.syndrome) << 8 |
               static_cast<std::uint64_t>(completion.vendor_syndrome) << 16 |
               static_cast<std::uint64_t>(completion.wqe_counter) << 24;
      };
      s.answers[thread + 1] = code(waited) | told();
      completion = Completion{};
      const Polled again = poll_collapsed<S>(send, cq, completion);
      s.answers[thread + 2] = static_cast<std::uint64_t>(again) | told();
    }
  }
};

}  // namespace bodies
