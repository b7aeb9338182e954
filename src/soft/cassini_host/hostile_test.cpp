// SPDX-License-Identifier: Apache-2.0
// A process that shares a server with another one: it dies in the middle of its puts, stops, answers slowly, never
// reads, fills its pages with nonsense, or puts out of pages that nobody brings. The other one puts and finds its
// bytes, in bounded time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <random>

#include "soft/cassini_host/open_device.hpp"
#include "soft/cassini_host/patience.hpp"
#include "soft/cassini_host/protocol.hpp"
#include "soft/cassini_host/server.hpp"
#include "sys/clock.hpp"
#include "sys/host.hpp"
#include "sys/socket.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::uint32_t kVni = 1;
constexpr std::uint64_t kBytes = 1 << 20;

// A program on the shared device: rings, a portal over all of its memory, a counter. Its own checks end the process, so
// that it can be used in a child, too.
class Party {
 public:
  // Null: it cannot be had.
  static std::unique_ptr<Party> open(const std::string& server) {
    OpenSettings settings;
    settings.server.name = server;
    auto opened = OpenDevice::open(std::move(settings));
    if (!opened) return nullptr;
    auto party = std::unique_ptr<Party>(new Party);
    party->device_ = std::move(*opened);
    return party->set_up() ? std::move(party) : nullptr;
  }
  [[nodiscard]] std::uint32_t pid() const { return pid_; }
  [[nodiscard]] std::byte* memory() const { return memory_; }
  [[nodiscard]] std::byte* page(int which) const { return pages_[which]; }
  static constexpr int kPages = 6;  // ring and launch page of each queue, the event state, the doorbell

  // One of `bytes` from the first half of the memory into the second half of somebody's.
  void put(std::uint32_t to, std::uint32_t bytes) { put_from(md_.lac, md_.iova, to, bytes); }
  void put_from(std::uint32_t lac, std::uint64_t iova, std::uint32_t to, std::uint32_t bytes) {
    wire::FullDmaCmd c{};
    c.set_header(wire::CmdType::dma, wire::CmdSize::b64, wire::DmaOp::put);
    c.set_dfa(wire::unicast_dfa(nid_, wire::endpoint_of(to, wire::kMaxPidBits, 0)));
    c.set_lac(lac);
    c.set_local_addr(iova);
    c.set_remote_offset(kBytes / 2);
    c.set_request_len(bytes);
    c.set_ct(ct_);
    c.set_flags(wire::kEventCtAck | wire::kEventSuccessDisable);
    emit(0, &c);
  }
  // Memory of a port at that address, and so many puts out of it. False: the device takes no such memory.
  bool put_lent(std::uint64_t at, const strait_memory_port& port, int puts) {
    if (device_->lend(at, 4096, &port) != 0) return false;
    wire::AtuMapCmd map_it{};
    map_it.lni = lni_, map_it.va = at, map_it.len = 4096;
    map_it.flags = wire::kMapPin | wire::kMapRead | wire::kMapWrite | wire::kMapDevice;
    wire::AtuMapResp mapped{};
    if (!ask(map_it, mapped)) return false;
    for (int i = 0; i < puts; ++i) put_from(mapped.md.lac, mapped.md.iova + (at - mapped.md.va), pid_, 4096);
    return true;
  }
  // The same out of memory of its own.
  bool put_own(const std::byte* at, std::uint32_t bytes) {
    wire::AtuMapCmd map_it{};
    map_it.lni = lni_, map_it.va = reinterpret_cast<std::uint64_t>(at), map_it.len = bytes;
    map_it.flags = wire::kMapPin | wire::kMapRead | wire::kMapWrite;
    wire::AtuMapResp mapped{};
    if (!ask(map_it, mapped)) return false;
    put_from(mapped.md.lac, mapped.md.iova, pid_, bytes);
    return true;
  }
  // Puts to itself, and waits for the count: how long it took, or -1.
  std::int64_t round() {
    const std::uint64_t value = ++rounds_;
    std::memcpy(memory_, &value, sizeof value);
    std::memcpy(memory_ + 4088, &value, sizeof value);
    put(pid_, 4096);
    const std::int64_t start = sys::now_ns();
    while (sys::now_ns() - start < 20'000'000'000) {
      const volatile auto* landed = reinterpret_cast<const volatile std::uint64_t*>(memory_ + kBytes / 2 + 4088);
      if (*landed == value) return sys::now_ns() - start;
      ::usleep(50);
    }
    return -1;
  }
  // Bytes of the second half that nobody may have written.
  [[nodiscard]] bool untouched() const {
    for (std::uint64_t i = kBytes / 2 + 4096; i < kBytes; ++i) {
      if (memory_[i] != std::byte{0x5a}) return false;
    }
    return true;
  }
  void expose(std::uint64_t bytes) {
    wire::SetStateCmd state{};
    state.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::set_state);
    state.set_ptlte_index(pte_);
    state.set_ptlte_state(wire::PteState::enabled);
    state.set_drop_count(0xffffff);
    emit(1, &state);
    wire::TargetCmd c{};
    c.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::append);
    c.set_ptlte_index(pte_);
    c.set_ptl_list(wire::PtlList::priority);
    c.set_flags(wire::kLeOpPut | wire::kLeEventLinkDisable | wire::kLeEventSuccessDisable);
    c.set_match_id(wire::kMatchAnyone);
    c.set_lac(md_.lac);
    c.set_start(md_.iova);
    c.set_length(bytes);
    emit(1, &c);
  }

 private:
  Party() = default;
  template <class Command, class Response>
  bool ask(Command command, Response& response) {
    command.op = Command::kOp;
    command.resp = reinterpret_cast<std::uint64_t>(&response);
    return device_->write(&command, sizeof command) == static_cast<long>(sizeof command);
  }
  std::byte* map(const wire::MmInfo& info) {
    const std::int64_t at = device_->map(nullptr, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, info.offset, false);
    return at > 0 ? reinterpret_cast<std::byte*>(at) : nullptr;
  }
  bool queue(int which, std::uint32_t flags) {
    wire::CqAllocCmd c{};
    c.lni = lni_;
    c.opts.count = 64;
    c.opts.flags = flags;
    wire::CqAllocResp made{};
    if (!ask(c, made)) return false;
    pages_[2 * which] = map(made.cmds);
    pages_[2 * which + 1] = map(made.wp_addr);
    return pages_[2 * which] != nullptr && pages_[2 * which + 1] != nullptr;
  }
  // Waits for room as programs do: the read pointer is in the ring's first word.
  void emit(int which, const void* command) {
    std::uint32_t& at = at_[which];
    const std::uint32_t next = at + 1 == 64 ? wire::kFirstBlock : at + 1;
    const auto* const status = reinterpret_cast<const std::uint64_t*>(pages_[2 * which]);
    const std::int64_t start = sys::now_ns();
    while (wire::QueueStatus{__atomic_load_n(status, __ATOMIC_ACQUIRE)}.rd_ptr() == next) {
      if (sys::now_ns() - start > 20'000'000'000) return;
    }
    std::memcpy(pages_[2 * which] + at * wire::kBlockBytes, command, wire::kBlockBytes);
    at = next;
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(pages_[2 * which + 1]), std::uint64_t{at}, __ATOMIC_RELEASE);
  }
  // Queues are looked at in any order: who puts at once may come before the portal is open.
  bool portal_is_open() {
    const auto* const status = reinterpret_cast<const std::uint64_t*>(pages_[2]);
    const std::int64_t start = sys::now_ns();
    while (sys::now_ns() - start < 20'000'000'000) {
      const wire::QueueStatus now{__atomic_load_n(status, __ATOMIC_ACQUIRE)};
      if (now.rd_ptr() == at_[1]) return now.return_code() == wire::ReturnCode::ok;
      ::usleep(50);
    }
    return false;
  }
  bool set_up() {
    wire::DevInfo info{};
    wire::LniAllocCmd lni{};
    wire::LniAllocResp lni_made{};
    lni.svc_id = wire::kDefaultService;
    if (!ask(wire::DevInfoGetCmd{}, info) || !ask(lni, lni_made)) return false;
    nid_ = info.nid;
    lni_ = lni_made.lni;
    wire::CpAllocCmd cp{};
    cp.lni = lni_, cp.vni = kVni, cp.tc = wire::TrafficClass::best_effort;
    wire::CpAllocResp cp_made{};
    wire::DomainAllocCmd domain{};
    domain.lni = lni_, domain.vni = kVni, domain.pid = wire::kPidAny;
    wire::DomainAllocResp domain_made{};
    if (!ask(cp, cp_made) || cp_made.lcid != 0 || !ask(domain, domain_made)) return false;
    pid_ = domain_made.pid;
    void* const pages = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
    memory_ = static_cast<std::byte*>(pages);
    std::memset(memory_, 0x5a, kBytes);
    wire::AtuMapCmd map_it{};
    map_it.lni = lni_, map_it.va = reinterpret_cast<std::uint64_t>(memory_), map_it.len = kBytes;
    map_it.flags = wire::kMapPin | wire::kMapRead | wire::kMapWrite;
    wire::AtuMapResp mapped{};
    wire::CtAllocCmd ct{};
    ct.lni = lni_;
    wire::CtAllocResp ct_made{};
    wire::PteAllocCmd pte{};
    pte.lni_hndl = lni_;
    wire::PteAllocResp pte_made{};
    if (!ask(map_it, mapped) || !ask(ct, ct_made) || !ask(pte, pte_made)) return false;
    md_ = mapped.md;
    ct_ = ct_made.ctn;
    pages_[4] = map(ct_made.doorbell);
    pte_ = pte_made.pte_number;
    wire::PteMapCmd bind{};
    bind.pte_number = pte_, bind.domain_hndl = domain_made.domain;
    wire::PteMapResp bound{};
    if (!ask(bind, bound) || !queue(0, wire::kCqIsTx) || !queue(1, 0)) return false;
    expose(kBytes);
    return pages_[4] != nullptr && portal_is_open();
  }

  std::unique_ptr<OpenDevice> device_;
  std::uint32_t nid_ = 0, lni_ = 0, pid_ = 0, ct_ = 0, pte_ = 0;
  wire::Md md_{};
  std::byte* memory_ = nullptr;
  std::byte* pages_[kPages] = {};
  std::uint32_t at_[2] = {wire::kFirstBlock, wire::kFirstBlock};
  std::uint64_t rounds_ = 0;
};

// What a bad party does until it is killed.
enum class Deed : std::uint32_t { puts, nonsense, takes_memory_away, answers_slowly, never_reads, brings_no_pages };

// Each answer comes before a second has passed; and who is not asked any more comes again.
void answer_slowly(const std::string& server) {
  constexpr std::uint64_t kAt = std::uint64_t{0x30} << 40;
  strait_memory_port port{};
  port.struct_size = sizeof port;
  port.read = [](void*, std::uint64_t, void* into, std::uint64_t bytes) -> std::int32_t {
    ::usleep(900'000);
    std::memset(into, 0, bytes);
    return 0;
  };
  port.write = [](void*, std::uint64_t, const void*, std::uint64_t) -> std::int32_t { return 0; };
  const auto party = Party::open(server);
  if (!party || !party->put_lent(kAt, port, 3)) ::_exit(4);
  ::usleep(100'000);
}

// Asks, and leaves the answers where they are; when it is thrown out it comes again.
void ask_and_never_read(const std::string& server) {
  const auto socket = sys::unix_connect(server, sys::Deadline::after_ns(1'000'000'000));
  if (!socket) return;
  protocol::Ask ask{};
  ask.magic = protocol::kMagic;
  ask.kind = protocol::Kind::counters;
  for (;;) {
    const Status sent = sys::send_packet(socket->get(), std::as_bytes(std::span(&ask, 1)), {});
    if (sent) continue;
    if (sent.error().code != Code::again) return;
    ::usleep(100);
  }
}

// Who reads that memory waits in the kernel until a page is brought, and nobody ever brings one. Without the right to
// that the kernel lets only this process wait, and copies of others fail.
void bring_no_pages(Party& party) {
  constexpr std::uint32_t kNoPages = 64 << 10;
  auto watch = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  if (watch < 0) watch = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | 1));  // UFFD_USER_MODE_ONLY
  void* const pages = ::mmap(nullptr, kNoPages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uffdio_api api{};
  api.api = UFFD_API;
  uffdio_register all{};
  all.range = {reinterpret_cast<std::uint64_t>(pages), kNoPages};
  all.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (watch < 0 || pages == MAP_FAILED || ::ioctl(watch, UFFDIO_API, &api) != 0 ||
      ::ioctl(watch, UFFDIO_REGISTER, &all) != 0)
    ::_exit(5);
  for (;;) {
    if (!party.put_own(static_cast<const std::byte*>(pages), kNoPages)) ::usleep(100'000);
    ::usleep(1000);
  }
}

[[noreturn]] void commit(Deed deed, std::uint32_t seed, Party& party, const std::string& server) {
  std::mt19937_64 random(seed);
  for (std::uint64_t i = 0;; ++i) {
    switch (deed) {
      case Deed::puts: party.put(party.pid(), static_cast<std::uint32_t>(kBytes / 2)); break;
      case Deed::nonsense:
        for (int which = 0; which < Party::kPages; ++which) {
          if (party.page(which) == nullptr) continue;
          auto* const words = reinterpret_cast<std::uint64_t*>(party.page(which));
          for (int j = 0; j < 64; ++j) __atomic_store_n(words + random() % 512, random(), __ATOMIC_RELAXED);
        }
        __atomic_store_n(reinterpret_cast<std::uint64_t*>(party.page(1)), 4 + random() % 60, __ATOMIC_RELEASE);
        __atomic_store_n(reinterpret_cast<std::uint64_t*>(party.page(3)), 4 + random() % 60, __ATOMIC_RELEASE);
        break;
      case Deed::takes_memory_away:
        party.put(party.pid(), 65536);
        if (i == 50) ::munmap(party.memory(), kBytes);
        break;
      case Deed::answers_slowly: answer_slowly(server); break;
      case Deed::never_reads: ask_and_never_read(server); break;
      case Deed::brings_no_pages: bring_no_pages(party); break;
    }
  }
}

// The process whose children the bad parties are. It is made before there is any thread: a child of a process with
// threads may find the allocator's locks held for ever (AddressSanitizer's are not handed over by fork).
class Nursery {
 public:
  struct Order {
    Deed deed;
    std::uint32_t seed;
  };

  explicit Nursery(const std::string& server) {
    if (::pipe(orders_) != 0 || ::pipe(answers_) != 0) return;
    pid_ = ::fork();
    if (pid_ != 0) {
      ::close(orders_[0]);
      ::close(answers_[1]);
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGCHLD, SIG_IGN);  // nobody waits for them
    ::close(orders_[1]);
    for (Order order{}; ::read(orders_[0], &order, sizeof order) == sizeof order;) {
      if (::fork() != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto party = Party::open(server);
      const pid_t self = party ? ::getpid() : -1;
      if (::write(answers_[1], &self, sizeof self) != sizeof self || !party) ::_exit(3);
      commit(order.deed, order.seed, *party, server);
    }
    ::_exit(0);
  }
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;
  // Its children go with it.
  ~Nursery() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(orders_[1]);
    ::close(answers_[0]);
  }
  // A process that has opened the device and begins; -1: it cannot.
  pid_t start(Order order) {
    pid_t child = -1;
    if (pid_ <= 0 || ::write(orders_[1], &order, sizeof order) != sizeof order) return -1;
    return ::read(answers_[0], &child, sizeof child) == sizeof child ? child : -1;
  }

 private:
  int orders_[2] = {-1, -1}, answers_[2] = {-1, -1};
  pid_t pid_ = -1;
};

class SharedServer : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ServerSettings settings;
    settings.name = server_name(fmt::format("hostile-test-{}", sys::process_id()));
    settings.cards = 1;
    settings.ask_for_memory = GetParam();
    // A process of its own, as it is for programs: no test may end it.
    server_ = ::fork();
    ASSERT_GE(server_, 0);
    if (server_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      auto made = Server::create(settings);
      if (!made) ::_exit(3);
      ::_exit((*made)->run() ? 0 : 3);
    }
    nursery_.emplace(settings.name);
    for (int i = 0; i < 200 && !good_; ++i) {
      good_ = Party::open(settings.name);
      if (!good_) ::usleep(20'000);
    }
    ASSERT_TRUE(good_) << "there is no server";
    ASSERT_GE(good_->round(), 0);
  }
  void TearDown() override {
    nursery_.reset();
    int status = 0;
    EXPECT_EQ(::waitpid(server_, &status, WNOHANG), 0) << "the server is still there";
    good_.reset();
    ::kill(server_, SIGKILL);
    ::waitpid(server_, &status, 0);
  }
  pid_t start(Deed deed, std::uint32_t seed = 0) {
    const pid_t child = nursery_->start({deed, seed});
    EXPECT_GT(child, 0) << "the other process has no device";
    return child;
  }
  void goes_on(int rounds, std::int64_t longest_ns = 5'000'000'000) {
    for (int i = 0; i < rounds; ++i) {
      const std::int64_t took = good_->round();
      ASSERT_GE(took, 0) << "its put never landed";
      EXPECT_LT(took, longest_ns);
    }
    EXPECT_TRUE(good_->untouched());
  }
  // Goes on for so long: the time of all rounds that took long together.
  static constexpr std::int64_t kWatchedNs = 1'500'000'000;
  static constexpr std::int64_t kMostHeldUpNs = 1'100'000'000;
  std::int64_t held_up(std::int64_t watched_ns) {
    std::int64_t held = 0;
    for (const auto deadline = sys::Deadline::after_ns(watched_ns); !deadline.passed();) {
      const std::int64_t took = good_->round();
      if (took < 0) return 20'000'000'000;
      if (took > 50'000'000) held += took;
    }
    EXPECT_TRUE(good_->untouched());
    return held;
  }
  pid_t server_ = -1;
  std::optional<Nursery> nursery_;
  std::unique_ptr<Party> good_;
};

TEST_P(SharedServer, KilledInTheMiddleOfPuts) {
  for (int round = 0; round < 10; ++round) {
    const pid_t child = start(Deed::puts);
    ASSERT_GT(child, 0);
    goes_on(3);
    ::usleep(1000 * static_cast<unsigned>(round));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    goes_on(3);
  }
}

// Its memory cannot be asked for while it stands still: once, the device waits for it, half a second, and never again.
TEST_P(SharedServer, StoppedInTheMiddleOfPuts) {
  const pid_t child = start(Deed::puts);
  ASSERT_GT(child, 0);
  goes_on(2);
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  goes_on(5);
  // And who puts to it is not held up for longer either.
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  goes_on(2);
}

TEST_P(SharedServer, NonsenseInItsPages) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    start(Deed::nonsense, seed);
    goes_on(3);
  }
}

// Memory that goes while the device uses it.
TEST_P(SharedServer, TakesItsMemoryAway) {
  start(Deed::takes_memory_away);
  goes_on(20);
}

// Once, for as long as the device waits for anybody; however often it opens the device, and however its answers are
// cut.
TEST_P(SharedServer, AnswersSlowly) {
  start(Deed::answers_slowly);
  const std::int64_t held = held_up(kWatchedNs);
  EXPECT_LT(held, kMostHeldUpNs);
  EXPECT_GT(held, Patience::kMostNs / 2) << "nobody was asked";
}

TEST_P(SharedServer, NeverReads) {
  const pid_t child = start(Deed::never_reads);
  EXPECT_LT(held_up(kWatchedNs), kMostHeldUpNs);
  EXPECT_EQ(::kill(child, 0), 0) << "it gave up";
}

// The device's copy waits for it in the kernel, where only the end of the whole process would end it: the copy is left
// behind, and the device goes on without the process it was for. Several do it, some of them one after the other.
TEST_P(SharedServer, NobodyBringsItsPages) {
  for (int i = 0; i < 3; ++i) {
    const pid_t child = start(Deed::brings_no_pages);
    ASSERT_GT(child, 0);
    goes_on(20, 15'000'000'000);
    EXPECT_EQ(::kill(child, 0), 0) << "it had no userfaultfd";
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, SharedServer, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "ThatAsks" : "ThatReaches"; });

}  // namespace
}  // namespace strait::soft::cassini
