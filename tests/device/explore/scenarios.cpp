// SPDX-License-Identifier: Apache-2.0
#include "explore/scenarios.hpp"

namespace explore {

namespace {

constexpr auto kOne = sd::Sharing::one_thread;
constexpr auto kMany = sd::Sharing::many_threads;
constexpr auto kNormal = sd::CompletionMode::normal;
constexpr auto kCollapsed = sd::CompletionMode::collapsed;

// The model's clock counts steps, and a wait that nothing can end is found without it.
sd::Deadline never() {
  return sd::Deadline::after_ns(~std::uint64_t{0});
}

class Rings : public World {
 public:
  using World::World;

 protected:
  void with_device(Machine& m) {
    m.spawn(
        "device", [this] { serve(); }, Machine::Role::device);
  }
  // Posts, and where the ring is full looks again when something has changed.
  template <sd::Sharing S>
  std::uint64_t post_when_free(std::uint32_t number) {
    for (;;) {
      machine().settle(2, number);
      const sd::Pending p = post<S>(number);
      if (p.ok()) return p.start;
      if (p.posted != sd::Posted::full)
        machine().violation("a post was refused as %u", static_cast<unsigned>(p.posted));
      sd::relax();
    }
  }
  template <sd::Sharing S>
  void wait_by(sd::Lane<S>& lane, std::uint64_t start) {
    machine().enter(Call::reap);
    if (lane.wait({start, sd::Posted::ok}, never()).waited != sd::Waited::ok)
      machine().violation("the wait did not end well");
  }
  template <sd::Sharing S>
  void reap_one() {
    do machine().settle(3, mix(polled_, slots().reserved));
    while (!reap<S>() && (sd::relax(), true));
  }
};

// One owner posts, rings and reaps. With a ring shorter than `posts` it goes round more than twice; with a longer one
// only the completion ring does.
template <std::uint32_t log_blocks, std::uint32_t posts, std::uint32_t log_cqes>
class Owner : public Rings {
 public:
  Owner()
      : Rings({.shared = false, .log_blocks = log_blocks, .cq = Cq::normal, .log_cqes = log_cqes, .lands = kLaps}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("owner", [this] { own(); });
    with_device(m);
  }

 private:
  static constexpr bool kLaps = posts > 1u << log_blocks;

  void own() {
    std::uint64_t last = 0;
    for (std::uint32_t n = 1; n <= posts; ++n) {
      machine().settle(1, mix(n, send.slots.completed));
      sd::Pending p = post<kOne>(n);
      if (p.posted == sd::Posted::full) {
        if (send.slots.reserved != n - 1 || send.slots.reserved - send.slots.completed != send.slots.capacity)
          machine().violation("a ring with room says full, or a refusal changed it");
        reap_one<kOne>();
        check_landed(send.slots.completed - 1);
        p = post<kOne>(n);
      }
      if (!p.ok()) machine().violation("a ring with room refuses");
      last = p.start;
      ring<kOne>();
    }
    if (!kLaps) {
      while (send.slots.completed <= last) reap_one<kOne>();
      return;
    }
    while (send.slots.completed < last) reap_one<kOne>();
    machine().enter(Call::reap);
    sd::Completion c;
    if (sd::wait_until_done<kOne, kNormal>(send, completions, last, never(), c) != sd::Waited::ok)
      machine().violation("the last wait did not end well");
    check(sd::Polled::done, c);
    check_landed(last);
  }
};

// Two or three threads post to one ring and ring it, each `each` times.
template <unsigned posters, std::uint32_t log_blocks, std::uint32_t each>
class Posters : public Rings {
 public:
  Posters() : Rings({.log_blocks = log_blocks}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("poster a", [this] { use(1); });
    m.spawn("poster b", [this] { use(101); });
    if (posters == 3) m.spawn("poster c", [this] { use(201); });
    with_device(m);
  }

 private:
  void use(std::uint32_t number) {
    for (std::uint32_t i = 0; i < each; ++i) {
      if (!post<kMany>(number + i).ok()) machine().violation("a ring with room refuses");
      ring<kMany>();
    }
  }
};

// Two posters, a ring of one, nobody who reaps: one of them is told that it is full, and leaves no trace.
class Full : public Rings {
 public:
  Full() : Rings({.log_blocks = 0}) {}
  void start(Machine& m) override {
    refused_ = 0;
    make(m);
    m.spawn("poster a", [this] { use(1); });
    m.spawn("poster b", [this] { use(101); });
    with_device(m);
  }
  void finish(Machine& m) override {
    Rings::finish(m);
    if (refused_ != 1 || executed_ != 1) m.violation("%u of two posts to a ring of one were refused", refused_);
  }

 private:
  void use(std::uint32_t number) {
    const sd::Pending p = post<kMany>(number);
    if (p.posted == sd::Posted::full) ++refused_;
    ring<kMany>();
  }
  unsigned refused_ = 0;
};

// A poster goes round a ring of one or two while another thread reads the collapsed CQE for it.
template <std::uint32_t log_blocks, std::uint32_t posts>
class Reader : public Rings {
 public:
  Reader() : Rings({.log_blocks = log_blocks, .cq = Cq::collapsed, .lands = log_blocks == 0}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("poster", [this] {
      for (std::uint32_t n = 1; n <= posts; ++n) {
        post_when_free<kMany>(n);
        ring<kMany>();
      }
    });
    m.spawn("reader", [this] {
      machine().enter(Call::reap);
      sd::Completion c;
      if (sd::wait_until_done<kMany, kCollapsed>(send, completions, posts - 1, never(), c) != sd::Waited::ok)
        machine().violation("the wait did not end well");
      if (log_blocks == 0) check_landed(posts - 1);
    });
    with_device(m);
  }
};

// Two threads take turns on a ring of one: each posts, rings, and waits at the collapsed CQE.
class Turns : public Rings {
 public:
  Turns() : Rings({.log_blocks = 0, .cq = Cq::collapsed}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("poster a", [this] { use(1); });
    m.spawn("poster b", [this] { use(101); });
    with_device(m);
  }

 private:
  void use(std::uint32_t number) {
    const std::uint64_t start = post_when_free<kMany>(number);
    ring<kMany>();
    machine().enter(Call::reap);
    sd::Completion c;
    if (sd::wait_until_done<kMany, kCollapsed>(send, completions, start, never(), c) != sd::Waited::ok)
      machine().violation("the wait did not end well");
  }
};

// One thread posts and waits for a word that only another thread, the ring's poller, can give.
class Waiter : public Rings {
 public:
  Waiter() : Rings({.log_blocks = 0, .cq = Cq::normal, .log_cqes = 1, .lands = true}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("poster", [this] {
      for (std::uint32_t n = 1; n <= 2; ++n) {
        machine().enter(Call::space);
        while (sd::free_blocks<kMany>(send) == 0) sd::relax();
        const sd::Pending p = post<kMany>(n);
        if (!p.ok()) machine().violation("there was room for one, and nobody else posts");
        ring<kMany>();
        machine().enter(Call::done);
        while (!sd::is_done<kMany>(send, p.start)) sd::relax();
        check_landed(p.start);
      }
    });
    m.spawn("poller", [this] {
      reap_one<kMany>();
      reap_one<kMany>();
    });
    with_device(m);
  }
};

// Two threads post receives over more than one lap, a third takes what arrives.
class Receives : public Rings {
 public:
  Receives() : Rings({.receives = true, .log_blocks = 0, .cq = Cq::normal, .log_cqes = 0}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("poster a", [this] { use(1); });
    m.spawn("poster b", [this] { use(101); });
    m.spawn("poller", [this] {
      reap_one<kMany>();
      reap_one<kMany>();
    });
    with_device(m);
  }

 private:
  void use(std::uint32_t number) {
    post_when_free<kMany>(number);
    ring<kMany>();
  }
};

// The same for one owner.
class OwnReceives : public Rings {
 public:
  OwnReceives() : Rings({.receives = true, .shared = false, .log_blocks = 1, .cq = Cq::normal, .log_cqes = 0}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("owner", [this] {
      for (std::uint32_t n = 1; n <= 5; ++n) {
        machine().settle(1, mix(n, receive.slots.completed));
        sd::Pending p = post<kOne>(n);
        if (p.posted == sd::Posted::full) {
          reap_one<kOne>();
          p = post<kOne>(n);
        }
        if (!p.ok()) machine().violation("a ring with room refuses");
        ring<kOne>();
      }
      while (receive.slots.completed < 5) reap_one<kOne>();
    });
    with_device(m);
  }
};

// A reader of the collapsed CQE that is stopped at some point of its look while the ring goes on for 65536 blocks, so
// that the 16 bits of the CQE mean another WQE. All of that is in the past here: the histories have the values from
// before and after, and the reader knows those from before. Entries 65538 and 65539 are in flight.
class Sleeper : public Rings {
 public:
  Sleeper() : Rings({.log_blocks = 2, .cq = Cq::collapsed, .first = kFirst}) {}
  void start(Machine& m) override {
    make(m);
    const auto counter = [](std::uint64_t index) {
      return std::uint64_t{sw::be16{static_cast<std::uint16_t>(index)}.raw()};
    };
    // Before: entry 2 was the last to complete, 3 was in flight. The reader knows of all that.
    View before;
    const auto old = [&](unsigned cell, std::uint64_t value) {
      m.past(cell, value, before);
      before.message[cell] = static_cast<std::uint16_t>(m.memory.messages.size() - 1);
    };
    for (unsigned i = 0; i < 4; ++i) old(marks_[i], i + 1);
    old(reserved_, 4);
    old(rung_, 4);
    old(tail_, counter(2));
    old(completed_, 3);
    // After: 65537 was the last to complete.
    View after = before;
    const auto now = [&](unsigned cell, std::uint64_t value) {
      m.past(cell, value, after);
      after.message[cell] = static_cast<std::uint16_t>(m.memory.messages.size() - 1);
    };
    for (std::uint64_t i = kFirst - 2; i < kFirst + 2; ++i) now(marks_[i & 3], i + 1);
    now(reserved_, kFirst + 2);
    now(rung_, kFirst + 2);
    now(tail_, counter(kFirst - 1));
    now(completed_, kFirst);
    executed_ = kFirst;
    m.spawn("reader", [this, before] {
      machine().know(before);
      machine().enter(Call::reap);
      sd::Completion c;
      (void)sd::poll_collapsed<kMany>(send, completions, c);  // World checks what it counts
    });
  }
  void finish(Machine&) override {}

 private:
  static constexpr std::uint64_t kFirst = 65538;
};

// A Lane with the ring in registers (own_ring.hpp), and the next one with what it gave back.
template <std::uint32_t log_blocks, std::uint32_t posts>
class OwnLanes : public Rings {
 public:
  OwnLanes()
      : Rings({.shared = false,
               .log_blocks = log_blocks,
               .cq = Cq::normal,
               .log_cqes = log_blocks,
               .lands = true,
               .lanes = true}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("owner", [this] {
      std::uint64_t last = 0;
      for (std::uint32_t n = 1; n <= posts; ++n) {
        machine().settle(1, mix(n, send.slots.completed));
        sd::Lane<kOne> lane(queue());
        const sd::Pending p = try_by(lane, n, ~std::uint64_t{0});
        if (!p.ok()) machine().violation("a post that waits for room was refused");
        last = p.start;
        machine().enter(Call::ring);
        lane.ring();
        if (n != posts) continue;
        wait_by(lane, last);
      }
    });
    with_device(m);
  }
};

// Lanes of threads that share the queue (shared_ring.hpp): each posts, rings and waits, and takes completions for the
// other too.
template <std::uint32_t log_blocks, std::uint32_t each, bool fails = false>
class SharedLanes : public Rings {
 public:
  SharedLanes()
      : Rings({.log_blocks = log_blocks,
               .cq = Cq::normal,
               .log_cqes = log_blocks,
               .lands = log_blocks == 0 && !fails,
               .lanes = true,
               .fails_at = fails ? 0 : ~std::uint64_t{0}}) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("poster a", [this] { use(1); });
    m.spawn("poster b", [this] { use(101); });
    with_device(m);
  }

 private:
  void use(std::uint32_t number) {
    sd::Lane<kMany> lane(queue());
    std::uint64_t last = 0;
    for (std::uint32_t i = 0; i < each; ++i) {
      sd::Pending p = try_by(lane, number + i);
      for (; p.posted == sd::Posted::full; p = try_by(lane, number + i)) take_news(lane);
      last = p.start;
      machine().enter(Call::ring);
      lane.ring();
    }
    machine().enter(Call::done);
    while (!sd::is_done<kMany>(send, last)) {
      take_news(lane);
      machine().enter(Call::done);
    }
    if (fails)
      fail_by(lane, last);
    else
      wait_by(lane, last);
  }
  // Whoever sees that it is over is told that it failed, and of what the queue failed first.
  void fail_by(sd::Lane<kMany>& lane, std::uint64_t start) {
    machine().enter(Call::reap);
    const sd::Outcome out = lane.wait({start, sd::Posted::ok}, never());
    if (out.waited != sd::Waited::error)
      machine().violation("request %llu failed, and its poster was not told", start + 0ull);
    if (out.cause != mlx5::Syndrome::remote_access || out.cause_index != 0)
      machine().violation("the queue failed at 0 of remote access, told was %llu of %u", out.cause_index + 0ull,
                          static_cast<unsigned>(out.cause));
    if (out.syndrome != (start == 0 ? mlx5::Syndrome::remote_access : mlx5::Syndrome::flushed))
      machine().violation("request %llu was told syndrome %u", start + 0ull, static_cast<unsigned>(out.syndrome));
  }
  // What a wait does in its turns, but only when there is something to see: two threads that look in vain at each
  // other's taking and giving back of the right to reap could go on for ever.
  void take_news(sd::Lane<kMany>& lane) {
    Machine& m = machine();
    m.enter(Call::reap);
    if (m.memory.newest(reaper_).value != 0)
      m.await({reaper_, completed_});
    else
      m.await({cqe_own(completions.consumed & (send.slots.capacity - 1)), completed_});
    m.enter(Call::reap);
    lane.progress();
  }
};

// A peer's data and the signal behind it, and a Lane that waits for that.
class Signalled : public Rings {
 public:
  Signalled() : Rings({.log_blocks = 0, .cq = Cq::normal, .log_cqes = 0, .lands = true, .lanes = true}) {}
  void start(Machine& m) override {
    make(m);
    word_ = 0;
    signal_ = m.memory.add(&word_, sizeof word_, Kind::status, 0, false);
    m.spawn("waiter", [this] {
      sd::Lane<kMany> lane(queue());
      machine().enter(Call::reap);
      const sd::Seen seen = lane.wait_signal({sd::head_of<sd::Signal>(), &word_}, 1, never());
      if (seen.waited != sd::Waited::ok || seen.value != 1) machine().violation("the wait did not end well");
      const std::uint64_t landed = machine().read_data(landing_[0]);
      if (landed != 77) machine().violation("the signal is there, but the payload reads %llu", landed + 0ull);
    });
    m.spawn(
        "peer",
        [this] {
          machine().store(Leaf::device_write, landing_[0], 77);
          machine().store(Leaf::device_write, signal_, 1);
        },
        Machine::Role::thread);
  }
  void finish(Machine&) override {}

 private:
  std::uint64_t word_ = 0;
  unsigned signal_ = 0;
};

template <class T>
std::unique_ptr<Program> made() {
  return std::make_unique<T>();
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> kAll = {
      {"owner", {}, made<Owner<1, 5, 0>>},
      {"owner_two_cqes", {}, made<Owner<1, 5, 1>>},
      {"owner_long_ring", {}, made<Owner<2, 4, 0>>},
      {"own_receives", {}, made<OwnReceives>},
      {"full", {}, made<Full>},
      {"two_posters", {}, made<Posters<2, 1, 1>>},
      {"two_posters_twice", {2}, made<Posters<2, 2, 2>>},
      {"three_posters", {1}, made<Posters<3, 2, 1>>},
      {"reader_ring_of_one", {}, made<Reader<0, 2>>},
      {"reader_ring_of_two", {}, made<Reader<1, 2>>},
      {"reader_next_lap", {1}, made<Reader<1, 3>>},
      {"turns", {}, made<Turns>},
      {"waiter", {}, made<Waiter>},
      {"receives", {}, made<Receives>},
      {"sleeper", {}, made<Sleeper>},
      {"own_lanes_ring_of_one", {}, made<OwnLanes<0, 3>>},
      {"own_lanes", {}, made<OwnLanes<1, 4>>},
      {"shared_lanes_ring_of_one", {1}, made<SharedLanes<0, 1>>},
      {"shared_lanes", {1}, made<SharedLanes<1, 1>>},
      {"failing_lanes_ring_of_one", {1}, made<SharedLanes<0, 1, true>>},
      {"failing_lanes", {1}, made<SharedLanes<1, 1, true>>},
      {"signalled", {}, made<Signalled>},
  };
  return kAll;
}

}  // namespace explore
