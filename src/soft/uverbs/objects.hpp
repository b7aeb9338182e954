// SPDX-License-Identifier: Apache-2.0
// What a context holds: objects by handle, with one space of handles for all kinds, as in the kernel.
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "soft/kernel/kernel.hpp"
#include "soft/nic/verbs.hpp"
#include "soft/uverbs/events.hpp"
#include "soft/uverbs/on_demand.hpp"
#include "soft/uverbs/request.hpp"
#include "soft/uverbs/xrc_domains.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::uverbs {

struct Object {
  explicit Object(Kind of) : kind(of) {}
  virtual ~Object() = default;
  // This, or the object of that kind that it is a shell of; null: neither.
  [[nodiscard]] virtual Object* as(Kind of) { return of == kind ? this : nullptr; }
  Kind kind;
  std::uint32_t users = 0;  // objects that were made from it; it cannot go before them
};

struct Pd final : Object {
  static constexpr Kind kKind = Kind::pd;
  Pd() : Object(kKind) {}
  std::uint32_t number = 0;
};

// Memory of the device: pages of the descriptor, which the program maps and the engine reaches by a mapping of its own.
struct Dm final : Object {
  static constexpr Kind kKind = Kind::dm;
  Dm() : Object(kKind) {}
  std::uint32_t first_page = 0;  // of pages::kMemory
  std::uint32_t pages = 0;
  std::uint64_t length_bytes = 0;
  sys::Mapping mapping;
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
  Dm* dm = nullptr;                     // null: memory of the program
  std::unique_ptr<OnDemand> on_demand;  // null: it has to be there all the time
  bool alias = false;                   // made of other keys
  kernel::NicMemoryOwner accelerators;  // null: no accelerator's memory
};

struct Mw final : Object {
  static constexpr Kind kKind = Kind::mw;
  Mw() : Object(kKind) {}
  Pd* pd = nullptr;
  std::uint32_t key = 0;  // as it was made; its low byte changes when it is bound
};

// A doorbell page. What is written there is not looked at: the doorbell record says the same.
struct Uar final : Object {
  static constexpr Kind kKind = Kind::uar;
  Uar() : Object(kKind) {}
  std::uint32_t page = 0;  // in the descriptor, and its number in mailboxes
};

struct Cq final : Object {
  static constexpr Kind kKind = Kind::cq;
  Cq() : Object(kKind) {}
  std::uint32_t number = 0;
  std::uint32_t entries = 0;
  Uar* uar = nullptr;  // null: one that all share
  EventTarget events;
};

struct Xrcd final : Object {
  static constexpr Kind kKind = Kind::xrcd;
  Xrcd() : Object(kKind) {}
  XrcDomain* domain = nullptr;
};

struct Srq final : Object {
  static constexpr Kind kKind = Kind::srq;
  Srq() : Object(kKind) {}
  std::uint32_t number = 0;
  Pd* pd = nullptr;
  Xrcd* xrcd = nullptr;  // XRC: its domain, and
  Cq* cq = nullptr;      // where receives complete; otherwise null
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
  Uar* uar = nullptr;           // null: one that all share
  Srq* srq = nullptr;           // null: receives of its own
  Xrcd* xrcd = nullptr;         // XRC target: it has this and
  XrcTarget* target = nullptr;  // what others may have opened too, and none of the above
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
  // Whatever it is; null: there is none.
  [[nodiscard]] Object* find_any(std::uint64_t handle) {
    const auto found = handle > UINT32_MAX ? objects_.end() : objects_.find(static_cast<std::uint32_t>(handle));
    return found != objects_.end() ? found->second.get() : nullptr;
  }
  // Calls visit(handle, object) for each of this kind, those made by command (DevX) included.
  template <class T, class Visit>
  void each(Visit visit) {
    for (auto& [handle, object] : objects_) {
      if (Object* const of_kind = object->as(T::kKind)) visit(handle, static_cast<T&>(*of_kind));
    }
  }
  // By the number that the device knows it by.
  template <class T>
  [[nodiscard]] T* numbered(std::uint32_t number) {
    T* out = nullptr;
    each<T>([&](std::uint32_t, T& object) { out = object.number == number ? &object : out; });
    return out;
  }
  [[nodiscard]] Uar* find_uar(std::uint32_t page) {
    Uar* found = nullptr;
    each<Uar>([&](std::uint32_t, Uar& uar) { found = uar.page == page ? &uar : found; });
    return found;
  }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }

 private:
  std::map<std::uint32_t, std::unique_ptr<Object>> objects_;
  std::uint32_t next_ = 1;
};

// What both ways of making objects, by verb and by command, undo alike.
void let_go(const Qp& qp);  // what it counted as a user of
[[nodiscard]] Status drop_key(nic::Engine& engine, const Mr& mr);

}  // namespace strait::soft::uverbs
