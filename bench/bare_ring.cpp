// SPDX-License-Identifier: Apache-2.0
// The limit of the ring grant: the same puts through two rings of one cache line a message, and nothing else. No work
// request, doorbell, key, bounds, rights or completion entry; who writes slots past the end is not stopped, and the
// owner stores wherever it is told to. What is left is what the memory of two processors takes.
//
//   bare_ring latency [workload options]
#include <sys/mman.h>

#include <cstring>

#include "transfer.hpp"

namespace bench {
namespace {

constexpr std::uint32_t kSlots = 256;
constexpr std::uint32_t kPollsPerAck = 64;  // owed without a message the other way: the last put of a phase

struct alignas(64) Slot {
  std::uint64_t number;  // written last; 0: never used
  std::uint64_t received;
  std::uint64_t offset;
  std::uint64_t value;
  std::uint32_t region;
  std::uint32_t length;  // 0: nothing but `received`
};
struct Ring {
  Slot slot[kSlots];
};

class Bare {
 public:
  Bare(const Workload& w, Ring* rings, int side) : out_(rings[side]), in_(rings[1 - side]) {
    for (std::uint32_t r = 0; r < w.regions; ++r) {
      for (auto* memory : {&sources_, &targets_}) {
        void* const at = mmap(nullptr, w.region_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) give_up("out of memory");
        std::memset(at, 0, w.region_bytes);
        memory->push_back(static_cast<std::uint8_t*>(at));
      }
    }
    region_bytes_ = w.region_bytes;
  }

  void post(Place from, Place to) {
    reap_down_to(kSlots / 2);
    Slot& slot = out_.slot[sent_ % kSlots];
    std::memcpy(&slot.value, sources_[from.region] + from.offset, sizeof slot.value);
    slot.offset = to.offset;
    slot.region = to.region;
    publish(slot, sizeof slot.value);
    ++puts_;
  }
  void progress() {
    const Slot& slot = in_.slot[taken_ % kSlots];
    if (__atomic_load_n(&slot.number, __ATOMIC_ACQUIRE) != taken_ + 1) {
      if (owed_ && ++polls_ > kPollsPerAck) publish(out_.slot[sent_ % kSlots], 0);
      return;
    }
    ++taken_;
    done_ = slot.received;
    if (slot.length == 0) return;
    std::memcpy(targets_[slot.region] + slot.offset, &slot.value, sizeof slot.value);
    ++received_;
    owed_ = true;
    polls_ = 0;
  }
  void reap_down_to(std::uint32_t n) {
    while (puts_ - done_ > n) progress();
  }
  std::uint8_t* source(std::uint32_t r) { return sources_[r]; }
  std::uint8_t* target(std::uint32_t r) { return targets_[r]; }
  void load_source(std::uint32_t r, const std::uint8_t* bytes) { std::memcpy(sources_[r], bytes, region_bytes_); }
  void read_target(std::uint32_t r, std::uint8_t* bytes) { std::memcpy(bytes, targets_[r], region_bytes_); }
  std::string path() { return "two rings of one line a message, nothing checked"; }

 private:
  void publish(Slot& slot, std::uint32_t length) {
    slot.received = received_;
    slot.length = length;
    owed_ = false;
    __atomic_store_n(&slot.number, ++sent_, __ATOMIC_RELEASE);
  }

  Ring& out_;
  const Ring& in_;
  std::vector<std::uint8_t*> sources_, targets_;
  std::uint64_t region_bytes_ = 0;
  std::uint64_t sent_ = 0;      // slots
  std::uint64_t taken_ = 0;     // slots
  std::uint64_t puts_ = 0;      // of ours
  std::uint64_t done_ = 0;      // of ours, as the other side says
  std::uint64_t received_ = 0;  // puts
  bool owed_ = false;
  std::uint32_t polls_ = 0;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  const Workload w = parse_workload(argc, argv);
  if (w.test != Test::latency || w.size_bytes != 8) give_up("the bare ring has latency, with puts of 8 bytes");
  void* const shared = mmap(nullptr, 2 * sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) give_up("out of memory");
  Meeting* meeting = nullptr;
  const int side = split(w, &meeting);
  Bare bare(w, static_cast<Ring*>(shared), side);
  const int result = run_transfer(w, meeting, side, bare);
  if (side == 0) join();
  return result;
}
