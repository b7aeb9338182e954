// SPDX-License-Identifier: Apache-2.0
#include "export/through_host.hpp"

#include <algorithm>
#include <utility>

#include "buffer/host.hpp"

namespace strait::exports {
namespace {
constexpr std::int64_t kLetFinishNs = 1'000'000'000;
}  // namespace

// One of the bounce buffers, and the copy that uses it now.
class HostRelay::Piece {
 public:
  explicit Piece(buffer::Memory memory) : memory_(std::move(memory)) {}
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  // A copy that missed its deadline still uses the buffer: if it does not end, the buffer stays until the provider
  // closes.
  ~Piece() {
    if (copier_ == nullptr) return;
    const Status done = copier_->wait_copy(ticket_, sys::Deadline::after_ns(kLetFinishNs));
    if (!done && done.error().code == Code::timeout) memory_.abandon();
  }
  [[nodiscard]] Status start(buffer::Provider& copier, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    STRAIT_TRY(ticket_, copier.start_copy(to, from, bytes));
    copier_ = &copier;
    return {};
  }
  // The copy that was started last; nothing when there is none.
  [[nodiscard]] Status settle(sys::Deadline deadline) {
    if (copier_ == nullptr) return {};
    const Status done = copier_->wait_copy(ticket_, deadline);
    if (done || done.error().code != Code::timeout) copier_ = nullptr;
    return done;
  }
  [[nodiscard]] std::uint64_t address() const { return memory_.range().address; }

 private:
  buffer::Memory memory_;
  buffer::Provider* copier_ = nullptr;
  std::uint64_t ticket_ = 0;
};

struct HostRelay::Ring {
  [[nodiscard]] Piece& at(std::uint64_t n) { return *pieces[n % kPieces]; }
  std::mutex turn;
  std::array<std::unique_ptr<Piece>, kPieces> pieces;
};

HostRelay::HostRelay(buffer::Providers& providers, std::uint64_t piece_bytes)
    : providers_(providers), piece_bytes_(piece_bytes) {}
HostRelay::~HostRelay() = default;

Result<HostRelay::Ring*> HostRelay::ring_of(buffer::Provider& vendor) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Ring>& ring = rings_[&vendor];
  if (ring) return ring.get();
  const auto make = [&]() -> Result<buffer::Memory> {
    if (const auto pinned = vendor.allocate(STRAIT_HOST_PLACE, piece_bytes_))
      return buffer::Memory(&vendor, nullptr, {*pinned, piece_bytes_});
    return providers_.allocate(buffer::kHostDevice, piece_bytes_);
  };
  auto made = std::make_unique<Ring>();
  for (std::unique_ptr<Piece>& piece : made->pieces) {
    STRAIT_TRY(buffer::Memory memory, make());
    piece = std::make_unique<Piece>(std::move(memory));
  }
  ring = std::move(made);
  return ring.get();
}

Status HostRelay::copy(const buffer::Claim& to, const buffer::Claim& from, sys::Deadline deadline) {
  const std::uint64_t length = from.asked.length_bytes;
  if (length != to.asked.length_bytes)
    return fail(Code::invalid, "a copy of {} bytes to {} bytes", length, to.asked.length_bytes);
  for (const buffer::Claim* const end : {&to, &from}) {
    if ((end->capabilities & STRAIT_CAN_COPY) == 0)
      return fail(Code::unsupported, "{} has no copy engine to stage with", end->device->name);
  }
  STRAIT_TRY(Ring* const ring, ring_of(*from.provider));
  const std::lock_guard turn(ring->turn);
  const auto bytes_at = [&](std::uint64_t at) { return std::min(piece_bytes_, length - at); };
  const auto take_in = [&](std::uint64_t n) -> Status {
    const std::uint64_t at = n * piece_bytes_;
    if (at >= length) return {};
    Piece& piece = ring->at(n);
    STRAIT_CHECK(piece.settle(deadline));  // what it carried before has left
    return piece.start(*from.provider, piece.address(), from.asked.address + at, bytes_at(at));
  };
  // Neither copy engine ever waits for the CPU: behind the piece it works on there is another.
  for (std::uint64_t n = 0; n + 1 < kPieces; ++n) STRAIT_CHECK(take_in(n));
  for (std::uint64_t at = 0, n = 0; at < length; at += piece_bytes_, ++n) {
    Piece& here = ring->at(n);
    STRAIT_CHECK(here.settle(deadline));
    STRAIT_CHECK(here.start(*to.provider, to.asked.address + at, here.address(), bytes_at(at)));
    STRAIT_CHECK(take_in(n + kPieces - 1));
  }
  for (const auto& piece : ring->pieces) STRAIT_CHECK(piece->settle(deadline));
  return {};
}

}  // namespace strait::exports
