// SPDX-License-Identifier: Apache-2.0
// What a context holds: objects by handle, with one space of handles for all kinds, as in the kernel.
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "soft/nic/verbs.hpp"
#include "soft/uverbs/events.hpp"
#include "soft/uverbs/request.hpp"

namespace strait::soft::uverbs {

struct Object {
  explicit Object(Kind of) : kind(of) {}
  virtual ~Object() = default;
  Kind kind;
  std::uint32_t users = 0;  // objects that were made from it; it cannot go before them
};

struct Pd final : Object {
  static constexpr Kind kKind = Kind::pd;
  Pd() : Object(kKind) {}
  std::uint32_t number = 0;
};

struct Mr final : Object {
  static constexpr Kind kKind = Kind::mr;
  Mr() : Object(kKind) {}
  Pd* pd = nullptr;
  std::uint32_t key = 0;
  std::uint64_t start = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t iova = 0;
  std::uint32_t access = 0;
  bool of_dmabuf = false;
};

struct Cq final : Object {
  static constexpr Kind kKind = Kind::cq;
  Cq() : Object(kKind) {}
  std::uint32_t number = 0;
  std::uint32_t entries = 0;
  EventTarget events;
};

struct Srq final : Object {
  static constexpr Kind kKind = Kind::srq;
  Srq() : Object(kKind) {}
  std::uint32_t number = 0;
  Pd* pd = nullptr;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  EventTarget events;
};

struct Qp final : Object {
  static constexpr Kind kKind = Kind::qp;
  Qp() : Object(kKind) {}
  std::uint32_t number = 0;
  nic::QpType type = nic::QpType::rc;
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;  // null: receives of its own
  ib_uverbs_qp_cap cap{};
  bool all_signaled = false;
  EventTarget events;
};

struct Ah final : Object {
  static constexpr Kind kKind = Kind::ah;
  Ah() : Object(kKind) {}
  Pd* pd = nullptr;
};

class Objects {
 public:
  template <class T>
  std::uint32_t add(std::unique_ptr<T> object) {
    while (objects_.contains(next_)) ++next_;
    objects_.emplace(next_, std::move(object));
    return next_++;
  }
  // Null: no object of this kind has the handle (ENOENT).
  template <class T>
  [[nodiscard]] T* find(std::uint64_t handle) {
    const auto found = handle > UINT32_MAX ? objects_.end() : objects_.find(static_cast<std::uint32_t>(handle));
    return found != objects_.end() && found->second->kind == T::kKind ? static_cast<T*>(found->second.get()) : nullptr;
  }
  void remove(std::uint32_t handle) { objects_.erase(handle); }
  // Calls visit(handle, object) for each of this kind.
  template <class T, class Visit>
  void each(Visit visit) {
    for (auto& [handle, object] : objects_) {
      if (object->kind == T::kKind) visit(handle, static_cast<T&>(*object));
    }
  }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }

 private:
  std::map<std::uint32_t, std::unique_ptr<Object>> objects_;
  std::uint32_t next_ = 1;
};

}  // namespace strait::soft::uverbs
