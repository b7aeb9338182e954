// SPDX-License-Identifier: Apache-2.0
// What tests of the software Cassini share: a fabric in this process, and clients that are this process.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "soft/cassini/card.hpp"
#include "soft/cassini/client.hpp"
#include "sys/address_space.hpp"
#include "sys/host.hpp"
#include "sys/process.hpp"

namespace strait::soft::cassini::testing {

// A command with some of its fields set: make<wire::LniFreeCmd>([&](auto& c) { c.lni = lni; }).
template <class Command, class Fill>
Command make(Fill fill) {
  Command command{};
  fill(command);
  return command;
}

// This process, with the kernel asked about every address.
class OwnMemory final : public UserMemory {
 public:
  bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    const iovec there{pointer(address), bytes}, here{into, bytes};
    return sys::read_process(sys::process_id(), {&here, 1}, {&there, 1}).has_value();
  }
  bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    const iovec there{pointer(address), bytes}, here{const_cast<void*>(from), bytes};
    return sys::write_process(sys::process_id(), {&here, 1}, {&there, 1}).has_value();
  }
  bool reaches(std::uint64_t address, std::uint64_t bytes, bool writable) override {
    using Kind = sys::RangeAccess::Kind;
    if (bytes == 0 || address + bytes < address) return false;
    const Kind kind = space_.look(address, bytes).kind;
    return kind == Kind::read_write || (kind == Kind::read_only && !writable);
  }
  std::uint32_t huge_shift(std::uint64_t address, std::uint64_t bytes) override {
    return pretended_huge_shift != 0 ? pretended_huge_shift : space_.huge_shift(address, bytes);
  }
  std::byte* direct(std::uint64_t address, std::uint64_t bytes) override {
    return reaches(address, bytes, true) ? static_cast<std::byte*>(pointer(address)) : nullptr;
  }

  std::uint32_t pretended_huge_shift = 0;  // as if all memory were of such pages

 private:
  static void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
  sys::AddressSpace space_ = sys::AddressSpace::open();
};

// Bytes of an "accelerator".
class PlainMemory final : public UserMemory {
 public:
  PlainMemory(std::byte* base, std::uint64_t bytes) : base_(base), bytes_(bytes) {}
  bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    if (!reaches(address, bytes, false)) return false;
    std::memcpy(into, base_ + address, bytes);
    return true;
  }
  bool write(std::uint64_t address, const void* from, std::size_t bytes) override {
    if (!reaches(address, bytes, true)) return false;
    std::memcpy(base_ + address, from, bytes);
    return true;
  }
  bool reaches(std::uint64_t address, std::uint64_t bytes, bool) override {
    return bytes != 0 && address <= bytes_ && bytes <= bytes_ - address;
  }
  std::byte* direct(std::uint64_t, std::uint64_t) override { return nullptr; }

 private:
  std::byte* base_;
  std::uint64_t bytes_;
};

// Descriptors and device addresses that a test has set up.
class TestFiles final : public CommandFiles {
 public:
  int dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) override {
    const auto found = buffers.find(fd);
    if (found == buffers.end()) return EBADF;
    if (offset + bytes > found->second.size()) return EFAULT;
    out = std::make_unique<PlainMemory>(found->second.data() + offset, bytes);
    return 0;
  }
  int device_pages(std::uint64_t address, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) override {
    if (device.empty()) return EOPNOTSUPP;
    if (address < device_address || address + bytes > device_address + device.size()) return EINVAL;
    out = std::make_unique<PlainMemory>(device.data() + (address - device_address), bytes);
    return 0;
  }
  std::map<int, std::vector<std::byte>> buffers;
  std::uint64_t device_address = 0;
  std::vector<std::byte> device;
};

inline constexpr Who kRoot{.uid = 0, .gid = 0, .netns = 1, .admin = true, .net_raw = true};
inline constexpr Who kUser{.uid = 1000, .gid = 1000, .netns = 1};

// One open of the device by this process.
class TestClient final : public ClientHost {
 public:
  explicit TestClient(Card& card, const Who& who = kRoot, std::uint32_t id = 1, const ClientOptions& options = {}) {
    auto pages = sys::make_sealed_memfd("cassini-pages", Client::kPagesBytes);
    EXPECT_TRUE(pages.has_value());
    pages_ = pages->get();
    client = std::make_unique<Client>(card, id, who, memory, std::move(*pages), *this);
    client->use(options);
  }
  void raise(std::uint32_t wait) override { raised.insert(wait); }

  // One command: 0, or the errno. A success that is not the command's length fails the test.
  template <class Command>
  int send(Command command) {
    command.op = Command::kOp;
    return send_raw(std::as_bytes(std::span(&command, 1)));
  }
  template <class Command>
  int send_as(wire::Op op, Command command) {
    command.op = op;
    return send_raw(std::as_bytes(std::span(&command, 1)));
  }
  template <class Command, class Response>
  int send(Command command, Response& response) {
    command.resp = reinterpret_cast<std::uint64_t>(&response);
    return send(command);
  }
  // Commands that name one object and nothing else: free<wire::LniFreeCmd>(lni).
  template <class Command>
  int free(std::uint32_t handle) {
    static_assert(sizeof(Command) == 8 || sizeof(Command) == 24);
    Command command{};
    std::memcpy(reinterpret_cast<std::byte*>(&command) + (sizeof(Command) == 8 ? 4 : 16), &handle, sizeof handle);
    return send(command);
  }
  int send_raw(std::span<const std::byte> bytes) {
    const long answer = client->write(bytes, files);
    if (answer < 0) return static_cast<int>(-answer);
    EXPECT_EQ(answer, static_cast<long>(bytes.size()));
    return 0;
  }

  // A cookie's pages, as the client would see them; empty when the device refuses.
  sys::Mapping map(const wire::MmInfo& info) {
    if (client->map(info.offset, info.size) != 0) return {};
    auto mapping = sys::map_file(pages_, info.offset, info.size, sys::Protect::read_write);
    EXPECT_TRUE(mapping.has_value());
    return mapping ? std::move(*mapping) : sys::Mapping{};
  }

  // The usual objects. 0: refused, which also fails the test.
  std::uint32_t lni(std::uint32_t service = wire::kDefaultService) {
    wire::LniAllocResp r{};
    EXPECT_EQ(send(make<wire::LniAllocCmd>([&](auto& c) { c.svc_id = service; }), r), 0);
    return r.lni;
  }
  wire::CpAllocResp cp(std::uint32_t lni, std::uint32_t vni = 1, wire::CpType type = wire::CpType::any) {
    wire::TrigCpAllocCmd c{};
    c.lni = lni;
    c.vni = vni;
    c.tc = wire::TrafficClass::best_effort;
    c.cp_type = type;
    wire::CpAllocResp r{};
    EXPECT_EQ(send(c, r), 0);
    return r;
  }
  wire::DomainAllocResp domain(std::uint32_t lni, std::uint32_t vni = 1, std::uint32_t pid = wire::kPidAny) {
    wire::DomainAllocResp r{};
    wire::DomainAllocCmd c{};
    c.lni = lni;
    c.vni = vni;
    c.pid = pid;
    EXPECT_EQ(send(c, r), 0);
    return r;
  }
  wire::CqAllocResp cq(std::uint32_t lni, std::uint32_t flags, std::uint32_t lcid = 0, std::uint32_t eq = 0,
                       std::uint32_t count = 64) {
    wire::CqAllocCmd c{};
    c.lni = lni;
    c.eq = eq;
    c.opts.count = count;
    c.opts.flags = flags;
    c.opts.lcid = lcid;
    wire::CqAllocResp r{};
    EXPECT_EQ(send(c, r), 0);
    return r;
  }
  wire::Md map_memory(std::uint32_t lni, const void* address, std::uint64_t bytes,
                      std::uint32_t flags = wire::kMapPin | wire::kMapRead | wire::kMapWrite) {
    wire::AtuMapCmd c{};
    c.lni = lni;
    c.va = reinterpret_cast<std::uint64_t>(address);
    c.len = bytes;
    c.flags = flags;
    wire::AtuMapResp r{};
    EXPECT_EQ(send(c, r), 0);
    return r.md;
  }
  wire::EqAllocResp eq(std::uint32_t lni, const wire::Md& md, const void* queue, std::uint64_t bytes,
                       std::uint64_t flags = 0, std::uint32_t wait = 0) {
    wire::EqAllocCmd c{};
    c.lni = lni;
    c.queue_md = md.id;
    c.event_wait = wait;
    c.status_wait = wait;
    c.attr.queue = reinterpret_cast<std::uint64_t>(queue);
    c.attr.queue_len = bytes;
    c.attr.flags = flags;
    wire::EqAllocResp r{};
    EXPECT_EQ(send(c, r), 0);
    return r;
  }
  wire::CtAllocResp ct(std::uint32_t lni, const void* write_back = nullptr) {
    wire::CtAllocCmd c{};
    c.lni = lni;
    c.wb = reinterpret_cast<std::uint64_t>(write_back);
    wire::CtAllocResp r{};
    EXPECT_EQ(send(c, r), 0);
    return r;
  }
  std::uint32_t pte(std::uint32_t lni, std::uint32_t eq = 0, std::uint64_t options = 0) {
    wire::PteAllocResp r{};
    wire::PteAllocCmd c{};
    c.lni_hndl = lni;
    c.evtq_hndl = eq;
    c.opts = options;
    EXPECT_EQ(send(c, r), 0);
    return r.pte_number;
  }
  std::uint32_t map_pte(std::uint32_t pte, std::uint32_t domain, std::uint32_t index) {
    wire::PteMapResp r{};
    wire::PteMapCmd c{};
    c.pte_number = pte;
    c.domain_hndl = domain;
    c.pid_offset = index;
    EXPECT_EQ(send(c, r), 0);
    return r.pte_index;
  }

  OwnMemory memory;
  TestFiles files;
  std::set<std::uint32_t> raised;
  std::unique_ptr<Client> client;

 private:
  int pages_ = -1;
};

// Zeroed pages that go with the object.
class Pages {
 public:
  explicit Pages(std::size_t count) {
    auto mapping = sys::map_anonymous(count * sys::page_bytes(), sys::Protect::read_write);
    EXPECT_TRUE(mapping.has_value());
    mapping_ = std::move(*mapping);
  }
  [[nodiscard]] std::byte* data() const { return mapping_.data(); }
  [[nodiscard]] std::size_t size() const { return mapping_.size(); }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(mapping_.data()); }

 private:
  sys::Mapping mapping_;
};

}  // namespace strait::soft::cassini::testing
