// SPDX-License-Identifier: Apache-2.0
// What two processes of one host share and say to each other about map and copy grants. Layout: docs/grant-map.md.
//
// Three things are shared. The owner's ledger, which peers only read: one word for each region it has granted, the
// number of the grant while that is good and 0 afterwards. The peer's marks, which the owner only reads: one word for
// each lane, odd while the lane is inside somebody's memory. And the memory itself. Around them a local socket carries
// notes of one size, with the descriptors.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "base/error.hpp"
#include "sys/socket.hpp"

namespace strait::grant {

using NodeId = std::array<std::byte, 16>;
using Proof = std::array<std::byte, 16>;

// ---- Ledger
inline constexpr std::uint32_t kLedgerEntries = 1u << 18;
inline constexpr std::uint32_t kSleepersEntry = 0;  // not a grant: how many of the owner wait to be woken by a signal
inline constexpr std::size_t kLedgerBytes = std::size_t{kLedgerEntries} * sizeof(std::uint64_t);
using LedgerEntry = std::atomic<std::uint64_t>;
static_assert(sizeof(LedgerEntry) == 8 && LedgerEntry::is_always_lock_free);

// ---- Marks
inline constexpr std::uint32_t kMarks = 64;  // lanes of one process to one peer that may use its grants
struct alignas(64) Mark {
  std::atomic<std::uint64_t> word{0};
  // Not for the owner: written by the Host of this process, here because the lane has this line at hand. What the lane
  // found while it had the same value is still there.
  std::atomic<std::uint64_t> generation{0};
};
static_assert(sizeof(Mark) == 64);
inline constexpr std::size_t kMarksBytes = kMarks * sizeof(Mark);

// ---- Signals: the words of a region.
inline constexpr std::uint32_t kSignals = 64;
struct alignas(64) SignalPage {
  std::array<std::atomic<std::uint64_t>, kSignals> words{};
};

// ---- Notes
enum class What : std::uint16_t {
  hello = 1,    // peer to owner, first; with its marks
  welcome = 2,  // owner to peer; with the ledger and the event that wakes the owner
  ask = 3,      // peer to owner: for a region, with the proof that came with the target
  granted = 4,  // owner to peer; map: with the memory, and its signals where it may raise them
  refused = 5,  // owner to peer; with the reason
  revoked = 6,  // owner to peer: the grant `stamp` is over
  let_go = 7,   // peer to owner: nothing of that grant is mapped any more
};
inline constexpr std::uint16_t kLastWhat = 7;

enum class Way : std::uint32_t { none = 0, map = 1, copy = 2 };

inline constexpr std::uint32_t kMagic = 0x544e5247;  // "GRNT"
inline constexpr std::uint16_t kVersion = 1;

// What a grant is about: the target as the rendezvous handed it out.
struct Subject {
  std::uint64_t region_id = 0;
  std::uint64_t epoch = 0;
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::uint32_t access = 0;
  std::uint32_t rkey = 0;
};

struct Note {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  What what = What::hello;
  std::uint64_t number = 0;  // ask: chosen by who asks; granted, refused: the one of the question
  Subject subject;
  Proof proof{};
  std::uint64_t stamp = 0;
  std::uint32_t entry = 0;
  Way way = Way::none;
  std::uint64_t probe_address = 0;  // welcome: a word that who may read this process's memory finds there
  std::uint64_t probe_value = 0;
  std::uint32_t barriers = 0;  // hello, welcome: 1 if membarrier works for this process
  Code code = Code::invalid;   // refused
  std::array<char, 160> text{};
};
static_assert(std::is_trivially_copyable_v<Note> && sizeof(Note) == 272);

// Copies the bytes out and looks at every field that says how to read the others. Code::invalid: not a note.
[[nodiscard]] Result<Note> read_note(std::span<const std::byte> bytes);
void say(Note& note, const std::string& text);
[[nodiscard]] Status send_note(int socket, const Note& note, std::span<const int> fds = {});

[[nodiscard]] std::string door_name(const NodeId& node);

// Who is at the other end of a local socket: the kernel's word, in tests another.
using WhoIs = Result<sys::PeerCredentials> (*)(int socket);

}  // namespace strait::grant
