// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/peer_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace strait::soft::kernel {

// In reverse, each once. `pages` false: the client does those itself.
void PeerUmem::undo(bool pages) {
  Counters& counters = registry_.counters_;
  if (pages) {
    if (std::exchange(mapped_, false)) {
      (void)client_->dma_unmap(pages_, context_);
      counters.get("peer_dma_unmap").add();
    }
    if (std::exchange(got_, false)) {
      client_->put_pages(pages_, context_);
      counters.get("peer_put_pages").add();
    }
  }
  if (std::exchange(acquired_, false)) {
    client_->release(context_);
    counters.get("peer_release").add();
  }
  trimmed_.clear();
}

PeerUmem::~PeerUmem() {
  close();
}

void PeerUmem::close() {
  registry_.forget(ticket_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_ != Phase::invalidating; });
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  lock.unlock();
  undo(true);
}

std::uint64_t PeerRegistry::add(std::shared_ptr<PeerClient> client, bool invalidates) {
  if (invalidates) client->joined([this](std::uint64_t core_context) { return invalidate(core_context); });
  const std::lock_guard lock(mutex_);
  clients_.push_back({next_, std::move(client)});
  return next_++;
}

int PeerRegistry::remove(std::uint64_t handle) {
  std::shared_ptr<PeerClient> last;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(clients_.begin(), clients_.end(), [&](auto& each) { return each.handle == handle; });
  if (found == clients_.end()) return -ENOENT;
  for (const auto& [ticket, weak] : umems_) {
    if (const auto alive = weak.lock(); alive && alive->client_ == found->client) return -EBUSY;
  }
  last = std::move(found->client);
  clients_.erase(found);
  return 0;
}

std::vector<std::string> PeerRegistry::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const Registered& each : clients_) out.emplace_back(each.client->name());
  return out;
}

void PeerRegistry::forget(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  umems_.erase(ticket);
}

int PeerRegistry::take_steps(PeerUmem& umem, std::uint64_t address, std::uint64_t length_bytes, bool write,
                             const DmaDevice& device) {
  PeerClient& client = *umem.client_;
  if (const int failed = faults_.on(Step::get_pages)) return failed;
  if (const int failed = client.get_pages(address, length_bytes, write, true, umem.pages_, umem.context_, umem.ticket_))
    return failed;
  umem.got_ = true;
  counters_.get("peer_get_pages").add();
  if (const int failed = faults_.on(Step::dma_map)) return failed;
  int mapped = 0;
  if (const int failed = client.dma_map(umem.pages_, umem.context_, device, mapped)) return failed;
  umem.mapped_ = true;
  counters_.get("peer_dma_map").add();
  return mapped > 0 ? 0 : -EINVAL;
}

// The caller's bytes of pages that were rounded outward.
static bool trim_pages(const PeerPages& pages, std::uint64_t address, std::uint64_t length_bytes,
                       std::vector<Segment>& out) {
  std::uint64_t at = pages.first;
  std::uint64_t left = length_bytes;
  for (const Segment& each : pages.segments) {
    const std::uint64_t end = at + each.length_bytes;
    if (end > address && left != 0) {
      const std::uint64_t skip = address > at ? address - at : 0;
      const std::uint64_t n = std::min(left, each.length_bytes - skip);
      out.push_back({each.at + skip, n});
      left -= n;
      address += n;
    }
    at = end;
  }
  return left == 0;
}

int PeerRegistry::begin(PeerUmem& umem, std::uint64_t address, std::uint64_t length_bytes, bool write,
                        const DmaDevice& device) {
  umem.beginner_ = std::this_thread::get_id();
  int failed = take_steps(umem, address, length_bytes, write, device);
  if (failed == 0 && !trim_pages(umem.pages_, address, length_bytes, umem.trimmed_)) failed = -EINVAL;
  std::unique_lock lock(umem.mutex_);
  if (failed == 0 && umem.wanted_over_) failed = -EFAULT;  // freed while it was registered
  if (failed == 0) {
    umem.phase_ = PeerUmem::Phase::ready;
    return 0;
  }
  lock.unlock();
  umem.undo(true);
  lock.lock();
  umem.phase_ = PeerUmem::Phase::over;
  umem.changed_.notify_all();
  return failed;
}

int PeerRegistry::get(std::uint64_t address, std::uint64_t length_bytes, bool write, const DmaDevice& device,
                      std::function<void()> revoke, std::shared_ptr<PeerUmem>& out) {
  if (length_bytes == 0 || address + length_bytes < address) return -EINVAL;
  std::vector<Registered> asked;
  {
    const std::lock_guard lock(mutex_);
    asked = clients_;
  }
  for (const Registered& each : asked) {
    PeerContext context;
    if (const int failed = faults_.on(Step::acquire)) return failed;
    if (each.client->acquire(address, length_bytes, context) != 1) continue;
    counters_.get("peer_acquire").add();
    std::shared_ptr<PeerUmem> umem(new PeerUmem(*this, each.client, std::move(revoke)));
    umem->context_ = std::move(context);
    umem->acquired_ = true;
    {
      const std::lock_guard lock(mutex_);
      umem->ticket_ = next_++;
      umems_.emplace(umem->ticket_, umem);
    }
    if (const int failed = begin(*umem, address, length_bytes, write, device)) return failed;
    out = std::move(umem);
    return 0;
  }
  return -EFAULT;
}

int PeerRegistry::invalidate(std::uint64_t core_context) {
  std::shared_ptr<PeerUmem> umem;
  {
    const std::lock_guard lock(mutex_);
    const auto found = umems_.find(core_context);
    if (found != umems_.end()) umem = found->second.lock();
  }
  if (!umem) return 0;
  using Phase = PeerUmem::Phase;
  std::unique_lock lock(umem->mutex_);
  if (umem->phase_ == Phase::beginning) {
    // No DMA yet. Who registers it sees this at its next step; from inside that step it cannot be waited for.
    umem->wanted_over_ = true;
    if (umem->beginner_ == std::this_thread::get_id()) return 0;
    umem->changed_.wait(lock, [&] { return umem->phase_ != Phase::beginning; });
  }
  if (umem->phase_ != Phase::ready) return 0;
  umem->phase_ = Phase::invalidating;
  lock.unlock();
  counters_.get("peer_invalidate").add();
  if (umem->revoke_) umem->revoke_();
  umem->undo(!umem->client_->invalidate_unmaps());
  lock.lock();
  umem->phase_ = Phase::over;
  umem->changed_.notify_all();
  return 0;
}

}  // namespace strait::soft::kernel
