// SPDX-License-Identifier: Apache-2.0
// Writes mlx5 completions into a caller's ring: the half of a completion queue that hardware would have.
#pragma once

#include <cstdint>

#include "strait/plugin.h"
#include "strait/wire/mlx5.hpp"

namespace strait::rail::proxy {

struct Entry {
  wire::mlx5::CqeOpcode opcode = wire::mlx5::CqeOpcode::requester;
  wire::mlx5::Opcode send_opcode = wire::mlx5::Opcode::nop;
  std::uint32_t qpn = 0;
  std::uint32_t user_index = 0;
  std::uint16_t wqe_counter = 0;
  std::uint32_t byte_count = 0;
  std::uint32_t imm_raw = 0;
  bool solicited = false;
  wire::mlx5::Syndrome syndrome = wire::mlx5::Syndrome::none;
  std::uint8_t vendor = 0;
};

class CompletionWriter {
 public:
  explicit CompletionWriter(const strait_nic_cq_request& request);
  // False: the program has not taken enough, and the entry is lost; from then on all of them are, as on hardware.
  bool write(const Entry& entry);
  [[nodiscard]] bool overrun() const { return overrun_; }
  std::uint32_t users = 0;  // queue pairs that complete here

 private:
  [[nodiscard]] bool full() const;
  std::byte* ring_;
  const std::uint32_t* consumer_;
  std::uint32_t entries_;
  std::uint32_t stride_bytes_;
  bool collapsed_;
  bool may_overrun_;
  bool overrun_ = false;
  std::uint64_t written_ = 0;
};

}  // namespace strait::rail::proxy
