// SPDX-License-Identifier: Apache-2.0
// One port of one RDMA device: how it is opened, where others find it, and the numbers of a connection.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "strait/plugin.h"

namespace strait::rail::verbs {

template <auto Close>
struct Closer {
  template <class T>
  void operator()(T* object) const {
    Close(object);
  }
};
template <class T, auto Close>
using Owner = std::unique_ptr<T, Closer<Close>>;

// What a NIC tells others about itself: strait_nic_address in plain words.
struct Address {
  ibv_gid gid{};
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;    // ibv_mtu
  std::uint8_t reads = 0;  // READs and atomics that one queue pair of it answers at a time
  bool ethernet = true;
  std::uint64_t seed = 0;  // of the packet numbers of its queue pairs

  [[nodiscard]] strait_nic_address bytes() const;
  // Code::unsupported when it is that of another kind of NIC.
  [[nodiscard]] static Result<Address> parse(const strait_nic_address& bytes);
  // The first packet number that its queue pair `qpn` sends. Both ends compute it, so it need not be exchanged; a
  // stranger who knows only the queue pair's number cannot.
  [[nodiscard]] std::uint32_t psn(std::uint32_t qpn) const;
};

// "::ffff:198.51.100.2", for people.
[[nodiscard]] std::string gid_text(const ibv_gid& gid);

// Verbs counts time in powers of two of 4.096 us: the first one that is not shorter, 1 to 31.
[[nodiscard]] std::uint8_t timeout_code(std::int64_t ns);
// The RNR timer has a table of its own, 0.01 ms to 655 ms.
[[nodiscard]] std::uint8_t rnr_code(std::int64_t ns);
[[nodiscard]] std::uint32_t mtu_bytes(std::uint8_t mtu);

class Port {
 public:
  // "rxe0", "rxe0/3" with the GID of index 3, "" for the first device there is.
  [[nodiscard]] static Result<Port> open(const std::string& device);

  [[nodiscard]] ibv_context* context() const { return context_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Address& address() const { return address_; }
  [[nodiscard]] std::uint8_t gid_index() const { return gid_index_; }
  [[nodiscard]] const ibv_device_attr& limits() const { return limits_; }
  [[nodiscard]] std::uint32_t max_message_bytes() const { return max_message_bytes_; }
  void limit_message(std::uint32_t bytes) {
    if (max_message_bytes_ == 0 || bytes < max_message_bytes_) max_message_bytes_ = bytes;
  }
  [[nodiscard]] bool software() const;
  // Where `to` is, for a queue pair or an address handle.
  [[nodiscard]] ibv_ah_attr way_to(const Address& to) const;

 private:
  [[nodiscard]] Status choose_gid(int wanted);
  Owner<ibv_context, ibv_close_device> context_;
  std::string name_;
  Address address_;
  std::uint8_t gid_index_ = 0;
  ibv_device_attr limits_{};
  int gid_count_ = 0;
  std::uint32_t max_message_bytes_ = 0;
};

inline constexpr std::uint8_t kPortNumber = 1;

}  // namespace strait::rail::verbs
