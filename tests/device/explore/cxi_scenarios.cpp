// SPDX-License-Identifier: Apache-2.0
#include "explore/cxi_scenarios.hpp"

#include "strait/device/cxi/counter.hpp"
#include "strait/device/cxi/own_ring.hpp"
#include "strait/device/cxi/shared_ring.hpp"

namespace explore {

namespace {

namespace ki = strait::device::cxi;
namespace cw = strait::wire::cxi;

constexpr std::uint32_t kMostCommands = 8;

// What is checked:
//   a command below the write pointer is whole when the device reads it;
//   the write pointer only goes forward, past committed commands only;
//   no block is overwritten while the device may still be reading it;
//   who has seen the counter sees what was written before it;
//   in the end everything has been shown and executed, and nobody is left waiting.
class CxiRings : public Program {
 public:
  // Commands have `places` blocks, of which one stays empty.
  CxiRings(std::uint32_t places, bool shared) : places_(places), shared_(shared) {}

  void stored(Machine& m, unsigned cell) override {
    if (cell == pointer_) forward_only(m);
  }
  void finish(Machine& m) override {
    std::uint32_t end = 0;
    while (end < kMostCommands && number_[end] != 0) ++end;
    if (executed_ != end) m.violation("%u of %u commands were executed", executed_, end);
  }

 protected:
  void make(Machine& m) {
    memory_.fill(0);
    marks_.fill(0);
    number_.fill(0);
    page_ = landing_word_ = counter_word_ = 0;
    executed_ = 0;
    const cw::QueueStatus begin = cw::initial_queue_status();
    __builtin_memcpy(memory_.data(), &begin, sizeof begin);
    ring = ki::CommandRing{};
    ring.head = sd::head_of<ki::CommandRing>();
    ring.blocks = memory_.data();
    ring.write_pointer = &page_;
    ring.count = cw::kFirstBlock + places_;
    ring.kind = ki::RingKind::transmit;
    ring.reach = sd::Reach::system;
    ring.marks = marks_.data();
    ring.next = ring.shown = cw::kFirstSlot;
    ring.reserved = ring.ready = ring.rung = ring.taken = ki::kFirstCursor;

    pointer_ = m.memory.add(&page_, 8, Kind::doorbell, 0, false);
    status_ = m.memory.add(memory_.data(), 8, Kind::status, 0, false);
    for (unsigned i = 0; i < places_; ++i)
      for (unsigned w = 0; w < 2; ++w)
        command_[i * 2 + w] =
            m.memory.add(memory_.data() + (cw::kFirstBlock + i) * 64 + w * 8, 8, Kind::wqe, i * 10 + w, true);
    landing_ = m.memory.add(&landing_word_, 8, Kind::landing, 0, true);
    counter_ = m.memory.add(&counter_word_, 8, Kind::cqe, 0, false);
    if (!shared_) return;
    m.memory.add(&ring.reserved, 8, Kind::reserved, 0, false);
    m.memory.add(&ring.ready, 8, Kind::ready, 0, false);
    m.memory.add(&ring.rung, 8, Kind::rung, 0, false);
    m.memory.add(&ring.requests, 8, Kind::requests, 0, false);
    m.memory.add(&ring.taken, 8, Kind::completed, 0, false);
    for (unsigned i = 0; i < places_; ++i) m.memory.add(&marks_[cw::kFirstBlock + i], 8, Kind::mark, i, false);
  }
  void with_device(Machine& m) {
    m.spawn(
        "device", [this] { serve(); }, Machine::Role::device);
  }

  // What a poster does between its claim and its commit; `index`: how many were claimed before it.
  void write(std::uint8_t* at, std::uint64_t index, std::uint32_t number) {
    sd::store_segment(at, number, ~std::uint64_t{number});
    if (index >= kMostCommands || number_[index] != 0)
      machine().violation("command %llu was given out twice", index + 0ull);
    number_[index] = number;
  }
  // As waits do: looks at the word until it says enough, and reads what lies behind it then.
  void wait_for(std::uint32_t executed, std::uint32_t last) {
    machine().enter(Call::reap);
    const ki::Counter c{sd::head_of<ki::Counter>(), &counter_word_, nullptr, 1, 0};
    while (!ki::reached(ki::look_at(c).success(), executed)) sd::relax();
    sd::order_cqe_reads();
    const std::uint64_t landed = machine().read_data(landing_);
    if (landed != last) machine().violation("counted up to %u, but the payload reads %llx", executed, landed + 0ull);
  }

  ki::CommandRing ring{};
  const std::uint32_t places_;

 private:
  [[nodiscard]] std::uint32_t block_at(std::uint32_t index) const { return cw::kFirstBlock + index % places_; }

  // In the order that the device sees. Fewer than all places are ever in use, so a pointer says how far it went.
  void forward_only(Machine& m) {
    const auto& history = m.memory.cell(pointer_).history;
    std::uint32_t last = 0;
    for (std::size_t i = 1; i < history.size(); ++i) {
      const auto block = static_cast<std::uint32_t>(m.memory.messages[history[i]].value);
      std::uint32_t now = last + 1;
      while (now < last + places_ && block_at(now) != block) ++now;
      if (block_at(now) != block) m.violation("the write pointer says block %u, which is none", block);
      for (std::uint32_t at = last; at < now; ++at)
        if (at >= kMostCommands || number_[at] == 0)
          m.violation("the write pointer is at block %u, command %u is not committed", block, at);
      last = now;
    }
  }

  void serve() {
    Machine& m = machine();
    for (;;) {
      m.settle(0, executed_);
      m.await({pointer_});
      const auto until = static_cast<std::uint32_t>(m.load(Leaf::device_read, pointer_));
      while (block_at(executed_) != until) execute();
    }
  }
  void execute() {
    Machine& m = machine();
    const std::uint32_t number = number_[executed_];
    const std::uint32_t place = executed_ % places_;
    const std::uint64_t first = m.read_data(command_[place * 2]), second = m.read_data(command_[place * 2 + 1]);
    if (number == 0 || first != number || second != ~std::uint64_t{number})
      m.violation("command %u is published but not whole", executed_);
    ++executed_;
    cw::QueueStatus status = cw::initial_queue_status();
    status.set_rd_ptr(block_at(executed_));
    m.store(Leaf::device_write, status_, status.word);
    m.store(Leaf::device_write, landing_, number);
    cw::CtWriteback count{};
    count.set_success(executed_);
    m.store(Leaf::device_write, counter_, count.word);
  }

  const bool shared_;
  alignas(64) std::array<std::uint8_t, 64 * (cw::kFirstBlock + 4)> memory_{};
  std::array<std::uint64_t, cw::kFirstBlock + 4> marks_{};
  std::uint64_t page_ = 0, landing_word_ = 0, counter_word_ = 0;
  unsigned pointer_ = 0, status_ = 0, landing_ = 0, counter_ = 0;
  std::array<unsigned, 8> command_{};
  // Ground truth, which no thread of the ring code sees.
  std::array<std::uint32_t, kMostCommands> number_{};  // 0: not committed
  std::uint32_t executed_ = 0;
};

// One owner with the ring in registers: more commands than the ring has places, and the count of all of them.
template <std::uint32_t places, std::uint32_t posts>
class CxiOwner : public CxiRings {
 public:
  CxiOwner() : CxiRings(places, false) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("owner", [this] { own(); });
    with_device(m);
  }

 private:
  void own() {
    ki::OwnCommands<ki::RingKind::transmit> own;
    own.open(ring);
    for (std::uint32_t n = 1; n <= posts; ++n) {
      std::uint8_t* at = nullptr;
      machine().enter(Call::post);
      while ((at = own.claim<2>()) == nullptr) sd::relax();
      write(at, n - 1, n);
      machine().enter(Call::ring);
      own.ring();
    }
    wait_for(posts, posts);
  }
};

// Threads that share the ring, each with `each` commands; where the ring is full they look again.
template <unsigned posters, std::uint32_t places, std::uint32_t each>
class CxiPosters : public CxiRings {
 public:
  CxiPosters() : CxiRings(places, true) {}
  void start(Machine& m) override {
    make(m);
    m.spawn("poster a", [this] { use(1); });
    if (posters > 1) m.spawn("poster b", [this] { use(101); });
    with_device(m);
  }

 private:
  void use(std::uint32_t number) {
    ki::SharedCommands<sd::Sharing::many_threads, ki::RingKind::transmit> shared;
    shared.open(ring);
    for (std::uint32_t i = 0; i < each; ++i) {
      ki::SharedCommands<sd::Sharing::many_threads, ki::RingKind::transmit>::Claim claim{};
      machine().enter(Call::post);
      while (!shared.claim(1, 1, claim)) sd::relax();
      const std::uint64_t index = (ki::lap_of(claim.from) - 1) * places + ki::block_of(claim.from) - cw::kFirstBlock;
      write(shared.at(claim.block), index, number + i);
      shared.commit(claim);
      machine().enter(Call::ring);
      shared.ring();
    }
  }
};

template <class T>
std::unique_ptr<Program> cxi_made() {
  return std::make_unique<T>();
}

}  // namespace

const std::vector<Scenario>& cxi_scenarios() {
  static const std::vector<Scenario> kAll = {
      {"cxi_owner", {}, cxi_made<CxiOwner<3, 5>>},
      {"cxi_owner_short_ring", {}, cxi_made<CxiOwner<2, 3>>},
      {"cxi_two_posters", {}, cxi_made<CxiPosters<2, 3, 1>>},
      {"cxi_poster_next_lap", {}, cxi_made<CxiPosters<1, 2, 3>>},
      {"cxi_two_posters_next_lap", {}, cxi_made<CxiPosters<2, 2, 1>>},
      {"cxi_two_posters_twice", {2}, cxi_made<CxiPosters<2, 3, 2>>},
  };
  return kAll;
}

}  // namespace explore
