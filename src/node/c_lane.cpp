// SPDX-License-Identifier: Apache-2.0
// C ABI: posting. The path of an operation: two or three checks, the ring, the doorbell; sentences only when refused.
#include <array>
#include <span>
#include <vector>

#include "node/answer.hpp"
#include "node/core.hpp"
#include "node/lane.hpp"
#include "node/local.hpp"
#include "node/near.hpp"
#include "node/near_word.hpp"
#include "node/pieces.hpp"

using namespace strait;
using namespace strait::node;

namespace {

constexpr std::uint32_t kShortBatch = 16;
constexpr std::uint32_t kKnownFlags = STRAIT_REQUIRE_ZERO_COPY | STRAIT_FENCE | STRAIT_WITH_IMM | STRAIT_WITH_SIGNAL;

// The options of a post, read only if there are any.
Status read_options(const strait_lane& lane, const strait_op_options& options, const strait_target* target,
                    std::uint32_t allowed, post::Extras& out) {
  if (options.struct_size < sizeof(strait_op_options))
    return fail(Code::invalid, "strait_op_options.struct_size is {}, not {}", options.struct_size, sizeof options);
  if ((options.flags & ~kKnownFlags) != 0)
    return fail(Code::invalid, "the operation has flags strait does not know ({:#x})", options.flags & ~kKnownFlags);
  if ((options.flags & ~allowed) != 0)
    return fail(Code::invalid, "this operation takes no {}",
                (options.flags & ~allowed & STRAIT_WITH_IMM) != 0 ? "immediate" : "signal");
  out.fence = (options.flags & STRAIT_FENCE) != 0;
  out.with_imm = (options.flags & STRAIT_WITH_IMM) != 0;
  out.imm = options.imm;
  if ((options.flags & STRAIT_WITH_SIGNAL) == 0) return {};
  if (options.signal >= STRAIT_SIGNALS)
    return fail(Code::invalid, "signal {} does not exist: a region has signals 0 to {}", options.signal,
                STRAIT_SIGNALS - 1);
  if (target->signal_address == 0)
    return fail(Code::denied, "the target has no signals: it was not shared (or its ticket not issued) for writing");
  out.with_signal = true;
  out.signal = {target->signal_address + options.signal * sizeof(std::uint64_t), signal_rkey_of(lane, *target)};
  out.signal_add = options.signal_add;
  return {};
}

std::int32_t refuse_target(strait_error* error, const strait_target& target, std::uint64_t offset,
                           std::uint64_t length_bytes, std::uint32_t right) {
  if ((target.access & right) != right) {
    const char* const name = right == STRAIT_REMOTE_WRITE ? "write" : right == STRAIT_REMOTE_READ ? "read" : "atomic";
    return answer(error, with_remedy(fail(Code::denied, "the target was not shared for remote {}", name),
                                     fmt::format("let its owner share it with remote_{}", name)));
  }
  return answer(error, fail(Code::invalid, "{} bytes at offset {} are outside the target of {} bytes", length_bytes,
                            offset, target.length_bytes));
}

std::int32_t check_item(const strait_item& item, std::uint32_t index, strait_error* error) {
  if (item.kind != STRAIT_PUT && item.kind != STRAIT_GET)
    return answer(error, fail(Code::invalid, "item {} of the batch is neither a put nor a get", index));
  if (item.local.region == nullptr || item.remote == nullptr) return answer_null(error, "an item's region or target");
  const bool put = item.kind == STRAIT_PUT;
  const std::uint32_t right = put ? STRAIT_REMOTE_WRITE : STRAIT_REMOTE_READ;
  if (!target_allows(*item.remote, item.remote_offset, item.local.length_bytes, right))
    return refuse_target(error, *item.remote, item.remote_offset, item.local.length_bytes, right);
  if (!slice_good(item.local)) return answer(error, why_slice_bad(item.local));
  if (!put && !item.local.region->writable)
    return answer(error, fail(Code::invalid, "the destination of item {} is mapped read-only", index));
  return STRAIT_OK;
}

// Tried before the NIC: `reach(near, id)` moves the bytes if this process can.
template <class Reach>
bool done_near(strait_lane* lane, strait_op* out, Reach reach) noexcept {
  Near* const near = lane->near.load(std::memory_order_acquire);
  std::uint64_t id = 0;
  if (near == nullptr || !reach(*near, id)) return false;
  hand_out_op(out, lane, id);
  return true;
}

// The commonest put through the NIC, a word with nothing asked for beside, without what others need in memory on its
// way. Every check of the general way is made here too; false: nothing has happened, and that one has the sentence.
[[gnu::noinline]] bool word_by_nic(strait_lane* lane, const strait_slice* from, const strait_target* to,
                                   std::uint64_t offset, const strait_op_options* options, strait_op* out) {
  if (lane == nullptr || from == nullptr || from->region == nullptr || to == nullptr || out == nullptr) return false;
  const strait_region& region = *from->region;
  if ((options != nullptr && options->flags != 0) || from->length_bytes != sizeof(std::uint64_t) ||
      lane->near.load(std::memory_order_acquire) != nullptr || !lane_usable(*lane) || !lane->core.posts_words() ||
      region.staged || !region.cpu_accessible ||
      !target_allows(*to, offset, sizeof(std::uint64_t), STRAIT_REMOTE_WRITE) || !slice_good(*from))
    return false;
  const std::uint32_t rkey = rkey_of(*lane, *to);
  if (rkey == kNoKey) return false;
  std::uint64_t id = 0;
  post::Posted posted;
  {
    const Using use(*lane);
    posted = lane->core.put_word(reinterpret_cast<const void*>(region.local_address + from->offset), &region,
                                 from->offset, {to->address + offset, rkey}, id);
  }
  lane->sleeper->rouse();
  if (posted != post::Posted::ok) [[unlikely]]
    return false;
  hand_out_op(out, lane, id);
  return true;
}

// Room for what the NIC is told of a batch. Most are short. A lane with one owner keeps the room for the others;
// callers that share one may be here at the same time.
class BatchRoom {
 public:
  BatchRoom(strait_lane& lane, std::uint32_t n) {
    if (n <= kShortBatch) {
      items_ = std::span(few_).first(n);
    } else if (lane.shared) {
      many_.resize(n);
      items_ = many_;
    } else {
      if (!lane.long_batch) lane.long_batch = std::make_unique<post::BatchItem[]>(lane.core.depth());
      items_ = {lane.long_batch.get(), n};
    }
  }
  BatchRoom(const BatchRoom&) = delete;
  BatchRoom& operator=(const BatchRoom&) = delete;
  [[nodiscard]] std::span<post::BatchItem> items() const { return items_; }

 private:
  std::array<post::BatchItem, kShortBatch> few_;
  std::vector<post::BatchItem> many_;
  std::span<post::BatchItem> items_;
};

// Everything common to the posting calls: `post(extras, id)` runs with the lane in use.
template <class Post>
std::int32_t post_on(strait_lane* lane, post::Kind kind, strait_op* out, strait_error* error, Post post) noexcept {
  try {
    std::uint64_t id = 0;
    post::Posted posted;
    {
      const Using use(*lane);
      posted = post(id);
    }
    lane->sleeper->rouse();
    if (posted != post::Posted::ok) [[unlikely]]
      return answer(error, why_refused(*lane, posted, kind));
    hand_out_op(out, lane, id);
    return STRAIT_OK;
  } catch (...) {
    return answer_exception(error);
  }
}

}  // namespace

extern "C" {

[[gnu::noinline]] static std::int32_t put_any(strait_lane* lane, const strait_slice* from, const strait_target* to,
                                              std::uint64_t to_offset, const strait_op_options* options, strait_op* out,
                                              strait_error* error) {
  if (lane == nullptr || from == nullptr || from->region == nullptr || to == nullptr || out == nullptr) [[unlikely]]
    return answer_null(error, "lane, slice, region, target or operation");
  if (!lane_usable(*lane)) [[unlikely]]
    return answer(error, why_unusable(*lane));
  if (any_word_near<Word::put>(lane, from, to, to_offset, options, out)) return STRAIT_OK;
  if (!target_allows(*to, to_offset, from->length_bytes, STRAIT_REMOTE_WRITE)) [[unlikely]]
    return refuse_target(error, *to, to_offset, from->length_bytes, STRAIT_REMOTE_WRITE);
  if (!slice_good(*from)) [[unlikely]]
    return answer(error, why_slice_bad(*from));
  post::Extras extras;
  if (options != nullptr && options->flags != 0) {
    if (const Status read = read_options(*lane, *options, to, kKnownFlags, extras); !read)
      return answer(error, read.error());
  }
  if (done_near(lane, out, [&](Near& near, std::uint64_t& id) {
        return put_near(*lane, near, *from, *to, to_offset, options, id);
      }))
    return STRAIT_OK;
  const post::Local local = local_of(*lane, *from);
  const std::uint32_t rkey = rkey_of(*lane, *to);
  if (local.lkey == kNoKey || rkey == kNoKey) [[unlikely]]
    return answer(error, local.lkey == kNoKey ? why_no_key(*lane, *from) : why_no_remote_key(*lane));
  if (from->region->staged) [[unlikely]] {
    if (in_pieces(*from)) {
      return guarded(error, [&]() -> Status {
        STRAIT_CHECK(may_stage(*from, options));
        out->lane = lane;
        return put_in_pieces(*lane, *from, {to->address + to_offset, rkey}, extras, out->id);
      });
    }
    if (const Status filled = stage_out(*from, options); !filled) return answer(error, filled.error());
  }
  return post_on(lane, post::Kind::put, out, error, [&](std::uint64_t& id) {
    return lane->core.put(local, {to->address + to_offset, rkey}, extras, id);
  });
}

[[gnu::noinline]] static std::int32_t get_any(strait_lane* lane, const strait_slice* into, const strait_target* from,
                                              std::uint64_t from_offset, const strait_op_options* options,
                                              strait_op* out, strait_error* error) {
  if (lane == nullptr || into == nullptr || into->region == nullptr || from == nullptr || out == nullptr)
    return answer_null(error, "lane, slice, region, target or operation");
  if (!lane_usable(*lane)) return answer(error, why_unusable(*lane));
  if (any_word_near<Word::get>(lane, into, from, from_offset, options, out)) return STRAIT_OK;
  if (!target_allows(*from, from_offset, into->length_bytes, STRAIT_REMOTE_READ))
    return refuse_target(error, *from, from_offset, into->length_bytes, STRAIT_REMOTE_READ);
  if (!slice_good(*into)) return answer(error, why_slice_bad(*into));
  if (!into->region->writable) return answer(error, fail(Code::invalid, "the destination is mapped read-only"));
  post::Extras extras;
  if (options != nullptr && options->flags != 0) {
    if (const Status read = read_options(*lane, *options, from, STRAIT_REQUIRE_ZERO_COPY | STRAIT_FENCE, extras); !read)
      return answer(error, read.error());
  }
  if (done_near(lane, out, [&](Near& near, std::uint64_t& id) {
        return get_near(*lane, near, *into, *from, from_offset, options, id);
      }))
    return STRAIT_OK;
  post::Local local = local_of(*lane, *into);
  const std::uint32_t rkey = rkey_of(*lane, *from);
  if (local.lkey == kNoKey || rkey == kNoKey) [[unlikely]]
    return answer(error, local.lkey == kNoKey ? why_no_key(*lane, *into) : why_no_remote_key(*lane));
  if (into->region->staged) {
    if (const Status allowed = may_stage(*into, options); !allowed) return answer(error, allowed.error());
    if (in_pieces(*into)) {
      return guarded(error, [&]() -> Status {
        out->lane = lane;
        return get_in_pieces(*lane, *into, {from->address + from_offset, rkey}, extras, out->id);
      });
    }
    local.unstage = true;
  }
  return post_on(lane, post::Kind::get, out, error, [&](std::uint64_t& id) {
    return lane->core.get(local, {from->address + from_offset, rkey}, extras, id);
  });
}

// The short way is tried in a function of its own: what the general one needs of stack and registers would cost more.
std::int32_t strait_put(strait_lane* lane, const strait_slice* from, const strait_target* to, std::uint64_t to_offset,
                        const strait_op_options* options, strait_op* out, strait_error* error) {
  if (word_near<Word::put>(lane, from, to, to_offset, options, out) ||
      word_by_nic(lane, from, to, to_offset, options, out))
    return STRAIT_OK;
  return put_any(lane, from, to, to_offset, options, out, error);
}

std::int32_t strait_get(strait_lane* lane, const strait_slice* into, const strait_target* from,
                        std::uint64_t from_offset, const strait_op_options* options, strait_op* out,
                        strait_error* error) {
  if (word_near<Word::get>(lane, into, from, from_offset, options, out)) return STRAIT_OK;
  return get_any(lane, into, from, from_offset, options, out, error);
}

[[gnu::noinline]] static std::int32_t atomic_any(post::Kind kind, strait_lane* lane, const strait_target* at,
                                                 std::uint64_t offset, std::uint64_t operand, std::uint64_t compare,
                                                 const strait_op_options* options, strait_op* out,
                                                 strait_error* error) {
  if (lane == nullptr || at == nullptr || out == nullptr) return answer_null(error, "lane, target or operation");
  if (!lane_usable(*lane)) return answer(error, why_unusable(*lane));
  if (!target_allows(*at, offset, 8, STRAIT_REMOTE_ATOMIC))
    return refuse_target(error, *at, offset, 8, STRAIT_REMOTE_ATOMIC);
  const device::Remote place{at->address + offset, rkey_of(*lane, *at)};
  if (place.addr % 8 != 0) {
    return answer(error, fail(Code::invalid,
                              "atomics work on 8 bytes at an 8-byte aligned place; offset {} of the target is at {:#x}",
                              offset, place.addr));
  }
  post::Extras extras;
  if (options != nullptr && options->flags != 0) {
    if (const Status read = read_options(*lane, *options, at, STRAIT_REQUIRE_ZERO_COPY | STRAIT_FENCE, extras); !read)
      return answer(error, read.error());
  }
  if (done_near(lane, out, [&](Near& near, std::uint64_t& id) {
        return atomic_near(*lane, near, kind, *at, offset, operand, compare, options, id);
      }))
    return STRAIT_OK;
  if (place.rkey == kNoKey) return answer(error, why_no_remote_key(*lane));
  return post_on(lane, kind, out, error,
                 [&](std::uint64_t& id) { return lane->core.atomic(kind, place, operand, compare, extras.fence, id); });
}

std::int32_t strait_fetch_add(strait_lane* lane, const strait_target* at, std::uint64_t offset, std::uint64_t add,
                              const strait_op_options* options, strait_op* out, strait_error* error) {
  if (atomic_word_near<Word::fetch_add>(lane, at, offset, add, 0, options, out)) return STRAIT_OK;
  return atomic_any(post::Kind::fetch_add, lane, at, offset, add, 0, options, out, error);
}

std::int32_t strait_compare_swap(strait_lane* lane, const strait_target* at, std::uint64_t offset,
                                 std::uint64_t expected, std::uint64_t desired, const strait_op_options* options,
                                 strait_op* out, strait_error* error) {
  if (atomic_word_near<Word::compare_swap>(lane, at, offset, desired, expected, options, out)) return STRAIT_OK;
  return atomic_any(post::Kind::compare_swap, lane, at, offset, desired, expected, options, out, error);
}

std::int32_t strait_send(strait_lane* lane, const strait_slice* from, const strait_op_options* options, strait_op* out,
                         strait_error* error) {
  if (lane == nullptr || from == nullptr || from->region == nullptr || out == nullptr)
    return answer_null(error, "lane, slice, region or operation");
  if (!lane_usable(*lane)) return answer(error, why_unusable(*lane));
  if (!slice_good(*from)) return answer(error, why_slice_bad(*from));
  post::Extras extras;
  if (options != nullptr && options->flags != 0) {
    if (const Status read =
            read_options(*lane, *options, nullptr, kKnownFlags & ~std::uint32_t{STRAIT_WITH_SIGNAL}, extras);
        !read)
      return answer(error, read.error());
  }
  const post::Local local = local_of(*lane, *from);
  if (local.lkey == kNoKey) return answer(error, why_no_key(*lane, *from));
  if (from->region->staged) {
    if (const Status filled = stage_out(*from, options); !filled) return answer(error, filled.error());
  }
  return post_on(lane, post::Kind::send, out, error,
                 [&](std::uint64_t& id) { return lane->core.send(local, extras, id); });
}

std::int32_t strait_receive(strait_lane* lane, const strait_slice* into, strait_op* out, strait_error* error) {
  if (lane == nullptr || out == nullptr) return answer_null(error, "lane or operation");
  if (!lane_usable(*lane)) return answer(error, why_unusable(*lane));
  post::Local local;
  if (into != nullptr) {
    if (into->region == nullptr) return answer_null(error, "the slice's region");
    if (!slice_good(*into)) return answer(error, why_slice_bad(*into));
    if (!into->region->writable) return answer(error, fail(Code::invalid, "the destination is mapped read-only"));
    local = local_of(*lane, *into);
    if (local.lkey == kNoKey) return answer(error, why_no_key(*lane, *into));
    local.unstage = into->region->staged;
  }
  return post_on(lane, post::Kind::receive, out, error,
                 [&](std::uint64_t& id) { return lane->core.receive(local, id); });
}

std::int32_t strait_batch(strait_lane* lane, const strait_item* items, std::uint32_t n_items,
                          const strait_op_options* options, strait_op* out, strait_error* error) {
  if (lane == nullptr || items == nullptr || out == nullptr) return answer_null(error, "lane, items or operation");
  if (!lane_usable(*lane)) return answer(error, why_unusable(*lane));
  if (n_items == 0) return answer(error, fail(Code::invalid, "a batch has at least one item"));
  for (std::uint32_t i = 0; i < n_items; ++i) {
    if (const std::int32_t bad = check_item(items[i], i, error); bad != STRAIT_OK) return bad;
  }
  post::Extras extras;
  if (options != nullptr && options->flags != 0) {
    const std::uint32_t allowed = items[n_items - 1].kind == STRAIT_PUT
                                      ? kKnownFlags
                                      : kKnownFlags & ~std::uint32_t{STRAIT_WITH_IMM | STRAIT_WITH_SIGNAL};
    if (const Status read = read_options(*lane, *options, items[n_items - 1].remote, allowed, extras); !read)
      return answer(error, read.error());
  }
  if (done_near(lane, out,
                [&](Near& near, std::uint64_t& id) { return batch_near(*lane, near, items, n_items, options, id); }))
    return STRAIT_OK;
  if (n_items > lane->core.depth()) return answer(error, why_refused(*lane, post::Posted::too_long, post::Kind::batch));
  try {
    const BatchRoom room(*lane, n_items);
    const std::span<post::BatchItem> batch = room.items();
    for (std::uint32_t i = 0; i < n_items; ++i) {
      const strait_slice& local = items[i].local;
      const bool put = items[i].kind == STRAIT_PUT;
      batch[i].kind = put ? post::Kind::put : post::Kind::get;
      batch[i].local = local_of(*lane, local);
      batch[i].remote = {items[i].remote->address + items[i].remote_offset, rkey_of(*lane, *items[i].remote)};
      if (batch[i].local.lkey == kNoKey) return answer(error, why_no_key(*lane, local));
      if (batch[i].remote.rkey == kNoKey) return answer(error, why_no_remote_key(*lane));
      if (!local.region->staged) continue;
      if (const Status staged = put ? stage_out(local, options) : may_stage(local, options); !staged)
        return answer(error, staged.error());
      batch[i].local.unstage = !put;
    }
    return post_on(lane, post::Kind::batch, out, error,
                   [&](std::uint64_t& id) { return lane->core.batch(batch, extras, id); });
  } catch (...) {
    return answer_exception(error);
  }
}

}  // extern "C"
