// SPDX-License-Identifier: Apache-2.0
// What moves through a ProxyQueue: ring -> ibv_post_send, ibv_poll_cq -> completion ring.
#include <algorithm>
#include <array>
#include <cerrno>

#include "rail/verbs/queue.hpp"
#include "rail/verbs/syndrome.hpp"

namespace strait::rail::verbs {
namespace m = wire::mlx5;
using proxy::kMaxParts;
using proxy::kTooLong;
using proxy::Part;
using proxy::read_receive;
using proxy::read_send;

namespace {

constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;  // in wr_id; the rest is the entry's number
constexpr std::uint32_t kLongest = 1u << 30;
constexpr int kPollBatch = 16;
constexpr int kMostPolls = 8;
constexpr std::uint8_t kVendorMalformed = 0x90;

std::uint64_t behind(std::uint64_t from, std::uint32_t word_raw) {
  const auto low = static_cast<std::uint16_t>(wire::be32::from_raw(word_raw).value());
  return static_cast<std::uint16_t>(low - static_cast<std::uint16_t>(from));
}

ibv_wr_opcode verbs_opcode(m::Opcode opcode, bool last) {
  switch (opcode) {
    case m::Opcode::send: return IBV_WR_SEND;
    case m::Opcode::send_imm: return IBV_WR_SEND_WITH_IMM;
    case m::Opcode::send_inval: return IBV_WR_SEND_WITH_INV;
    case m::Opcode::rdma_write_imm: return last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    case m::Opcode::rdma_read: return IBV_WR_RDMA_READ;
    case m::Opcode::atomic_cs: return IBV_WR_ATOMIC_CMP_AND_SWP;
    case m::Opcode::atomic_fa: return IBV_WR_ATOMIC_FETCH_AND_ADD;
    default: return IBV_WR_RDMA_WRITE;
  }
}

bool is_atomic(m::Opcode opcode) {
  return opcode == m::Opcode::atomic_cs || opcode == m::Opcode::atomic_fa;
}
bool can_be_cut(m::Opcode opcode) {
  return opcode == m::Opcode::rdma_write || opcode == m::Opcode::rdma_write_imm || opcode == m::Opcode::rdma_read;
}

}  // namespace

// The record is what counts; the doorbell register only says when to look, and drive() said so already.
bool ProxyQueue::published() {
  const std::uint64_t ahead = behind(producer_, __atomic_load_n(&record_[1], __ATOMIC_ACQUIRE));
  if (ahead != 0 && ahead + (producer_ - next_) <= sq_blocks_) producer_ += ahead;  // else a jump that cannot be true
  const bool sends = next_ != producer_ &&
                     (state_ == State::error || (state_ == State::ready && !stopped_ && on_device_ < max_on_device_));
  const std::uint64_t waiting =
      rq_entries_ == 0 ? 0 : behind(receive_next_, __atomic_load_n(&record_[0], __ATOMIC_ACQUIRE));
  return sends || waiting != 0;
}

int ProxyQueue::service() {
  int done = poll();
  if (published()) {
    done += post_receives();
    done += state_ == State::error ? flush_unread() : post_sends();
    advance();  // a NOP is done as soon as it is the oldest
  }
  return done;
}

int ProxyQueue::post_receives() {
  if (rq_entries_ == 0 || state_ == State::error) return 0;
  int done = 0;
  Work work;
  std::array<ibv_sge, m::kMaxSegments> list;
  while (behind(receive_next_, __atomic_load_n(&record_[0], __ATOMIC_ACQUIRE)) != 0) {
    if (receive_next_ - receive_done_ >= rq_entries_) break;
    const char* const fault = read_receive(rq_, receive_next_, rq_stride_bytes_, work);
    ibv_recv_wr request{};
    request.wr_id = kReceiveBit | receive_next_;
    request.sg_list = list.data();
    request.num_sge = static_cast<int>(work.count);
    for (std::size_t i = 0; i < work.count; ++i)
      list[i] = {.addr = work.parts[i].address, .length = work.parts[i].length_bytes, .lkey = work.parts[i].lkey};
    ibv_recv_wr* bad = nullptr;
    if (fault != nullptr || ibv_post_recv(qp_.get(), &request, &bad) != 0) {
      break_down();  // hardware does the same when it meets a receive it cannot read
      break;
    }
    ++receive_next_;
    ++counts_.receives;
    ++done;
  }
  return done;
}

int ProxyQueue::post_sends() {
  int done = 0;
  Work work;
  while (state_ == State::ready && !stopped_ && next_ != producer_) {
    const auto published_blocks = static_cast<std::uint32_t>(producer_ - next_);
    if (const char* fault = read_send(sq_, next_, published_blocks, qpn(), work); fault != nullptr) {
      push_fault(work, fault == kTooLong ? m::Syndrome::local_length : m::Syndrome::local_qp_operation,
                 kVendorMalformed);
      return done + 1;
    }
    const Step step = post_work(work);
    if (step == Step::full) return done;
    if (step == Step::refused) return done + 1;
    next_ += work.blocks;
    begun_bytes_ = 0;
    ++counts_.work_requests;
    ++done;
  }
  return done;
}

void ProxyQueue::push_fault(const Work& work, m::Syndrome syndrome, std::uint8_t vendor) {
  Posted entry;
  entry.index = next_;
  entry.opcode = work.opcode;
  entry.bytes = work.total_bytes;
  entry.done = true;
  entry.fault = syndrome;
  entry.vendor = vendor;
  posted_.push_back(entry);
  next_ += work.blocks;
  begun_bytes_ = 0;
  stopped_ = true;
}

ProxyQueue::Step ProxyQueue::post_work(const Work& work) {
  if (work.opcode == m::Opcode::nop) {
    Posted entry;
    entry.index = next_;
    entry.signaled = work.signaled || all_signaled_;
    entry.done = true;
    posted_.push_back(entry);
    return Step::done;
  }
  const std::uint32_t longest =
      port_.max_message_bytes() == 0 ? kLongest : std::min(port_.max_message_bytes(), kLongest);
  if (!can_be_cut(work.opcode) && work.total_bytes > longest) {
    push_fault(work, m::Syndrome::local_length, 0);
    return Step::refused;
  }
  do {
    if (on_device_ >= max_on_device_) return Step::full;
    std::uint32_t length = std::min(work.total_bytes - begun_bytes_, longest);
    if (can_be_cut(work.opcode) && work.count > max_parts_) {
      // One part at a time: rare, and always possible.
      std::uint32_t at = begun_bytes_;
      for (const Part& part : work.used()) {
        if (at < part.length_bytes) {
          length = std::min(length, part.length_bytes - at);
          break;
        }
        at -= part.length_bytes;
      }
    }
    const bool last = begun_bytes_ + length == work.total_bytes;
    const int error = post_piece(work, begun_bytes_, length, last);
    if (error == ENOMEM && on_device_ != 0) return Step::full;
    if (error != 0) {
      push_fault(work, m::Syndrome::local_qp_operation, static_cast<std::uint8_t>(error));
      return Step::refused;
    }
    begun_bytes_ += length;
  } while (begun_bytes_ != work.total_bytes);
  return Step::done;
}

// [offset, offset + length) of the work request's bytes as one request of the device.
int ProxyQueue::post_piece(const Work& work, std::uint32_t offset, std::uint32_t length_bytes, bool last) {
  std::array<ibv_sge, kMaxParts> list;
  int count = 0;
  std::uint32_t skip = offset;
  std::uint32_t left = length_bytes;
  for (const Part& part : work.used()) {
    if (left == 0) break;
    if (skip >= part.length_bytes) {
      skip -= part.length_bytes;
      continue;
    }
    const std::uint32_t n = std::min(left, part.length_bytes - skip);
    list[static_cast<std::size_t>(count++)] = {
        .addr = part.address + skip, .length = n, .lkey = part.in_ring ? ring_region_->lkey : part.lkey};
    left -= n;
    skip = 0;
  }
  if (static_cast<std::uint32_t>(count) > max_parts_) return EINVAL;
  ibv_send_wr request{};
  request.wr_id = first_ + posted_.size();
  request.sg_list = list.data();
  request.num_sge = count;
  request.opcode = verbs_opcode(work.opcode, last);
  request.send_flags = IBV_SEND_SIGNALED;
  if (work.fence && offset == 0) request.send_flags |= IBV_SEND_FENCE;
  if (work.solicited && last) request.send_flags |= IBV_SEND_SOLICITED;
  // Both sides of this word are opaque bytes in network order, as the ring has them; a key to invalidate is a number.
  if (work.opcode == m::Opcode::send_inval) {
    request.invalidate_rkey = wire::be32::from_raw(work.imm_raw).value();
  } else {
    request.imm_data = work.imm_raw;
  }
  if (is_atomic(work.opcode)) {
    request.wr.atomic.remote_addr = work.remote_address;
    request.wr.atomic.rkey = work.rkey;
    request.wr.atomic.compare_add = work.opcode == m::Opcode::atomic_cs ? work.compare : work.operand;
    request.wr.atomic.swap = work.operand;
  } else {
    request.wr.rdma.remote_addr = work.remote_address + offset;
    request.wr.rdma.rkey = work.rkey;
  }
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_.get(), &request, &bad); error != 0) return error < 0 ? -error : error;
  Posted entry;
  entry.index = next_;
  entry.opcode = work.opcode;
  entry.bytes = work.total_bytes;
  entry.on_device = true;
  entry.signaled = work.signaled || all_signaled_;
  entry.last = last;
  posted_.push_back(entry);
  ++on_device_;
  ++counts_.posted;
  return 0;
}

int ProxyQueue::poll() {
  std::array<ibv_wc, kPollBatch> got;
  int done = 0;
  for (int turn = 0; turn < kMostPolls; ++turn) {
    const int count = ibv_poll_cq(cq_.get(), kPollBatch, got.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = got[static_cast<std::size_t>(i)];
      // The first that failed: what the device has to say about it comes before it is told.
      if (completion.status != IBV_WC_SUCCESS && state_ == State::ready) (void)events_.take();
      if ((completion.wr_id & kReceiveBit) != 0) {
        on_receive(completion);
      } else {
        on_send(completion);
      }
    }
    if (count > 0) done += count;
    if (count < kPollBatch) break;
  }
  if (done != 0) advance();
  return done;
}

void ProxyQueue::on_send(const ibv_wc& completion) {
  if (completion.wr_id < first_ || completion.wr_id - first_ >= posted_.size()) return;  // flushed without it before
  Posted& entry = posted_[completion.wr_id - first_];
  if (entry.done || !entry.on_device) return;
  --on_device_;
  entry.done = true;
  entry.fault = syndrome_of(completion.status);
  entry.vendor = static_cast<std::uint8_t>(completion.vendor_err != 0 ? completion.vendor_err
                                                                      : static_cast<std::uint32_t>(completion.status));
}

// In order: the oldest decides.
void ProxyQueue::advance() {
  while (!posted_.empty() && posted_.front().done) {
    const Posted entry = posted_.front();
    posted_.pop_front();
    ++first_;
    if (entry.index == failed_index_) continue;  // one completion for a work request, however many its pieces
    if (entry.fault == m::Syndrome::none) {
      if (entry.last && entry.signaled) {
        // In error everything that did not reach the peer is flushed, and a NOP reaches nobody.
        const bool nop_in_error = !entry.on_device && state_ == State::error;
        complete(entry, nop_in_error ? m::Syndrome::flushed : m::Syndrome::none, 0);
      }
      continue;
    }
    complete(entry, entry.fault, entry.vendor);
    failed_index_ = entry.index;
    break_down();
  }
  if (!posted_.empty()) return;
  for (; held_receives_ != 0; --held_receives_) flush_receive();
  if (state_ == State::error) (void)flush_unread();
}

void ProxyQueue::flush_receive() {
  Entry entry;
  entry.opcode = m::CqeOpcode::responder_error;
  entry.syndrome = m::Syndrome::flushed;
  complete_receive(entry);
}

int ProxyQueue::flush_unread() {
  if (state_ != State::error || !posted_.empty()) return 0;  // what the device holds comes first
  int done = 0;
  Work work;
  while (next_ != producer_) {
    (void)read_send(sq_, next_, static_cast<std::uint32_t>(producer_ - next_), qpn(), work);
    if (next_ != failed_index_) {
      Posted entry;
      entry.index = next_;
      entry.opcode = work.opcode;
      complete(entry, m::Syndrome::flushed, 0);
    }
    begun_bytes_ = 0;
    next_ += work.blocks;
    ++done;
  }
  // Receives that the device never saw, after those it has.
  if (receive_done_ == receive_next_ && rq_entries_ != 0) {
    while (behind(receive_next_, __atomic_load_n(&record_[0], __ATOMIC_ACQUIRE)) != 0) {
      ++receive_next_;
      flush_receive();
      ++done;
    }
  }
  return done;
}

void ProxyQueue::complete(const Posted& entry, m::Syndrome syndrome, std::uint8_t vendor) {
  Entry out;
  out.opcode = syndrome == m::Syndrome::none ? m::CqeOpcode::requester : m::CqeOpcode::requester_error;
  out.send_opcode = entry.opcode;
  out.wqe_counter = static_cast<std::uint16_t>(entry.index);
  out.byte_count = entry.bytes;
  out.syndrome = syndrome;
  out.vendor = syndrome == m::Syndrome::none ? std::uint8_t{0} : vendor;
  write(sends_, out);
}

void ProxyQueue::on_receive(const ibv_wc& completion) {
  if ((completion.wr_id & ~kReceiveBit) < receive_done_) return;  // flushed without it before
  Entry out;
  out.syndrome = syndrome_of(completion.status);
  if (out.syndrome == m::Syndrome::flushed && !posted_.empty()) {
    // The device may flush receives before it says which request failed. That one is what the program wants to hear
    // first, so these wait for it.
    ++held_receives_;
    return;
  }
  if (out.syndrome != m::Syndrome::none) {
    out.opcode = m::CqeOpcode::responder_error;
    out.vendor = static_cast<std::uint8_t>(completion.vendor_err);
    complete_receive(out);
    if (out.syndrome != m::Syndrome::flushed) break_down();
    return;
  }
  const bool immediate = (completion.wc_flags & IBV_WC_WITH_IMM) != 0;
  out.byte_count = completion.byte_len;
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    out.opcode = m::CqeOpcode::responder_write_imm;
  } else if (immediate) {
    out.opcode = m::CqeOpcode::responder_send_imm;
  } else if ((completion.wc_flags & IBV_WC_WITH_INV) != 0) {
    out.opcode = m::CqeOpcode::responder_send_inval;
    out.imm_raw = wire::be32{completion.invalidated_rkey}.raw();
  } else {
    out.opcode = m::CqeOpcode::responder_send;
  }
  if (immediate) out.imm_raw = completion.imm_data;
  complete_receive(out);
}

void ProxyQueue::complete_receive(Entry entry) {
  entry.wqe_counter = static_cast<std::uint16_t>(receive_done_++);
  write(receives_, entry);
}

void ProxyQueue::write(CompletionWriter& to, const Entry& entry) {
  Entry whole = entry;
  whole.qpn = qpn();
  whole.user_index = user_index_;
  if (entry.syndrome != m::Syndrome::none) {
    if (const std::uint8_t why = events_.why(qpn(), entry.syndrome); why != 0) whole.vendor = why;
  }
  ++counts_.completions;
  if (entry.syndrome == m::Syndrome::flushed) {
    ++counts_.flushed;
  } else if (entry.syndrome != m::Syndrome::none) {
    ++counts_.error_completions;
  }
  if (!to.write(whole)) ++counts_.overruns;
}

}  // namespace strait::rail::verbs
