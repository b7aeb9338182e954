// SPDX-License-Identifier: Apache-2.0
// C ABI: waiting for operations.
#include "node/answer.hpp"
#include "node/bury.hpp"
#include "node/near.hpp"
#include "node/near_word.hpp"
#include "node/wait.hpp"

using namespace strait;
using namespace strait::node;

namespace {

void fill(const post::Outcome& outcome, strait_done* out) {
  if (out == nullptr || out->struct_size < sizeof(strait_done)) return;
  out->flags = outcome.has_imm ? std::uint32_t{STRAIT_WITH_IMM} : 0u;
  out->bytes = outcome.bytes;
  out->value = outcome.value;
  out->imm = outcome.imm;
  out->reserved = 0;
}

// The operation is over, one way or the other: its handle becomes empty.
std::int32_t close_op(strait_op& op, const post::Outcome& outcome, strait_done* out, strait_error* error) {
  strait_lane& lane = *op.lane;
  op = {};
  if (outcome.failed) [[unlikely]]
    return answer(error, why_failed(lane, outcome));
  fill(outcome, out);
  return STRAIT_OK;
}

std::int32_t answer_unknown(strait_op& op, strait_error* error) {
  op = {};
  return answer(error, fail(Code::invalid,
                            "this operation is not under way: it was waited for or detached before, or never posted"));
}

std::int32_t check_op(strait_op* op, strait_error* error) {
  if (op == nullptr || op->lane == nullptr)
    return answer(error, fail(Code::invalid, "the operation is empty: it was waited for or detached before"));
  return answer(error, why_unusable(*op->lane));
}

}  // namespace

// Complete since it was posted.
static std::int32_t close_complete(strait_op& op, strait_done* out, std::uint64_t bytes, std::uint64_t value) {
  op = {};
  if (out == nullptr || out->struct_size < sizeof(strait_done)) return STRAIT_OK;
  out->flags = 0;
  out->bytes = bytes;
  out->value = value;
  out->imm = 0;
  out->reserved = 0;
  return STRAIT_OK;
}

// The id says all there is to say.
static std::int32_t close_complete(strait_op& op, strait_done* out) {
  return close_complete(op, out, op.id & STRAIT_OP_BYTES, 0);
}

// Nobody has to be driven for it.
static std::int32_t close_mapped(strait_op& op, strait_done* out, strait_error* error) {
  if ((op.id & kFetchedWord) != 0) {
    Near* const near = op.lane->near.load(std::memory_order_acquire);
    std::uint64_t value = 0;
    if (near == nullptr || !take_fetched(*near, op.id, value)) return answer_unknown(op, error);
    return close_complete(op, out, sizeof value, value);
  }
  post::Outcome outcome;
  post::Asked asked;
  {
    const Using use(*op.lane);
    asked = op.lane->core.ask(op.id & ~STRAIT_OP_BY_MAP, outcome);
  }
  return asked == post::Asked::finished ? close_op(op, outcome, out, error) : answer_unknown(op, error);
}

extern "C" {

const char* strait_op_path(const strait_op* op) {
  if (op == nullptr || op->lane == nullptr) return "";
  const Near* const near = op->lane->near.load(std::memory_order_acquire);
  if ((op->id & (STRAIT_OP_COMPLETE | STRAIT_OP_BY_MAP)) == 0 || near == nullptr) return op->lane->path.c_str();
  return ((op->id & STRAIT_OP_BY_COPY) != 0 ? near->copy_path : near->map_path).c_str();
}

const char* strait_target_path(strait_lane* lane, const strait_target* target) {
  if (lane == nullptr || target == nullptr) return "";
  Near* const near = lane->near.load(std::memory_order_acquire);
  if (near == nullptr || !lane_usable(*lane)) return lane->path.c_str();
  switch (way_to(*lane, *near, *target)) {
    case grant::Way::map: return near->map_path.c_str();
    case grant::Way::copy: return near->copy_paths.c_str();
    default: return lane->path.c_str();
  }
}

[[gnu::noinline]] static std::int32_t wait_for(strait_op* op, std::int64_t timeout_ns, strait_done* out,
                                               strait_error* error) {
  if (op == nullptr || op->lane == nullptr || !lane_usable(*op->lane)) [[unlikely]]
    return check_op(op, error);
  if ((op->id & STRAIT_OP_BY_MAP) != 0) return close_mapped(*op, out, error);
  try {
    strait_lane& lane = *op->lane;
    const std::uint64_t id = op->id;
    post::Outcome outcome;
    post::Asked asked = post::Asked::pending;
    const Waited waited = wait_on(lane, timeout_ns, [&] {
      asked = lane.core.ask(id, outcome);
      if (asked == post::Asked::pending) lane.core.expect(id);
      return asked != post::Asked::pending;
    });
    if (asked == post::Asked::unknown) return answer_unknown(*op, error);
    if (waited == Waited::timeout) {
      return answer(error,
                    with_remedy(fail(Code::timeout,
                                     "the operation on the lane to {} did not complete before the deadline; it is "
                                     "still under way and keeps its memory",
                                     lane.peer_name),
                                "wait again, detach it, or close the lane to end it; reuse the memory only then"));
    }
    return close_op(*op, outcome, out, error);
  } catch (...) {
    return answer_exception(error);
  }
}

std::int32_t strait_wait(strait_op* op, std::int64_t timeout_ns, strait_done* out, strait_error* error) {
  constexpr std::uint64_t kFetched = STRAIT_OP_BY_MAP | kFetchedWord;
  if (op != nullptr && op->lane != nullptr && lane_usable(*op->lane)) [[likely]] {
    if ((op->id & STRAIT_OP_COMPLETE) != 0) return close_complete(*op, out);
    if ((op->id & kFetched) == kFetched) return close_mapped(*op, out, error);
  }
  return wait_for(op, timeout_ns, out, error);
}

std::int32_t strait_test(strait_op* op, strait_done* out, strait_error* error) {
  if (op == nullptr || op->lane == nullptr || !lane_usable(*op->lane)) [[unlikely]]
    return check_op(op, error);
  if ((op->id & STRAIT_OP_COMPLETE) != 0) return close_complete(*op, out);
  if ((op->id & STRAIT_OP_BY_MAP) != 0) return close_mapped(*op, out, error);
  try {
    strait_lane& lane = *op->lane;
    post::Outcome outcome;
    lane.core.queue().drive();
    lane.sleeper->rouse();
    lane.polls.store(lane.polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    post::Asked asked;
    {
      const Using use(lane);
      lane.core.reap();
      asked = lane.core.ask(op->id, outcome);
      if (asked == post::Asked::pending) lane.core.expect(op->id);
    }
    if (asked == post::Asked::unknown) return answer_unknown(*op, error);
    // No sentence is made up for "not yet": callers ask many times.
    if (asked == post::Asked::pending) {
      if (error != nullptr && error->struct_size >= sizeof(strait_error)) {
        error->code = STRAIT_AGAIN;
        error->sys_errno = 0;
        error->syndrome = 0;
        constexpr char kText[] = "the operation is still under way";
        std::copy(std::begin(kText), std::end(kText), error->text);
        error->remedy[0] = '\0';
      }
      return STRAIT_AGAIN;
    }
    return close_op(*op, outcome, out, error);
  } catch (...) {
    return answer_exception(error);
  }
}

void strait_detach(strait_op* op) {
  if (op == nullptr || op->lane == nullptr) return;
  strait_lane& lane = *op->lane;
  if ((op->id & STRAIT_OP_COMPLETE) == 0 && lane_usable(lane)) {
    const Using use(lane);
    Near* const near = lane.near.load(std::memory_order_acquire);
    std::uint64_t value = 0;
    if ((op->id & STRAIT_OP_BY_MAP) == 0)
      lane.core.detach(op->id);
    else if ((op->id & kFetchedWord) == 0)
      lane.core.detach(op->id & ~STRAIT_OP_BY_MAP);
    else if (near != nullptr)
      (void)take_fetched(*near, op->id, value);
  }
  *op = {};
}

std::int32_t strait_flush(strait_lane* lane, std::int64_t timeout_ns, strait_error* error) {
  if (lane == nullptr) return answer_null(error, "lane");
  if (!lane_usable(*lane)) return answer(error, why_unusable(*lane));
  try {
    std::uint64_t mark = 0;
    {
      const Using use(*lane);
      mark = lane->core.mark();
    }
    post::Outcome failure;
    bool failed = false;
    const Waited waited = wait_on(*lane, timeout_ns, [&] {
      if (!lane->core.flushed(mark)) {
        (void)lane->core.mark();  // the ring may have been too full for the closing entry
        return false;
      }
      failed = lane->core.take_detached_failure(failure);
      return true;
    });
    if (waited == Waited::timeout) {
      return answer(error, fail(Code::timeout,
                                "the lane to {} did not drain before the deadline; what is under way keeps its memory",
                                lane->peer_name));
    }
    return failed ? answer(error, why_failed(*lane, failure)) : static_cast<std::int32_t>(STRAIT_OK);
  } catch (...) {
    return answer_exception(error);
  }
}

const char* strait_lane_path(strait_lane* lane) {
  return lane == nullptr ? "" : lane->path.c_str();
}

void strait_lane_close(strait_lane* lane) {
  if (lane == nullptr) return;
  if (lane->mark->in_child()) return bury(lane);
  const std::shared_ptr<Core> core = lane->node;
  core->close_lane(lane);
}

}  // extern "C"
