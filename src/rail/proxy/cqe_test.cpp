// SPDX-License-Identifier: Apache-2.0
// Completions as a reader of the ring finds them.
#include "rail/proxy/cqe.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

namespace strait::rail::proxy {
namespace {
namespace m = wire::mlx5;

struct Queue {
  explicit Queue(std::uint32_t flags = 0, std::uint32_t bytes = 64) : cqe_bytes(bytes) {
    std::memset(ring, 0, sizeof ring);
    strait_nic_cq_request request{};
    request.struct_size = sizeof request;
    request.entries = 4;
    request.cqe_bytes = cqe_bytes;
    request.flags = flags;
    request.ring = ring;
    request.record = record;
    writer.emplace(request);
  }
  m::Cqe at(std::uint32_t slot) const {
    m::Cqe cqe;
    std::memcpy(&cqe, ring + slot * cqe_bytes + cqe_bytes - 64, sizeof cqe);
    return cqe;
  }
  void taken(std::uint32_t count) { record[0] = wire::be32{count}.raw(); }
  std::uint32_t cqe_bytes;
  alignas(64) std::byte ring[4 * 128];
  alignas(8) std::uint32_t record[2] = {};
  std::optional<CompletionWriter> writer;
};

TEST(ProxyCqe, FieldsAndOwnership) {
  Queue queue;
  Entry entry;
  entry.opcode = m::CqeOpcode::responder_send_imm;
  entry.qpn = 0x123456;
  entry.user_index = 0x77;
  entry.byte_count = 4096;
  entry.imm_raw = wire::be32{0xcafe}.raw();
  entry.solicited = true;
  for (std::uint32_t i = 0; i < 6; ++i) {
    entry.wqe_counter = static_cast<std::uint16_t>(i);
    ASSERT_TRUE(queue.writer->write(entry));
    queue.taken(i + 1);
    const m::Cqe cqe = queue.at(i % 4);
    EXPECT_EQ(cqe.opcode(), m::CqeOpcode::responder_send_imm);
    EXPECT_EQ(cqe.owner(), i / 4);
    EXPECT_EQ(cqe.qpn(), 0x123456u);
    EXPECT_EQ(cqe.user_index(), 0x77u);
    EXPECT_EQ(cqe.byte_cnt.value(), 4096u);
    EXPECT_EQ(cqe.imm_inval_pkey.value(), 0xcafeu);
    EXPECT_EQ(cqe.wqe_counter.value(), i);
    EXPECT_TRUE(cqe.solicited());
  }
}

TEST(ProxyCqe, ErrorsInTheLongForm) {
  Queue queue(0, 128);
  Entry entry;
  entry.opcode = m::CqeOpcode::requester_error;
  entry.send_opcode = m::Opcode::rdma_read;
  entry.syndrome = m::Syndrome::remote_access;
  entry.vendor = 0x88;
  ASSERT_TRUE(queue.writer->write(entry));
  const m::Cqe cqe = queue.at(0);
  EXPECT_TRUE(cqe.is_error());
  EXPECT_EQ(cqe.syndrome(), m::Syndrome::remote_access);
  EXPECT_EQ(cqe.vendor_syndrome(), 0x88);
  EXPECT_EQ(cqe.send_opcode(), m::Opcode::rdma_read);
}

TEST(ProxyCqe, OverrunIsForGood) {
  Queue queue;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(queue.writer->write({}));
  EXPECT_FALSE(queue.writer->write({}));
  queue.taken(4);
  EXPECT_FALSE(queue.writer->write({}));
  EXPECT_TRUE(queue.writer->overrun());
  Queue careless(STRAIT_NIC_CQ_IGNORE_OVERRUN);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(careless.writer->write({}));
}

TEST(ProxyCqe, CollapsedStaysInOnePlace) {
  Queue queue(STRAIT_NIC_CQ_COLLAPSED);
  Entry entry;
  for (std::uint16_t i = 0; i < 9; ++i) {
    entry.wqe_counter = i;
    ASSERT_TRUE(queue.writer->write(entry));
    EXPECT_EQ(queue.at(0).wqe_counter.value(), i);
    EXPECT_EQ(queue.at(0).owner(), 0u);
  }
}

}  // namespace
}  // namespace strait::rail::proxy
