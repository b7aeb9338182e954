// SPDX-License-Identifier: Apache-2.0
#include "soft/uverbs/xrc_domains.hpp"

#include <algorithm>
#include <cerrno>

#include "soft/uverbs/context.hpp"

namespace strait::soft::uverbs {

int XrcDomains::open(nic::Engine& engine, int fd, std::uint32_t open_flags, XrcDomain*& out) {
  const std::scoped_lock lock(mutex_);
  XrcDomain made;
  if (fd >= 0) {
    auto file = sys::Fd::copy_of(fd);
    const auto id = sys::file_id(fd);
    if (!file || !id) return -EBADF;
    const auto found =
        std::find_if(domains_.begin(), domains_.end(), [&](const auto& d) { return d.file.valid() && d.id == *id; });
    if (found != domains_.end()) {
      if (sys::must_create(open_flags)) return -EINVAL;
      ++found->users;
      out = &*found;
      return 0;
    }
    if (!sys::may_create(open_flags)) return -EAGAIN;
    made.file = std::move(*file);
    made.id = *id;
  }
  made.number = engine.alloc_xrcd();
  made.users = 1;
  out = &domains_.emplace_back(std::move(made));
  return 0;
}

int XrcDomains::close(nic::Engine& engine, XrcDomain& domain) {
  const std::scoped_lock lock(mutex_);
  if (domain.users > 1) {
    --domain.users;
    return 0;
  }
  if (const Status freed = engine.free_xrcd(domain.number); !freed) return -errno_of(freed.error());
  domains_.remove_if([&](const XrcDomain& one) { return &one == &domain; });
  return 0;
}

int XrcDomains::make_target(nic::Engine& engine, XrcDomain& domain, EventTarget& events, XrcTarget*& out) {
  const std::scoped_lock lock(mutex_);
  auto target = std::make_unique<XrcTarget>();
  target->users = 1;
  target->events.fan = &target->fan;
  target->fan.add(events);
  nic::QpRequest wanted;
  wanted.type = nic::QpType::xrc_tgt;
  wanted.xrcd = domain.number;
  wanted.user = reinterpret_cast<std::uintptr_t>(&target->events);
  const auto made = engine.create_qp(wanted);
  if (!made) return -errno_of(made.error());
  target->number = *made;
  out = target.get();
  domain.targets.emplace(*made, std::move(target));
  return 0;
}

int XrcDomains::open_target(XrcDomain& domain, std::uint32_t number, EventTarget& events, XrcTarget*& out) {
  const std::scoped_lock lock(mutex_);
  const auto found = domain.targets.find(number);
  if (found == domain.targets.end()) return -EINVAL;
  ++found->second->users;
  found->second->fan.add(events);
  out = found->second.get();
  return 0;
}

int XrcDomains::release(nic::Engine& engine, XrcDomain& domain, XrcTarget& target, const EventTarget& events) {
  const std::scoped_lock lock(mutex_);
  if (target.users > 1) {
    --target.users;
    target.fan.remove(events);
    return 0;
  }
  if (const Status destroyed = engine.destroy_qp(target.number); !destroyed) return -errno_of(destroyed.error());
  domain.targets.erase(target.number);
  return 0;
}

}  // namespace strait::soft::uverbs
