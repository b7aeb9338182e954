// SPDX-License-Identifier: Apache-2.0
// Fuzz target: what a program writes into command rings, launch pages, doorbells and event states of a software
// Cassini. Whatever lies there: only memory that the program mapped is touched, nothing of another program outside of
// what that one exposed, the device comes to rest and goes on to serve the other.
//
// Input: steps of a kind byte, a length (2 bytes, little endian) and that many bytes.
//   0, 1, 2  commands behind the last ones of the transmit, target or counter queue, and its write pointer
//   3  a queue (1 byte), a raw write pointer (8)      4  a counter (1), an offset of its doorbell page (2), a word (8)
//   5  an event state (8)                             6  a queue (1), an offset of its ring (2), bytes
//   7  a queue (1), an offset of its launch page (2), bytes
//   8  an offset of the mapped memory (2), bytes      9  memory is copied to from now on, not stored to (1 byte: 1)
// Words in commands with 0xc0ffee above their lowest 24 bits become IOVAs of the program's memory: those are random.
#include <algorithm>
#include <array>

#include "cassini_world.hpp"

namespace {

using namespace strait::fuzz;
using cassini::Card;
using strait::sys::Mapping;

constexpr std::uint32_t kVni = 1;
// Pages of a program: answers and write-back words, an event queue, memory to write, memory to read only; the others
// are mapped by nobody.
constexpr std::uint64_t kEvents = 1, kEventPages = 2, kOpen = 8, kOpenPages = 8, kReadOnly = 18, kReadOnlyPages = 4;
constexpr std::uint64_t kWords = Memory::kBase + 1024;
constexpr std::uint32_t kMostPasses = 20'000;

struct Ring {
  std::uint32_t id = 0;
  std::uint32_t blocks = 0;
  std::uint32_t at = cxi::kFirstBlock;
  Mapping ring, launch;

  void put(const std::byte* bytes, std::size_t n) {
    for (std::size_t i = 0; i < n; i += cxi::kBlockBytes) {
      std::byte* const block = ring.data() + std::uint64_t{at} * cxi::kBlockBytes;
      std::memset(block, 0, cxi::kBlockBytes);
      std::memcpy(block, bytes + i, std::min<std::size_t>(cxi::kBlockBytes, n - i));
      at = at + 1 == blocks ? cxi::kFirstBlock : at + 1;
    }
  }
  void announce() const { store(at); }
  void store(std::uint64_t pointer) const {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(launch.data()), pointer, __ATOMIC_RELEASE);
  }
};

// A program with one of everything.
struct Party {
  Party(Card& card, Memory& its_memory, std::uint32_t id, std::uint32_t pid, bool strict = false)
      : memory(its_memory), program(card, memory, kProgramUser, id, {.strict = strict, .faults = {}}) {
    cxi::LniAllocCmd lni_alloc{};
    lni_alloc.svc_id = cxi::kDefaultService;
    lni = program.ask<cxi::LniAllocResp>(lni_alloc).lni;
    cxi::TrigCpAllocCmd cp{};
    cp.lni = lni;
    cp.vni = kVni;
    cp.tc = cxi::TrafficClass::best_effort;
    cp.cp_type = cxi::CpType::triggered;
    (void)program.ask<cxi::CpAllocResp>(cp);
    cxi::DomainAllocCmd domain_alloc{};
    domain_alloc.lni = lni;
    domain_alloc.vni = kVni;
    domain_alloc.pid = pid;
    domain = program.ask<cxi::DomainAllocResp>(domain_alloc).domain;
    const cxi::Md event_md = map(kEvents, kEventPages, cxi::kMapRead | cxi::kMapWrite);
    open = map(kOpen, kOpenPages, cxi::kMapRead | cxi::kMapWrite);
    (void)map(kReadOnly, kReadOnlyPages, cxi::kMapRead);
    std::memset(memory.page(kEvents), 0, kEventPages * kPage);
    cxi::EqAllocCmd eq_alloc{};
    eq_alloc.lni = lni;
    eq_alloc.queue_md = event_md.id;
    eq_alloc.attr.queue = Memory::address_of(kEvents);
    eq_alloc.attr.queue_len = kEventPages * kPage;
    const auto made = program.ask<cxi::EqAllocResp>(eq_alloc);
    eq = made.eq;
    event_state = program.map(made.csr);
    rings[0] = queue(cxi::kCqIsTx);
    rings[1] = queue(0);
    rings[2] = queue(cxi::kCqIsTx | cxi::kCqTxTriggered);
    for (std::size_t i = 0; i < doorbells.size(); ++i) {
      cxi::CtAllocCmd ct{};
      ct.lni = lni;
      ct.wb = kWords + i * 8;
      const auto counter = program.ask<cxi::CtAllocResp>(ct);
      counters[i] = counter.ctn;
      doorbells[i] = program.map(counter.doorbell);
    }
  }
  cxi::Md map(std::uint64_t page, std::uint64_t pages, std::uint32_t flags) {
    cxi::AtuMapCmd c{};
    c.lni = lni;
    c.va = Memory::address_of(page);
    c.len = pages * kPage;
    c.flags = flags | cxi::kMapPin;
    return program.ask<cxi::AtuMapResp>(c).md;
  }
  Ring queue(std::uint32_t flags) {
    cxi::CqAllocCmd c{};
    c.lni = lni;
    c.eq = eq;
    c.opts.count = 64;
    c.opts.flags = flags;
    const auto made = program.ask<cxi::CqAllocResp>(c);
    Ring ring;
    ring.id = made.cq;
    ring.blocks = made.count;
    ring.ring = program.map(made.cmds);
    ring.launch = program.map(made.wp_addr);
    return ring;
  }
  // A portal at `index`, enabled. A buffer of its owner's first open page behind it, if asked for.
  void portal(std::uint32_t index, std::uint64_t options, bool events, bool buffer) {
    cxi::PteAllocCmd alloc{};
    alloc.lni_hndl = lni;
    alloc.evtq_hndl = events ? eq : cxi::kEqNone;
    alloc.opts = options;
    const std::uint32_t pte = program.ask<cxi::PteAllocResp>(alloc).pte_number;
    cxi::PteMapCmd map_it{};
    map_it.pte_number = pte;
    map_it.domain_hndl = domain;
    map_it.pid_offset = index;
    (void)program.ask<cxi::PteMapResp>(map_it);
    cxi::SetStateCmd enable{};
    enable.set_header(cxi::CmdType::cq, cxi::CmdSize::b64, cxi::TargetOp::set_state);
    enable.set_ptlte_index(pte);
    enable.set_ptlte_state(cxi::PteState::enabled);
    enable.set_drop_count(0xffffff);
    rings[1].put(reinterpret_cast<const std::byte*>(&enable), sizeof enable);
    if (buffer) {
      cxi::TargetCmd append{};
      append.set_header(cxi::CmdType::cq, cxi::CmdSize::b64, cxi::TargetOp::append);
      append.set_ptlte_index(pte);
      append.set_ptl_list(cxi::PtlList::priority);
      append.set_flags(cxi::kLeOpPut | cxi::kLeOpGet | cxi::kLeEventLinkDisable | cxi::kLeEventCommDisable);
      append.set_match_id(cxi::kMatchAnyone);
      append.set_ignore_bits(~std::uint64_t{0});
      append.set_lac(open.lac);
      append.set_start(open.iova);
      append.set_length(kPage);
      rings[1].put(reinterpret_cast<const std::byte*>(&append), sizeof append);
    }
    rings[1].announce();
  }

  Memory& memory;
  Program program;
  std::uint32_t lni = 0, domain = 0, eq = 0;
  cxi::Md open{};
  std::array<Ring, 3> rings;
  Mapping event_state;
  std::array<Mapping, 3> doorbells;
  std::array<std::uint32_t, 3> counters{};
};

constexpr std::uint32_t kGoodPid = 5, kBadPid = 6;

// The other program: there before everybody, and still served after everybody.
struct Street {
  Street() {
    good = std::make_unique<Party>(*fabric.card(0), good_memory, 1, kGoodPid);
    good->portal(0, 0, false, true);
    good->portal(1, cxi::kPteIsMatching, false, false);
    drive_to_rest(fabric, kMostPasses);
    check_good();
  }
  // It puts 8 bytes into the second half of its own page, and reads what comes of it.
  void check_good() {
    std::uint64_t value = ++rounds;
    std::memcpy(good_memory.page(kOpen + 1), &value, sizeof value);
    cxi::FullDmaCmd put{};
    put.set_header(cxi::CmdType::dma, cxi::CmdSize::b64, cxi::DmaOp::put);
    put.set_dfa(cxi::unicast_dfa(fabric.card(0)->settings().nid, cxi::endpoint_of(kGoodPid, cxi::kMaxPidBits, 0)));
    put.set_lac(good->open.lac);
    put.set_local_addr(good->open.iova + kPage);
    put.set_remote_offset(kPage - 8);
    put.set_request_len(8);
    put.set_ct(good->counters[0]);
    put.set_flags(cxi::kEventCtAck | cxi::kEventSuccessDisable | cxi::kEventSendDisable);
    good->rings[0].put(reinterpret_cast<const std::byte*>(&put), sizeof put);
    good->rings[0].announce();
    drive_to_rest(fabric, kMostPasses);
    const cassini::Ct* const ct = fabric.card(0)->counters.find(good->counters[0]);
    require(ct->success == rounds && ct->failure == 0, "another program's put is counted");
    require(std::memcmp(good_memory.page(kOpen + 1) - 8, &value, sizeof value) == 0, "and lands");
    // What it read from is put back as it was, so that all of it can be compared.
    good_memory.restore(kOpen + 1, sizeof value);
  }

  Memory good_memory{11};
  Memory bad_memory{77};
  cassini::Fabric fabric{2};
  std::unique_ptr<Party> good;
  std::uint64_t rounds = 0;
};

// Marked words become addresses of the program's own.
void place_addresses(std::vector<std::byte>& bytes, const cxi::Md& md) {
  for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    if (word >> 24 != 0xc0ffee) continue;
    word = md.iova + (word & 0xffffff);
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
}

std::size_t number_at(const std::byte* at) {
  return static_cast<std::size_t>(at[0]) | static_cast<std::size_t>(at[1]) << 8;
}

void store_word(const Mapping& page, std::size_t offset, const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(page.data() + offset % kPage / 8 * 8), word, __ATOMIC_RELEASE);
}

void copy_into(std::byte* to, std::size_t room, std::size_t offset, std::span<const std::byte> bytes) {
  offset %= room;
  if (bytes.empty()) return;
  std::memcpy(to + offset, bytes.data(), std::min(bytes.size(), room - offset));
}

void step(Street& street, Party& party, unsigned kind, std::span<const std::byte> bytes) {
  const std::size_t n = bytes.size();
  Ring& named = party.rings[n == 0 ? 0 : static_cast<std::size_t>(bytes[0]) % party.rings.size()];
  switch (kind % 10) {
    case 0:
    case 1:
    case 2: {
      // More than the ring holds is cut off, as a program would wait there.
      std::vector<std::byte> commands(
          bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(n, 59 * cxi::kBlockBytes)));
      place_addresses(commands, party.open);
      Ring& ring = party.rings[kind % 10];
      ring.put(commands.data(), commands.size());
      ring.announce();
      break;
    }
    case 3:
      if (n >= 9) store_word(named.launch, 0, bytes.data() + 1);
      break;
    case 4:
      if (n >= 11) {
        store_word(party.doorbells[static_cast<std::size_t>(bytes[0]) % party.doorbells.size()],
                   number_at(bytes.data() + 1), bytes.data() + 3);
      }
      break;
    case 5:
      if (n >= 8) store_word(party.event_state, 0, bytes.data());
      break;
    case 6:
    case 7:
      if (n >= 3) {
        const Mapping& page = kind % 10 == 6 ? named.ring : named.launch;
        std::vector<std::byte> commands(bytes.begin() + 3, bytes.end());
        place_addresses(commands, party.open);
        copy_into(page.data(), page.size(), number_at(bytes.data() + 1), commands);
      }
      break;
    case 8:
      if (n >= 2) {
        copy_into(party.memory.page(kOpen), kOpenPages * kPage, number_at(bytes.data()), bytes.subspan(2));
      }
      break;
    default: party.memory.set_direct(n == 0 || bytes[0] != std::byte{1}); break;
  }
  drive_to_rest(street.fabric, kMostPasses);
}

void require_in_bounds(const Street& street) {
  const char* const own = "only mapped memory is touched";
  street.bad_memory.require_untouched(kEvents + kEventPages, kOpen, own);
  street.bad_memory.require_untouched(kOpen + kOpenPages, Memory::kPages, own);
  const char* const other = "nothing of another program is touched but what it exposed";
  street.good_memory.require_untouched(kEvents + kEventPages, kOpen, other);
  street.good_memory.require_untouched(kOpen + 1, Memory::kPages, other);
  static constexpr std::byte kNothing[kEventPages * kPage] = {};
  require(std::memcmp(street.good_memory.page(kEvents), kNothing, sizeof kNothing) == 0,
          "another program hears of nothing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Street& street = *new Street;
  Card& card = *street.fabric.card(0);
  const Books before(card);
  street.bad_memory.reset();
  street.bad_memory.set_direct(true);
  {
    Party party(card, street.bad_memory, 2, kBadPid, true);
    party.portal(0, cxi::kPteIsMatching | cxi::kPteEnFlowctrl, true, false);
    party.portal(1, 0, true, true);
    party.portal(255, cxi::kPteIsMatching, true, true);
    drive_to_rest(street.fabric, kMostPasses);
    const auto* at = reinterpret_cast<const std::byte*>(data);
    const std::byte* const end = at + size;
    while (end - at >= 3) {
      const std::size_t n = std::min(number_at(at + 1), static_cast<std::size_t>(end - at) - 3);
      step(street, party, static_cast<unsigned>(at[0]), {at + 3, n});
      at += 3 + n;
    }
    street.check_good();
    require_in_bounds(street);
  }
  require(Books(card) == before, "closing gives everything back");
  return 0;
}
