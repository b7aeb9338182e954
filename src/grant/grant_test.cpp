// SPDX-License-Identifier: Apache-2.0
// Doors and visits within one process: what is granted is reached, what is revoked is not, and who will not let go is
// named.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>

#include "grant/door.hpp"
#include "grant/host.hpp"
#include "sys/process.hpp"
#include "sys/socket.hpp"

#if defined(__SANITIZE_THREAD__)
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace strait::grant {
namespace {

// To TSan mmap writes all it maps, and a thread that uses memory which is being mapped anew races with that.
struct Unwatched {
  Unwatched() {
#if defined(__SANITIZE_THREAD__)
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  ~Unwatched() {
#if defined(__SANITIZE_THREAD__)
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
  }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

constexpr std::int64_t kLongNs = 30'000'000'000;
constexpr std::uint32_t kRead = 1, kWrite = 2;

sys::Deadline soon() {
  return sys::Deadline::after_ns(kLongNs);
}
sys::Deadline at_once() {
  return sys::Deadline::after_ns(0);
}

struct Memory {
  Memory(std::uint64_t id, std::size_t length, bool writable = true) {
    fd = sys::make_grantable_memfd("test", sys::round_up(length, sys::page_bytes())).value();
    mapping = sys::map_file(fd.get(), 0, sys::round_up(length, sys::page_bytes()), sys::Protect::read_write).value();
    if (!sys::seal_for_peers(fd.get(), writable)) throw std::runtime_error("seal");
    subject = {id, 1, 0x1000 * id, length, writable ? kRead | kWrite : kRead, 77};
  }
  sys::Fd fd;
  sys::Mapping mapping;
  Subject subject;
  bool shared = true;
};

struct Owner final : Clerk {
  explicit Owner(DoorLimits limits = {}, WhoIs who_is = sys::peer_credentials) {
    if (!sys::fill_random(id)) throw std::runtime_error("random");
    door = Door::open(id, *this, limits, who_is).value();
  }
  Result<Offer> on_ask(const Subject& subject, const Proof&, Way) override {
    const auto found = memories.find(subject.region_id);
    if (found == memories.end()) return fail(Code::denied, "there is no region {}", subject.region_id);
    Offer offer;
    offer.way = copies ? Way::copy : Way::map;
    if (!copies) offer.memory = found->second->fd.duplicate().value();
    if (before_grant) before_grant();
    return offer;
  }
  [[nodiscard]] std::string why_no_copies() const override { return no_copies; }
  bool still_shared(const Subject& subject) override { return memories.at(subject.region_id)->shared; }
  Memory& add(std::size_t length = 5000, bool writable = true) {
    const std::uint64_t number = memories.size() + 1;
    return *(memories[number] = std::make_unique<Memory>(number, length, writable));
  }

  NodeId id{};
  bool copies = false;
  std::string no_copies;
  std::function<void()> before_grant;
  std::map<std::uint64_t, std::unique_ptr<Memory>> memories;
  std::unique_ptr<Door> door;
};

struct Visitor {
  explicit Visitor(const Owner& owner) {
    visits = Visits::start().value();
    host = Host::visit(owner.id, soon()).value();
    EXPECT_TRUE(visits->add(host));
    mark = host->take_mark();
  }
  // What a lane does; null: not granted.
  std::byte* reach(const Subject& subject) const {
    const Window* const window = host->find(subject.region_id, subject.address, subject.rkey);
    return window != nullptr && window->is_good() ? window->memory : nullptr;
  }
  std::unique_ptr<Visits> visits;
  std::shared_ptr<Host> host;
  Mark* mark = nullptr;
};

TEST(Grant, ByMapReachesTheOwnersBytes) {
  Owner owner;
  Memory& memory = owner.add();
  const Visitor visitor(owner);
  EXPECT_EQ(visitor.reach(memory.subject), nullptr);
  ASSERT_EQ(visitor.host->ask(memory.subject, {}, soon()).value(), Way::map);
  {
    const Inside inside(*visitor.mark, visitor.host->needs_fence());
    std::byte* const there = visitor.reach(memory.subject);
    ASSERT_NE(there, nullptr);
    std::memcpy(there + 100, "hello", 5);
  }
  EXPECT_EQ(std::memcmp(memory.mapping.data() + 100, "hello", 5), 0);
  EXPECT_TRUE(owner.door->is_held(1));
  EXPECT_EQ(owner.door->counts().maps, 1u);
}

TEST(Grant, OfReadingIsMappedForReadingOnly) {
  Owner owner;
  Memory& memory = owner.add(4096, false);
  const Visitor visitor(owner);
  ASSERT_TRUE(visitor.host->ask(memory.subject, {}, soon()));
  std::memcpy(memory.mapping.data(), "seen", 4);
  std::byte* const there = visitor.reach(memory.subject);
  ASSERT_NE(there, nullptr);
  EXPECT_EQ(std::memcmp(there, "seen", 4), 0);
  EXPECT_DEATH(*const_cast<volatile std::byte*>(there) = std::byte{1}, "");
  // Not even by opening the file again.
  EXPECT_FALSE(sys::map_file(memory.fd.get(), 0, 4096, sys::Protect::read_write));
}

TEST(Grant, ThatIsRefusedSaysWhy) {
  Owner owner;
  const Visitor visitor(owner);
  const auto asked = visitor.host->ask({9, 1, 9, 9, kRead, 9}, {}, soon());
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Code::denied);
  EXPECT_EQ(asked.error().text, "there is no region 9");
}

TEST(Grant, OnceRevokedIsNotFoundAndLetGo) {
  Owner owner;
  const Visitor visitor(owner);
  for (int i = 0; i < 300; ++i) {
    Memory& memory = owner.add();
    ASSERT_TRUE(visitor.host->ask(memory.subject, {}, soon()));
    ASSERT_NE(visitor.reach(memory.subject), nullptr);
    if (i % 3 == 0) continue;  // some stay
    memory.shared = false;
    EXPECT_TRUE(owner.door->revoke(memory.subject.region_id, soon()).empty());
    EXPECT_EQ(visitor.reach(memory.subject), nullptr);
    EXPECT_FALSE(owner.door->is_held(memory.subject.region_id));
  }
  EXPECT_EQ(visitor.host->window_count(), 100u);
  for (const auto& [id, memory] : owner.memories) EXPECT_EQ(visitor.reach(memory->subject) != nullptr, memory->shared);
}

TEST(Grant, IsRefusedWhenTheLedgerIsFull) {
  Owner owner({.entries = 4});
  const Visitor visitor(owner), other(owner);
  Memory* const first[] = {&owner.add(), &owner.add(), &owner.add()};
  Memory& one_more = owner.add();
  for (const Memory* const memory : first) ASSERT_TRUE(visitor.host->ask(memory->subject, {}, soon()));
  for (int again = 0; again < 2; ++again) {
    const auto asked = visitor.host->ask(one_more.subject, {}, soon());
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().code, Code::limit);
    EXPECT_EQ(asked.error().text, "the owner's ledger is full: 3 regions have grants");
  }
  EXPECT_FALSE(owner.door->is_held(one_more.subject.region_id));
  EXPECT_EQ(owner.door->counts().refused, 2u);
  // Those that are in it go on, for others too.
  for (const Memory* const memory : first) {
    EXPECT_NE(visitor.reach(memory->subject), nullptr);
    EXPECT_TRUE(other.host->ask(memory->subject, {}, soon()));
    EXPECT_NE(other.reach(memory->subject), nullptr);
  }
  // What is revoked makes room.
  first[1]->shared = false;
  EXPECT_TRUE(owner.door->revoke(first[1]->subject.region_id, soon()).empty());
  EXPECT_TRUE(visitor.host->ask(one_more.subject, {}, soon()));
  EXPECT_NE(visitor.reach(one_more.subject), nullptr);
  EXPECT_EQ(visitor.reach(first[1]->subject), nullptr);
}

TEST(Grant, IsNotRevokedWhileSomebodyIsInside) {
  Owner owner;
  Memory& memory = owner.add();
  const Visitor visitor(owner);
  ASSERT_TRUE(visitor.host->ask(memory.subject, {}, soon()));
  {
    const Inside inside(*visitor.mark, visitor.host->needs_fence());
    std::byte* const there = visitor.reach(memory.subject);
    const auto holdouts = owner.door->revoke(1, at_once());
    ASSERT_EQ(holdouts.size(), 1u);
    EXPECT_TRUE(holdouts[0].inside);
    EXPECT_EQ(holdouts[0].pid, ::getpid());
    EXPECT_EQ(visitor.reach(memory.subject), nullptr);  // nobody enters it any more
    there[1] = std::byte{7};                            // but who is inside may finish
  }
  EXPECT_TRUE(owner.door->revoke(1, soon()).empty());
  EXPECT_EQ(memory.mapping.data()[1], std::byte{7});
}

TEST(Grant, RevokedBeforeItIsWrittenDownIsNoGrant) {
  Owner owner;
  Memory& memory = owner.add();
  const Visitor visitor(owner);
  owner.before_grant = [&] {
    memory.shared = false;
    EXPECT_TRUE(owner.door->revoke(1, at_once()).empty());
  };
  const auto asked = visitor.host->ask(memory.subject, {}, soon());
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Code::gone);
  EXPECT_EQ(visitor.reach(memory.subject), nullptr);
  EXPECT_TRUE(owner.door->revoke(1, soon()).empty());
}

TEST(Grant, EndsWithThePeer) {
  Owner owner;
  Memory& memory = owner.add();
  {
    const Visitor visitor(owner);
    ASSERT_TRUE(visitor.host->ask(memory.subject, {}, soon()));
    visitor.mark->word.store(1);  // it dies inside
  }
  EXPECT_TRUE(owner.door->revoke(1, soon()).empty());
}

TEST(Grant, EndsWithTheOwner) {
  auto owner = std::make_unique<Owner>();
  Memory& memory = owner->add();
  const Visitor visitor(*owner);
  ASSERT_TRUE(visitor.host->ask(memory.subject, {}, soon()));
  owner->door.reset();
  const sys::Deadline deadline = soon();
  while (!visitor.host->is_gone() && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(visitor.host->is_gone());
  EXPECT_EQ(visitor.reach(memory.subject), nullptr);
  EXPECT_FALSE(visitor.host->is_there());
  const auto asked = visitor.host->ask(memory.subject, {}, soon());
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Code::gone);
}

TEST(Grant, ByCopyIsGivenWhereTheKernelAllowsIt) {
  Owner owner;
  owner.copies = true;
  Memory& memory = owner.add();
  const Visitor visitor(owner);
  ASSERT_EQ(visitor.host->no_copies_because(), "");
  ASSERT_EQ(visitor.host->ask(memory.subject, {}, soon()).value(), Way::copy);
  sys::Calls calls = sys::real_calls();
  calls.process_vm_readv = [](pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long) {
    errno = EPERM;
    return ssize_t{-1};
  };
  const auto host = Host::visit(owner.id, soon(), calls).value();
  EXPECT_NE(host->no_copies_because(), "");
  const auto visits = Visits::start().value();
  ASSERT_TRUE(visits->add(host));
  const auto asked = host->ask(memory.subject, {}, soon());
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().text, host->no_copies_because());
}

TEST(Grant, ByCopyIsRefusedWhereTheOwnerOrTheVisitorSaysSo) {
  Owner owner;
  owner.copies = true;
  const Memory& memory = owner.add();
  const auto refuse = [&](const std::shared_ptr<Host>& host) {
    const auto visits = Visits::start().value();
    ASSERT_TRUE(visits->add(host));
    const auto asked = host->ask(memory.subject, {}, soon());
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().text, host->no_copies_because());
  };
  const auto unwilling = Host::visit(owner.id, soon(), sys::real_calls(), "we make none").value();
  EXPECT_EQ(unwilling->no_copies_because(), "we make none");
  refuse(unwilling);
  owner.no_copies = "the owner wants none";
  const auto unwelcome = Host::visit(owner.id, soon()).value();
  EXPECT_EQ(unwelcome->no_copies_because(), "the owner wants none");
  refuse(unwelcome);
}

Result<sys::PeerCredentials> another_user(int socket) {
  STRAIT_TRY(sys::PeerCredentials who, sys::peer_credentials(socket));
  ++who.uid;
  return who;
}

TEST(Grant, IsAskedOfTheSameUserOnly) {
  const Owner owner;
  const auto host = Host::visit(owner.id, soon(), sys::real_calls(), {}, another_user);
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().code, Code::denied);
  EXPECT_NE(host.error().text.find("grants are for processes of the same user"), std::string::npos)
      << host.error().text;
  EXPECT_TRUE(Host::visit(owner.id, soon()));
}

TEST(Grant, IsGivenToTheSameUserOnly) {
  const Owner owner({}, another_user);
  const auto host = Host::visit(owner.id, soon());
  ASSERT_FALSE(host);
  EXPECT_NE(host.error().code, Code::timeout) << "it is turned away, not left standing";
  EXPECT_EQ(owner.door->counts().refused, 1u);
  EXPECT_EQ(owner.door->counts().guests, 0u);
}

TEST(Hostile, AFloodOfGuestsIsTurnedAwayAndOthersAreServed) {
  Owner owner({.guests = 3});
  Memory& memory = owner.add();
  const Visitor visitor(owner);
  std::vector<sys::Fd> flood;
  for (int i = 0; i < 50; ++i) flood.push_back(sys::unix_connect(door_name(owner.id), soon()).value());
  for (std::size_t i = 2; i < flood.size(); ++i) {
    ASSERT_TRUE(sys::wait_ready(flood[i].get(), false, soon())) << i;
    EXPECT_TRUE(sys::peer_closed(flood[i].get())) << i;
  }
  EXPECT_EQ(owner.door->counts().guests, 3u);
  EXPECT_EQ(owner.door->counts().refused, 48u);
  EXPECT_TRUE(visitor.host->ask(memory.subject, {}, soon()));
  EXPECT_FALSE(Host::visit(owner.id, soon()));
  flood.clear();  // who leaves makes room
  const sys::Deadline deadline = soon();
  bool again = false;
  while (!again && !deadline.passed()) again = static_cast<bool>(Host::visit(owner.id, soon()));
  EXPECT_TRUE(again);
}

// An owner that plays by no rules: what it sends is refused, and no memory of the visitor is touched for it.
struct BadOwner {
  BadOwner() {
    if (!sys::fill_random(id)) throw std::runtime_error("random");
    listener = sys::unix_listen(door_name(id)).value();
  }
  static sys::Fd sealed_file(std::size_t bytes) { return sys::make_published_file("bad owner", bytes).value().fd; }
  static sys::Fd open_file(std::size_t bytes) {
    sys::Fd fd(sys::real_calls().memfd_create("unsealed", 0));
    if (sys::real_calls().ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) throw std::runtime_error("ftruncate");
    return fd;
  }
  void send(const Note& note, const std::vector<const sys::Fd*>& fds) const {
    std::vector<int> raw;
    for (const sys::Fd* const fd : fds) raw.push_back(fd->get());
    EXPECT_TRUE(sys::send_packet(socket.get(), std::as_bytes(std::span(&note, 1)), raw));
  }
  [[nodiscard]] Note hear() const {
    EXPECT_TRUE(sys::wait_ready(socket.get(), false, soon()));
    const auto packet = sys::receive_packet(socket.get(), sizeof(Note));
    return packet ? read_note(packet->bytes).value() : Note{};
  }
  void greet(const std::function<void(const BadOwner&)>& answer) {
    EXPECT_TRUE(sys::wait_ready(listener.get(), false, soon()));
    socket = sys::accept_one(listener.get()).value();
    (void)hear();
    answer(*this);
  }
  Result<std::shared_ptr<Host>> visited(const std::function<void(const BadOwner&)>& answer) {
    std::thread owner([&] { greet(answer); });
    auto host = Host::visit(id, soon());
    owner.join();
    return host;
  }
  NodeId id{};
  sys::Fd listener, socket;
};

Note welcome_note() {
  Note note;
  note.what = What::welcome;
  return note;
}

TEST(HostileOwner, WhoseLedgerCouldBeCutShortIsNotVisited) {
  const sys::Event wake = sys::Event::make().value();
  const sys::Fd event = sys::Fd::copy_of(wake.fd()).value();
  for (const bool small : {false, true}) {
    BadOwner owner;
    const sys::Fd ledger = small ? BadOwner::sealed_file(4096) : BadOwner::open_file(kLedgerBytes);
    const auto host = owner.visited([&](const BadOwner& o) { o.send(welcome_note(), {&ledger, &event}); });
    EXPECT_FALSE(host) << small;
  }
}

TEST(HostileOwner, WhoAnswersWithSomethingElseIsNotVisited) {
  const sys::Fd ledger = BadOwner::sealed_file(kLedgerBytes);
  const std::function<void(const BadOwner&)> answers[] = {
      [&](const BadOwner& o) { o.send(welcome_note(), {}); },
      [&](const BadOwner& o) {
        o.send(welcome_note(), {&ledger, &ledger, &ledger});
      },
      [&](const BadOwner& o) {
        Note note;
        note.what = What::granted;
        o.send(note, {&ledger, &ledger});
      },
      [&](const BadOwner& o) {
        const std::byte one{};
        EXPECT_TRUE(sys::send_packet(o.socket.get(), std::span(&one, 1), {}));
      },
  };
  for (const auto& answer : answers) {
    BadOwner owner;
    EXPECT_FALSE(owner.visited(answer));
  }
}

// What it grants once it was visited like any other.
TEST(HostileOwner, WhoseGrantsAreNotWhatTheyShouldBeIsRefused) {
  BadOwner owner;
  const sys::Fd ledger = BadOwner::sealed_file(kLedgerBytes);
  const sys::Fd event = sys::Fd::copy_of(sys::Event::make().value().fd()).value();
  const auto host = owner.visited([&](const BadOwner& o) { o.send(welcome_note(), {&ledger, &event}); }).value();
  EXPECT_NE(host->no_copies_because(), "") << "its word to be read lies at address 0";
  const auto visits = Visits::start().value();
  ASSERT_TRUE(visits->add(host));
  const std::size_t page = sys::page_bytes();
  const sys::Fd unsealed = BadOwner::open_file(page), whole = BadOwner::sealed_file(page);
  const Subject subject{1, 1, 0x1000, page, kRead, 7};
  struct Try {
    const char* what;
    std::function<void(Note&)> change;
    std::vector<const sys::Fd*> fds;
  };
  const Try tries[] = {
      {"memory that could be cut short", [](Note&) {}, {&unsealed}},
      {"no memory", [](Note&) {}, {}},
      {"three files", [](Note&) {}, {&whole, &whole, &whole}},
      {"signals that could be cut short", [](Note&) {}, {&whole, &unsealed}},
      {"an entry outside the ledger", [](Note& n) { n.entry = kLedgerEntries; }, {&whole}},
      {"an entry far outside the ledger", [](Note& n) { n.entry = ~0u; }, {&whole}},
      {"the entry of those who sleep", [](Note& n) { n.entry = kSleepersEntry; }, {&whole}},
      {"number 0, which an ended grant has", [](Note& n) { n.stamp = 0; }, {&whole}},
      {"no way", [](Note& n) { n.way = Way::none; }, {&whole}},
      {"a copy that the kernel refuses", [](Note& n) { n.way = Way::copy; }, {}},
  };
  for (const Try& one : tries) {
    SCOPED_TRACE(one.what);
    std::thread answering([&] {
      Note note = owner.hear();
      note.what = What::granted;
      note.way = Way::map;
      note.entry = kSleepersEntry + 1;
      note.stamp = 5;
      one.change(note);
      Note stranger = note;
      stranger.number += 1000;  // an answer to a question that nobody asked
      owner.send(stranger, {&whole});
      Note revoked = note;
      revoked.what = What::revoked;
      revoked.stamp = 99;  // and the end of a grant that never was
      owner.send(revoked, {});
      owner.send(note, one.fds);
      if (owner.hear().what != What::let_go) ADD_FAILURE() << "it says that it has nothing of number 99";
    });
    EXPECT_FALSE(host->ask(subject, {}, soon()));
    answering.join();
    EXPECT_EQ(host->window_count(), 0u);
    EXPECT_FALSE(host->is_gone());
  }
}

// A peer that writes its own rules hurts nobody but itself.
TEST(Hostile, GarbageEndsTheVisit) {
  Owner owner;
  Memory& memory = owner.add();
  const auto first_byte = [](std::size_t n) {
    Note note;
    note.what = What::ask;
    std::vector<std::byte> bytes(sizeof note);
    std::memcpy(bytes.data(), &note, sizeof note);
    bytes.resize(n);
    return bytes;
  };
  for (const std::size_t n : {std::size_t{1}, sizeof(Note) - 1, sizeof(Note)}) {
    const sys::Fd socket = sys::unix_connect(door_name(owner.id), soon()).value();
    ASSERT_TRUE(sys::send_packet(socket.get(), first_byte(n), {}));  // the last: a question before the greeting
    ASSERT_TRUE(sys::wait_ready(socket.get(), false, soon()));
    EXPECT_EQ(sys::receive_packet(socket.get(), sizeof(Note)).error().code, Code::gone);
  }
  EXPECT_EQ(owner.door->counts().garbage, 3u);
  const Visitor visitor(owner);
  EXPECT_TRUE(visitor.host->ask(memory.subject, {}, soon()));
}

TEST(Hostile, MarksThatCouldBeCutShortAreRefused) {
  Owner owner;
  const sys::Fd socket = sys::unix_connect(door_name(owner.id), soon()).value();
  const sys::Fd open_file(sys::real_calls().memfd_create("unsealed", 0));
  ASSERT_EQ(sys::real_calls().ftruncate(open_file.get(), kMarksBytes), 0);
  Note hello;
  const int fd = open_file.get();
  ASSERT_TRUE(sys::send_packet(socket.get(), std::as_bytes(std::span(&hello, 1)), std::span(&fd, 1)));
  ASSERT_TRUE(sys::wait_ready(socket.get(), false, soon()));
  EXPECT_EQ(sys::receive_packet(socket.get(), sizeof(Note)).error().code, Code::gone);
}

// Keeps the mapping, says nothing, and stays inside for ever.
TEST(Hostile, WhoNeverLetsGoIsNamedAndHoldsUpNobody) {
  Owner owner;
  Memory& memory = owner.add();
  Memory& other = owner.add();
  const auto host = Host::visit(owner.id, soon()).value();  // nobody listens to what the owner says
  Mark* const mark = host->take_mark();
  std::optional<Result<Way>> asked;
  std::thread asking([&] { asked = host->ask(memory.subject, {}, soon()); });
  for (bool again = false; !host->window_count();) (void)host->listen(again);
  asking.join();
  ASSERT_TRUE(*asked);
  mark->word.store(1);
  const auto holdouts = owner.door->revoke(1, at_once());
  ASSERT_EQ(holdouts.size(), 1u);
  EXPECT_TRUE(holdouts[0].inside);
  EXPECT_TRUE(owner.door->is_held(1));
  // Its word that it let go of things it never had changes nothing.
  Note note;
  note.what = What::let_go;
  note.stamp = 12345;
  ASSERT_TRUE(sys::send_packet(host->socket(), std::as_bytes(std::span(&note, 1)), {}));
  const Visitor visitor(owner);
  ASSERT_TRUE(visitor.host->ask(other.subject, {}, soon()));
  EXPECT_TRUE(owner.door->is_held(1));
  EXPECT_TRUE(owner.door->revoke(2, soon()).empty());
}

// The pages that a holdout maps are left to it.
TEST(PeerFile, LeavesWhoWillNotLetGo) {
  const std::size_t length = 3 * sys::page_bytes();
  Memory memory(1, length);
  const sys::Mapping theirs = sys::map_file(memory.fd.get(), 0, length, sys::Protect::read_write).value();
  std::memset(memory.mapping.data(), 1, length);
  std::atomic<bool> stop{false};
  auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(memory.mapping.data() + sys::page_bytes());
  word.store(0);
  std::uint64_t added = 0;
  std::thread owner([&] {
    const Unwatched unwatched;
    while (!stop.load()) {
      word.fetch_add(1);
      ++added;
    }
  });
  ASSERT_TRUE(sys::leave_file(reinterpret_cast<std::uint64_t>(memory.mapping.data()), length, memory.fd.get()));
  theirs.data()[0] = std::byte{9};
  memory.mapping.data()[1] = std::byte{8};
  stop.store(true);
  owner.join();
  EXPECT_EQ(word.load(), added);
  EXPECT_EQ(memory.mapping.data()[0], std::byte{1});
  EXPECT_EQ(theirs.data()[1], std::byte{1});
}

// Regions, and several targets of one: each has its window, and nobody else's.
TEST(WindowTable, FindsEachAndNoOther) {
  constexpr std::uint64_t kRegions = 1000;
  WindowTable table(4096);
  std::vector<std::unique_ptr<Window>> windows;
  for (std::uint64_t i = 0; i < 2 * kRegions; ++i) {
    windows.push_back(std::make_unique<Window>());
    windows.back()->subject = {.region_id = 1 + i % kRegions,
                               .address = 4096 * i,
                               .length_bytes = 4096,
                               .rkey = static_cast<std::uint32_t>(i)};
    table.put(windows.back().get());
  }
  for (const auto& window : windows) {
    const Subject& subject = window->subject;
    EXPECT_EQ(table.find(subject.region_id, subject.address, subject.rkey), window.get());
    EXPECT_EQ(table.find(subject.region_id, subject.address + 1, subject.rkey), nullptr);
    EXPECT_EQ(table.find(subject.region_id + kRegions, subject.address, subject.rkey), nullptr);
  }
}

TEST(Note, ThatIsNotOneIsRefused) {
  Note note;
  const auto bytes = [&] { return std::as_bytes(std::span(&note, 1)); };
  EXPECT_TRUE(read_note(bytes()));
  EXPECT_FALSE(read_note(bytes().first(sizeof note - 1)));
  note.version = 9;
  EXPECT_EQ(read_note(bytes()).error().code, Code::unsupported);
  note = {};
  note.what = static_cast<What>(8);
  EXPECT_FALSE(read_note(bytes()));
  note = {};
  note.way = static_cast<Way>(3);
  EXPECT_FALSE(read_note(bytes()));
  note = {};
  note.text.fill('x');
  EXPECT_EQ(read_note(bytes()).value().text.back(), '\0');
}

}  // namespace
}  // namespace strait::grant
