// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/request.hpp"

#include <rdma/rdma_user_ioctl_cmds.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace strait::soft::uverbs {

namespace {
constexpr std::size_t kMostBytes = 4096;
constexpr std::size_t kInlineBytes = 8;

// ib_uverbs_ioctl_hdr without the array of no length at its end.
struct Header {
  std::uint16_t length = 0;
  std::uint16_t object_id = 0;
  std::uint16_t method_id = 0;
  std::uint16_t num_attrs = 0;
  std::uint64_t reserved1 = 0;
  std::uint32_t driver_id = 0;
  std::uint32_t reserved2 = 0;
};
}  // namespace

int Request::read(std::uint64_t argument, std::uint32_t driver_id) {
  static_assert(sizeof(ib_uverbs_ioctl_hdr) == sizeof(Header) && sizeof(ib_uverbs_attr) == sizeof(Attribute));
  Header header;
  if (!memory_.copy_in(argument, &header, sizeof header)) return -EFAULT;
  if (header.length > kMostBytes || header.length != sizeof header + header.num_attrs * sizeof(Attribute))
    return -EINVAL;
  if (header.reserved1 != 0 || header.reserved2 != 0) return -EPROTONOSUPPORT;
  if (header.driver_id != driver_id) return -EINVAL;
  argument_ = argument;
  object_ = header.object_id;
  method_ = header.method_id;
  attributes_.resize(header.num_attrs);
  if (!memory_.copy_in(argument + sizeof header, attributes_.data(), attributes_.size() * sizeof(Attribute)))
    return -EFAULT;
  return 0;
}

int Request::check(std::span<const AttributeSpec> specs) {
  std::vector<Attribute> known;
  for (const Attribute& attribute : attributes_) {
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const AttributeSpec& s) { return s.id == attribute.id; });
    if (spec == specs.end()) {
      if ((attribute.flags & UVERBS_ATTR_F_MANDATORY) != 0) return -EPROTONOSUPPORT;
      known.push_back({});  // keeps its place: where an answer is written follows from the position
      known.back().id = 0xffff;
      continue;
    }
    for (const Attribute& earlier : known) {
      if (earlier.id == attribute.id) return -EINVAL;
    }
    if (const int wrong = check_one(attribute, *spec)) return wrong;
    known.push_back(attribute);
  }
  attributes_ = std::move(known);
  for (const AttributeSpec& spec : specs) {
    if (spec.mandatory && !has(spec.id)) return -EINVAL;
  }
  return 0;
}

int Request::check_one(const Attribute& attribute, const AttributeSpec& spec) const {
  if (attribute.reserved != 0) return -EINVAL;
  switch (spec.form) {
    case Form::input: {
      if (attribute.length < spec.least) return -EINVAL;
      if (attribute.length <= spec.most) return 0;
      // A program of the future may send more, as long as it says nothing there.
      std::array<std::byte, 256> piece{};
      for (std::size_t at = spec.most; at < attribute.length; at += piece.size()) {
        const std::size_t n = std::min(piece.size(), attribute.length - at);
        if (attribute.length <= kInlineBytes) {
          std::memcpy(piece.data(), reinterpret_cast<const std::byte*>(&attribute.data) + at, n);
        } else if (!memory_.copy_in(attribute.data + at, piece.data(), n)) {
          return -EFAULT;
        }
        if (std::any_of(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n),
                        [](std::byte b) { return b != std::byte{0}; }))
          return -EOPNOTSUPP;
      }
      return 0;
    }
    case Form::output: return attribute.length < spec.least ? -EINVAL : 0;
    case Form::use:
    case Form::make: return attribute.length != 0 ? -EINVAL : 0;
    case Form::descriptor: {
      const auto fd = static_cast<std::int64_t>(attribute.data);
      return attribute.length != 0 || fd < INT32_MIN || fd > INT32_MAX ? -EINVAL : 0;
    }
  }
  return -EINVAL;
}

const Request::Attribute* Request::find(std::uint16_t id) const {
  for (const Attribute& attribute : attributes_) {
    if (attribute.id == id) return &attribute;
  }
  return nullptr;
}

std::size_t Request::length(std::uint16_t id) const {
  const Attribute* const attribute = find(id);
  return attribute != nullptr ? attribute->length : 0;
}

int Request::get(std::uint16_t id, void* into, std::size_t bytes) const {
  std::memset(into, 0, bytes);
  const Attribute* const attribute = find(id);
  if (attribute == nullptr) return 0;
  const std::size_t n = std::min<std::size_t>(bytes, attribute->length);
  if (attribute->length <= kInlineBytes) {
    std::memcpy(into, &attribute->data, n);
    return 0;
  }
  return memory_.copy_in(attribute->data, into, n) ? 0 : -EFAULT;
}

std::uint64_t Request::word(std::uint16_t id) const {
  const Attribute* const attribute = find(id);
  return attribute != nullptr ? attribute->data : 0;
}

int Request::put(std::uint16_t id, const void* from, std::size_t bytes) {
  const Attribute* const attribute = find(id);
  if (attribute == nullptr) return 0;
  const std::size_t n = std::min<std::size_t>(bytes, attribute->length);
  if (!memory_.copy_out(attribute->data, from, n)) return -EFAULT;
  if (attribute->length > n) {
    const std::vector<std::byte> zeros(attribute->length - n);
    if (!memory_.copy_out(attribute->data + n, zeros.data(), zeros.size())) return -EFAULT;
  }
  return mark_written(*attribute);
}

int Request::put_word(std::uint16_t id, std::uint64_t value) {
  const Attribute* const attribute = find(id);
  if (attribute == nullptr) return 0;
  const std::uint64_t at =
      argument_ + sizeof(Header) + static_cast<std::uint64_t>(attribute - attributes_.data()) * sizeof(Attribute);
  if (!memory_.copy_out(at + offsetof(Attribute, data), &value, sizeof value)) return -EFAULT;
  return mark_written(*attribute);
}

int Request::mark_written(const Attribute& attribute) {
  const std::uint64_t at =
      argument_ + sizeof(Header) + static_cast<std::uint64_t>(&attribute - attributes_.data()) * sizeof(Attribute);
  const auto flags = static_cast<std::uint16_t>(attribute.flags | UVERBS_ATTR_F_VALID_OUTPUT);
  return memory_.copy_out(at + offsetof(Attribute, flags), &flags, sizeof flags) ? 0 : -EFAULT;
}

}  // namespace strait::soft::uverbs
