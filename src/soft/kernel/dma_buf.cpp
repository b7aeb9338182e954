// SPDX-License-Identifier: Apache-2.0
#include "soft/kernel/dma_buf.hpp"

#include <cerrno>
#include <mutex>
#include <utility>

namespace strait::soft::kernel {

DmaBuf::DmaBuf(std::unique_ptr<Exporter> exporter, std::uint64_t size_bytes, KernelFaults& faults, Counters& counters)
    : exporter_(std::move(exporter)), size_bytes_(size_bytes), faults_(faults), counters_(counters) {
  counters_.get("dmabuf_get").add();
}

DmaBuf::~DmaBuf() {
  counters_.get("dmabuf_put").add();
}

int DmaBuf::attach(const DmaDevice& device, const ImporterOps* ops, Attachment*& out, std::uint64_t window_bytes) {
  if (ops != nullptr && !ops->move_notify) return -EINVAL;  // who attaches dynamically must be able to be told
  if (const int failed = faults_.on(Step::attach)) return failed;
  auto made = std::make_unique<Attachment>();
  made->buffer = this;
  made->device = device;
  made->dynamic = ops != nullptr;
  if (ops != nullptr) made->ops = *ops;
  made->peer2peer = made->ops.allow_peer2peer;
  made->window_bytes = window_bytes;
  const std::lock_guard lock(reservation_);
  if (const int failed = exporter_->attach(*made)) return failed;
  counters_.get("attach").add();
  out = made.get();
  attachments_.push_back(std::move(made));
  return 0;
}

void DmaBuf::detach(Attachment& attachment) {
  std::unique_ptr<Attachment> last;
  const std::lock_guard lock(reservation_);
  for (auto each = attachments_.begin(); each != attachments_.end(); ++each) {
    if (each->get() != &attachment) continue;
    last = std::move(*each);
    attachments_.erase(each);
    exporter_->detach(attachment);
    counters_.get("detach").add();
    return;
  }
}

// A dynamic importer holds the lock already: it must not change between its steps.
template <class Do>
int DmaBuf::with_lock(Attachment& attachment, Do call) {
  if (attachment.dynamic) return reservation_.held_here() ? call() : -EDEADLK;
  const std::lock_guard lock(reservation_);
  return call();
}

int DmaBuf::pin(Attachment& attachment) {
  return with_lock(attachment, [&] {
    if (const int failed = faults_.on(Step::pin)) return failed;
    if (const int failed = exporter_->pin(attachment)) return failed;
    ++attachment.pins;
    counters_.get("pin").add();
    return 0;
  });
}

void DmaBuf::unpin(Attachment& attachment) {
  (void)with_lock(attachment, [&] {
    if (attachment.pins == 0) return -EINVAL;
    --attachment.pins;
    exporter_->unpin(attachment);
    counters_.get("unpin").add();
    return 0;
  });
}

int DmaBuf::map(Attachment& attachment, DmaList& out) {
  return with_lock(attachment, [&] {
    // A static importer is never told of a move, so what can move is pinned for it.
    const bool pins = !attachment.dynamic && exporter_->moves();
    if (const int failed = faults_.on(Step::map)) return failed;
    if (pins) {
      if (const int failed = exporter_->pin(attachment)) return failed;
    }
    if (const int failed = exporter_->map(attachment, out)) {
      if (pins) exporter_->unpin(attachment);
      return failed;
    }
    ++attachment.maps;
    counters_.get("map").add();
    return 0;
  });
}

void DmaBuf::unmap(Attachment& attachment, DmaList& list) {
  (void)with_lock(attachment, [&] {
    if (attachment.maps == 0) return -EINVAL;
    --attachment.maps;
    exporter_->unmap(attachment, list);
    list = DmaList{};
    if (!attachment.dynamic && exporter_->moves()) exporter_->unpin(attachment);
    counters_.get("unmap").add();
    return 0;
  });
}

int DmaBuf::move() {
  const std::lock_guard lock(reservation_);
  if (!exporter_->moves()) return -EOPNOTSUPP;
  for (const auto& each : attachments_) {
    if (each->pins != 0 || (!each->dynamic && each->maps != 0)) return -EBUSY;
  }
  auto fence = std::make_shared<Fence>();
  reservation_.add_kernel_fence(fence);
  for (const auto& each : attachments_) {
    if (each->maps == 0) continue;
    counters_.get("move_notify").add();
    each->ops.move_notify(*each);
  }
  exporter_->move();
  counters_.get("moves").add();
  fence->signal();
  return 0;
}

std::size_t DmaBuf::attachments() {
  const std::lock_guard lock(reservation_);
  return attachments_.size();
}

}  // namespace strait::soft::kernel
