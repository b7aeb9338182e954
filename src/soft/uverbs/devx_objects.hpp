// SPDX-License-Identifier: Apache-2.0
// What only DevX programs have: memory that they named for queues and keys, doorbell pages, and objects made by
// command.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "soft/uverbs/objects.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {

// Its handle is its number in mailboxes.
struct Umem final : Object {
  static constexpr Kind kKind = Kind::umem;
  Umem() : Object(kKind) {}
  std::byte* bytes = nullptr;
  std::uint64_t length_bytes = 0;
  bool writable = false;
  sys::Mapping mapping;  // of a dma-buf
};

// A completion queue, queue pair and so on inside: as verbs has them, so that both kinds go together.
struct DevxObject final : Object {
  static constexpr Kind kKind = Kind::devx;
  DevxObject() : Object(kKind) {}
  [[nodiscard]] Object* as(Kind of) override {
    if (of == kKind) return this;
    return inner && inner->kind == of ? inner.get() : nullptr;
  }
  std::unique_ptr<Object> inner;
  std::uint32_t number = 0;
  std::vector<Umem*> umems;
  std::vector<std::uint8_t> mailbox;  // that made it: a query gives back what it said
};

}  // namespace strait::soft::uverbs
