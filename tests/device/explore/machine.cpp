// SPDX-License-Identifier: Apache-2.0
#include "explore/machine.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace explore {

namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr std::uint64_t kUsedMask = 0x1f;  // as many preemptions can be counted
Machine* g_machine = nullptr;

const char* name_of(Leaf leaf) {
  switch (leaf) {
    case Leaf::order_stores_before_dma: return "order_stores_before_dma";
    case Leaf::order_before_doorbell: return "order_before_doorbell";
    case Leaf::order_after_doorbell: return "order_after_doorbell";
    case Leaf::order_cqe_reads: return "order_cqe_reads";
    case Leaf::order_mark_reads: return "order_mark_reads";
    case Leaf::peek: return "peek";
    case Leaf::store_record: return "store_record";
    case Leaf::store_doorbell: return "store_doorbell";
    case Leaf::load_acquire: return "load_acquire";
    case Leaf::load_relaxed: return "load_relaxed";
    case Leaf::store_relaxed: return "store_relaxed";
    case Leaf::store_release: return "store_release";
    case Leaf::fetch_add: return "fetch_add";
    case Leaf::compare_exchange: return "compare_exchange";
    case Leaf::compare_exchange_relaxed: return "compare_exchange_relaxed";
    case Leaf::store_segment: return "store_segment";
    case Leaf::device_read: return "reads";
    case Leaf::device_write: return "writes";
    case Leaf::none: break;
  }
  return "none";
}

const char* name_of(Kind kind) {
  static constexpr const char* kNames[] = {"reserved", "ready",    "rung",   "requests", "completed", "mark",
                                           "record",   "doorbell", "wqe",    "cqe",      "op_own",    "consumer",
                                           "landing",  "status",   "reaper", "failure",  "counter",   "any"};
  return kNames[static_cast<unsigned>(kind)];
}

}  // namespace

Machine& machine() {
  return *g_machine;
}

Machine::Machine() {
  for (Thread& t : threads_) t.stack = std::make_unique<std::uint8_t[]>(kStackBytes);
  g_machine = this;
}

Machine::~Machine() {
  g_machine = nullptr;
}

// ---- Searching ----------------------------------------------------------------------------------------------------

Explored Machine::explore(Program& program, const Bounds& bounds, const Mutant& mutant) {
  program_ = &program;
  bounds_ = bounds;
  mutant_ = mutant;
  list_.clear();
  states_.assign(1u << 16, 0);
  states_held_ = 0;
  Explored out;
  do {
    run();
    ++(cut_ ? out.cut : out.executions);
    if (!violation_.empty()) break;
    out.complete = !next_list();
  } while (!out.complete && out.executions + out.cut < bounds.runs);
  out.states = states_held_;
  if (violation_.empty()) return out;
  out.violation = violation_;
  tracing_ = true;
  trace_.clear();
  run();  // the same list again
  tracing_ = false;
  for (const std::string& line : trace_) out.schedule += "  " + line + "\n";
  return out;
}

bool Machine::next_list() {
  while (!list_.empty() && list_.back().taken + 1 == list_.back().count) list_.pop_back();
  if (list_.empty()) return false;
  ++list_.back().taken;
  return true;
}

unsigned Machine::choose(unsigned count) {
  if (count == 1) return 0;
  if (at_ == list_.size()) list_.push_back({0, static_cast<std::uint8_t>(count)});
  branched_ = true;
  return list_[at_++].taken;
}

// Was this state met before with as many preemptions left, or more? Each entry is a hash whose low bits are how many
// had been used up.
bool Machine::known(std::uint64_t state) {
  state = state | kUsedMask;
  const auto place_of = [this](std::uint64_t s) {
    std::size_t i = s >> 20 & (states_.size() - 1);
    while (states_[i] != 0 && (states_[i] | kUsedMask) != (s | kUsedMask)) i = (i + 1) & (states_.size() - 1);
    return i;
  };
  if (states_held_ * 2 > states_.size()) {
    std::vector<std::uint64_t> old(states_.size() * 4, 0);
    old.swap(states_);
    for (const std::uint64_t s : old)
      if (s != 0) states_[place_of(s)] = s;
  }
  std::uint64_t& entry = states_[place_of(state)];
  if (entry != 0 && (entry & kUsedMask) <= preempted_) return true;
  if (entry == 0) ++states_held_;
  entry = (state & ~kUsedMask) | preempted_;
  return false;
}

std::uint64_t Machine::hash() const {
  std::uint64_t h = mix(memory.hash(), current_);
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& t = threads_[i];
    h = mix(h, t.log);
    h = memory.hash(t.now, h);
    h = memory.hash(t.on_acquire, h);
    h = memory.hash(t.on_release, h);
    h = memory.hash(t.seen, h);
    h = mix(h, t.combined ^ t.combining);
    h = mix(h, t.steps << 2 | static_cast<unsigned>(t.finished) << 1 | static_cast<unsigned>(t.paused));
  }
  return h;
}

// ---- Threads ------------------------------------------------------------------------------------------------------

void Machine::spawn(const char* name, std::function<void()> body, Role role) {
  Thread& t = threads_[count_++];
  t.name = name;
  t.body = std::move(body);
  t.now = t.on_acquire = t.on_release = t.seen = View{};
  t.watched.clear();
  t.log = t.steps = t.combined = 0;
  t.stores = 0;
  t.combining = t.peeked = Memory::kNone;
  t.call = Call::any;
  t.device = role == Role::device;
  t.finished = t.paused = false;
  ::getcontext(&t.context);
  t.context.uc_stack.ss_sp = t.stack.get();
  t.context.uc_stack.ss_size = kStackBytes;
  t.context.uc_link = nullptr;
  ::makecontext(&t.context, &Machine::enter_thread, 0);
}

void Machine::enter_thread() {
  Machine& m = *g_machine;
  Thread& t = m.threads_[m.current_];
  t.body();
  t.finished = true;
  if (t.combining != Memory::kNone)
    m.violation("returned with its doorbell still in the write-combining buffer: nobody pushes it out");
  m.pass_on();
  __builtin_trap();  // a finished thread is never chosen again
}

void Machine::run() {
  memory.clear();
  count_ = 0;
  at_ = 0;
  preempted_ = 0;
  cut_ = branched_ = false;
  violation_.clear();
  program_->start(*this);
  current_ = choose(count_);
  ::swapcontext(&main_, &threads_[current_].context);
}

// Back to run(). What is on the stacks of unfinished threads is forgotten: nothing there owns anything.
void Machine::leave() {
  ::swapcontext(&threads_[current_].context, &main_);
  __builtin_trap();
}

void Machine::violation(const char* format, ...) {
  char text[200];
  va_list rest;
  va_start(rest, format);
  std::vsnprintf(text, sizeof(text), format, rest);
  va_end(rest);
  violation_ = threads_[current_].name;
  violation_ += ": ";
  violation_ += text;
  if (tracing_) trace_.push_back("=> " + violation_);
  leave();
  __builtin_trap();
}

void Machine::switch_to(unsigned next) {
  if (next == current_) return;
  const unsigned last = current_;
  current_ = next;
  ::swapcontext(&threads_[last].context, &threads_[next].context);
}

// Only beyond the choices that are being repeated, and only where paths part or have just parted.
void Machine::cut_if_known(unsigned choices) {
  if (tracing_ || at_ != list_.size() || (choices == 1 && !branched_)) return;
  branched_ = false;
  if (!known(hash())) return;
  cut_ = true;
  leave();
}

// The current thread cannot go on, or does not want to: anybody's turn, at no cost.
void Machine::pass_on() {
  std::array<unsigned, kMaxThreads> able{};
  unsigned n = 0;
  for (unsigned i = 0; i < count_; ++i)
    if (can_run(threads_[i])) able[n++] = i;
  if (n == 0) {
    for (unsigned i = 0; i < count_; ++i) {
      if (threads_[i].finished || threads_[i].device) continue;
      violation("was the last to go on, and %s waits for what never comes", threads_[i].name);
    }
    program_->finish(*this);
    leave();
  }
  cut_if_known(n);
  switch_to(able[choose(n)]);
}

// Before every step that others could notice.
void Machine::step_begins() {
  ++threads_[current_].steps;
  std::array<unsigned, kMaxThreads> able{};
  able[0] = current_;
  unsigned n = 1;
  for (unsigned i = 0; i < count_ && preempted_ < bounds_.preemptions; ++i)
    if (i != current_ && can_run(threads_[i])) able[n++] = i;
  cut_if_known(n);
  const unsigned taken = choose(n);
  if (taken != 0 && bounds_.preemptions != kEveryOrder) ++preempted_;
  switch_to(able[taken]);
}

bool Machine::news(const Thread& t, unsigned cell) const {
  return memory.cell(cell).history.size() - 1 > memory.place_in(t.seen, cell);
}

bool Machine::news(const Thread& t) const {
  for (const unsigned cell : t.watched)
    if (news(t, cell)) return true;
  return false;
}

// A loop that waits would look at old values for ever. It goes on once there is something newer in a cell it looked at,
// and then it sees the next value of one such cell: stores arrive in the end, one by one, in any order.
unsigned Machine::pause() {
  Thread& t = threads_[current_];
  t.log = mix(t.log, ++t.steps);
  t.paused = true;
  pass_on();
  t.paused = false;
  std::array<unsigned, kMaxCells> newer{};
  unsigned n = 0;
  for (const unsigned cell : t.watched) {
    bool twice = false;
    for (unsigned i = 0; i < n; ++i) twice |= newer[i] == cell;
    if (!twice && news(t, cell)) newer[n++] = cell;
  }
  const unsigned cell = newer[choose(n)];
  const unsigned next = memory.place_in(t.seen, cell) + 1;
  if (next > memory.place_in(t.now, cell)) t.now.message[cell] = memory.cell(cell).history[next];
  t.log = mix(t.log, cell);
  t.watched.clear();
  return cell;
}

unsigned Machine::await(std::initializer_list<unsigned> cells) {
  Thread& t = threads_[current_];
  t.watched.clear();
  for (const unsigned cell : cells) t.watched.push_back(static_cast<std::uint8_t>(cell));
  return pause();
}

// ---- Leaves -------------------------------------------------------------------------------------------------------

bool Machine::mutated(Leaf leaf, Kind kind, Part part) const {
  if (mutant_.leaf != leaf) return false;
  if (mutant_.kind != Kind::any && mutant_.kind != kind) return false;
  if (mutant_.call != Call::any && mutant_.call != threads_[current_].call) return false;
  return mutant_.part == Part::all || mutant_.part == part;
}

void Machine::note(const char* what, unsigned cell, std::uint64_t value) {
  if (!tracing_) return;
  char line[160];
  const char* const who = threads_[current_].name;
  if (cell == Memory::kNone) {
    std::snprintf(line, sizeof(line), "%-8s %s", who, what);
  } else if (const Cell& c = memory.cell(cell); !c.data) {
    std::snprintf(line, sizeof(line), "%-8s %-24s %s[%u] = %llx", who, what, name_of(c.kind), c.index,
                  static_cast<unsigned long long>(value));
  } else {
    // Data is one line as long as the same thread does the same to the same kind.
    const int start = std::snprintf(line, sizeof(line), "%-8s %-24s %s", who, what, name_of(c.kind));
    if (!trace_.empty() && trace_.back().compare(0, static_cast<std::size_t>(start), line) == 0) {
      trace_.back() += " [" + std::to_string(c.index) + "]";
      return;
    }
    std::snprintf(line + start, sizeof(line) - static_cast<std::size_t>(start), " [%u]", c.index);
  }
  trace_.emplace_back(line);
}

void Machine::fence(Leaf leaf) {
  Thread& t = threads_[current_];
  const bool gone = mutated(leaf, Kind::any, Part::all);
  note(gone ? "(a fence is missing)" : name_of(leaf), Memory::kNone, 0);
  const bool flushes = leaf == Leaf::order_before_doorbell || leaf == Leaf::order_after_doorbell;
  if (flushes && !gone && t.combining != Memory::kNone) {
    const unsigned cell = t.combining;
    t.combining = Memory::kNone;
    step_begins();
    place(Leaf::store_doorbell, cell, t.combined, false);
  }
  if (leaf == Leaf::order_cqe_reads || leaf == Leaf::order_mark_reads) {
    if (!gone) memory.join(t.now, t.on_acquire);
    if (t.peeked == Memory::kNone) return;
    // The ring code reads the CQE's fields as plain memory after this: put there what this thread may see.
    const unsigned group = memory.cell(t.peeked).group;
    for (unsigned i = 0; i < memory.count(); ++i) {
      Cell& c = memory.cell(i);
      if (!c.data || c.group != group || group == 0) continue;
      const std::uint64_t value = read_data(i);
      std::memcpy(c.at, &value, c.bytes);
    }
  } else if (!gone && leaf != Leaf::order_after_doorbell) {
    t.on_release = t.now;
  }
}

void Machine::see(unsigned cell, unsigned message) {
  Thread& t = threads_[current_];
  t.now.message[cell] = t.seen.message[cell] = static_cast<std::uint16_t>(message);
}

// Any value that is not older than the thread's view; the newest is tried first.
unsigned Machine::pick(unsigned cell) {
  const auto& history = memory.cell(cell).history;
  const auto last = static_cast<unsigned>(history.size()) - 1;
  return history[last - choose(last - memory.place_in(threads_[current_].now, cell) + 1)];
}

std::uint64_t Machine::read_data(unsigned cell) {
  Thread& t = threads_[current_];
  const unsigned index = pick(cell);
  see(cell, index);
  memory.cell(cell).read_by[current_] = ++t.now.reads[current_];
  const std::uint64_t value = memory.messages[index].value;
  t.log = mix(t.log, value);
  note("reads", cell, value);
  return value;
}

std::uint64_t Machine::load(Leaf leaf, unsigned cell) {
  if (memory.cell(cell).data) return read_data(cell);
  step_begins();
  Thread& t = threads_[current_];
  const unsigned index = pick(cell);
  see(cell, index);
  const Message& m = memory.messages[index];
  const Kind kind = memory.cell(cell).kind;
  const bool acquire = (leaf == Leaf::load_acquire || leaf == Leaf::device_read) && !mutated(leaf, kind, Part::acquire);
  memory.join(acquire ? t.now : t.on_acquire, m.view);
  if (leaf == Leaf::peek) t.peeked = cell;
  t.watched.push_back(static_cast<std::uint8_t>(cell));
  t.log = mix(t.log, m.value);
  note(name_of(leaf), cell, m.value);
  return m.value;
}

void Machine::place(Leaf leaf, unsigned cell, std::uint64_t value, bool release) {
  Thread& t = threads_[current_];
  const auto& history = memory.cell(cell).history;
  // Behind what the thread has seen; before later stores it knows nothing of, unless an exchange follows directly.
  std::array<unsigned, 32> places{};
  unsigned n = 0;
  for (auto p = static_cast<unsigned>(history.size()); p > memory.place_in(t.now, cell); --p)
    if (p == history.size() || !memory.messages[history[p]].glued) places[n++] = p;
  const std::uint32_t name = (current_ + 1) << 16 | ++t.stores;
  memory.insert(cell, places[choose(n)], value, name, false, release ? t.now : t.on_release);
  see(cell, static_cast<unsigned>(memory.messages.size() - 1));
  note(name_of(leaf), cell, value);
  if (!memory.cell(cell).data) program_->stored(*this, cell);
}

void Machine::store(Leaf leaf, unsigned cell, std::uint64_t value) {
  Thread& t = threads_[current_];
  Cell& c = memory.cell(cell);
  if (c.data) {
    for (unsigned i = 0; i < count_; ++i) {
      if (i == current_ || c.read_by[i] <= t.now.reads[i]) continue;
      note(name_of(leaf), cell, value);
      violation("%s[%u] overwritten while %s may still be reading it", name_of(c.kind), c.index, threads_[i].name);
    }
    place(leaf, cell, value, false);
    std::memcpy(c.at, &value, c.bytes);
    return;
  }
  if (leaf == Leaf::store_doorbell) {
    t.combining = cell;
    t.combined = value;
    note("doorbell combined", cell, value);
    return;
  }
  step_begins();
  const bool release = leaf == Leaf::store_release || leaf == Leaf::device_write;
  place(leaf, cell, value, release && !mutated(leaf, c.kind, Part::release));
}

std::uint64_t Machine::add(unsigned cell, std::uint64_t value) {
  step_begins();
  Thread& t = threads_[current_];
  const Kind kind = memory.cell(cell).kind;
  const Message found = memory.newest(cell);
  memory.join(mutated(Leaf::fetch_add, kind, Part::acquire) ? t.on_acquire : t.now, found.view);
  View handed = mutated(Leaf::fetch_add, kind, Part::release) ? t.on_release : t.now;
  memory.join(handed, found.view);
  memory.insert(cell, found.place + 1u, found.value + value, (current_ + 1) << 16 | ++t.stores, true, handed);
  see(cell, static_cast<unsigned>(memory.messages.size() - 1));
  t.watched.push_back(static_cast<std::uint8_t>(cell));
  t.log = mix(t.log, found.value);
  note("fetch_add", cell, found.value + value);
  program_->stored(*this, cell);
  return found.value;
}

bool Machine::exchange(Leaf leaf, unsigned cell, std::uint64_t& expected, std::uint64_t desired) {
  step_begins();
  Thread& t = threads_[current_];
  const Kind kind = memory.cell(cell).kind;
  const Message found = memory.newest(cell);
  const bool relaxed = leaf == Leaf::compare_exchange_relaxed;
  memory.join(relaxed || mutated(leaf, kind, Part::acquire) ? t.on_acquire : t.now, found.view);
  see(cell, memory.cell(cell).history.back());
  t.watched.push_back(static_cast<std::uint8_t>(cell));
  t.log = mix(t.log, found.value);
  const bool done = found.value == expected;
  expected = found.value;
  if (!done) {
    note("compare_exchange finds", cell, found.value);
    return false;
  }
  View handed = relaxed || mutated(leaf, kind, Part::release) ? t.on_release : t.now;
  memory.join(handed, found.view);
  memory.insert(cell, found.place + 1u, desired, (current_ + 1) << 16 | ++t.stores, true, handed);
  see(cell, static_cast<unsigned>(memory.messages.size() - 1));
  note(name_of(leaf), cell, desired);
  program_->stored(*this, cell);
  return true;
}

void Machine::past(unsigned cell, std::uint64_t value, const View& view) {
  const auto name = static_cast<std::uint32_t>(0xff0000 + memory.messages.size());
  memory.insert(cell, static_cast<unsigned>(memory.cell(cell).history.size()), value, name, false, view);
}

unsigned Machine::cell_at(const void* at, unsigned bytes) {
  const unsigned cell = memory.find(at);
  if (cell == Memory::kNone || memory.cell(cell).bytes != bytes) violation("touches a word the scenario does not know");
  return cell;
}

// ---- What leaves.hpp calls ----------------------------------------------------------------------------------------

void fence(Leaf leaf) {
  machine().fence(leaf);
}
std::uint64_t load(Leaf leaf, const void* at, unsigned bytes) {
  return machine().load(leaf, machine().cell_at(at, bytes));
}
void store(Leaf leaf, void* at, unsigned bytes, std::uint64_t value) {
  machine().store(leaf, machine().cell_at(at, bytes), value);
}
std::uint64_t add(void* at, std::uint64_t value) {
  return machine().add(machine().cell_at(at, 8), value);
}
bool exchange(Leaf leaf, void* at, std::uint64_t& expected, std::uint64_t desired) {
  return machine().exchange(leaf, machine().cell_at(at, 8), expected, desired);
}
void pause() {
  (void)machine().pause();
}
std::uint64_t clock() {
  return machine().clock();
}

}  // namespace explore
