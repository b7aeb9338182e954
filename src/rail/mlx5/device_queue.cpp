// SPDX-License-Identifier: Apache-2.0
#include "rail/mlx5/device_queue.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "strait/device/order.hpp"

namespace strait::rail {
namespace {

namespace mlx5 = wire::mlx5;

constexpr std::uint32_t kReceiveStrideLog2 = 4;  // one data pointer
constexpr std::uint32_t kMostCounters = 1u << 20;
constexpr std::size_t kLine = 64;
constexpr std::uint32_t kRightsOfPeers =
    STRAIT_NIC_LOCAL_WRITE | STRAIT_NIC_REMOTE_WRITE | STRAIT_NIC_REMOTE_READ | STRAIT_NIC_REMOTE_ATOMIC;

std::uint32_t log2_of_ring(std::uint32_t power) {
  return static_cast<std::uint32_t>(std::countr_zero(power));
}

// Where the parts of the state lie, from its first byte.
struct StateLayout {
  std::size_t send_marks, receive_marks, counter_words, counter_of, bytes;

  explicit StateLayout(const DeviceQueueShape& shape) {
    send_marks = sys::round_up(sizeof(device::QueueState), kLine);
    receive_marks = send_marks + std::size_t{shape.sq_blocks} * sizeof(std::uint64_t);
    counter_words = sys::round_up(receive_marks + std::size_t{shape.rq_entries} * sizeof(std::uint64_t), kLine);
    counter_of = counter_words + std::size_t{shape.counters} * sizeof(device::CounterWords);
    bytes = sys::round_up(counter_of + std::size_t{shape.sq_blocks} * sizeof(std::uint32_t), kLine);
  }
};

template <class T>
T* place(std::uint64_t base, std::size_t offset) {
  return reinterpret_cast<T*>(base + offset);
}

}  // namespace

Result<std::unique_ptr<DeviceQueue>> DeviceQueue::make(const Nic& nic, DeviceQueueShape shape) {
  if (!std::has_single_bit(shape.sq_blocks) || shape.sq_blocks > mlx5::kMaxBlocks) {
    return strait::fail(Code::invalid, "a device queue has a power of two of blocks up to {}, not {}", mlx5::kMaxBlocks,
                        shape.sq_blocks);
  }
  if (shape.rq_entries != 0 && (!std::has_single_bit(shape.rq_entries) || shape.rq_entries > mlx5::kMaxBlocks)) {
    return strait::fail(Code::invalid, "a device queue takes a power of two of receives up to {}, not {}",
                        mlx5::kMaxBlocks, shape.rq_entries);
  }
  if (shape.counters > kMostCounters) {
    return strait::fail(Code::invalid, "a device queue has at most {} counters, not {}", kMostCounters, shape.counters);
  }
  std::unique_ptr<DeviceQueue> queue(new DeviceQueue(nic, shape));
  STRAIT_CHECK(queue->create());
  return queue;
}

// Each record and word that one side writes and the other reads has a line of its own.
DeviceQueue::Layout DeviceQueue::lay_out() const {
  Layout at;
  std::size_t next = 0;
  const auto take = [&next](std::size_t bytes) {
    const std::size_t here = next;
    next = sys::round_up(next + bytes, kLine);
    return here;
  };
  at.sq = take(std::size_t{shape_.sq_blocks} * mlx5::kBlockBytes);
  at.send_cq = take(std::size_t{shape_.sq_blocks} * sizeof(mlx5::Cqe));
  at.rq = take(std::size_t{shape_.rq_entries} << kReceiveStrideLog2);
  at.receive_cq = take(std::size_t{std::max(shape_.rq_entries, 1u)} * sizeof(mlx5::Cqe));
  at.record = take(sizeof(mlx5::QueueRecord));
  at.send_cq_record = take(sizeof(mlx5::CqRecord));
  at.receive_cq_record = take(sizeof(mlx5::CqRecord));
  at.abort = take(sizeof(std::uint32_t));
  at.sink = take(sizeof(std::uint64_t));
  at.doorbell = take(sizeof(std::uint64_t));
  at.bytes = sys::round_up(next, sys::page_bytes());
  return at;
}

Status DeviceQueue::create_cq(std::uint32_t entries, std::size_t ring_at, std::size_t record_at, std::uint32_t& cqn) {
  auto* const ring = reinterpret_cast<mlx5::Cqe*>(memory_.data() + ring_at);
  for (std::uint32_t i = 0; i < entries; ++i) ring[i].op_own = mlx5::kCqeInvalid;
  strait_nic_cq_request request{};
  request.struct_size = sizeof request;
  request.entries = entries;
  request.cqe_bytes = sizeof(mlx5::Cqe);
  request.flags = STRAIT_NIC_CQ_IGNORE_OVERRUN;
  request.ring = ring;
  request.record = memory_.data() + record_at;
  STRAIT_TRY(cqn, nic_.create_cq(request));
  return {};
}

Status DeviceQueue::create() {
  at_ = lay_out();
  STRAIT_TRY(memory_, sys::map_anonymous(at_.bytes, sys::Protect::read_write));
  // After a fork one of the two processes would write to copies of pages that devices hold on to.
  sys::keep_from_children(memory_);
  MemoryRequest sink;
  sink.address = reinterpret_cast<std::uint64_t>(memory_.data() + at_.sink);
  sink.length_bytes = sizeof(std::uint64_t);
  sink.access = STRAIT_NIC_LOCAL_WRITE;
  STRAIT_TRY(sink_, nic_.register_memory(sink));

  STRAIT_CHECK(create_cq(shape_.sq_blocks, at_.send_cq, at_.send_cq_record, send_cqn_));
  has_send_cq_ = true;
  STRAIT_CHECK(create_cq(std::max(shape_.rq_entries, 1u), at_.receive_cq, at_.receive_cq_record, receive_cqn_));
  has_receive_cq_ = true;

  strait_nic_qp_request request{};
  request.struct_size = sizeof request;
  request.pd = nic_.pd();
  request.sq_blocks = shape_.sq_blocks;
  request.rq_entries = shape_.rq_entries;
  request.rq_stride_log2 = kReceiveStrideLog2;
  request.send_cqn = send_cqn_;
  request.recv_cqn = receive_cqn_;
  request.access = kRightsOfPeers;  // what a peer may do is decided region by region
  request.sq = memory_.data() + at_.sq;
  request.rq = shape_.rq_entries == 0 ? nullptr : memory_.data() + at_.rq;
  request.record = memory_.data() + at_.record;
  STRAIT_TRY(qp_, nic_.create_qp(request));
  has_qp_ = true;
  return {};
}

void DeviceQueue::close() {
  // Once: afterwards the NIC may be gone before this object. A forked child's copy has none.
  if (std::exchange(has_qp_, false) && nic_.handle() != nullptr)
    nic_.ops()->destroy_qp(nic_.handle(), qp_.qpn, nullptr);
  if (std::exchange(has_receive_cq_, false) && nic_.handle() != nullptr)
    nic_.ops()->destroy_cq(nic_.handle(), receive_cqn_, nullptr);
  if (std::exchange(has_send_cq_, false) && nic_.handle() != nullptr)
    nic_.ops()->destroy_cq(nic_.handle(), send_cqn_, nullptr);
  sink_.reset();
}

Status DeviceQueue::connect(const strait_nic_connect_request& request) const {
  return nic_.connect_qp(qp_.qpn, request);
}

void DeviceQueue::fail() const {
  if (has_qp_) nic_.ops()->fail_qp(nic_.handle(), qp_.qpn, nullptr);
}

std::string DeviceQueue::describe() const {
  return nic_.describe_qp(qp_.qpn);
}

void DeviceQueue::abort(bool raise) const {
  auto* const word = reinterpret_cast<std::uint32_t*>(memory_.data() + at_.abort);
  __atomic_store_n(word, raise ? 1u : 0u, __ATOMIC_RELEASE);
}

// The poster's order is WQE, record, doorbell: with its doorbell in hand the rest is there, for the NIC as well. The
// record tells two doorbells apart that are 65536 blocks from each other.
std::int32_t DeviceQueue::ring_for_posters() {
  if (!has_qp_) return 0;
  const std::lock_guard lock(passing_on_);
  const auto* const word = reinterpret_cast<const std::uint64_t*>(memory_.data() + at_.doorbell);
  const auto* const record = reinterpret_cast<const std::uint32_t*>(memory_.data() + at_.record);
  const std::uint64_t bell = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  const std::uint32_t shown = __atomic_load_n(record + 1, __ATOMIC_ACQUIRE);
  if (bell == 0 || (bell == passed_on_ && shown == shown_)) return 0;
  passed_on_ = bell;
  shown_ = shown;
  device::order_before_doorbell(device::Reach::system);
  device::store_doorbell(static_cast<std::uint64_t*>(qp_.doorbell), bell);
  device::order_after_doorbell(device::Reach::system);
  return 1;
}

std::size_t DeviceQueue::state_bytes() const {
  return StateLayout(shape_).bytes;
}

Status DeviceQueue::prepare_state(const PosterView& view, std::span<std::byte> image) const {
  const StateLayout state(shape_);
  device::QueueMemory memory;
  memory.sharing = shape_.sharing;
  memory.send.blocks = place<void>(view.rings, at_.sq);
  memory.send.log_blocks = log2_of_ring(shape_.sq_blocks);
  memory.send.qpn = qp_.qpn;
  memory.send.record = place<mlx5::QueueRecord>(view.rings, at_.record);
  memory.send.doorbell = relayed_ ? place<void>(view.rings, at_.doorbell) : place<void>(view.doorbell, 0);
  memory.send.marks = place<std::uint64_t>(view.state, state.send_marks);
  memory.sends.entries = place<void>(view.rings, at_.send_cq);
  memory.sends.log_entries = log2_of_ring(shape_.sq_blocks);
  if (shape_.rq_entries != 0) {
    memory.receive.entries = place<void>(view.rings, at_.rq);
    memory.receive.log_entries = log2_of_ring(shape_.rq_entries);
    memory.receive.log_stride = kReceiveStrideLog2;
    memory.receive.record = place<mlx5::QueueRecord>(view.rings, at_.record);
    memory.receive.marks = place<std::uint64_t>(view.state, state.receive_marks);
    memory.receives.entries = place<void>(view.rings, at_.receive_cq);
    memory.receives.log_entries = log2_of_ring(shape_.rq_entries);
  }
  if (shape_.counters != 0) {
    memory.counters = shape_.counters;
    memory.counter_words = place<device::CounterWords>(view.state, state.counter_words);
    memory.counter_of = place<std::uint32_t>(view.state, state.counter_of);
  }
  memory.abort = place<std::uint32_t>(view.rings, at_.abort);
  memory.sink_address = reinterpret_cast<std::uint64_t>(memory_.data() + at_.sink);  // the NIC's name for it
  memory.sink_lkey = sink_.lkey();
  device::QueueState opened{};
  if (image.size() != state.bytes || view.state % kLine != 0 || !device::open_queue(opened, memory)) {
    return strait::fail(Code::device, "{} made queue pair {:#x} with rings that no device can post to", nic_.name(),
                        qp_.qpn);
  }
  std::memset(image.data(), 0, image.size());
  std::memcpy(image.data(), &opened, sizeof opened);
  return {};
}

}  // namespace strait::rail
