// SPDX-License-Identifier: Apache-2.0
// Runs the threads of one scenario, one step at a time, and tries every order and every value a load may see.
//
// A thread is a coroutine over the real ring code; a step is one leaf that touches a shared word. Which thread takes
// the next step and which value a load returns are *choices*; an execution is the list of its choices, and the search
// goes through all lists depth first, by running the program again from the start with the next list. Two things keep
// that finite and quick: a thread that could go on is stopped at most `preemptions` times in one execution, and a state
// that was met before (same memory, views, and values read so far by every thread) is not continued a second time.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "explore/leaves.hpp"
#include "explore/memory.hpp"

namespace explore {

// Which function of the ring code a thread is in: the same leaf has different reasons in different places.
enum class Call : std::uint8_t { post, ring, reap, done, space, any };

enum class Part : std::uint8_t { all, acquire, release };

// One ordering taken away: of this leaf, on this kind of cell, in this call.
struct Mutant {
  Leaf leaf = Leaf::none;
  Kind kind = Kind::any;
  Call call = Call::any;
  Part part = Part::all;
};

class Machine;

// What is explored. start() makes memory and threads anew for each execution.
class Program {
 public:
  virtual ~Program() = default;
  virtual void start(Machine& machine) = 0;
  // After every store to a shared word that is not data.
  virtual void stored(Machine& machine, unsigned cell) = 0;
  // All threads have returned and the device has nothing left to do.
  virtual void finish(Machine& machine) = 0;
};

struct Explored {
  std::uint64_t executions = 0;  // run to their end
  std::uint64_t cut = 0;         // left where they met a known state
  std::uint64_t states = 0;
  bool complete = false;  // every order within the bound was tried
  std::string violation;  // empty: none
  std::string schedule;   // of the violation
};

inline constexpr unsigned kEveryOrder = ~0u;

struct Bounds {
  unsigned preemptions = kEveryOrder;
  std::uint64_t runs = 20'000'000;  // a search that needs more has failed
};

class Machine {
 public:
  Machine();
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Explored explore(Program& program, const Bounds& bounds, const Mutant& mutant);

  // ---- For Program::start() ----
  Memory memory;
  // A device is stopped when everybody else is done and it has nothing to do; any other thread must return.
  enum class Role { thread, device };
  void spawn(const char* name, std::function<void()> body, Role role = Role::thread);
  // Appends to a cell's history as if a thread that is gone had stored it with `view`.
  void past(unsigned cell, std::uint64_t value, const View& view);

  // ---- For threads ----
  void know(const View& view) { threads_[current_].now = view; }
  // What follows is this call, and a pause in it waits for what it looked at.
  void enter(Call call) {
    threads_[current_].call = call;
    threads_[current_].watched.clear();
  }
  // At this place of its program all that the thread remembers follows from `value`: states that differ only in how it
  // came to that are one.
  void settle(unsigned place, std::uint64_t value) {
    threads_[current_].log = mix(place, value);
    threads_[current_].steps = 0;
    threads_[current_].watched.clear();
  }
  // Until one of the cells has a newer value than this thread has seen; gives that cell.
  unsigned await(std::initializer_list<unsigned> cells);
  // Plain data, by whoever is running.
  std::uint64_t read_data(unsigned cell);
  // printf-like: strings would be lost with the stacks that are left behind.
  [[noreturn, gnu::format(printf, 2, 3)]] void violation(const char* format, ...);

  // ---- The leaves ----
  void fence(Leaf leaf);
  std::uint64_t load(Leaf leaf, unsigned cell);
  void store(Leaf leaf, unsigned cell, std::uint64_t value);
  std::uint64_t add(unsigned cell, std::uint64_t value);
  bool exchange(Leaf leaf, unsigned cell, std::uint64_t& expected, std::uint64_t desired);
  unsigned pause();  // gives the cell that has news
  std::uint64_t clock() const { return threads_[current_].steps; }
  unsigned cell_at(const void* at, unsigned bytes);

 private:
  struct Thread {
    ucontext_t context;
    std::unique_ptr<std::uint8_t[]> stack;
    const char* name;
    std::function<void()> body;
    View now, on_acquire, on_release;
    View seen;  // what it read or wrote last; `now` may be ahead of that, by what others handed on
    std::vector<std::uint8_t> watched;  // cells loaded since the last pause
    std::uint64_t log;                  // of all values returned to it: its local state follows from them
    std::uint64_t steps;
    std::uint64_t combined;  // a doorbell that has not left the write-combining buffer
    std::uint32_t stores;
    unsigned combining;  // the cell it is for, or kNone
    unsigned peeked;     // last cell peeked at, or kNone
    Call call;
    bool device, finished, paused;
  };
  struct Choice {
    std::uint8_t taken, count;
  };

  void run();
  bool next_list();
  unsigned choose(unsigned count);
  void step_begins();
  void switch_to(unsigned next);
  void leave();
  bool news(const Thread& t, unsigned cell) const;
  bool news(const Thread& t) const;
  bool can_run(const Thread& t) const { return !t.finished && (!t.paused || news(t)); }
  void pass_on();
  std::uint64_t hash() const;
  bool known(std::uint64_t state);
  void cut_if_known(unsigned choices);
  bool mutated(Leaf leaf, Kind kind, Part part) const;
  unsigned pick(unsigned cell);
  void see(unsigned cell, unsigned message);
  void place(Leaf leaf, unsigned cell, std::uint64_t value, bool release);
  void note(const char* what, unsigned cell, std::uint64_t value);
  static void enter_thread();

  std::array<Thread, kMaxThreads> threads_;
  unsigned count_ = 0;
  unsigned current_ = 0;
  ucontext_t main_;
  Program* program_ = nullptr;
  Mutant mutant_;
  Bounds bounds_{};
  unsigned preempted_ = 0;
  std::vector<Choice> list_;
  std::size_t at_ = 0;
  std::vector<std::uint64_t> states_;  // open addressing
  std::uint64_t states_held_ = 0;
  bool cut_ = false;
  bool branched_ = false;  // since the state was last looked up
  bool tracing_ = false;
  std::string violation_;
  std::vector<std::string> trace_;
};

// The machine that leaves talk to.
Machine& machine();

}  // namespace explore
