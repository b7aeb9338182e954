// SPDX-License-Identifier: Apache-2.0
// Command queues: the ring is the driver's, the caller's or an accelerator's.
#include <bit>
#include <cerrno>
#include <cstring>

#include "soft/cassini/client.hpp"
#include "soft/cassini/services.hpp"

namespace strait::soft::cassini {

int Client::cq_alloc(const wire::CqAllocCmd& c) {
  wire::CqAllocBufCmd command{};
  command.resp = c.resp;
  command.lni = c.lni;
  command.eq = c.eq;
  command.opts.opts = c.opts;
  return cq_alloc_buf(command);
}

// Could a device without translation use it: one page, or part of one huge page. Nobody can say of other memory that
// its pages follow each other, and mostly they do not.
int Client::contiguous(std::uint64_t address, std::uint64_t bytes) {
  if (!memory_.reaches(address, bytes, true)) return -EFAULT;
  if (bytes <= sys::page_bytes()) return 0;
  const std::uint32_t shift = memory_.huge_shift(address, bytes);
  return shift != 0 && address >> shift == (address + bytes - 1) >> shift ? 0 : -EINVAL;
}

int Client::place_ring(Cq& cq, const wire::CqAllocOptsBuf& options, std::uint64_t bytes) {
  if (options.buf % sys::page_bytes() != 0) return -EINVAL;
  if (options.is_host_mem != 0) {
    if (const int failed = contiguous(options.buf, bytes); failed != 0) return failed;
    cq.ring = {.memory = &memory_, .address = options.buf, .direct = memory_.direct(options.buf, bytes)};
    return 0;
  }
  if (options.buf + bytes < options.buf) return -EOVERFLOW;
  const int failed = options.dmabuf_fd == wire::kNoDmabufFd
                         ? files_->device_pages(options.buf, bytes, cq.owned)
                         : files_->dmabuf(options.dmabuf_fd, options.dmabuf_offset, bytes, cq.owned);
  if (failed != 0) return -failed;
  cq.ring = {.memory = cq.owned.get(), .address = 0, .direct = cq.owned->direct(0, bytes)};
  return 0;
}

int Client::cq_alloc_buf(const wire::CqAllocBufCmd& c) {
  const wire::CqAllocOpts& options = c.opts.opts;
  Lni* owner = lni(c.lni);
  if (owner == nullptr) return -EINVAL;
  Eq* eq = c.eq == wire::kEqNone ? nullptr : own(card_.event_queues, c.eq);
  if (c.eq != wire::kEqNone && eq == nullptr) return -EINVAL;
  const bool transmit = (options.flags & wire::kCqIsTx) != 0;
  const bool triggered = (options.flags & wire::kCqTxTriggered) != 0;
  if (static_cast<std::uint32_t>(options.policy) > static_cast<std::uint32_t>(wire::CqPolicy::low_freq)) return -EINVAL;
  if (!transmit && options.lpe_cdt_thresh_id > wire::kMaxLpeThresholdId) return -EINVAL;
  if (options.count > wire::kMaxCqBlocks) return -E2BIG;
  const std::uint32_t slots = std::bit_ceil(std::max(options.count, wire::kMinCqBlocks));
  if (transmit && triggered && options.lcid != wire::kTriggeredLcid) return -EINVAL;
  if (transmit && (options.lcid >= owner->cps.size() || !owner->cps[options.lcid])) return -EINVAL;
  if ((options.flags & wire::kCqTxEthernet) != 0 && !who_.net_raw) return -EPERM;

  const Resource resource = transmit ? Resource::txq : Resource::tgq;
  int failed = take(card_, *owner->service, resource);
  if (failed != 0) {
    clean_queues(*owner);
    failed = take(card_, *owner->service, resource);
  }
  if (failed != 0) return failed;
  Cq* cq = (transmit ? card_.transmit_queues : card_.target_queues).make();
  if (cq == nullptr) {
    give_back(card_, *owner->service, resource);
    return -ENOSPC;
  }
  cq->lni = owner;
  cq->strict = owner->strict;
  cq->faults = owner->faults;
  cq->eq = eq;
  cq->transmit = transmit;
  cq->triggered = transmit && triggered;
  cq->ethernet = (options.flags & wire::kCqTxEthernet) != 0;
  cq->policy = static_cast<std::uint32_t>(options.policy);
  cq->lcid = options.lcid;
  cq->slots = slots;
  ++owner->refs;
  if (eq != nullptr) ++eq->refs;

  wire::CqAllocResp answer{};
  answer.cq = cq->id;
  answer.count = slots;
  const std::uint64_t bytes = std::uint64_t{slots} * wire::kBlockBytes;
  Cookie* launch = make_cookie(Page::launch, wire::kMappedPageBytes, cq->mapped, answer.wp_addr);
  failed = launch == nullptr ? -ENOMEM : 0;
  if (launch != nullptr) cq->write_pointer_page = reinterpret_cast<std::uint64_t*>(launch->mapping.data());
  if (failed == 0 && c.opts.buf != 0) failed = place_ring(*cq, c.opts, bytes);
  if (failed == 0 && c.opts.buf == 0) {
    Cookie* ring = make_cookie(Page::ring, bytes, cq->mapped, answer.cmds);
    failed = ring == nullptr ? -ENOMEM : 0;
    if (ring != nullptr) {
      cq->ring.direct = ring->mapping.data();
      const wire::QueueStatus status = wire::initial_queue_status();
      std::memcpy(cq->ring.direct, &status, sizeof status);
    }
  }
  if (failed == 0) card_.started(*cq);
  if (failed == 0) failed = respond(c.resp, answer);
  if (failed != 0) drop(*cq);
  return failed;
}

int Client::cq_free(const wire::CqFreeCmd& c) {
  Cq* found = cq(c.cq);
  if (found == nullptr) return -EINVAL;
  if (found->mapped != 0) return -EBUSY;
  drop(*found);
  return 0;
}

void Client::drop(Cq& cq) {
  card_.stopping(cq);
  drop_cookies(cq.mapped);
  if (cq.eq != nullptr) --cq.eq->refs;
  --cq.lni->refs;
  cq.lni->retired_cqs.push_back(cq.id);
  (cq.transmit ? card_.transmit_queues : card_.target_queues).retire(cq.id);
}

int Client::cq_ack_counter(const wire::CqAckCounterCmd& c) {
  const Cq* found = cq(c.cq);
  return found == nullptr ? -EINVAL : respond(c.resp, wire::CqAckCounterResp{found->unacknowledged});
}

}  // namespace strait::soft::cassini
