// SPDX-License-Identifier: Apache-2.0
// In the guest: one queue pair of a verbs device with its completion queue and its memory, driven by plain libibverbs.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "sys/clock.hpp"
#include "sys/mapping.hpp"

namespace strait::lab {

template <auto Close>
struct Closer {
  template <class T>
  void operator()(T* object) const {
    Close(object);
  }
};
template <class T, auto Close>
using Owner = std::unique_ptr<T, Closer<Close>>;

// A device with one of its addresses: what `open` makes.
struct Port {
  [[nodiscard]] static Result<Port> open(std::string_view device, bool ipv6, std::uint32_t pmtu_bytes);
  Owner<ibv_context, ibv_close_device> context;
  Owner<ibv_pd, ibv_dealloc_pd> domain;
  ibv_gid gid{};
  std::uint8_t gid_index = 0;
  ibv_mtu pmtu = IBV_MTU_1024;
};

struct Remote {
  ibv_gid gid{};
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;   // the first one that the remote side sends
  std::uint32_t qkey = 0;  // UD
};

struct Timing {
  std::uint8_t timeout = 18;  // 4.096 us * 2^18, about a second: an emulated guest is slow
  std::uint8_t retries = 7;
  std::uint8_t rnr_retries = 7;
  std::uint8_t rnr_timer = 12;  // 0.64 ms
  std::uint8_t reads = 8;       // READs and atomics under way, either way
};

struct Work {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  std::uint64_t id = 0;
  std::uint64_t at = 0;  // offset in the queue pair's memory
  std::uint32_t length_bytes = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t immediate = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint32_t sges = 1;  // the memory is cut into so many
  bool signaled = true;
  bool fence = false;
  std::optional<Remote> to;  // UD
};

class Queue {
 public:
  static constexpr std::uint32_t kQkey = 0x11111111;

  [[nodiscard]] static Result<std::unique_ptr<Queue>> make(const Port& port, ibv_qp_type type,
                                                           std::uint64_t memory_bytes);
  // RC: to RTS with that remote. UD: to RTS.
  [[nodiscard]] Status connect(const Remote& remote, const Timing& timing);
  [[nodiscard]] Status fail();
  [[nodiscard]] Status post(const Work& work);
  [[nodiscard]] Status receive(std::uint64_t id, std::uint64_t at, std::uint32_t length_bytes);
  // Nothing: none came by the deadline.
  [[nodiscard]] Result<std::optional<ibv_wc>> wait(const sys::Deadline& deadline);

  // [at, at + length) of the memory, checked.
  [[nodiscard]] Result<std::span<std::byte>> memory(std::uint64_t at, std::uint64_t length_bytes) const;
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_.size(); }
  [[nodiscard]] std::uint32_t qpn() const { return qp_->qp_num; }
  [[nodiscard]] std::uint32_t psn() const { return psn_; }
  [[nodiscard]] std::uint32_t rkey() const { return region_->rkey; }
  [[nodiscard]] bool datagram() const { return type_ == IBV_QPT_UD; }
  [[nodiscard]] bool reliable() const { return type_ == IBV_QPT_RC; }
  [[nodiscard]] Result<std::string> state() const;

 private:
  Queue(const Port& port, ibv_qp_type type) : port_(port), type_(type) {}
  [[nodiscard]] Status to_init();

  const Port& port_;
  ibv_qp_type type_;
  std::uint32_t psn_ = 0;
  sys::Mapping memory_;
  Owner<ibv_mr, ibv_dereg_mr> region_;
  Owner<ibv_cq, ibv_destroy_cq> completions_;
  std::vector<Owner<ibv_ah, ibv_destroy_ah>> addresses_;  // UD: one per send, kept since rxe looks them up late
  Owner<ibv_qp, ibv_destroy_qp> qp_;                      // goes first
};

}  // namespace strait::lab
