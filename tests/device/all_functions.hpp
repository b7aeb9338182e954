// SPDX-License-Identifier: Apache-2.0
// Calls every function of device/ once, for compilers: a kernel and a host function instantiate the same body.
#pragma once

#include "strait/device/clock.hpp"
#include "strait/device/completion_ring.hpp"
#include "strait/device/order.hpp"
#include "strait/device/post.hpp"
#include "strait/device/receive_ring.hpp"
#include "strait/device/request.hpp"
#include "strait/device/segments.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/slots.hpp"
#include "strait/device/space.hpp"
#include "strait/device/wait.hpp"
#include "strait/wire/endian.hpp"
#include "strait/wire/mlx5.hpp"

namespace strait::device {

template <Sharing S>
STRAIT_HD inline unsigned call_all(SendRing& send, ReceiveRing& receive, CompletionRing& cq, const Piece* pieces,
                                   std::uint32_t count, const Remote& remote, const void* payload,
                                   std::uint32_t length) {
  unsigned ok = 0;
  const wire::be32 imm{7};
  const Piece four{pieces->addr, 4, pieces->lkey};
  const Piece eight{pieces->addr, 8, pieces->lkey};
  ok += post_send<S>(send, pieces, count, kSignaled).ok();
  ok += post_send<S>(send, *pieces, kSignaled).ok();
  ok += post_send_imm<S>(send, pieces, count, imm, kSignaled | kSolicited).ok();
  ok += post_send_imm<S>(send, *pieces, imm, kNoFlags).ok();
  ok += post_send_invalidate<S>(send, pieces, count, 5, kNoFlags).ok();
  ok += post_send_invalidate<S>(send, *pieces, 5, kNoFlags).ok();
  ok += post_send_inline<S>(send, payload, length, kNoFlags).ok();
  ok += post_send_imm_inline<S>(send, payload, length, imm, kNoFlags).ok();
  ok += post_write<S>(send, remote, pieces, count, kNoFlags).ok();
  ok += post_write<S>(send, remote, *pieces, kFenced).ok();
  ok += post_write_imm<S>(send, remote, pieces, count, imm, kNoFlags).ok();
  ok += post_write_imm<S>(send, remote, *pieces, imm, kNoFlags).ok();
  ok += post_write_inline<S>(send, remote, payload, length, kNoFlags).ok();
  ok += post_write_imm_inline<S>(send, remote, payload, length, imm, kNoFlags).ok();
  ok += post_read<S>(send, remote, pieces, count, kNoFlags).ok();
  ok += post_read<S>(send, remote, *pieces, kNoFlags).ok();
  ok += post_compare_swap<S>(send, remote, 1, 2, eight, kNoFlags).ok();
  ok += post_fetch_add<S>(send, remote, 1, eight, kNoFlags).ok();
  ok += post_masked_fetch_add4<S>(send, remote, 1, 0, four, kNoFlags).ok();
  ok += post_masked_fetch_add8<S>(send, remote, 1, 0, eight, kNoFlags).ok();
  ok += post_masked_compare_swap4<S>(send, remote, {1, 2, 3, 4}, four, kNoFlags).ok();
  ok += post_masked_compare_swap8<S>(send, remote, {1, 2, 3, 4}, eight, kNoFlags).ok();
  ok += post_nop<S>(send, kSignaled).ok();
  ring_doorbell<S>(send);
  ok += post_receive<S>(receive, pieces, count).ok();
  ok += post_receive<S>(receive, *pieces).ok();
  publish_receives<S>(receive);
  Completion completion{};
  const Deadline deadline = Deadline::after_ns(1000);
  ok += wait_until_done<S, CompletionMode::normal>(send, cq, 0, deadline, completion) == Waited::ok;
  ok += wait_until_done<S, CompletionMode::collapsed>(send, cq, 0, deadline, completion) == Waited::ok;
  ok += wait_for_space<S, CompletionMode::normal>(send, cq, 1, deadline, completion) == Waited::ok;
  ok += wait_for_completion(cq, deadline, completion) == Waited::ok;
  ok += wait_for_completion(cq, deadline, completion, &count) == Waited::ok;
  ok += take_receive<S>(receive, completion.wqe_counter).known;
  ok += free_receives<S>(receive) > 0;
  return ok;
}

}  // namespace strait::device
