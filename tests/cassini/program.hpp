// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder share: commands by write(2), what was not as it should be, and one open device with
// rings, as libcxi has them. Nothing of ours but the formats.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"

namespace wire = strait::wire::cxi;

inline int wrong = 0;

inline void check(bool right, const char* what) {
  if (right) return;
  fprintf(stderr, "not so: %s (errno %d)\n", what, errno);
  ++wrong;
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__)

template <class Command>
long send(int fd, Command& command) {
  command.op = Command::kOp;
  errno = 0;
  return write(fd, &command, sizeof command);
}
template <class Command, class Response>
bool ask(int fd, Command command, Response& response) {
  command.resp = reinterpret_cast<std::uint64_t>(&response);
  return send(fd, command) == static_cast<long>(sizeof command);
}
template <class Command>
bool refused(int fd, Command command, int error) {
  return send(fd, command) == -1 && errno == error;
}

inline std::byte* map_cookie(int fd, const wire::MmInfo& info) {
  void* const at = mmap(nullptr, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(info.offset));
  CHECK(at != MAP_FAILED);
  return static_cast<std::byte*>(at);
}

struct Ring {
  std::uint32_t id = 0;
  std::byte* commands = nullptr;
  std::byte* launch = nullptr;
  std::uint32_t blocks = 0, at = wire::kFirstBlock;

  void emit(const void* command) {
    memcpy(commands + at * wire::kBlockBytes, command, wire::kBlockBytes);
    at = at + 1 == blocks ? wire::kFirstBlock : at + 1;
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(launch), std::uint64_t{at}, __ATOMIC_RELEASE);
  }
  // Carried out; looked for as long as a busy machine may need.
  [[nodiscard]] bool finished() const {
    for (int i = 0; i < 300'000; ++i) {
      const wire::QueueStatus now{__atomic_load_n(reinterpret_cast<const std::uint64_t*>(commands), __ATOMIC_ACQUIRE)};
      if (now.rd_ptr() == at) return now.return_code() == wire::ReturnCode::ok;
      usleep(100);
    }
    return false;
  }
};

// One of everything, and its host memory as a portal entry at index 0.
struct Cxi {
  static constexpr std::size_t kBytes = 1 << 20;
  static constexpr std::size_t kEventBytes = 1 << 16;
  int fd = -1;
  std::uint32_t nid = 0, lni = 0, domain = 0, pid = 0, eq = 0, next_index = 0;
  std::byte* memory = nullptr;
  std::byte* events = nullptr;
  std::size_t event_at = 64;
  wire::Md md{};
  Ring transmit, target;

  Cxi() {
    fd = open("/dev/cxi0", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    wire::DevInfo info{};
    CHECK(ask(fd, wire::DevInfoGetCmd{}, info));
    nid = info.nid;
    wire::LniAllocCmd lni_ask{};
    lni_ask.svc_id = 1;
    wire::LniAllocResp lni_made{};
    CHECK(ask(fd, lni_ask, lni_made));
    lni = lni_made.lni;
    wire::TrigCpAllocCmd cp{};
    cp.lni = lni, cp.vni = 1, cp.tc = wire::TrafficClass::best_effort, cp.cp_type = wire::CpType::any;
    wire::CpAllocResp cp_made{};
    CHECK(ask(fd, cp, cp_made));
    wire::DomainAllocCmd domain_ask{};
    domain_ask.lni = lni, domain_ask.vni = 1, domain_ask.pid = wire::kPidAny;
    wire::DomainAllocResp domain_made{};
    CHECK(ask(fd, domain_ask, domain_made));
    domain = domain_made.domain;
    pid = domain_made.pid;
    memory = pages(kBytes);
    events = pages(kEventBytes);
    CHECK(map(reinterpret_cast<std::uint64_t>(memory), kBytes, 0, -1, 0, md));
    eq = make_events(events, kEventBytes, 0);
    transmit = make_ring(wire::kCqIsTx, cp_made.lcid);
    target = make_ring(0, 0);
    expose(md.iova, md.lac, kBytes, 0);
  }
  Cxi(const Cxi&) = delete;
  Cxi& operator=(const Cxi&) = delete;
  ~Cxi() {
    for (const Ring& each : {transmit, target}) {
      munmap(each.commands, each.blocks * wire::kBlockBytes);
      munmap(each.launch, 4096);
    }
    CHECK(close(fd) == 0);
    munmap(memory, kBytes);
    munmap(events, kEventBytes);
  }
  static std::byte* pages(std::size_t bytes) {
    return static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  // `dmabuf` -1: none. The md's iova is that of the address asked for.
  bool map(std::uint64_t address, std::uint64_t bytes, std::uint32_t flags, int dmabuf, std::uint64_t offset,
           wire::Md& out) {
    wire::AtuMapCmd c{};
    c.lni = lni, c.va = address, c.len = bytes;
    c.flags = flags | wire::kMapPin | wire::kMapRead | wire::kMapWrite;
    c.hints.dmabuf_fd = dmabuf;
    c.hints.dmabuf_offset = offset;
    c.hints.dmabuf_valid = dmabuf >= 0 ? 1 : 0;
    wire::AtuMapResp made{};
    const bool mapped = ask(fd, c, made);
    out = made.md;
    out.iova += address - out.va;
    return mapped;
  }
  bool unmap(const wire::Md& which) {
    wire::AtuUnmapCmd c{};
    c.id = which.id;
    return send(fd, c) == static_cast<long>(sizeof c);
  }
  std::uint32_t make_events(const std::byte* buffer, std::size_t bytes, std::uint32_t wait) {
    wire::Md buffer_md{};
    CHECK(map(reinterpret_cast<std::uint64_t>(buffer), bytes, 0, -1, 0, buffer_md));
    wire::EqAllocCmd c{};
    c.lni = lni, c.queue_md = buffer_md.id, c.event_wait = wait;
    c.attr.queue = reinterpret_cast<std::uint64_t>(buffer);
    c.attr.queue_len = bytes;
    wire::EqAllocResp made{};
    CHECK(ask(fd, c, made));
    return made.eq;
  }
  Ring make_ring(std::uint32_t flags, std::uint32_t lcid) {
    wire::CqAllocCmd c{};
    c.lni = lni, c.opts.count = 256, c.opts.flags = flags, c.opts.lcid = lcid;
    wire::CqAllocResp made{};
    CHECK(ask(fd, c, made));
    return {made.cq, map_cookie(fd, made.cmds), map_cookie(fd, made.wp_addr), made.count};
  }
  std::uint32_t expose(std::uint64_t iova, std::uint8_t lac, std::uint64_t bytes, std::uint32_t portal_eq) {
    wire::PteAllocCmd pte{};
    pte.lni_hndl = lni, pte.evtq_hndl = portal_eq;
    wire::PteAllocResp made{};
    CHECK(ask(fd, pte, made));
    wire::PteMapCmd bind{};
    bind.pte_number = made.pte_number, bind.domain_hndl = domain, bind.pid_offset = next_index;
    wire::PteMapResp bound{};
    CHECK(ask(fd, bind, bound));
    wire::SetStateCmd state{};
    state.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::set_state);
    state.set_ptlte_index(made.pte_number);
    state.set_ptlte_state(wire::PteState::enabled);
    state.set_drop_count(0xffffff);
    target.emit(&state);
    wire::TargetCmd entry{};
    entry.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::TargetOp::append);
    entry.set_ptlte_index(made.pte_number);
    entry.set_ptl_list(wire::PtlList::priority);
    entry.set_flags(wire::kLeOpPut | wire::kLeOpGet | wire::kLeEventLinkDisable | wire::kLeEventSuccessDisable);
    entry.set_match_id(wire::kMatchAnyone);
    entry.set_lac(lac);
    entry.set_start(iova);
    entry.set_length(bytes);
    target.emit(&entry);
    CHECK(target.finished());
    return next_index++;
  }
  // To an entry of this program's own, and how it ended; 0: it did not.
  std::uint32_t run(wire::DmaOp op, const wire::Md& local, std::uint64_t offset, std::uint32_t bytes,
                    std::uint32_t index) {
    wire::FullDmaCmd c{};
    c.set_header(wire::CmdType::dma, wire::CmdSize::b64, op);
    c.set_dfa(wire::unicast_dfa(nid, wire::endpoint_of(pid, wire::kMaxPidBits, index)));
    c.set_index_ext(wire::index_ext_of(index));
    c.set_lac(local.lac);
    c.set_local_addr(local.iova + offset);
    c.set_request_len(bytes);
    c.set_eq(eq);
    c.set_flags(wire::kEventSendDisable);
    transmit.emit(&c);
    for (int i = 0; i < 300'000; ++i) {
      wire::EventHead head{};
      memcpy(&head, events + event_at, sizeof head);
      const std::uint32_t size = wire::bytes_of(head.event_size());
      const auto* const last = reinterpret_cast<const std::uint8_t*>(events + event_at + size - 1);
      const std::uint32_t code = size == 0 ? 0u : __atomic_load_n(last, __ATOMIC_ACQUIRE) & 63u;
      if (code != 0) {
        event_at += size;
        if (head.event_type() != wire::EventType::null_event) return code;
      } else {
        usleep(100);
      }
    }
    return 0;
  }
};
