// SPDX-License-Identifier: Apache-2.0
// Two NICs with one queue pair each, connected: rings in our own memory, as programs on mlx5dv have them. The NIC is
// libstrait-soft through its plug-in interface; what the rings hold is what a ConnectX would read.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/plugin.h"

namespace rig {

namespace sd = strait::device;
namespace mlx5 = strait::wire::mlx5;
inline constexpr auto kOne = sd::Sharing::one_thread;

inline void check(std::int32_t code, const strait_plugin_error& error) {
  if (code == 0) return;
  std::fprintf(stderr, "%s\n", error.text);
  std::exit(1);
}

inline const strait_nic_ops& load() {
  void* const library = ::dlopen(STRAIT_SOFT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void* const entry = library == nullptr ? nullptr : ::dlsym(library, STRAIT_NIC_ENTRY);
  if (entry == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::exit(1);
  }
  return *reinterpret_cast<strait_nic_entry>(entry)();
}

// The environment of every strait program, for a NIC that is opened without one.
inline std::string config(const char* name) {
  const auto variable = [](const char* which) { return std::string(std::getenv(which) ? std::getenv(which) : ""); };
  std::string text = std::string("name=") + name;
  if (variable("STRAIT_STRICT") == "1") text += ",strict=1";
  if (const auto seed = variable("STRAIT_STRICT_SEED"); !seed.empty()) text += ",strict_seed=" + seed;
  if (const auto file = variable("STRAIT_STRICT_REPORT"); !file.empty()) text += ",strict_report=" + file;
  return text;
}

// One NIC, one queue pair. Its memory is never given back: the process is short.
struct Side {
  Side(const strait_nic_ops& nic_ops, const char* name, std::uint32_t log_blocks, std::uint32_t log_cqes)
      : ops(nic_ops) {
    check(ops.open(config(name).c_str(), &nic, &error), error);
    check(ops.alloc_pd(nic, &pd, &error), error);
    const std::size_t sq_bytes = std::size_t{64} << log_blocks, cq_bytes = std::size_t{64} << log_cqes;
    auto* const memory = static_cast<std::uint8_t*>(std::aligned_alloc(4096, (sq_bytes + cq_bytes + 8191) & ~4095ull));
    std::memset(memory, 0xff, sq_bytes + cq_bytes);
    auto* const records = memory + sq_bytes + cq_bytes;
    std::memset(records, 0, 128);
    const strait_nic_cq_request cq{sizeof cq, 1u << log_cqes, 64, 0, memory + sq_bytes, records + 64};
    std::uint32_t cqn = 0;
    check(ops.create_cq(nic, &cq, &cqn, &error), error);
    strait_nic_qp_request qp{};
    qp.struct_size = sizeof qp;
    qp.pd = pd;
    qp.sq_blocks = 1u << log_blocks;
    qp.send_cqn = qp.recv_cqn = cqn;
    qp.access = STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ;
    qp.sq = memory;
    qp.record = records;
    strait_nic_qp made{};
    check(ops.create_qp(nic, &qp, &made, &error), error);
    qpn = made.qpn;
    sd::SendRingMemory ring;
    ring.blocks = memory;
    ring.log_blocks = log_blocks;
    ring.qpn = qpn;
    ring.record = reinterpret_cast<mlx5::QueueRecord*>(records);
    ring.doorbell = made.doorbell;
    sd::CompletionRingMemory done;
    done.entries = memory + sq_bytes;
    done.log_entries = log_cqes;
    done.record = reinterpret_cast<mlx5::CqRecord*>(records + 64);
    if (!sd::open_send_ring(send, ring) || !sd::open_completion_ring(completions, done)) std::abort();
  }
  ~Side() { ops.close(nic); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  std::uint32_t share(void* at, std::uint64_t bytes) {
    strait_nic_mr_request request{};
    request.struct_size = sizeof request;
    request.pd = pd;
    request.access = STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ;
    request.fd = -1;
    request.address = reinterpret_cast<std::uint64_t>(at);
    request.length_bytes = bytes;
    strait_nic_mr made{};
    check(ops.register_memory(nic, &request, &made, &error), error);
    return made.lkey;
  }
  void connect(const Side& to) {
    strait_nic_connect_request request{};
    request.struct_size = sizeof request;
    request.remote_qpn = to.qpn;
    ops.address(to.nic, &request.remote);
    request.deadline_ns = 5'000'000'000;
    request.rnr_retries = 7;
    check(ops.connect_qp(nic, qpn, &request, &error), error);
  }
  // Shows the NIC what is in the ring, and lets it look: software has no clock of its own.
  void ring_doorbell() {
    sd::ring_doorbell<kOne>(send);
    drive();
  }
  void drive() { ops.drive(nic, 0); }

  const strait_nic_ops& ops;
  strait_nic* nic = nullptr;
  strait_plugin_error error{};
  std::uint32_t pd = 0, qpn = 0;
  sd::SendRing send{};
  sd::CompletionRing completions{};
};

struct Rig {
  explicit Rig(std::uint32_t log_blocks = 6, std::uint32_t log_cqes = 7)
      : a(load(), "writer", log_blocks, log_cqes), b(load(), "owner", log_blocks, log_cqes) {
    std::atomic<bool> connected{false};
    std::thread answering([&] {
      while (!connected) b.drive();
    });
    a.connect(b);
    connected = true;
    answering.join();
    b.connect(a);
    source_key = a.share(source, sizeof source);
    target_key = b.share(target, sizeof target);
    std::memset(source, 1, sizeof source);
    std::memset(target, 0, sizeof target);
  }
  [[nodiscard]] sd::Piece piece(std::uint32_t bytes) const {
    return {reinterpret_cast<std::uint64_t>(source), bytes, source_key};
  }
  [[nodiscard]] sd::Remote place() const { return {reinterpret_cast<std::uint64_t>(target), target_key}; }
  // Both NICs run until the writer has a completion, or for one second.
  sd::Polled wait(sd::Completion& out) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (std::chrono::steady_clock::now() < until) {
      a.drive();
      b.drive();
      const sd::Polled polled = sd::poll(a.completions, out);
      if (polled == sd::Polled::done) sd::complete_up_to<kOne>(a.send, out.wqe_counter);
      if (polled != sd::Polled::empty) return polled;
    }
    return sd::Polled::empty;
  }

  Side a, b;
  alignas(4096) unsigned char source[1 << 16];
  alignas(4096) unsigned char target[1 << 16];
  std::uint32_t source_key = 0, target_key = 0;
};

}  // namespace rig
