// SPDX-License-Identifier: Apache-2.0
// Nic: a NIC with mlx5 rings, opened through a plug-in's operation table, with the one protection domain strait uses.
//
// Threads: any. Everything made from a Nic (MemoryKey, Queue) must be gone before it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "strait/plugin.h"

namespace strait::rail {

class Nic;

// One registration. Deregisters when it goes; afterwards no operation reads or writes the memory through it.
class MemoryKey {
 public:
  MemoryKey() = default;
  MemoryKey(const Nic* nic, strait_nic_mr mr) : nic_(nic), mr_(mr) {}
  MemoryKey(MemoryKey&& other) noexcept : nic_(std::exchange(other.nic_, nullptr)), mr_(other.mr_) {}
  MemoryKey& operator=(MemoryKey&& other) noexcept {
    if (this != &other) {
      reset();
      nic_ = std::exchange(other.nic_, nullptr);
      mr_ = other.mr_;
    }
    return *this;
  }
  ~MemoryKey() { reset(); }

  void reset();
  // After fork the registration is the parent's: forgets it without touching the NIC.
  void abandon() { nic_ = nullptr; }
  [[nodiscard]] bool valid() const { return nic_ != nullptr; }
  [[nodiscard]] std::uint32_t lkey() const { return mr_.lkey; }
  [[nodiscard]] std::uint32_t rkey() const { return mr_.rkey; }

 private:
  const Nic* nic_ = nullptr;
  strait_nic_mr mr_{};
};

struct MemoryRequest {
  std::uint64_t address = 0;  // what work requests will call the first byte
  std::uint64_t length_bytes = 0;
  std::uint32_t access = 0;  // STRAIT_NIC_*
  int fd = -1;               // -1: host memory at `address`
  std::uint64_t fd_offset = 0;
  int pages_fd = -1;  // the memfd behind `fd`, for a NIC that wants it
  std::uint64_t pages_offset = 0;
  const strait_memory_port* port = nullptr;
};

class Nic {
 public:
  // Checks version and completeness of the table, opens the NIC and allocates the protection domain.
  [[nodiscard]] static Result<std::unique_ptr<Nic>> open(const strait_nic_ops* ops, const std::string& config);
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;
  ~Nic();

  // After fork: the device belongs to the parent, closing this object must not touch it.
  void abandon() { handle_ = nullptr; }

  [[nodiscard]] const strait_nic_info& info() const { return info_; }
  [[nodiscard]] const char* name() const { return info_.name; }
  [[nodiscard]] bool has_cpu_atomics() const { return info_.cpu_atomics != 0; }
  [[nodiscard]] const strait_nic_address& address() const { return address_; }
  [[nodiscard]] std::uint32_t pd() const { return pd_; }
  [[nodiscard]] std::string counters() const;
  // How the memory with this key was registered, for people; empty: as asked, nothing to add.
  [[nodiscard]] std::string describe_memory(std::uint32_t lkey) const;

  // STRAIT_NIC_BY_*: which way it was in the end.
  [[nodiscard]] std::uint32_t registered_by(std::uint32_t lkey) const;
  // What it needs from the machine, and whether it is there. Texts end.
  [[nodiscard]] std::vector<strait_requirement> requirements() const;

  [[nodiscard]] Result<MemoryKey> register_memory(const MemoryRequest& request) const;
  // What its errors begin with: "cannot register 4096 bytes at 0x7e.. with strait0".
  [[nodiscard]] std::string registering(const MemoryRequest& request) const;

  // The engine's share that runs on the caller's thread; see plugin.h.
  std::int32_t drive(std::uint32_t qpn_hint) const { return ops_->drive(handle_, qpn_hint); }
  [[nodiscard]] bool arm() const { return ops_->arm(handle_) != 0; }
  [[nodiscard]] int event_fd() const { return ops_->event_fd(handle_); }

  // Objects of the queues; whoever makes one destroys it. The errors say what could not be made, and why.
  [[nodiscard]] Result<std::uint32_t> create_cq(const strait_nic_cq_request& request) const;
  [[nodiscard]] Result<strait_nic_qp> create_qp(const strait_nic_qp_request& request) const;
  [[nodiscard]] Status connect_qp(std::uint32_t qpn, const strait_nic_connect_request& request) const;
  // "ring grant to process 4711 (one copy)"
  [[nodiscard]] std::string describe_qp(std::uint32_t qpn) const;

  [[nodiscard]] const strait_nic_ops* ops() const { return ops_; }
  [[nodiscard]] strait_nic* handle() const { return handle_; }

 private:
  Nic(const strait_nic_ops* ops, strait_nic* handle) : ops_(ops), handle_(handle) {}
  const strait_nic_ops* ops_;
  strait_nic* handle_;
  std::uint32_t pd_ = 0;
  bool has_pd_ = false;
  strait_nic_info info_{};
  strait_nic_address address_{};
};

// What a plug-in answered, as an Error: its own sentence behind what strait was doing.
[[nodiscard]] Error plugin_failure(std::int32_t code, const strait_plugin_error& raw, const std::string& doing);

}  // namespace strait::rail
