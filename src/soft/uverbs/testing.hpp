// SPDX-License-Identifier: Apache-2.0
// For tests: an ioctl as libibverbs builds it, and a device of this process.
#pragma once

#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstring>
#include <memory>
#include <vector>

#include "soft/uverbs/context.hpp"

namespace strait::soft::uverbs {

// ib_uverbs_ioctl_hdr without the array at its end.
struct Header {
  std::uint16_t length = 0;
  std::uint16_t object_id = 0;
  std::uint16_t method_id = 0;
  std::uint16_t num_attrs = 0;
  std::uint64_t reserved1 = 0;
  std::uint32_t driver_id = RDMA_DRIVER_MLX5;
  std::uint32_t reserved2 = 0;
};
static_assert(sizeof(Header) == sizeof(ib_uverbs_ioctl_hdr));

class Call {
 public:
  Call(std::uint16_t object, std::uint16_t method) {
    header_.object_id = object;
    header_.method_id = method;
  }
  // Input: small ones lie in the attribute.
  template <class T>
  Call& in(std::uint16_t id, const T& value) {
    ib_uverbs_attr attribute = make(id, sizeof value);
    if (sizeof value <= 8) {
      std::memcpy(&attribute.data, &value, std::min<std::size_t>(sizeof value, 8));
    } else {
      attribute.data = reinterpret_cast<std::uintptr_t>(&value);
    }
    attributes_.push_back(attribute);
    return *this;
  }
  template <class T>
  Call& out(std::uint16_t id, T& room) {
    return raw(id, sizeof room, reinterpret_cast<std::uintptr_t>(&room));
  }
  Call& handle(std::uint16_t id, std::uint64_t value) { return raw(id, 0, value); }
  Call& raw(std::uint16_t id, std::uint16_t length, std::uint64_t data, std::uint16_t flags = UVERBS_ATTR_F_MANDATORY) {
    ib_uverbs_attr attribute = make(id, length);
    attribute.data = data;
    attribute.flags = flags;
    attributes_.push_back(attribute);
    return *this;
  }
  Header& header() { return header_; }
  ib_uverbs_attr& attribute(std::size_t i) { return attributes_[i]; }
  [[nodiscard]] std::vector<std::byte> bytes() {
    if (header_.length == 0)
      header_.length = static_cast<std::uint16_t>(sizeof header_ + attributes_.size() * sizeof(ib_uverbs_attr));
    if (header_.num_attrs == 0) header_.num_attrs = static_cast<std::uint16_t>(attributes_.size());
    std::vector<std::byte> out(sizeof header_ + attributes_.size() * sizeof(ib_uverbs_attr));
    std::memcpy(out.data(), &header_, sizeof header_);
    if (!attributes_.empty())
      std::memcpy(out.data() + sizeof header_, attributes_.data(), attributes_.size() * sizeof(ib_uverbs_attr));
    return out;
  }
  // 0 or -errno; attributes are as the device left them.
  int run(Context& context) {
    std::vector<std::byte> memory = bytes();
    const long answer = context.ioctl(RDMA_VERBS_IOCTL, memory.data());
    if (!attributes_.empty())
      std::memcpy(attributes_.data(), memory.data() + sizeof header_, attributes_.size() * sizeof(ib_uverbs_attr));
    return static_cast<int>(answer);
  }

 private:
  static ib_uverbs_attr make(std::uint16_t id, std::size_t length) {
    ib_uverbs_attr attribute{};
    attribute.attr_id = id;
    attribute.len = static_cast<std::uint16_t>(length);
    attribute.flags = UVERBS_ATTR_F_MANDATORY;
    return attribute;
  }
  std::vector<ib_uverbs_attr> attributes_;
  Header header_;
};

// A command of the older kind.
template <class In, class Out>
int write_command(Context& context, std::uint32_t command, const In& in, Out& out) {
  Call call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
  const std::uint64_t number = command;
  // Core input is never inline in these tests: all structs are longer than 8 bytes, or fit.
  return call.in(UVERBS_ATTR_CORE_IN, in).out(UVERBS_ATTR_CORE_OUT, out).in(UVERBS_ATTR_WRITE_CMD, number).run(context);
}

// GET_CONTEXT as libmlx5 asks for it.
inline int get_context(Context& context, std::uint8_t cqe_version = 1) {
  mlx5_ib_alloc_ucontext_req_v2 asked{};
  asked.total_num_bfregs = 16;
  asked.num_low_latency_bfregs = 4;
  asked.max_cqe_version = cqe_version;
  mlx5_ib_alloc_ucontext_resp answer{};
  return Call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT)
      .in(UVERBS_ATTR_UHW_IN, asked)
      .out(UVERBS_ATTR_UHW_OUT, answer)
      .run(context);
}

inline std::shared_ptr<Device> make_device() {
  DeviceSettings settings;
  settings.gids = {{roce::IpAddress::v4(127, 0, 0, 1), "lo", 1, 65536}};
  return std::make_shared<Device>(std::move(settings));
}

}  // namespace strait::soft::uverbs
