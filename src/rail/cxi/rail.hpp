// SPDX-License-Identifier: Apache-2.0
// CxiRail: a CXI device with the objects that a Node makes on it, behind strait_nic_ops (plugin.cpp).
//
// Threads: any. One lock guards everything. Who drives and finds it taken leaves a note for the holder and goes on, so
// that posting never waits for somebody else's pass.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "rail/cxi/memory.hpp"
#include "rail/cxi/port.hpp"
#include "rail/cxi/queue.hpp"
#include "rail/proxy/completion_queues.hpp"
#include "rail/proxy/doorbells.hpp"
#include "strait/plugin.h"

namespace strait::rail::cxi {

class CxiRail {
 public:
  // "device=cxi0", "device=cxi0/10" on VNI 10, "device=soft1", "device=" for the first there is; behind a comma
  // "service=2" and "soft_library=PATH".
  [[nodiscard]] static Result<std::unique_ptr<CxiRail>> open(const std::string& config);
  [[nodiscard]] static Result<std::unique_ptr<CxiRail>> open(std::unique_ptr<Port> port);
  CxiRail(const CxiRail&) = delete;
  CxiRail& operator=(const CxiRail&) = delete;
  ~CxiRail();

  [[nodiscard]] strait_nic_info info() const;
  [[nodiscard]] strait_nic_address address() const { return port_->address().bytes(); }

  [[nodiscard]] Result<std::uint32_t> alloc_pd();
  [[nodiscard]] Status free_pd(std::uint32_t pd);
  [[nodiscard]] Result<strait_nic_mr> register_memory(const strait_nic_mr_request& request);
  [[nodiscard]] Status deregister_memory(std::uint32_t lkey);
  [[nodiscard]] Result<std::string> describe_memory(std::uint32_t lkey);
  [[nodiscard]] Result<std::uint32_t> registered_by(std::uint32_t lkey);
  [[nodiscard]] bool requirement(std::uint32_t index, strait_requirement& out) const {
    return memory_.requirement(index, out);
  }
  [[nodiscard]] Result<std::uint32_t> create_cq(const strait_nic_cq_request& request);
  [[nodiscard]] Status destroy_cq(std::uint32_t cqn);
  [[nodiscard]] Result<strait_nic_qp> create_qp(const strait_nic_qp_request& request);
  [[nodiscard]] Status connect_qp(std::uint32_t qpn, const strait_nic_connect_request& request);
  [[nodiscard]] Status fail_qp(std::uint32_t qpn);
  [[nodiscard]] Status destroy_qp(std::uint32_t qpn);
  [[nodiscard]] Result<std::string> describe_qp(std::uint32_t qpn);

  int drive(std::uint32_t qpn_hint);
  [[nodiscard]] bool arm();
  [[nodiscard]] int event_fd() const { return port_->event_fd(); }
  [[nodiscard]] std::string counters();

 private:
  explicit CxiRail(std::unique_ptr<Port> port) : port_(std::move(port)), memory_(*port_) {}
  [[nodiscard]] Result<std::uint32_t*> find_pd(std::uint32_t pd);
  [[nodiscard]] Result<QueuePair*> find_qp(std::uint32_t qpn);
  void dispatch(const Event& event);
  void note(QueuePair* queue);
  int serve_noted();
  int pass(std::uint32_t qpn_hint);

  std::unique_ptr<Port> port_;
  std::mutex mutex_;
  std::atomic<bool> note_{false};
  std::uint64_t passes_ = 0;
  std::uint32_t next_pd_ = 1;
  std::uint32_t next_serial_ = 1;
  QueueCounts counts_;
  std::map<std::uint32_t, std::uint32_t> domains_;  // how many objects belong to each
  Registrations memory_;
  proxy::Doorbells doorbells_;
  proxy::CompletionQueues completions_;
  std::unordered_map<std::uint32_t, std::unique_ptr<QueuePair>> queues_;  // they go first
  std::unordered_map<std::uint32_t, QueuePair*> by_serial_;
  std::vector<QueuePair*> noted_;
};

}  // namespace strait::rail::cxi
