// SPDX-License-Identifier: Apache-2.0
// Memory that is weaker than any machine we compile for: every cell keeps all values it ever had.
//
// A thread has a *view*: for each cell the oldest value it may still read. A load picks any value that is not older; a
// store goes behind the value in view, and in front of stores the thread knows nothing of if it likes (its own may have
// left the store buffer earlier). What a store hands on to whoever reads it is the view written with it:
//   release store, release part of an exchange: all the thread knows;
//   relaxed store: what it knew at its last release fence;
//   acquire load: the view becomes the thread's; relaxed load: only once an acquire fence follows.
// An exchange reads the newest value, nothing ever comes between the two, and it hands on what it found besides what
// it adds. So stores overtake stores and loads overtake loads, everywhere that the ring code does not forbid it.
//
// Plain data (WQE and CQE bytes) may also not be overwritten while somebody may still be reading: views carry how far
// each thread had come with its reads, and a store to data compares. That stands for loads that overtake later stores.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace explore {

inline constexpr unsigned kMaxCells = 56;
inline constexpr unsigned kMaxThreads = 4;

// What a cell is, for properties, mutants and the printed schedule.
enum class Kind : std::uint8_t {
  reserved,
  ready,
  rung,
  requests,
  completed,
  mark,
  record,
  doorbell,
  wqe,
  cqe,
  op_own,
  consumer,
  landing,
  status,
  reaper,
  failure,
  counter,
  any,
};

struct View {
  std::array<std::uint16_t, kMaxCells> message;    // index into Memory::messages
  std::array<std::uint16_t, kMaxThreads> reads{};  // reads of data that are surely over

  // The first message of a cell has the cell's number: all cells are made before anything is stored.
  View() {
    for (unsigned i = 0; i < kMaxCells; ++i) message[i] = static_cast<std::uint16_t>(i);
  }
};

struct Message {
  std::uint64_t value;
  std::uint64_t hash;   // of everything here that matters, independent of the order in which cells were written
  std::uint32_t name;   // writer and its how-manieth: the same in every order of execution
  std::uint16_t place;  // in the cell's history
  std::uint8_t cell;
  bool glued;  // an exchange: nothing may be placed before it
  View view;
};

struct Cell {
  std::uint8_t* at;
  std::uint8_t bytes;
  Kind kind;
  bool data;
  std::uint8_t group;  // cells of one CQE
  std::uint16_t index;
  std::vector<std::uint16_t> history;
  std::array<std::uint16_t, kMaxThreads> read_by;
};

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

class Memory {
 public:
  Memory() { clear(); }
  void clear() {
    by_address_.fill(kNone);
    count_ = 0;
    messages.clear();
    names_.clear();
  }
  // The first value is what lies at the address now.
  unsigned add(void* at, unsigned bytes, Kind kind, unsigned index, bool data, unsigned group = 0) {
    const unsigned id = count_++;
    if (id >= kMaxCells || messages.size() != id) __builtin_trap();
    Cell& c = cells_[id];
    c.at = static_cast<std::uint8_t*>(at);
    c.bytes = static_cast<std::uint8_t>(bytes);
    c.kind = kind;
    c.data = data;
    c.group = static_cast<std::uint8_t>(group);
    c.index = static_cast<std::uint16_t>(index);
    c.read_by = {};
    c.history.assign(1, static_cast<std::uint16_t>(id));
    std::uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    Message m{};
    m.value = value;
    m.cell = static_cast<std::uint8_t>(id);
    m.name = id;
    m.hash = mix(mix(id, value), 1);
    messages.push_back(m);
    names_.push_back(m.name);
    by_address_[slot_of(c.at)] = static_cast<std::uint8_t>(id);
    return id;
  }
  unsigned count() const { return count_; }
  Cell& cell(unsigned id) { return cells_[id]; }
  const Cell& cell(unsigned id) const { return cells_[id]; }
  // kNone if the address is no cell.
  unsigned find(const void* at) const { return by_address_[slot_of(static_cast<const std::uint8_t*>(at))]; }

  unsigned place_in(const View& v, unsigned cell) const { return messages[v.message[cell]].place; }
  const Message& newest(unsigned cell) const { return messages[cells_[cell].history.back()]; }

  void join(View& to, const View& from) const {
    for (unsigned i = 0; i < count_; ++i)
      if (place_in(from, i) > place_in(to, i)) to.message[i] = from.message[i];
    for (unsigned t = 0; t < kMaxThreads; ++t)
      if (from.reads[t] > to.reads[t]) to.reads[t] = from.reads[t];
  }
  // The message itself is in its own view.
  void insert(unsigned cell, unsigned place, std::uint64_t value, std::uint32_t name, bool glued, const View& view) {
    const auto index = static_cast<std::uint16_t>(messages.size());
    auto& history = cells_[cell].history;
    history.insert(history.begin() + place, index);
    Message m{value, 0, name, static_cast<std::uint16_t>(place), static_cast<std::uint8_t>(cell), glued, view};
    m.view.message[cell] = index;
    messages.push_back(m);
    names_.push_back(name);
    for (std::size_t i = place + 1; i < history.size(); ++i) messages[history[i]].place = static_cast<std::uint16_t>(i);
    messages[index].hash = hash(messages[index].view, mix(mix(name, value), glued));
  }
  // A sum of products, and not a chain of them: this is where the search spends its time.
  std::uint64_t hash(const View& v, std::uint64_t h) const {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < count_; ++i) sum += names_[v.message[i]] * kOdd[i];
    for (unsigned t = 0; t < kMaxThreads; ++t) sum += v.reads[t] * kOdd[kMaxCells + t];
    return mix(h, sum);
  }
  std::uint64_t hash() const {
    std::uint64_t h = count_;
    for (unsigned i = 0; i < count_; ++i) {
      for (const auto m : cells_[i].history) h = mix(h, messages[m].hash);
      if (cells_[i].data)
        for (const auto r : cells_[i].read_by) h = mix(h, r);
      h = mix(h, i);
    }
    return h;
  }

  static constexpr std::uint8_t kNone = 0xff;
  std::vector<Message> messages;

 private:
  // Open addressing; cells are few.
  std::size_t slot_of(const std::uint8_t* at) const {
    std::size_t slot = (reinterpret_cast<std::uintptr_t>(at) * 0x9e3779b97f4a7c15u) >> 55;
    while (by_address_[slot] != kNone && cells_[by_address_[slot]].at != at) slot = (slot + 1) % by_address_.size();
    return slot;
  }

  static constexpr std::array<std::uint64_t, kMaxCells + kMaxThreads> kOdd = [] {
    std::array<std::uint64_t, kMaxCells + kMaxThreads> odd{};
    std::uint64_t seed = 1;
    for (auto& o : odd) o = (seed = mix(seed, 0xd1342543de82ef95u)) | 1;
    return odd;
  }();

  std::vector<std::uint64_t> names_;  // of all messages, side by side
  std::array<Cell, kMaxCells> cells_;
  unsigned count_ = 0;
  std::array<std::uint8_t, 512> by_address_;
};

}  // namespace explore
