// SPDX-License-Identifier: Apache-2.0
// The thread that listens to the owners of memory this process uses.
#include <algorithm>

#include "grant/host.hpp"
#include "sys/quiet_thread.hpp"

namespace strait::grant {
namespace {

constexpr std::int64_t kLookAgainNs = 200'000;  // while a lane is inside what was revoked

}  // namespace

Result<std::unique_ptr<Visits>> Visits::start() {
  std::unique_ptr<Visits> visits(new Visits());
  STRAIT_TRY(visits->stop_, sys::Event::make());
  STRAIT_TRY(visits->events_, sys::EventSet::make());
  STRAIT_CHECK(visits->events_.add(visits->stop_.fd()));
  Visits* const self = visits.get();
  STRAIT_TRY(visits->thread_, sys::start_quiet_thread([self] { self->run(); }));
  return visits;
}

Visits::~Visits() {
  if (mark_.in_child()) {
    abandon();
    return;
  }
  stopping_.store(true);
  stop_.raise();
  if (thread_.joinable()) thread_.join();
}

void Visits::abandon() {
  if (thread_.joinable()) thread_.detach();
}

Status Visits::add(std::shared_ptr<Host> host) {
  const std::lock_guard lock(mutex_);
  STRAIT_CHECK(events_.add(host->socket()));
  hosts_.push_back(host);
  return {};
}

void Visits::run() {
  bool again = false;
  while (!stopping_.load()) {
    (void)events_.wait_ns(again ? kLookAgainNs : -1);
    again = false;
    std::vector<std::shared_ptr<Host>> hosts;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(hosts_, [](const std::weak_ptr<Host>& host) { return host.expired(); });
      for (const auto& host : hosts_) {
        if (auto alive = host.lock()) hosts.push_back(std::move(alive));
      }
    }
    for (const auto& host : hosts) {
      bool inside = false;
      if (!host->is_gone() && !host->listen(inside)) events_.remove(host->socket());
      again = again || inside;
    }
  }
}

}  // namespace strait::grant
