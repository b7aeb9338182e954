// SPDX-License-Identifier: Apache-2.0
// Registrations: memory that the device reaches, and how that was arranged. A range that others may reach has a list
// entry on the memory portal too, and a place in the directory.
//
// Used under the rail's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "rail/cxi/port.hpp"
#include "strait/plugin.h"
#include "sys/mapping.hpp"

namespace strait::rail::cxi {

struct Registration {
  std::uint64_t address = 0;  // what work requests call the first byte
  std::uint64_t bytes = 0;
  std::uint32_t access = 0;  // STRAIT_NIC_*
  std::uint32_t pd = 0;
  std::uint32_t by = 0;      // STRAIT_NIC_BY_*
  std::string how;           // for people
  std::byte* cpu = nullptr;  // where this process has it; null: nowhere that is known
  sys::Mapping mapping;      // of a file, when the memory was reached that way
  std::uint64_t shared = 0;  // what the device was told to find in a file
  Memory memory;
  std::uint64_t reached = 0;  // what the device calls `address`

  // Whether [at, at + length) lies inside.
  [[nodiscard]] bool holds(std::uint64_t at, std::uint64_t length) const {
    return at >= address && length <= bytes && at - address <= bytes - length;
  }
  [[nodiscard]] std::uint64_t iova(std::uint64_t at) const { return reached + (at - address); }
};

class Registrations {
 public:
  explicit Registrations(Port& port) : port_(port) {}
  // Does the driver know dma-bufs? Asked once, with a descriptor that is not open.
  void probe_dmabuf();
  [[nodiscard]] bool takes_dmabuf() const { return takes_dmabuf_; }
  [[nodiscard]] bool requirement(std::uint32_t index, strait_requirement& out) const;

  [[nodiscard]] Result<strait_nic_mr> add(const strait_nic_mr_request& request);
  // Returns the protection domain it belonged to. Afterwards nothing reaches the memory.
  [[nodiscard]] Result<std::uint32_t> remove(std::uint32_t key);
  [[nodiscard]] const Registration* find(std::uint32_t key) const {
    const auto found = all_.find(key);
    return found == all_.end() ? nullptr : found->second.get();
  }
  [[nodiscard]] std::size_t size() const { return all_.size(); }

  struct {
    std::uint64_t by_address = 0, by_dmabuf = 0, dmabuf_refused = 0, by_mapping = 0, by_device_address = 0, by_port = 0,
                  list_entries = 0;
  } counts;

 private:
  [[nodiscard]] Status reach(const strait_nic_mr_request& request, Registration& out);
  [[nodiscard]] Status reach_port(const strait_nic_mr_request& request, const std::string& refused, Registration& out);
  [[nodiscard]] Status reach_file(const strait_nic_mr_request& request, int dmabuf_errno, Registration& out);
  [[nodiscard]] Status reach_host(std::byte* at, const strait_nic_mr_request& request, Registration& out);
  [[nodiscard]] Result<std::uint32_t> let_others_in(const Registration& what);
  [[nodiscard]] Status append(const Registration& what, std::uint32_t id, std::uint32_t rights, std::uint32_t key,
                              std::uint32_t ignore);

  Port& port_;
  bool takes_dmabuf_ = false;
  int probe_errno_ = 0;
  std::uint32_t next_local_ = 0;
  std::unordered_map<std::uint32_t, std::unique_ptr<Registration>> all_;
};

}  // namespace strait::rail::cxi
