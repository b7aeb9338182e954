// SPDX-License-Identifier: Apache-2.0
// Making and destroying queue pairs.
#include "rail/mlx5/queue.hpp"

#include <algorithm>
#include <bit>

namespace strait::rail {
namespace {

namespace mlx5 = wire::mlx5;

// Receives carry one data pointer: 16 bytes.
constexpr std::uint32_t kStrideLog2 = 4;
constexpr std::uint64_t kMarkedAtOnce = 64;  // a page of completions
constexpr std::uint32_t kEveryRemoteRight =
    STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;

std::uint32_t log2_of(std::uint32_t power) {
  return static_cast<std::uint32_t>(std::countr_zero(power));
}

}  // namespace

Result<std::unique_ptr<Queue>> Queue::make(const Nic& nic, QueueShape shape) {
  if (!std::has_single_bit(shape.sq_blocks) || shape.sq_blocks > mlx5::kMaxBlocks) {
    return strait::fail(Code::invalid, "a send ring has a power of two of blocks up to {}, not {}", mlx5::kMaxBlocks,
                        shape.sq_blocks);
  }
  if (shape.rq_entries != 0 && (!std::has_single_bit(shape.rq_entries) || shape.rq_entries > mlx5::kMaxBlocks)) {
    return strait::fail(Code::invalid, "a receive ring has a power of two of entries up to {}, not {}",
                        mlx5::kMaxBlocks, shape.rq_entries);
  }
  std::unique_ptr<Queue> queue(new Queue(nic));
  STRAIT_CHECK(queue->create(shape));
  return queue;
}

Status Queue::create(QueueShape shape) {
  // After an error every block of the send ring and every receive may complete on its own.
  const std::uint32_t cq_entries = std::bit_ceil(shape.sq_blocks + std::max(shape.rq_entries, 1u));
  const std::size_t sq_bytes = std::size_t{shape.sq_blocks} * mlx5::kBlockBytes;
  const std::size_t cq_bytes = std::size_t{cq_entries} * sizeof(mlx5::Cqe);
  const std::size_t rq_bytes = sys::round_up(std::size_t{shape.rq_entries} << kStrideLog2, 64);
  constexpr std::size_t kRecordBytes = 64;  // each record on its own line
  STRAIT_TRY(memory_,
             sys::map_anonymous(sys::round_up(sq_bytes + cq_bytes + rq_bytes + 2 * kRecordBytes, sys::page_bytes()),
                                sys::Protect::read_write));
  // The records before the ring that is written with them: of very many queues each page is a miss of its own.
  auto* const record = reinterpret_cast<mlx5::QueueRecord*>(memory_.data());
  auto* const cq_record = reinterpret_cast<mlx5::CqRecord*>(memory_.data() + kRecordBytes);
  std::byte* const sq = memory_.data() + 2 * kRecordBytes;
  std::byte* const cq = sq + sq_bytes;
  std::byte* const rq = cq + cq_bytes;
  strait_nic_cq_request cq_request{};
  cq_request.struct_size = sizeof cq_request;
  cq_request.entries = cq_entries;
  cq_request.cqe_bytes = sizeof(mlx5::Cqe);
  cq_request.ring = cq;
  cq_request.record = cq_record;
  STRAIT_TRY(cqn_, nic_.create_cq(cq_request));
  has_cq_ = true;

  strait_nic_qp_request request{};
  request.struct_size = sizeof request;
  request.pd = nic_.pd();
  request.sq_blocks = shape.sq_blocks;
  request.rq_entries = shape.rq_entries;
  request.rq_stride_log2 = kStrideLog2;
  request.send_cqn = cqn_;
  request.recv_cqn = cqn_;
  request.access = kEveryRemoteRight;  // what a peer may do is decided region by region
  request.sq = sq;
  request.rq = shape.rq_entries == 0 ? nullptr : rq;
  request.record = record;
  STRAIT_TRY(qp_, nic_.create_qp(request));
  has_qp_ = true;

  device::SendRingMemory send;
  send.blocks = sq;
  send.log_blocks = log2_of(shape.sq_blocks);
  send.qpn = qp_.qpn;
  send.record = record;
  send.doorbell = qp_.doorbell;
  if (nic_.info().software != 0) send.reach = device::Reach::cpu;
  device::CompletionRingMemory completions;
  completions.entries = cq;
  completions.log_entries = log2_of(cq_entries);
  completions.record = cq_record;
  bool opened = device::open_send_ring(send_, send) && device::open_completion_ring(completions_, completions);
  if (shape.rq_entries != 0) {
    device::ReceiveRingMemory receive;
    receive.entries = rq;
    receive.log_entries = log2_of(shape.rq_entries);
    receive.log_stride = kStrideLog2;
    receive.record = record;
    opened = opened && device::open_receive_ring(receive_, receive);
  }
  if (!opened)
    return strait::fail(Code::device, "{} made queue pair {:#x} with a doorbell that no ring can use", nic_.name(),
                        qp_.qpn);
  mark_completions();
  return {};
}

// At most one entry for each block and each receive.
void Queue::mark_completions() {
  const std::uint64_t posted = send_.slots.reserved + receive_.slots.reserved;
  const std::uint64_t entries = std::uint64_t{1} << completions_.log_entries;
  const std::uint64_t until = std::min(entries, sys::round_up(posted + 1, kMarkedAtOnce));
  auto* const cqes = reinterpret_cast<mlx5::Cqe*>(completions_.entries);
  for (std::uint64_t i = marked_; i < until; ++i) cqes[i].op_own = mlx5::kCqeInvalid;
  marked_ = until == entries ? UINT64_MAX : until;
}

Queue::~Queue() {
  if (nic_.handle() == nullptr) return;  // a forked child's copy
  if (has_qp_) nic_.ops()->destroy_qp(nic_.handle(), qp_.qpn, nullptr);
  if (has_cq_) nic_.ops()->destroy_cq(nic_.handle(), cqn_, nullptr);
}

Status Queue::connect(const strait_nic_connect_request& request) const {
  return nic_.connect_qp(qp_.qpn, request);
}

void Queue::fail() const {
  nic_.ops()->fail_qp(nic_.handle(), qp_.qpn, nullptr);
}

std::string Queue::describe() const {
  return nic_.describe_qp(qp_.qpn);
}

}  // namespace strait::rail
