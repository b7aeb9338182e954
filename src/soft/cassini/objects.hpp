// SPDX-License-Identifier: Apache-2.0
// What a Cassini is made of. Data only: client*.cpp make and free these as the driver does, the engine uses them.
// One thread: everything that belongs to a Fabric is touched by whoever drives it, and by nobody else.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "soft/cassini/match_list.hpp"
#include "soft/cassini/user_memory.hpp"
#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::cassini {

namespace wire = strait::wire::cxi;

class Card;
class Client;
class Faults;
class Strict;
struct Lni;
struct Eq;
struct Ct;
struct Pte;

// Bytes that client and device both reach. `direct` is null where only the client's memory as such is known.
struct Place {
  UserMemory* memory = nullptr;
  std::uint64_t address = 0;
  std::byte* direct = nullptr;
  [[nodiscard]] bool valid() const { return memory != nullptr || direct != nullptr; }
};

// ---- Who, and what they share ---------------------------------------------------------------------------------------

// Resources that are counted: in the order of the service's limits.
enum class Resource : std::uint8_t { pte, txq, tgq, eq, ct, le, tle, ac };
inline constexpr std::size_t kResources = 8;

// Who may use a service or a network: an entry admits everybody, a user, a group or a network namespace.
struct Access {
  enum class Kind : std::uint8_t { open, uid, gid, netns };
  Kind kind = Kind::open;
  std::uint64_t id = 0;
};
using AccessList = std::vector<Access>;

// Networks that may be used, by all who are admitted: VNIs that equal `match` outside of `ignore`. Belongs to the card,
// not to one service: an LNI of any service may use any profile that admits its caller.
struct Profile {
  std::uint32_t match = 0;
  std::uint32_t ignore = 0;
  AccessList access;
  std::array<bool, wire::kTrafficClasses> tcs{};
  bool enabled = false;
  bool exclusive_cp = false;            // communication profiles are never shared, and may change their VNI
  std::bitset<wire::kPidAny + 1> pids;  // taken, or reserved
  [[nodiscard]] bool covers(std::uint32_t vni) const { return (vni & ~ignore) == match; }
};

struct Service {
  explicit Service(std::uint32_t number) : id(number) {}
  std::uint32_t id;
  wire::SvcDesc desc{};
  AccessList access;
  std::vector<std::shared_ptr<Profile>> profiles;  // one for each VNI, or one for the range
  std::array<std::uint32_t, kResources> in_use{};
  std::uint32_t lnis_per_rgid = 1;
  std::optional<std::uint32_t> le_pool, tle_pool;  // its own; none: the common pool, no triggered entries
  std::uint32_t lnis = 0;                          // that use it
  std::uint32_t tles = 0;                          // triggers that wait
  std::array<std::uint32_t, wire::kProcessingElements> les_in_pe{};
  [[nodiscard]] bool has(std::uint8_t flag) const { return (desc.flags & flag) != 0; }
  [[nodiscard]] bool enabled() const { return has(wire::kSvcEnable); }
};

// (VNI, traffic class) reached through a 4-bit number.
struct Cp {
  std::uint32_t lcid = 0;
  std::uint32_t vni = 0;
  std::uint32_t tc = 0;
  std::uint32_t tc_type = 0;
  std::uint32_t refs = 0;  // handles of clients
  std::uint32_t lni = 0;   // that asked for it first
  std::shared_ptr<Profile> profile;
};

struct Domain {
  explicit Domain(std::uint32_t number) : id(number) {}
  std::uint32_t id;
  Lni* lni = nullptr;
  std::uint32_t vni = 0;
  std::uint32_t pid = 0;
  std::uint32_t refs = 0;  // PTEs mapped into it
  std::shared_ptr<Profile> profile;
};

struct Md;
// One of eight address spaces of a resource group.
struct AddressContext {
  std::uint32_t ac = 0;  // number in the device
  Lni* lni = nullptr;    // whose maps it holds
  int page_shift = 0;
  int huge_shift = 0;
  int ptg_mode = 0;
  std::uint32_t flag_class = 0;
  std::uint64_t base = 0;                // of its IOVAs: random, with the LAC in the top bits
  std::uint64_t bytes = 0;               // from there on
  std::uint64_t next = 0;                // first IOVA never used
  std::map<std::uint64_t, Md*> by_iova;  // first byte -> descriptor
  Md* found_last = nullptr;              // one of those: most accesses are to the same as before
  void remove(const Md& md);
};

// A resource group: what the hardware tells apart. As many LNIs share one as their service says.
struct Rgid {
  std::uint32_t id = 0;
  std::uint32_t service = 0;
  std::uint32_t capacity = 1;  // LNIs
  std::uint32_t lnis = 0;
  std::array<std::shared_ptr<Cp>, wire::kLcidsPerRgid> cps;
  std::array<std::unique_ptr<AddressContext>, wire::kLacsPerRgid> acs;
};

struct Lni {
  explicit Lni(std::uint32_t number, std::shared_ptr<Rgid> of = std::make_shared<Rgid>())
      : id(number), rgid(std::move(of)), cps(rgid->cps), acs(rgid->acs) {}
  std::uint32_t id;
  std::shared_ptr<Rgid> rgid;
  std::array<std::shared_ptr<Cp>, wire::kLcidsPerRgid>& cps;             // of the group
  std::array<std::unique_ptr<AddressContext>, wire::kLacsPerRgid>& acs;  // of the group
  Service* service = nullptr;
  Client* client = nullptr;
  Strict* strict = nullptr;   // of the client; null: nobody looks so closely
  Faults* faults = nullptr;   // of the client; null: nothing goes wrong on purpose
  std::uint32_t refs = 0;     // children of every kind
  std::uint32_t next_pe = 0;  // processing elements take turns
  struct Reserved {
    std::shared_ptr<Profile> profile;
    std::bitset<wire::kPidAny + 1> pids;
  };
  std::vector<Reserved> reserved_pids;
  // Freed, their numbers not yet returned.
  std::vector<std::uint32_t> retired_cqs, retired_eqs, retired_cts, retired_ptes;
};

struct Md {
  explicit Md(std::uint32_t number) : id(number) {}
  std::uint32_t id;
  Lni* lni = nullptr;
  std::uint64_t iova = 0, va = 0, length = 0;  // widened to pages
  std::uint8_t lac = 0;
  int page_shift = 12, huge_shift = 21;
  std::uint32_t flags = 0;       // kMap*
  std::uint32_t refs = 0;        // EQs on it
  UserMemory* memory = nullptr;  // byte of `iova` is memory's byte `at`
  std::uint64_t at = 0;
  std::unique_ptr<UserMemory> owned;  // when `memory` is this descriptor's alone (a dma-buf)
  bool dead = false;                  // the memory moved away: accesses find no translation
};

inline void AddressContext::remove(const Md& md) {
  by_iova.erase(md.iova);
  if (found_last == &md) found_last = nullptr;
}

// ---- Queues
// -----------------------------------------------------------------------------------------------------------

// How much of a long request is at its target already, and where there it begins.
struct Moved {
  std::uint64_t bytes = 0;
  std::uint64_t iova = 0;
  std::uint32_t pte = 0;
  [[nodiscard]] bool begins_at(const Moved& other) const { return iova == other.iova && pte == other.pte; }
};

struct Cq {
  explicit Cq(std::uint32_t number) : id(number) {}
  std::uint32_t id;
  Lni* lni = nullptr;
  Strict* strict = nullptr;  // the LNI's
  Faults* faults = nullptr;  // the LNI's
  Eq* eq = nullptr;          // for failed commands; null: none
  bool transmit = false, triggered = false, ethernet = false;
  std::uint32_t policy = 0;  // when the status is written back
  std::uint32_t lcid = 0;
  std::uint32_t slots = 0;  // of 64 bytes
  Place ring;
  std::unique_ptr<UserMemory> owned;            // of a ring in an accelerator's memory
  std::uint64_t* write_pointer_page = nullptr;  // the client's launch page, 4096 bytes; word 0: wr_ptr
  std::uint32_t mapped = 0;                     // cookies of it that are mapped now
  // Engine.
  std::uint32_t read_slot = 4;        // next to look at, 64-byte units
  bool second_half = false;           // of that slot: commands may have 32 bytes
  std::uint32_t seen_write_slot = 4;  // commands are there up to here
  std::uint64_t seen_pointer = 0;     // what was last read from the page
  std::uint32_t window_first = 4;     // blocks that came by low-latency writes: these, as long as they are looked at
  std::uint32_t window_blocks = 0;
  std::uint32_t unacknowledged = 0;  // CQ_ACK_COUNTER: operations not yet ended
  std::uint32_t rejected = 0;
  bool failed = false;             // stopped at a bad command
  bool may_wait = false;           // its command is being carried out: it can be tried again
  bool waits = false;              // a lossless target has no room: it is to be
  Moved moved{};                   // of the command that is being carried out: pieces that are done
  bool after_lcid = false;         // the next command must be a NOOP
  wire::QueueStatus status{};      // what the client was told last; its pointer may be older
  std::uint32_t status_every = 0;  // slots since the status was written
  wire::CStateCmd state{};         // sticky for immediate commands
  bool has_state = false;
  std::uint32_t hold = 0;  // strict: so many passes until the next command is looked at
};

struct Wait {
  std::uint32_t id = 0;
  std::uint32_t refs = 0;
  bool raised = false;
  std::function<void()> raise{};  // how the client's host learns of it; empty: nobody waits
};

struct Eq {
  explicit Eq(std::uint32_t number) : id(number) {}
  std::uint32_t id;
  Lni* lni = nullptr;
  Md* md = nullptr;
  Wait* event_wait = nullptr;
  Wait* status_wait = nullptr;
  std::uint64_t flags = 0;
  Place buffer;             // one buffer: [status 64 bytes][events]
  std::uint32_t slots = 0;  // of 64 bytes, the status among them
  struct Next {             // EQ_RESIZE: where events go after the switch
    Place buffer;
    std::uint32_t slots = 0;
    Md* md = nullptr;
  };
  std::optional<Next> next;  // until the engine has switched
  Md* resized_md = nullptr;  // of the new buffer, until EQ_RESIZE_COMPLETE
  bool resized = false;      // EQ_RESIZE was not completed yet
  bool on_buffer_b = false;
  std::uint32_t reserved_slots = 0, reserved_fc = 0;
  std::uint32_t threshold_base = 0, threshold_delta = 0, threshold_count = 0;
  std::uint64_t* state_page = nullptr;  // the client writes sw_state into word 0
  std::uint32_t mapped = 0;
  std::uint32_t refs = 0;  // CQs and PTEs
  // Engine.
  std::uint64_t write_byte = 64;     // where the next event goes
  std::uint32_t read_slot = 1;       // how far the consumer was, when it last said something sensible
  bool drop_number = false;          // the consumer says the same one: it knows of the drops
  std::uint32_t last_threshold = 0;  // how many fill levels are reached
  bool watched = false;              // there may be events that nobody was woken for
};

// ---- Counting events
// ----------------------------------------------------------------------------------------------------

struct Trigger {
  std::uint64_t threshold = 0;
  wire::CtOp op{};
  Cq* cq = nullptr;                         // that posted it: its profile and its unacknowledged count
  std::array<std::uint64_t, 16> command{};  // the whole slot: 64 bytes, or 128 of a DMA command
};

struct Ct {
  explicit Ct(std::uint32_t number) : id(number) {}
  std::uint32_t id;
  Lni* lni = nullptr;
  Place write_back;                   // not valid: never writes back
  std::unique_ptr<UserMemory> owned;  // of a write-back word in an accelerator's memory
  std::uint64_t* doorbell_page = nullptr;
  std::uint64_t summed_success = 0, summed_failure = 0;  // what the page's sums were when they were last read
  std::uint32_t mapped = 0;
  std::uint64_t success = 0;  // 48 bits
  std::uint32_t failure = 0;  // 7 bits
  std::list<Trigger> triggers;
};

// ---- Portals
// --------------------------------------------------------------------------------------------------------------

// A buffer that waits for requests.
struct ListEntry {
  std::uint64_t start = 0;   // IOVA of the first byte
  std::uint64_t length = 0;  // 56 bits
  std::uint64_t offset = 0;  // manage_local: how far it is filled
  std::uint32_t flags = 0;   // wire::kLe*
  std::uint32_t min_free = 0;
  std::uint16_t ct = 0;
  std::uint16_t buffer_id = 0;
  std::uint8_t lac = 0;
};

// A header that waits for its buffer.
struct Unexpected {
  wire::EventType type = wire::EventType::put;  // of the event when it came
  std::uint32_t initiator = 0;
  std::uint64_t match_bits = 0, header_data = 0, remote_offset = 0, start = 0;
  std::uint32_t rlength = 0, mlength = 0, vni = 0;
  std::uint32_t source_nid = 0, target_pid = 0;  // rendezvous: who is asked for the rest, and who asks
  std::uint8_t rendezvous_id = 0;
  bool rendezvous = false, use_offset_for_get = false;
  std::uint8_t atomic_op = 0, atomic_type = 0, cswap_op = 0;
};

struct Pte {
  explicit Pte(std::uint32_t number) : id(number) {}
  std::uint32_t id;
  Lni* lni = nullptr;
  Eq* eq = nullptr;
  std::uint64_t options = 0;  // kPte*
  wire::PteState state = wire::PteState::disabled;
  std::uint32_t drop_count = 0;  // 24 bits
  std::uint32_t mappings = 0;    // addresses it answers at
  std::uint32_t pe = 0;          // processing element
  // Lists, in the order of wire::PtlList.
  std::array<MatchList<ListEntry>, 3> lists;
  MatchList<Unexpected> unexpected;
  // An append found no list entry: what comes behind it on that list fails too, until one says "restart".
  std::array<wire::ReturnCode, 3> appends_fail{wire::ReturnCode::ok, wire::ReturnCode::ok, wire::ReturnCode::ok};
  // A search that waits for room in the event queue goes on behind this position.
  std::size_t search_from = 0;
  // An append that waits for that room has met headers already: so much of its space is used.
  std::optional<std::uint64_t> half_appended;
};

}  // namespace strait::soft::cassini
