// SPDX-License-Identifier: Apache-2.0
#include "export/staging.hpp"

#include <cstddef>
#include <utility>

#include "buffer/host.hpp"
#include "sys/mapping.hpp"

namespace strait::exports {
namespace {
constexpr std::int64_t kDrainNs = 1'000'000'000;

bool pins(const strait_memory_port& port) {
  return port.struct_size >= offsetof(strait_memory_port, release) + sizeof port.release && port.prepare != nullptr &&
         port.release != nullptr;
}
}  // namespace

Result<Staging> Staging::make(buffer::Providers& providers, const buffer::Claim& claim, buffer::Range range) {
  if (range.length_bytes == 0 || range.address < claim.whole.address ||
      range.address - claim.whole.address > claim.whole.length_bytes ||
      range.length_bytes > claim.whole.length_bytes - (range.address - claim.whole.address)) {
    return fail(Code::invalid, "{} bytes at {:#x} are not inside the claimed {} at {:#x}", range.length_bytes,
                range.address, buffer::size_text(claim.whole.length_bytes), claim.whole.address);
  }
  if ((claim.capabilities & STRAIT_CAN_COPY) == 0) {
    return fail(Code::unsupported, "{} has no copy engine to stage with", claim.device->name);
  }
  STRAIT_TRY(buffer::Memory bounce, providers.allocate(buffer::kHostDevice, range.length_bytes));
  Staging made(claim.provider, range, std::move(bounce));
  made.pin();
  return made;
}

// A vendor that pins nothing, or not so much, still copies.
void Staging::pin() {
  const strait_memory_port* const port = provider_->port();
  if (port == nullptr || !pins(*port)) return;
  const std::uint64_t bytes = sys::round_up(bounce_.size(), sys::page_bytes());
  if (port->prepare(port->context, bounce_.data(), bytes) == 0) pinned_by_ = port;
}

Staging::Staging(Staging&& other) noexcept
    : provider_(other.provider_),
      range_(other.range_),
      bounce_(std::move(other.bounce_)),
      pinned_by_(std::exchange(other.pinned_by_, nullptr)),
      pending_ticket_(other.pending_ticket_),
      pending_(std::exchange(other.pending_, false)),
      failed_ticket_(other.failed_ticket_),
      failed_(other.failed_),
      bytes_copied_(other.bytes_copied_) {}

Staging::~Staging() {
  if (pending_) (void)settle(sys::Deadline::after_ns(kDrainNs));
  if (pending_) {
    bounce_.abandon();  // pinned as it is: the provider lets go of what is left when it closes
  } else if (pinned_by_ != nullptr) {
    pinned_by_->release(pinned_by_->context, bounce_.data());
  }
}

Status Staging::check(std::uint64_t offset, std::uint64_t length_bytes) const {
  if (length_bytes != 0 && offset <= size() && length_bytes <= size() - offset) return {};
  return fail(Code::invalid, "{} bytes at offset {} are not inside a staging buffer of {} bytes", length_bytes, offset,
              size());
}

Status Staging::run(std::uint64_t to, std::uint64_t from, std::uint64_t length_bytes, sys::Deadline deadline) {
  // An earlier copy that missed its deadline may still be writing the same bytes.
  if (pending_) STRAIT_CHECK(settle(deadline));
  STRAIT_TRY(pending_ticket_, provider_->start_copy(to, from, length_bytes));
  pending_ = true;
  STRAIT_CHECK(settle(deadline));
  bytes_copied_ += length_bytes;
  return {};
}

Result<std::uint64_t> Staging::start_fill(std::uint64_t offset, std::uint64_t length_bytes, sys::Deadline deadline) {
  STRAIT_CHECK(check(offset, length_bytes));
  if (pending_) STRAIT_CHECK(settle(deadline));
  STRAIT_TRY(pending_ticket_,
             provider_->start_copy(bounce_.range().address + offset, range_.address + offset, length_bytes));
  pending_ = true;
  return pending_ticket_;
}

Status Staging::finish_fill(std::uint64_t ticket, std::uint64_t length_bytes, sys::Deadline deadline) {
  if (pending_ && pending_ticket_ == ticket) {
    STRAIT_CHECK(settle(deadline));
  } else if (failed_ && failed_ticket_ == ticket) {
    return fail(Code::device, "the copy of {} bytes into the bounce buffer failed", length_bytes);
  }
  bytes_copied_ += length_bytes;
  return {};
}

// Only a copy that is still going on stays pending; one that failed is over.
Status Staging::settle(sys::Deadline deadline) {
  Status done = provider_->wait_copy(pending_ticket_, deadline);
  pending_ = !done && done.error().code == Code::timeout;
  if (!done && !pending_) {
    failed_ = true;
    failed_ticket_ = pending_ticket_;
  }
  return done;
}

Status Staging::fill(std::uint64_t offset, std::uint64_t length_bytes, sys::Deadline deadline) {
  STRAIT_CHECK(check(offset, length_bytes));
  return run(bounce_.range().address + offset, range_.address + offset, length_bytes, deadline);
}

Status Staging::drain(std::uint64_t offset, std::uint64_t length_bytes, sys::Deadline deadline) {
  STRAIT_CHECK(check(offset, length_bytes));
  return run(range_.address + offset, bounce_.range().address + offset, length_bytes, deadline);
}

}  // namespace strait::exports
