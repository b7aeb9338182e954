// SPDX-License-Identifier: Apache-2.0
// The thread that listens to the owners of memory this process uses.
#include <algorithm>

#include "grant/host.hpp"

namespace strait::grant {
namespace {

constexpr std::int64_t kLookAgainNs = 200'000;  // while a lane is inside what was revoked

}  // namespace

Result<std::unique_ptr<Visits>> Visits::start() {
  std::unique_ptr<Visits> visits(new Visits());
  Visits* const self = visits.get();
  STRAIT_CHECK(visits->thread_.start([self] { return self->listen_to_all(); }));
  return visits;
}

Status Visits::add(std::shared_ptr<Host> host) {
  const Locked lock(mutex_);
  STRAIT_CHECK(thread_.add(host->socket()));
  hosts_.push_back(host);
  return {};
}

std::int64_t Visits::listen_to_all() {
  std::vector<std::shared_ptr<Host>> hosts;
  {
    const Locked lock(mutex_);
    std::erase_if(hosts_, [](const std::weak_ptr<Host>& host) { return host.expired(); });
    for (const auto& host : hosts_) {
      if (auto alive = host.lock()) hosts.push_back(std::move(alive));
    }
  }
  bool again = false;
  for (const auto& host : hosts) {
    bool inside = false;
    if (!host->is_gone() && !host->listen(inside)) thread_.remove(host->socket());
    again = again || inside;
  }
  return again ? kLookAgainNs : -1;
}

}  // namespace strait::grant
