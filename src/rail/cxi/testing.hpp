// SPDX-License-Identifier: Apache-2.0
// A CXI device that only takes notes: it hands out numbers and pages, remembers every command, and does nothing. For
// tests of what is asked of a device; what a device does is tested on the software one.
#pragma once

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strait/plugin.h"
#include "strait/wire/cxi.hpp"
#include "strait/wire/cxi_abi.hpp"

namespace strait::rail::cxi::testing {

namespace w = wire::cxi;

struct Note {
  w::Op op;
  std::vector<std::byte> bytes;
  template <class Cmd>
  [[nodiscard]] Cmd as() const {
    Cmd out;
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
  }
};

class Notes {
 public:
  Notes() { current() = this; }
  ~Notes() { current() = nullptr; }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;

  std::vector<Note> commands;
  std::map<w::Op, int> refuse;  // the errno that the command is answered with
  std::uint32_t flags = STRAIT_CXI_SOFTWARE | STRAIT_CXI_MEMORY_DOORBELLS;
  std::uint32_t mapped = 0;  // pages that are mapped now

  [[nodiscard]] std::vector<w::Op> ops() const {
    std::vector<w::Op> all;
    for (const Note& note : commands) all.push_back(note.op);
    return all;
  }
  [[nodiscard]] const Note* last(w::Op op) const {
    for (auto at = commands.rbegin(); at != commands.rend(); ++at)
      if (at->op == op) return &*at;
    return nullptr;
  }
  // The pages behind a cookie, as the device sees them.
  [[nodiscard]] std::byte* pages(std::uint64_t cookie) { return pages_.at(cookie).get(); }

  static const strait_cxi_ops* ops_table() {
    static const strait_cxi_ops kOps = {
        .abi_version = STRAIT_PLUGIN_ABI,
        .struct_size = sizeof(strait_cxi_ops),
        .kind = "noting",
        .open = [](const char*, strait_cxi** out, strait_plugin_error*) -> std::int32_t {
          *out = reinterpret_cast<strait_cxi*>(current());
          return 0;
        },
        .close = [](strait_cxi*) {},
        .info = [](strait_cxi*, strait_cxi_info* out) -> std::int32_t {
          std::memcpy(out->name, "cxi7", 5);
          out->flags = current()->flags;
          out->index = 7;
          return 0;
        },
        .write = [](strait_cxi*, const void* command, std::uint64_t bytes) -> std::int64_t {
          return current()->write(static_cast<const std::byte*>(command), bytes);
        },
        .map = [](strait_cxi*, std::uint64_t offset, std::uint64_t, void** address) -> std::int32_t {
          if (!current()->pages_.contains(offset)) return -EINVAL;
          *address = current()->pages(offset);
          ++current()->mapped;
          return 0;
        },
        .unmap = [](strait_cxi*, void*, std::uint64_t) -> std::int32_t {
          --current()->mapped;
          return 0;
        },
        .wait_fd = [](strait_cxi*, std::uint32_t) -> std::int32_t { return -ENOENT; },
        .share = nullptr,
        .share_port = nullptr,
        .unshare = nullptr,
        .counters = [](strait_cxi*, char* text, std::size_t) { *text = '\0'; },
    };
    return &kOps;
  }

 private:
  static Notes*& current() {
    static Notes* the_one = nullptr;
    return the_one;
  }
  struct Free {
    void operator()(std::byte* pages) const { ::operator delete(pages, std::align_val_t{4096}); }
  };

  w::MmInfo cookie(std::uint64_t bytes) {
    const std::uint64_t offset = next_cookie_;
    next_cookie_ += bytes;
    auto* const memory = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{4096}));
    std::memset(memory, 0, bytes);
    pages_[offset].reset(memory);
    return {offset, bytes};
  }
  template <class Resp>
  static void answer(const std::byte* command, const Resp& resp) {
    w::CmdHead head;
    std::memcpy(&head, command, sizeof head);
    std::memcpy(reinterpret_cast<void*>(head.resp), &resp, sizeof resp);
  }
  w::CqAllocResp make_queue(std::uint32_t count, bool own_ring) {
    w::CqAllocResp resp{};
    resp.cq = next_number_++;
    resp.count = count;
    if (own_ring) {
      resp.cmds = cookie(std::uint64_t{count} * 64);
      const w::QueueStatus status = w::initial_queue_status();
      std::memcpy(pages(resp.cmds.offset), &status, sizeof status);
    }
    resp.wp_addr = cookie(4096);
    return resp;
  }

  std::int64_t write(const std::byte* command, std::uint64_t bytes) {
    w::Op op;
    std::memcpy(&op, command, sizeof op);
    if (const auto found = refuse.find(op); found != refuse.end() && found->second != 0) return -found->second;
    commands.push_back({op, {command, command + bytes}});
    switch (op) {
      case w::Op::dev_info_get: {
        w::DevInfo info{};
        info.nid = 0x123;
        info.pid_bits = 9;
        info.pid_count = 511;
        info.pid_granule = 256;
        info.device_platform = w::Platform::netsim;
        answer(command, info);
        break;
      }
      case w::Op::lni_alloc: answer(command, w::LniAllocResp{next_number_++}); break;
      case w::Op::domain_alloc: answer(command, w::DomainAllocResp{next_number_++, 1, 17}); break;
      case w::Op::cp_alloc:
      case w::Op::trig_cp_alloc: answer(command, w::CpAllocResp{next_number_++, 3}); break;
      case w::Op::cq_alloc: {
        w::CqAllocCmd cmd;
        std::memcpy(&cmd, command, sizeof cmd);
        answer(command, make_queue(cmd.opts.count, true));
        break;
      }
      case w::Op::cq_alloc_buf: {
        w::CqAllocBufCmd cmd;
        std::memcpy(&cmd, command, sizeof cmd);
        answer(command, make_queue(cmd.opts.opts.count, cmd.opts.buf == 0));
        break;
      }
      case w::Op::atu_map: {
        w::AtuMapCmd cmd;
        std::memcpy(&cmd, command, sizeof cmd);
        w::AtuMapResp resp{};
        resp.id = next_number_++;
        resp.md.id = resp.id;
        resp.md.va = cmd.va & ~std::uint64_t{4095};
        resp.md.iova = 0x40000000 + (std::uint64_t{resp.id} << 32);
        resp.md.len = cmd.len;
        resp.md.lac = 2;
        answer(command, resp);
        break;
      }
      case w::Op::eq_alloc: {
        w::EqAllocResp resp{};
        resp.eq = next_number_++;
        resp.csr = cookie(4096);
        answer(command, resp);
        break;
      }
      case w::Op::ct_alloc: {
        w::CtAllocResp resp{};
        resp.ctn = next_number_++;
        resp.doorbell = cookie(4096);
        answer(command, resp);
        break;
      }
      case w::Op::pte_alloc: answer(command, w::PteAllocResp{next_number_++}); break;
      case w::Op::pte_map: answer(command, w::PteMapResp{next_number_++}); break;
      default: break;
    }
    return static_cast<std::int64_t>(bytes);
  }

  std::uint32_t next_number_ = 5;
  std::uint64_t next_cookie_ = 4096;
  std::map<std::uint64_t, std::unique_ptr<std::byte[], Free>> pages_;
};

}  // namespace strait::rail::cxi::testing
