// SPDX-License-Identifier: Apache-2.0
// VerbsRail: a verbs device with the objects that a Node makes on it, behind strait_nic_ops (plugin.cpp).
//
// Threads: any. One lock guards everything. Who drives and finds it taken leaves a note for the holder and goes on, as
// the software NIC does, so that posting never waits for somebody else's pass.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "rail/proxy/completion_queues.hpp"
#include "rail/proxy/doorbells.hpp"
#include "rail/verbs/events.hpp"
#include "rail/verbs/memory.hpp"
#include "rail/verbs/port.hpp"
#include "rail/verbs/queue.hpp"
#include "strait/plugin.h"
#include "sys/event_set.hpp"
#include "sys/fork.hpp"

namespace strait::rail::verbs {

class VerbsRail {
 public:
  // "device=rxe0", "device=rxe0/3", "device=" for the first there is. "max_message=4096" behind a comma: cut at that
  // length, although the device would take more (for tests).
  [[nodiscard]] static Result<std::unique_ptr<VerbsRail>> open(const std::string& config);
  VerbsRail(const VerbsRail&) = delete;
  VerbsRail& operator=(const VerbsRail&) = delete;

  [[nodiscard]] strait_nic_info info() const;
  [[nodiscard]] strait_nic_address address() const { return port_.address().bytes(); }

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
  [[nodiscard]] int event_fd() const { return wakers_.fd(); }
  [[nodiscard]] std::string counters();

 private:
  struct Domain {
    Owner<ibv_pd, ibv_dealloc_pd> domain;
    std::uint32_t users = 0;
  };
  explicit VerbsRail(Port port) : port_(std::move(port)), events_(port_.context(), port_.name(), kPortNumber) {}
  [[nodiscard]] Result<Domain*> find_pd(std::uint32_t pd);
  [[nodiscard]] Result<ProxyQueue*> find_qp(std::uint32_t qpn);
  int pass(std::uint32_t qpn_hint);
  void take_events();
  void take_device_events();
  [[nodiscard]] Status refuse_if_gone();

  const Port port_;
  const sys::ForkMark mark_;
  Owner<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
  sys::EventSet wakers_;  // completions, and what the device says by itself
  std::mutex mutex_;
  DeviceEvents events_;
  bool deaf_ = false;  // to a device that is gone
  std::atomic<bool> note_{false};
  std::uint64_t passes_ = 0;
  std::uint32_t next_pd_ = 1;
  ProxyCounts counts_;
  std::map<std::uint32_t, Domain> domains_;
  Memory memory_;
  proxy::Doorbells doorbells_;
  proxy::CompletionQueues completions_;
  std::unordered_map<std::uint32_t, std::unique_ptr<ProxyQueue>> queues_;  // they go first
};

}  // namespace strait::rail::verbs
