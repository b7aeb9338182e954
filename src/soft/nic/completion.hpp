// SPDX-License-Identifier: Apache-2.0
// The NIC's side of a completion queue: it writes entries, the program takes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "soft/nic/verbs.hpp"
#include "strait/plugin.h"
#include "strait/wire/mlx5.hpp"

namespace strait::soft::nic {

// What a datagram's 40 bytes of header are, in the numbers of the entry: bits 24 and 25 of flags_rqpn. Programs see it
// as the service level of the completion, which on Ethernet is nothing else; UCX throws away what it does not explain.
enum class DatagramHeader : std::uint8_t { none = 0, ipv6 = 1, ipv4 = 2 };

struct Completion {
  wire::mlx5::CqeOpcode opcode = wire::mlx5::CqeOpcode::requester;
  wire::mlx5::Opcode send_opcode = wire::mlx5::Opcode::nop;
  std::uint32_t qpn = 0;
  std::uint32_t user_index = 0;
  std::uint16_t wqe_counter = 0;
  std::uint32_t byte_count = 0;
  std::uint32_t imm_raw = 0;
  std::uint32_t source_qpn = 0;  // datagrams
  DatagramHeader header = DatagramHeader::none;
  bool solicited = false;
  wire::mlx5::Syndrome syndrome = wire::mlx5::Syndrome::none;
  std::uint8_t vendor_syndrome = 0;
};

class CompletionQueue {
 public:
  CompletionQueue(std::uint32_t number, const strait_nic_cq_request& request);
  CompletionQueue(std::uint32_t number, const CqRequest& request);

  // False: every entry is unconsumed. The queue is then in error for good, as on hardware.
  [[nodiscard]] bool write(const Completion& completion);
  // The same for a work request that succeeded, and for a message that arrived and says nothing but its length.
  [[nodiscard]] bool write_success(std::uint32_t qpn, std::uint32_t user_index, wire::mlx5::Opcode opcode,
                                   std::uint16_t wqe_counter, std::uint32_t byte_count) {
    return write_plain(wire::mlx5::CqeOpcode::requester, qpn, user_index, opcode, wqe_counter, byte_count);
  }
  [[nodiscard]] bool write_received(std::uint32_t qpn, std::uint32_t user_index, std::uint16_t wqe_counter,
                                    std::uint32_t byte_count) {
    return write_plain(wire::mlx5::CqeOpcode::responder_send, qpn, user_index, wire::mlx5::Opcode::nop, wqe_counter,
                       byte_count);
  }
  [[nodiscard]] bool overrun() const { return overrun_; }
  void overrun_now() { overrun_ = true; }  // as if every entry were unconsumed
  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] std::uint64_t user() const { return user_; }
  [[nodiscard]] bool events() const { return arm_word_ != nullptr; }
  // Something was written since the last event.
  [[nodiscard]] bool has_news() const { return producer_ != event_end_; }
  // It is armed for something that has come since the last event. take_event() also disarms it.
  [[nodiscard]] bool event_due() const;
  [[nodiscard]] bool take_event();
  // Entries go to another ring from now on. The last one in the old ring says so, and the program moves what it has not
  // taken yet. False: the old ring has no room for that, or the new one none for what waits.
  [[nodiscard]] bool resize(void* ring, std::uint32_t entries, std::uint32_t cqe_bytes);

  std::uint32_t users = 0;  // queue pairs that complete here
  bool error_told = false;

 private:
  [[nodiscard]] bool write_plain(wire::mlx5::CqeOpcode what, std::uint32_t qpn, std::uint32_t user_index,
                                 wire::mlx5::Opcode opcode, std::uint16_t wqe_counter, std::uint32_t byte_count);
  [[nodiscard]] std::uint32_t waiting() const;
  [[nodiscard]] bool full() const { return waiting() >= entries_; }
  [[nodiscard]] bool armed_for_news(std::uint32_t raw) const;

  std::uint32_t number_;
  std::uint32_t entries_;
  std::uint32_t log_entries_;
  std::uint32_t stride_bytes_;
  bool collapsed_;
  bool ignore_overrun_;
  bool timestamps_ = false;
  bool overrun_ = false;
  std::byte* ring_;
  const std::uint32_t* consumer_word_;
  std::uint32_t* arm_word_ = nullptr;  // null: no events
  std::uint64_t user_ = 0;
  std::uint64_t producer_ = 0;
  std::uint64_t solicited_end_ = 0;  // behind the last entry that wakes who waits for solicited ones only
  std::uint64_t event_end_ = 0;      // the producer at the last event
};

}  // namespace strait::soft::nic
