// SPDX-License-Identifier: Apache-2.0
// What every transfer program does, whoever moves the bytes: the same places in the same order, the same values, the
// same check. A program that pairs with another includes this and nothing of the other's.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace bench {

enum class Test {
  latency,         // puts of 8 bytes to and fro
  rate,            // puts of 8 bytes, as many as go
  bandwidth,       // larger ones
  get,             // one get after the other
  fetch_add,       // one fetch-and-add after the other
  send_latency,    // messages to and fro
  send_bandwidth,  // messages, as many as go
  wake,            // somebody who sleeps (signal_wake)
  share,           // memory, for the first time (register_memory)
  share_again,     // what is shared already
  regions,         // puts to many regions of one peer (many_targets)
  peers,           // puts to many peers
  peers_memory,    // what a connected peer takes
  peers_connect,   // how long connecting takes
};

// Puts, which every transfer program moves; the others have programs of their own.
constexpr bool is_put(Test test) {
  return test == Test::latency || test == Test::rate || test == Test::bandwidth;
}

// The command line of a transfer program, and the figure it prints.
struct Workload {
  Test test = Test::latency;
  std::uint64_t size_bytes = 8;
  std::uint32_t window = 128;      // operations under way: rate and bandwidth
  std::uint32_t regions = 4;       // on each side
  std::uint64_t region_bytes = 0;  // 0: chosen by size
  bool one_place = false;          // always the same bytes, as ucx_perftest does
  std::uint64_t window_mask = 0;   // window and regions as powers of two, so that taking turns needs no division
  std::uint64_t region_mask = 0;
  double seconds = 0.3;            // of the timed part
  int cpu[2] = {0, 1};             // initiator, owner
  std::vector<std::string> extra;  // "name=value": what only one program understands
  [[nodiscard]] std::string option(const std::string& name, const std::string& otherwise) const;
};

// Exits with a sentence when it is wrong.
[[noreturn]] void give_up(const std::string& sentence);
Workload parse_workload(int argc, char** argv);

// Numbers for who looks things up at random: the same ones for the same seed, made in a nanosecond.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(0x853c49e6748fea9b ^ seed) {}
  std::uint64_t below(std::uint64_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return (state_ >> 32) * limit >> 32;
  }

 private:
  std::uint64_t state_;
};

struct Place {
  std::uint32_t region;
  std::uint64_t offset;
};

// The sequence of places. Both sides make the same one from the same seed.
class Places {
 public:
  Places(const Workload& workload, std::uint64_t seed)
      : state_(seed * 0x9e3779b97f4a7c15u + 1), regions_(workload.one_place ? 1 : workload.regions) {
    const std::uint64_t step = workload.size_bytes < 64 ? 8 : 64;
    step_ = step;
    choices_ = workload.one_place ? 1 : (workload.region_bytes - workload.size_bytes) / step + 1;
  }
  Place next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    // The high product bits: a multiplication is cheaper than a remainder, and this runs inside the timed part.
    const auto high = static_cast<std::uint32_t>(state_ >> 32);
    const auto low = static_cast<std::uint32_t>(state_);
    return {static_cast<std::uint32_t>(std::uint64_t{high} * regions_ >> 32),
            (std::uint64_t{low} * choices_ >> 32) * step_};
  }

 private:
  std::uint64_t state_;
  std::uint64_t regions_;
  std::uint64_t choices_ = 1;
  std::uint64_t step_ = 8;
};

// Memory that both processes see, for everything that is not measured.
struct Meeting {
  static constexpr std::uint32_t kMaxRegions = 16;
  static constexpr std::size_t kLetterBytes = 16384;
  alignas(64) std::atomic<std::uint32_t> step[2];  // how often each side came to meet()
  std::atomic<std::uint64_t> count;                // iterations of the next phase, told by the initiator
  alignas(64) std::atomic<std::uint32_t> over[2];  // the phase that each side has ended
  std::atomic<std::uint64_t> wrong;                // bytes that are not what was put
  char name[2][256];
  std::uint64_t base[2][kMaxRegions];
  std::uint8_t letter[2][kLetterBytes];  // what else a library has to tell its other side
};

// Makes the meeting page, forks, pins both. Returns 0 in the initiator, 1 in the owner, which ends with its parent.
int split(const Workload& workload, Meeting** meeting);
// Waits for the other side, and in the end gives up. Not for timed parts.
void meet(Meeting* meeting, int side, double seconds = 30);
// Initiator: waits for the owner's end and gives up if that was a bad one.
void join();

std::uint64_t now_ns();

double resident_bytes();  // of this process
void pin(int cpu);

// The value an 8-byte put carries: different for every iteration of every phase.
constexpr std::uint64_t tag(std::uint64_t phase, std::uint64_t iteration) {
  return phase << 48 | (iteration + 1);
}

inline std::uint64_t load_word(const std::uint8_t* at) {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
}
inline void store_word(std::uint8_t* at, std::uint64_t value) {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(at), value, __ATOMIC_RELAXED);
}

// Bounds a loop that waits for the other process without a clock in the loop.
class Patience {
 public:
  void spent() {
    if (++spins_ > (std::uint64_t{1} << 31)) give_up("waited for ever: the other side makes no progress");
  }
  void again() { spins_ = 0; }

 private:
  std::uint64_t spins_ = 0;
};

// Source bytes that say where they came from.
void fill_source(std::uint8_t* bytes, std::uint32_t region, std::uint64_t length_bytes);

// What the owner must find at the end: the same puts made again, by memcpy.
class Expected {
 public:
  explicit Expected(const Workload& workload);
  void put(std::uint64_t value, Place from, Place to);  // `value`: of an 8-byte put, and of the last word of a ping
  // How many bytes differ.
  [[nodiscard]] std::uint64_t differences(std::uint32_t region, const std::uint8_t* found) const;

 private:
  const Workload& workload_;
  std::vector<std::vector<std::uint8_t>> sources_;
  std::vector<std::vector<std::uint8_t>> targets_;
};

// One line of JSON on stdout: what the program measured. `beside`: the limit it measured in turn with that, if any.
void print_result(const Workload& workload, double value, const char* unit, std::uint64_t iterations,
                  std::uint64_t wrong, const std::string& path, double beside = 0);
// The middle one; of an even number, the lower of the two in the middle.
double median(std::vector<double> values);

}  // namespace bench
