// SPDX-License-Identifier: Apache-2.0
// ProxyQueue: a verbs queue pair behind mlx5 rings. The CPU does what a ConnectX would: reads work requests out of the
// caller's ring, posts them, and writes the completions back.
//
// One work request may become several on the device (a write longer than the device's longest message) or none (a NOP).
// Everything is posted signaled, so that the order of completions is known here; the caller sees those it asked for.
// Used under the rail's lock.
//
//   ring    ... next_ ... producer_            blocks: read, published
//   posted_ front = oldest                     on the device, or waiting for what is
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "rail/proxy/cqe.hpp"
#include "rail/proxy/wqe.hpp"
#include "rail/verbs/events.hpp"
#include "rail/verbs/port.hpp"
#include "strait/plugin.h"
#include "sys/clock.hpp"

namespace strait::rail::verbs {

using proxy::CompletionWriter;
using proxy::Entry;
using proxy::Ring;
using proxy::Work;

struct ProxyCounts {
  std::uint64_t work_requests = 0, posted = 0, receives = 0, completions = 0, error_completions = 0, flushed = 0,
                overruns = 0, events = 0;
};

class ProxyQueue {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ProxyQueue>> make(const Port& port, ibv_pd* domain,
                                                                ibv_comp_channel* channel,
                                                                const strait_nic_qp_request& request,
                                                                CompletionWriter& sends, CompletionWriter& receives,
                                                                ProxyCounts& counts, DeviceEvents& events);
  ProxyQueue(const ProxyQueue&) = delete;
  ProxyQueue& operator=(const ProxyQueue&) = delete;
  ~ProxyQueue();

  [[nodiscard]] Status connect(const strait_nic_connect_request& request);
  // To the error state: everything outstanding completes as flushed before this returns. Again: what was
  // published since.
  void fail();
  // Posts what was published and completes what the device has done. How much that was.
  int service();
  // Asks for an event when the device completes something. False: there is something to do now.
  [[nodiscard]] bool arm();
  void on_event();  // its completion queue was named by the channel

  [[nodiscard]] std::uint32_t qpn() const { return qp_->qp_num; }
  [[nodiscard]] std::uint32_t pd() const { return pd_; }
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] CompletionWriter& send_writer() { return sends_; }
  [[nodiscard]] CompletionWriter& receive_writer() { return receives_; }

 private:
  enum class State { made, ready, error };
  struct Posted {
    std::uint64_t index = 0;  // of the work request in the ring, in blocks
    wire::mlx5::Opcode opcode = wire::mlx5::Opcode::nop;
    std::uint32_t bytes = 0;
    bool on_device = false;
    bool signaled = false;
    bool last = true;  // of the work request
    bool done = false;
    wire::mlx5::Syndrome fault = wire::mlx5::Syndrome::none;
    std::uint8_t vendor = 0;
  };

  ProxyQueue(const Port& port, const strait_nic_qp_request& request, CompletionWriter& sends,
             CompletionWriter& receives, ProxyCounts& counts, DeviceEvents& events);
  [[nodiscard]] Status create(ibv_pd* domain, ibv_comp_channel* channel, const strait_nic_qp_request& request);
  [[nodiscard]] Status modify(ibv_qp_attr& attributes, int mask, const char* to);
  [[nodiscard]] bool published();
  int post_sends();
  int post_receives();
  enum class Step { done, full, refused };
  [[nodiscard]] Step post_work(const Work& work);
  [[nodiscard]] int post_piece(const Work& work, std::uint32_t offset, std::uint32_t length_bytes, bool last);
  void push_fault(const Work& work, wire::mlx5::Syndrome syndrome, std::uint8_t vendor);
  int poll();
  void on_send(const ibv_wc& completion);
  void on_receive(const ibv_wc& completion);
  void advance();
  void complete(const Posted& entry, wire::mlx5::Syndrome syndrome, std::uint8_t vendor);
  void complete_receive(Entry entry);
  void flush_receive();
  void write(CompletionWriter& to, const Entry& entry);
  void break_down();   // the device's queue pair is in error, or must be
  int flush_unread();  // in error: what is published is flushed without the device

  const Port& port_;
  ProxyCounts& counts_;
  DeviceEvents& events_;
  CompletionWriter& sends_;
  CompletionWriter& receives_;
  const std::uint32_t pd_;
  const std::uint32_t user_index_;
  const bool all_signaled_;
  const std::uint32_t access_;
  const Ring sq_;
  const std::uint32_t sq_blocks_;
  const Ring rq_;
  const std::uint32_t rq_entries_;
  const std::uint32_t rq_stride_bytes_;
  const std::uint32_t* record_;  // be32: receive, send

  State state_ = State::made;
  bool armed_ = false;
  bool stopped_ = false;  // a work request could not be posted: nothing behind it is, until it has failed
  std::uint64_t next_ = 0, producer_ = 0;
  std::uint32_t begun_bytes_ = 0;            // of the work request at next_: already posted
  std::uint64_t failed_index_ = UINT64_MAX;  // the work request that failed last
  std::uint64_t first_ = 0;                  // number of posted_.front()
  std::deque<Posted> posted_;
  std::uint32_t on_device_ = 0;
  std::uint32_t max_on_device_ = 0;
  std::uint32_t max_parts_ = 0;
  std::uint64_t receive_next_ = 0, receive_done_ = 0;  // entries handed to the device, and back
  std::uint32_t held_receives_ = 0;                    // flushed by the device, and not told yet
  Address remote_;
  std::uint32_t remote_qpn_ = 0;
  std::uint8_t path_mtu_ = 0;

  Owner<ibv_mr, ibv_dereg_mr> ring_region_;  // inline payloads are read where they lie
  Owner<ibv_cq, ibv_destroy_cq> cq_;
  Owner<ibv_qp, ibv_destroy_qp> qp_;
};

}  // namespace strait::rail::verbs
