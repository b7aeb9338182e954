// SPDX-License-Identifier: Apache-2.0
// A QueuePair's life, and what it completes.
#include "rail/cxi/queue.hpp"

#include <algorithm>

#include "sys/pause.hpp"

namespace strait::rail::cxi {
namespace m = wire::mlx5;

namespace {
constexpr std::int64_t kFlushWaitNs = 2'000'000'000;
}

QueuePair::QueuePair(Port& port, Registrations& memory, std::uint32_t serial, const strait_nic_qp_request& request,
                     proxy::CompletionWriter& sends, proxy::CompletionWriter& receives, QueueCounts& counts)
    : port_(port),
      memory_(memory),
      counts_(counts),
      sends_(sends),
      receives_(receives),
      serial_(serial),
      pd_(request.pd),
      user_index_(request.user_index),
      all_signaled_(request.all_signaled != 0),
      sq_(request.sq, std::uint64_t{request.sq_blocks} * m::kBlockBytes),
      sq_blocks_(request.sq_blocks),
      rq_(request.rq, std::uint64_t{request.rq_entries} << request.rq_stride_log2),
      rq_entries_(request.rq_entries),
      rq_stride_bytes_(request.rq_entries == 0 ? 0 : 1u << request.rq_stride_log2),
      record_(static_cast<const std::uint32_t*>(request.record)) {}

Result<std::unique_ptr<QueuePair>> QueuePair::make(Port& port, Registrations& memory, std::uint32_t serial,
                                                   const strait_nic_qp_request& request, proxy::CompletionWriter& sends,
                                                   proxy::CompletionWriter& receives, QueueCounts& counts) {
  std::unique_ptr<QueuePair> queue(new QueuePair(port, memory, serial, request, sends, receives, counts));
  STRAIT_CHECK(queue->create(request));
  return queue;
}

Status QueuePair::create(const strait_nic_qp_request& request) {
  STRAIT_TRY(scratch_, sys::map_anonymous(sys::page_bytes(), sys::Protect::read_write));
  STRAIT_TRY(scratch_memory_, Memory::make(port_.lni(), {.address = reinterpret_cast<std::uintptr_t>(scratch_.data()),
                                                         .bytes = scratch_.size(),
                                                         .flags = w::kMapRead | w::kMapWrite}));
  STRAIT_TRY(ring_memory_, Memory::make(port_.lni(), {.address = reinterpret_cast<std::uintptr_t>(request.sq),
                                                      .bytes = sq_.bytes(),
                                                      .flags = w::kMapRead}));
  STRAIT_TRY(const std::uint32_t place, port_.take_place());
  // 24 bits: the place in the directory, and some of how often it was used.
  qpn_ = place | (port_.next_generation(place) & ((1u << (24 - kPlaceBits)) - 1)) << kPlaceBits;
  port_.publish(place, {kQueueEntry | qpn_, 1});
  ++sends_.users;
  ++receives_.users;
  return {};
}

QueuePair::~QueuePair() {
  if (qpn_ == 0) return;
  if (!port_.device().in_child()) fail();
  port_.give_place(place_of(qpn_));
  for (const Receive& receive : posted_) port_.give_receive_id(receive.id);
  for (const Receive& receive : consumed_) port_.give_receive_id(receive.id);
  --sends_.users;
  --receives_.users;
}

Status QueuePair::connect(const strait_nic_connect_request& request) {
  if (state_ != State::made) return strait::fail(Code::invalid, "queue pair {:#x} was connected before", qpn_);
  STRAIT_TRY(remote_, Address::parse(request.remote));
  if (remote_.vni != port_.address().vni)
    return with_remedy(strait::fail(Code::unsupported, "the other end is on VNI {}, {} on VNI {}: they cannot meet",
                                    remote_.vni, port_.device().name(), port_.address().vni),
                       "start both in the same job, or name the network: nics=cxi:NAME/VNI");
  remote_qpn_ = request.remote_qpn;
  to_memory_ = port_.way(remote_, kMemoryIndex);
  to_messages_ = port_.way(remote_, kMessageIndex);
  constexpr std::int64_t kLongest = 3'600'000'000'000;
  patience_ns_ = std::clamp<std::int64_t>(request.ack_timeout_ns, 1'000'000, kLongest / 8) *
                 (std::int64_t{std::min(request.retries, 7u)} + 1);
  rnr_retries_ = request.rnr_retries;
  rnr_wait_ns_ = std::clamp<std::int64_t>(request.rnr_wait_ns, 10'000, 1'000'000'000);
  state_ = State::ready;
  return {};
}

std::string QueuePair::describe() const {
  const char* const kind = port_.device().software() ? "software Cassini" : "Cassini";
  if (state_ == State::made) return fmt::format("cxi {}, {}, not connected", port_.device().name(), kind);
  return fmt::format("cxi {}, {}, {} to {} queue pair {:#x}, VNI {}, rings read by the CPU", port_.device().name(),
                     kind, port_.address().text(), remote_.text(), remote_qpn_, remote_.vni);
}

int QueuePair::service() {
  look_at_record();
  int done = 0;
  if (state_ == State::ready) {
    done += post_receives();
    done += drive_message();
    drive_doubt();
    done += post_sends();
    if (outstanding_ != 0 || message_.at != Message::At::none || lookup_.at == Lookup::At::asked) check_time();
  }
  advance();  // what reaches nobody is done as soon as it is the oldest
  if (state_ == State::error) done += flush_unread();
  return done;
}

// In order: the oldest decides.
void QueuePair::advance() {
  while (!begun_.empty()) {
    const Begun& front = begun_.front();
    const bool last = begun_.size() == 1;
    if (front.outstanding != 0) break;
    if (front.fault == m::Syndrome::none && !front.emitted && state_ != State::error) break;
    const Begun entry = front;
    begun_.pop_front();
    ++first_;
    if (last) in_work_ = false;
    if (state_ == State::error) {
      // What was on its way when something before it failed may have arrived, and nobody knows.
      complete(entry, m::Syndrome::flushed, 0);
    } else if (entry.fault != m::Syndrome::none) {
      complete(entry, entry.fault, entry.vendor);
      break_down();
    } else if (entry.signaled) {
      complete(entry, m::Syndrome::none, 0);
    }
  }
  if (state_ == State::error && begun_.empty()) (void)flush_receives();
}

void QueuePair::complete(const Begun& entry, m::Syndrome syndrome, std::uint8_t vendor) {
  proxy::Entry out;
  out.opcode = syndrome == m::Syndrome::none ? m::CqeOpcode::requester : m::CqeOpcode::requester_error;
  out.send_opcode = entry.opcode;
  out.wqe_counter = static_cast<std::uint16_t>(entry.index);
  out.byte_count = entry.bytes;
  out.syndrome = syndrome;
  out.vendor = vendor;
  write(sends_, out);
}

void QueuePair::write(proxy::CompletionWriter& to, const proxy::Entry& entry) {
  proxy::Entry whole = entry;
  whole.qpn = qpn_;
  whole.user_index = user_index_;
  ++counts_.completions;
  if (entry.syndrome == m::Syndrome::flushed) {
    ++counts_.flushed;
  } else if (entry.syndrome != m::Syndrome::none) {
    ++counts_.error_completions;
  }
  if (!to.write(whole)) ++counts_.overruns;
}

// Peers that ask see that no message is taken here any more.
void QueuePair::break_down() {
  if (state_ == State::error) return;
  state_ = State::error;
  const bool on_its_way = message_.at == Message::At::sent || message_.at == Message::At::probing;
  if (message_.at != Message::At::none && !on_its_way && !begun_.empty()) {
    message_.at = Message::At::none;  // nobody will answer it
    --begun_.back().outstanding;
    --outstanding_;
  }
  if (Begun* const entry = doubt_.at == Doubt::At::to_ask ? find(doubt_.number) : nullptr; entry != nullptr) {
    --entry->outstanding;
    --outstanding_;
  }
  if (doubt_.at == Doubt::At::to_ask) doubt_.at = Doubt::At::none;
  port_.publish(place_of(qpn_), {kQueueEntry | qpn_, 0});
  unlink_receives();
}

int QueuePair::flush_unread() {
  if (!begun_.empty()) return 0;  // what was begun comes first
  int done = 0;
  proxy::Work work;
  while (next_ != producer_) {
    (void)proxy::read_send(sq_, next_, static_cast<std::uint32_t>(producer_ - next_), qpn_, work,
                           proxy::Masked::understood);
    Begun entry;
    entry.index = next_;
    entry.opcode = work.opcode;
    complete(entry, m::Syndrome::flushed, 0);
    next_ += work.blocks;
    ++done;
  }
  return done + flush_receives();
}

void QueuePair::fail() {
  break_down();
  // Commands cannot be taken back: memory is the caller's again only when all of them have been answered.
  (void)port_.await(sys::Deadline::after_ns(kFlushWaitNs),
                    [&] { return outstanding_ == 0 && std::ranges::all_of(posted_, &Receive::unlinked); });
  for (Begun& entry : begun_) entry.outstanding = 0;
  outstanding_ = 0;
  message_.at = Message::At::none;
  lookup_.at = Lookup::At::none;
  doubt_.at = Doubt::At::none;
  for (Receive& receive : posted_) receive.unlinked = true;
  look_at_record();
  advance();
  (void)flush_unread();
}

bool QueuePair::idle() {
  look_at_record();
  if (state_ == State::error) return next_ == producer_;
  if (state_ == State::made) return true;
  if (lookup_.at == Lookup::At::failed || message_.at == Message::At::to_emit || message_.at == Message::At::to_probe ||
      doubt_.at == Doubt::At::to_ask)
    return false;
  if (in_work_ || next_ != producer_) {
    // Something is to be done, unless it waits for an answer, whose event will wake.
    return outstanding_ != 0 || lookup_.at == Lookup::At::asked || message_.at == Message::At::waiting;
  }
  return true;
}

std::int64_t QueuePair::due_ns() const {
  if (state_ != State::ready) return INT64_MAX;
  if (message_.at == Message::At::waiting) return message_.until_ns;
  if (outstanding_ != 0 || lookup_.at == Lookup::At::asked)
    return (answered_ns_ == 0 ? sys::now_ns() : answered_ns_) + patience_ns_ +
           static_cast<std::int64_t>(outstanding_bytes_ * 10);
  return INT64_MAX;
}

}  // namespace strait::rail::cxi
