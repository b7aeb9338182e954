// SPDX-License-Identifier: Apache-2.0
#include "node/pieces.hpp"

#include <algorithm>

#include "sys/pause.hpp"

namespace strait::node {
namespace {

// At most as many as leave half of the lane to others.
std::uint64_t piece_bytes(const strait_lane& lane, std::uint64_t length_bytes) {
  const std::uint64_t wanted = lane.node->settings().staging_piece_bytes;
  const std::uint64_t most = std::max<std::uint64_t>(lane.core.depth() / 2, 1);
  const std::uint64_t least = (length_bytes + most - 1) / most;
  return std::max(wanted, (least + 4095) / 4096 * 4096);
}

// Nobody else makes room in a lane of one owner, so this does.
template <class Post>
Status post_piece(strait_lane& lane, post::Kind kind, const sys::Deadline& deadline, Post post) {
  for (std::uint32_t turn = 0;; ++turn) {
    post::Posted posted;
    {
      const Using use(lane);
      posted = post();
    }
    lane.sleeper->rouse();
    if (posted == post::Posted::ok) return {};
    const bool full = posted == post::Posted::no_place || posted == post::Posted::ring_full;
    if (!full || deadline.passed()) return why_refused(lane, posted, kind);
    lane.node->drive_all();
    {
      const Using use(lane);
      lane.core.reap();
    }
    sys::pause_turn(turn);
  }
}

struct Piece {
  std::uint64_t at;
  std::uint64_t length_bytes;
  bool last;
};

// work(piece) for each; in order.
template <class Work>
Status each_piece(std::uint64_t piece, std::uint64_t length_bytes, Work work) {
  for (std::uint64_t at = 0; at < length_bytes; at += piece) {
    const std::uint64_t n = std::min(piece, length_bytes - at);
    STRAIT_CHECK(work(Piece{at, n, at + n == length_bytes}));
  }
  return {};
}

// The fence is the first one's, everything else the last one's.
post::Extras extras_of(const post::Extras& all, const Piece& piece) {
  post::Extras out = piece.last ? all : post::Extras{};
  out.fence = all.fence && piece.at == 0;
  return out;
}

void settle_piece(strait_lane& lane, std::uint64_t id, const Piece& piece, std::uint64_t total_bytes) {
  if (piece.last) {
    lane.core.stands_for(id, total_bytes);
  } else {
    lane.core.detach(id);
  }
}

strait_slice part_of(const strait_slice& slice, const Piece& piece) {
  return {slice.region, slice.offset + piece.at, piece.length_bytes};
}

}  // namespace

bool in_pieces(const strait_slice& slice) {
  return slice.region->staged && slice.length_bytes > slice.region->core->settings().staging_piece_bytes;
}

Status put_in_pieces(strait_lane& lane, const strait_slice& from, device::Remote to, const post::Extras& extras,
                     std::uint64_t& id) {
  strait_region& region = *from.region;
  const sys::Deadline deadline = region.core->deadline(-1);
  const std::uint64_t piece = piece_bytes(lane, from.length_bytes);
  const auto start = [&](std::uint64_t at) -> Result<std::uint64_t> {
    const std::lock_guard lock(region.staging_mutex);
    return region.staging->start_fill(from.offset + at, std::min(piece, from.length_bytes - at), deadline);
  };
  STRAIT_TRY(std::uint64_t ticket, start(0));
  return each_piece(piece, from.length_bytes, [&](const Piece& next) -> Status {
    {
      const std::lock_guard lock(region.staging_mutex);
      STRAIT_CHECK(region.staging->finish_fill(ticket, next.length_bytes, deadline));
    }
    if (!next.last) {
      STRAIT_TRY(ticket, start(next.at + next.length_bytes));
    }
    const post::Local local = local_of(lane, part_of(from, next));
    STRAIT_CHECK(post_piece(lane, post::Kind::put, deadline, [&] {
      const post::Posted posted = lane.core.put(local, {to.addr + next.at, to.rkey}, extras_of(extras, next), id);
      if (posted == post::Posted::ok) settle_piece(lane, id, next, from.length_bytes);
      return posted;
    }));
    lane.node->drive_all();  // on the wire while the next one is copied, also where nobody else drives
    return {};
  });
}

Status get_in_pieces(strait_lane& lane, const strait_slice& into, device::Remote from, const post::Extras& extras,
                     std::uint64_t& id) {
  const sys::Deadline deadline = into.region->core->deadline(-1);
  return each_piece(piece_bytes(lane, into.length_bytes), into.length_bytes, [&](const Piece& next) -> Status {
    post::Local local = local_of(lane, part_of(into, next));
    local.unstage = true;
    return post_piece(lane, post::Kind::get, deadline, [&] {
      const post::Posted posted = lane.core.get(local, {from.addr + next.at, from.rkey}, extras_of(extras, next), id);
      if (posted == post::Posted::ok) settle_piece(lane, id, next, into.length_bytes);
      return posted;
    });
  });
}

}  // namespace strait::node
