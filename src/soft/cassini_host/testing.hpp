// SPDX-License-Identifier: Apache-2.0
// What tests of the hosts share: a place where the cards are, memory of accelerators as their drivers announce it, and
// a program with one of everything that puts, gets and reads its events as programs do.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "soft/cassini_host/open_device.hpp"
#include "soft/cassini_host/server.hpp"
#include "sys/clock.hpp"
#include "sys/host.hpp"
#include "sys/process.hpp"

namespace strait::soft::cassini::testing {

inline constexpr std::int64_t kPatienceNs = 30'000'000'000;
inline constexpr auto kNoAnswer = static_cast<wire::ReturnCode>(0);  // in that time

enum class Where { server, asked, local };
inline std::string where_name(const ::testing::TestParamInfo<Where>& each) {
  return each.param == Where::server ? "Server" : each.param == Where::asked ? "ServerThatAsks" : "Local";
}

// A server in a thread of this process, or nothing where the cards are this process's own.
class Hosting {
 public:
  Hosting(Where where, const std::string& what) : where_(where) {
    if (where == Where::local) return;
    ServerSettings settings;
    settings.name = server_name(fmt::format("{}-{}", what, sys::process_id()));
    settings.cards = 2;
    settings.ask_for_memory = where == Where::asked;
    name_ = settings.name;
    auto made = Server::create(settings);
    EXPECT_TRUE(made) << made.error().explain();
    if (!made) return;
    server_ = std::move(*made);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run()); });
  }
  Hosting(const Hosting&) = delete;
  Hosting& operator=(const Hosting&) = delete;
  ~Hosting() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }
  [[nodiscard]] OpenSettings settings(DeviceMemorySettings memory, std::uint32_t card = 0) const {
    OpenSettings out;
    out.device = card;
    out.local = where_ == Where::local;
    out.server.name = name_;
    out.memory = std::move(memory);
    return out;
  }

 private:
  const Where where_;
  std::string name_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// As an accelerator's driver announces it, at an address where this process has nothing.
class AcceleratorMemory {
 public:
  AcceleratorMemory(std::uint32_t vendor, std::uint64_t bytes, std::uint32_t flags = STRAIT_SOFT_P2P_CAPABLE) {
    static std::uint64_t next_base = std::uint64_t{0x20} << 40;
    static std::uint64_t next_identity = 1;
    file = sys::make_sealed_memfd("accelerator", sys::round_up(bytes, sys::page_bytes())).value();
    view = sys::map_file(file.get(), 0, bytes, sys::Protect::read_write).value();
    base = next_base;
    next_base += sys::round_up(bytes + 1, std::uint64_t{2} << 20);
    said_.struct_size = sizeof said_;
    said_.vendor = vendor;
    said_.flags = flags;
    said_.base = base;
    said_.length_bytes = bytes;
    said_.identity = next_identity++;
    said_.memfd = file.get();
    EXPECT_EQ(strait_soft_driver_add(&said_), 0);
    live_ = true;
    for (std::uint64_t i = 0; i < bytes; ++i) view.data()[i] = static_cast<std::byte>(i * 7 + (i >> 8) + vendor);
  }
  AcceleratorMemory(const AcceleratorMemory&) = delete;
  AcceleratorMemory& operator=(const AcceleratorMemory&) = delete;
  ~AcceleratorMemory() { free(); }
  // By its owner. What the accelerator had written stays visible through `view`.
  void free() {
    if (!std::exchange(live_, false)) return;
    EXPECT_EQ(strait_soft_driver_remove(base, said_.identity), 0);
  }
  [[nodiscard]] std::string text(std::uint64_t offset, std::size_t bytes) const {
    return {reinterpret_cast<const char*>(view.data()) + offset, bytes};
  }
  sys::Fd file;
  sys::Mapping view;  // as the accelerator sees it
  std::uint64_t base = 0;

 private:
  strait_soft_driver_memory said_{};
  bool live_ = false;
};

inline std::string some_text(std::size_t bytes, unsigned seed) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 13 + (i >> 7) + seed * 31 + 1);
  return out;
}

// A command ring as a program has it; where it is, is the test's affair.
struct ProgramRing {
  std::uint32_t id = 0;
  std::byte* ring = nullptr;
  std::byte* launch = nullptr;
  std::uint32_t blocks = 0;
  std::uint32_t at = wire::kFirstBlock;

  void emit(const void* command, std::size_t bytes = wire::kBlockBytes) {
    std::memset(ring + at * wire::kBlockBytes, 0, wire::kBlockBytes);
    std::memcpy(ring + at * wire::kBlockBytes, command, bytes);
    at = at + 1 == blocks ? wire::kFirstBlock : at + 1;
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(launch), std::uint64_t{at}, __ATOMIC_RELEASE);
  }
  // All of it was carried out; the code is what the queue says then.
  [[nodiscard]] wire::ReturnCode finished() const {
    const auto deadline = sys::Deadline::after_ns(kPatienceNs);
    const auto* const word = reinterpret_cast<const std::uint64_t*>(ring);
    while (!deadline.passed()) {
      const wire::QueueStatus now{__atomic_load_n(word, __ATOMIC_ACQUIRE)};
      if (now.rd_ptr() == at) return now.return_code();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return kNoAnswer;
  }
};

class Program {
 public:
  static constexpr std::uint32_t kVni = 1;
  static constexpr std::uint64_t kHostBytes = 256 << 10;
  static constexpr std::uint64_t kEventBytes = 64 << 10;

  explicit Program(const Hosting& host, DeviceMemorySettings memory = {}, std::uint32_t card = 0) {
    auto opened = OpenDevice::open(host.settings(std::move(memory), card));
    EXPECT_TRUE(opened) << opened.error().explain();
    device = std::move(*opened);
    host_memory = sys::map_anonymous(kHostBytes, sys::Protect::read_write).value();
    events = sys::map_anonymous(kEventBytes, sys::Protect::read_write).value();
    wire::DevInfo info{};
    EXPECT_EQ(ask(wire::DevInfoGetCmd{}, info), 0);
    nid = info.nid;
    wire::LniAllocCmd lni_ask{};
    wire::LniAllocResp lni_made{};
    lni_ask.svc_id = wire::kDefaultService;
    EXPECT_EQ(ask(lni_ask, lni_made), 0);
    lni = lni_made.lni;
    wire::CpAllocCmd cp{};
    cp.lni = lni, cp.vni = kVni, cp.tc = wire::TrafficClass::best_effort;
    wire::CpAllocResp cp_made{};
    EXPECT_EQ(ask(cp, cp_made), 0);
    wire::DomainAllocCmd domain_ask{};
    domain_ask.lni = lni, domain_ask.vni = kVni, domain_ask.pid = wire::kPidAny;
    wire::DomainAllocResp domain_made{};
    EXPECT_EQ(ask(domain_ask, domain_made), 0);
    domain = domain_made.domain;
    pid = domain_made.pid;
    host_md = map_host(host_memory.data(), kHostBytes);
    const wire::Md event_md = map_host(events.data(), kEventBytes);
    eq = make_event_queue(events.data(), kEventBytes, event_md.id, 0);
    transmit = make_queue(wire::kCqIsTx);
    target = make_queue(0);
    host_index = expose(host_md, host_md.iova, kHostBytes);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // 0, or the errno.
  template <class Command>
  int tell(Command command) {
    command.op = Command::kOp;
    const long done = device->write(&command, sizeof command);
    return done == static_cast<long>(sizeof command) ? 0 : static_cast<int>(-done);
  }
  template <class Command, class Response>
  int ask(Command command, Response& response) {
    command.resp = reinterpret_cast<std::uint64_t>(&response);
    return tell(command);
  }
  std::byte* map_pages(const wire::MmInfo& info) {
    const std::int64_t at = device->map(nullptr, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, info.offset, false);
    EXPECT_GT(at, 0);
    return reinterpret_cast<std::byte*>(at);
  }

  static constexpr std::uint32_t kAll = wire::kMapPin | wire::kMapRead | wire::kMapWrite;
  [[nodiscard]] wire::AtuMapCmd map_command(std::uint64_t address, std::uint64_t bytes, std::uint32_t flags) const {
    wire::AtuMapCmd c{};
    c.lni = lni;
    c.va = address;
    c.len = bytes;
    c.flags = flags;
    return c;
  }
  wire::Md map_host(const void* address, std::uint64_t bytes) {
    wire::AtuMapResp made{};
    EXPECT_EQ(ask(map_command(reinterpret_cast<std::uint64_t>(address), bytes, kAll), made), 0);
    return made.md;
  }
  // By a descriptor, whose own addresses the client chooses; by its device address. 0, or the errno.
  int map_dmabuf(int fd, std::uint64_t address, std::uint64_t bytes, std::uint64_t offset, wire::Md& out) {
    wire::AtuMapCmd c = map_command(address, bytes, kAll | wire::kMapDevice);
    c.hints.dmabuf_fd = fd;
    c.hints.dmabuf_offset = offset;
    c.hints.dmabuf_valid = 1;
    return map_device(c, out);
  }
  int map_address(std::uint64_t address, std::uint64_t bytes, wire::Md& out) {
    return map_device(map_command(address, bytes, kAll | wire::kMapDevice), out);
  }
  int unmap(const wire::Md& md) {
    wire::AtuUnmapCmd c{};
    c.id = md.id;
    return tell(c);
  }
  std::uint32_t make_event_queue(const std::byte* buffer, std::uint64_t bytes, std::uint32_t md, std::uint32_t wait,
                                 std::byte** state = nullptr) {
    wire::EqAllocCmd c{};
    c.lni = lni;
    c.queue_md = md;
    c.event_wait = wait;
    c.attr.queue = reinterpret_cast<std::uint64_t>(buffer);
    c.attr.queue_len = bytes;
    wire::EqAllocResp made{};
    EXPECT_EQ(ask(c, made), 0);
    if (state != nullptr) *state = map_pages(made.csr);
    return made.eq;
  }
  ProgramRing make_queue(std::uint32_t flags) {
    wire::CqAllocCmd c{};
    c.lni = lni;
    c.opts.count = 256;
    c.opts.flags = flags;
    wire::CqAllocResp made{};
    EXPECT_EQ(ask(c, made), 0);
    return {made.cq, map_pages(made.cmds), map_pages(made.wp_addr), made.count};
  }
  // A portal entry with one list entry: the index that senders name.
  std::uint32_t expose(const wire::Md& md, std::uint64_t iova, std::uint64_t bytes, std::uint32_t portal_eq = 0) {
    wire::PteAllocCmd pte{};
    pte.lni_hndl = lni;
    pte.evtq_hndl = portal_eq;
    wire::PteAllocResp pte_made{};
    EXPECT_EQ(ask(pte, pte_made), 0);
    wire::PteMapCmd bind{};
    bind.pte_number = pte_made.pte_number, bind.domain_hndl = domain, bind.pid_offset = next_index;
    wire::PteMapResp bound{};
    EXPECT_EQ(ask(bind, bound), 0);
    wire::SetStateCmd state{};
    state.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::set_state);
    state.set_ptlte_index(pte_made.pte_number);
    state.set_ptlte_state(wire::PteState::enabled);
    state.set_drop_count(0xffffff);
    target.emit(&state);
    wire::TargetCmd entry{};
    entry.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::append);
    entry.set_ptlte_index(pte_made.pte_number);
    entry.set_ptl_list(wire::PtlList::priority);
    entry.set_flags(wire::kLeOpPut | wire::kLeOpGet | wire::kLeEventLinkDisable | wire::kLeEventSuccessDisable);
    entry.set_match_id(wire::kMatchAnyone);
    entry.set_lac(md.lac);
    entry.set_start(iova);
    entry.set_length(bytes);
    target.emit(&entry);
    EXPECT_EQ(target.finished(), wire::ReturnCode::ok);
    return next_index++;
  }

  // One command to somebody's portal entry, and how it ended.
  struct Local {
    const wire::Md& md;
    std::uint64_t offset;  // from the address that was mapped, which may lie anywhere in its first page
    std::uint32_t bytes;
  };
  wire::ReturnCode put(Local from, const Program& to, std::uint32_t index, std::uint64_t remote_offset = 0) {
    return run(wire::DmaOp::put, from, to, index, remote_offset);
  }
  wire::ReturnCode get(Local into, const Program& from, std::uint32_t index, std::uint64_t remote_offset = 0) {
    return run(wire::DmaOp::get, into, from, index, remote_offset);
  }
  [[nodiscard]] wire::FullDmaCmd command(wire::DmaOp op, Local local, const Program& other, std::uint32_t index,
                                         std::uint64_t remote_offset) const {
    wire::FullDmaCmd c{};
    c.set_header(wire::CmdType::dma, wire::CmdSize::b64, op);
    c.set_dfa(wire::unicast_dfa(other.nid, wire::endpoint_of(other.pid, wire::kMaxPidBits, index)));
    c.set_index_ext(wire::index_ext_of(index));
    c.set_lac(local.md.lac);
    c.set_local_addr(local.md.iova + local.offset);
    c.set_remote_offset(remote_offset);
    c.set_request_len(local.bytes);
    c.set_eq(eq);
    c.set_flags(wire::kEventSendDisable);
    return c;
  }
  // The next event of the program's own queue. It has room for all events of a test.
  wire::ReturnCode next_event() {
    const auto deadline = sys::Deadline::after_ns(kPatienceNs);
    for (;;) {
      const std::byte* const at = events.data() + event_at_;
      wire::EventHead head{};
      std::memcpy(&head, at, sizeof head);
      const std::uint32_t bytes = wire::bytes_of(head.event_size());
      const auto* const last = reinterpret_cast<const std::uint8_t*>(at + bytes - 1);
      const std::uint32_t code = bytes == 0 ? 0u : __atomic_load_n(last, __ATOMIC_ACQUIRE) & 63u;
      if (code != 0) {
        event_at_ += bytes;
        if (event_at_ >= kEventBytes - 128) ADD_FAILURE() << "more events than the test's queue takes";
        if (head.event_type() != wire::EventType::null_event) return static_cast<wire::ReturnCode>(code);
        continue;
      }
      if (deadline.passed()) return kNoAnswer;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  [[nodiscard]] char* text() const { return reinterpret_cast<char*>(host_memory.data()); }

  sys::Mapping host_memory, events;  // before the device: it stores to these until it is closed
  std::unique_ptr<OpenDevice> device;
  std::uint32_t nid = 0, lni = 0, domain = 0, pid = 0, eq = 0;
  wire::Md host_md{};
  ProgramRing transmit, target;
  std::uint32_t next_index = 0, host_index = 0;

 private:
  int map_device(const wire::AtuMapCmd& c, wire::Md& out) {
    wire::AtuMapResp made{};
    const int failed = ask(c, made);
    out = made.md;
    if (failed == 0) out.iova += c.va - made.md.va;  // of the byte that was asked for
    return failed;
  }
  wire::ReturnCode run(wire::DmaOp op, Local local, const Program& other, std::uint32_t index,
                       std::uint64_t remote_offset) {
    const wire::FullDmaCmd c = command(op, local, other, index, remote_offset);
    transmit.emit(&c);
    return next_event();
  }
  std::uint64_t event_at_ = wire::kBlockBytes;
};

}  // namespace strait::soft::cassini::testing
