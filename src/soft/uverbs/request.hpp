// SPDX-License-Identifier: Apache-2.0
// Request: one RDMA_VERBS_IOCTL call. A header of 24 bytes, then attributes of 16; what each method takes is a table.
//
// The rules are the kernel's, errno by errno, because libibverbs and libmlx5 choose their fallbacks by it:
//   EINVAL           wrong length, wrong driver, an attribute twice, missing, too short, or too long
//   EPROTONOSUPPORT  an unknown method, or an unknown attribute that is marked mandatory
//   EOPNOTSUPP       bytes that this version does not know are not zero
//   EFAULT           a pointer leads nowhere
//   ENOENT           no object of that kind has the handle
// Input of up to 8 bytes lies in the attribute itself, longer input behind its pointer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "soft/uverbs/user_memory.hpp"

namespace strait::soft::uverbs {

// Values of uverbs_default_objects; then those of DevX; `any` where none is meant.
enum class Kind : std::uint8_t {
  pd = 1,
  channel = 2,
  cq = 3,
  qp = 4,
  srq = 5,
  ah = 6,
  mr = 7,
  mw = 8,
  xrcd = 10,
  dm = 14,
  devx = 100,
  umem,
  uar,
  any
};

enum class Form : std::uint8_t {
  input,       // bytes
  output,      // room for bytes
  use,         // the handle of an object
  make,        // a handle is answered
  descriptor,  // a file descriptor, checked by who uses it
};

struct AttributeSpec {
  std::uint16_t id;
  Form form;
  bool mandatory;
  std::uint16_t least = 0;  // bytes
  std::uint16_t most = 0;   // bytes this version knows; more is accepted of input if it is zero, and of output
  Kind kind = Kind::any;
};

class Request {
 public:
  explicit Request(const UserMemory& memory) : memory_(memory) {}

  // 0 or -errno, like everything here that returns int.
  [[nodiscard]] int read(std::uint64_t argument, std::uint32_t driver_id);
  [[nodiscard]] std::uint32_t method() const { return std::uint32_t{object_} << 16 | method_; }
  [[nodiscard]] int check(std::span<const AttributeSpec> specs);

  [[nodiscard]] bool has(std::uint16_t id) const { return find(id) != nullptr; }
  [[nodiscard]] std::size_t length(std::uint16_t id) const;
  // Copies what there is, at most `bytes`, and zeroes the rest. An absent attribute is all zeros.
  [[nodiscard]] int get(std::uint16_t id, void* into, std::size_t bytes) const;
  template <class T>
  [[nodiscard]] int get(std::uint16_t id, T& into) const {
    return get(id, &into, sizeof into);
  }
  // The attribute's own 8 bytes: small inputs, handles, descriptors. 0 when absent.
  [[nodiscard]] std::uint64_t word(std::uint16_t id) const;
  [[nodiscard]] std::uint32_t handle(std::uint16_t id) const { return static_cast<std::uint32_t>(word(id)); }

  // As much as there is room for; nothing when absent. Room behind it is zeroed.
  [[nodiscard]] int put(std::uint16_t id, const void* from, std::size_t bytes);
  template <class T>
  [[nodiscard]] int put(std::uint16_t id, const T& value) {
    return put(id, &value, sizeof value);
  }
  // A new handle or descriptor.
  [[nodiscard]] int put_word(std::uint16_t id, std::uint64_t value);

  [[nodiscard]] const UserMemory& memory() const { return memory_; }

 private:
  struct Attribute {
    std::uint16_t id = 0;
    std::uint16_t length = 0;
    std::uint16_t flags = 0;
    std::uint16_t reserved = 0;
    std::uint64_t data = 0;
  };
  static_assert(sizeof(Attribute) == 16);

  [[nodiscard]] const Attribute* find(std::uint16_t id) const;
  [[nodiscard]] int check_one(const Attribute& attribute, const AttributeSpec& spec) const;
  [[nodiscard]] int mark_written(const Attribute& attribute);

  const UserMemory& memory_;
  std::uint64_t argument_ = 0;
  std::uint16_t object_ = 0;
  std::uint16_t method_ = 0;
  std::vector<Attribute> attributes_;
};

}  // namespace strait::soft::uverbs
