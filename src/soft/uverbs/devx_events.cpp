// SPDX-License-Identifier: Apache-2.0
// Events for DevX programs: a descriptor to read them from, and which ones of which object.
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <array>
#include <cerrno>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/devx_objects.hpp"

namespace strait::soft::uverbs {

namespace {

constexpr std::size_t kMostEvents = 64;  // in one subscription; there are fewer kinds

EventTarget* events_of(Object& object) {
  if (Object* const qp = object.as(Kind::qp)) return &static_cast<Qp*>(qp)->events;
  if (Object* const cq = object.as(Kind::cq)) return &static_cast<Cq*>(cq)->events;
  if (Object* const srq = object.as(Kind::srq)) return &static_cast<Srq*>(srq)->events;
  return nullptr;
}

}  // namespace

int Context::devx_alloc_events(Request& request) {
  if (const int failed = need_devx()) return failed;
  const std::uint64_t flags = request.word(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS);
  if ((flags & ~std::uint64_t{MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA}) != 0) return -EINVAL;
  std::erase_if(devx_channels_, [](const DevxChannel& one) { return one.channel->abandoned(); });
  auto made = sys::EventPipe::make();
  if (!made) return -errno_of(made.error());
  if (const int failed = request.put_word(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE,
                                          static_cast<std::uint64_t>(made->reader.get())))
    return failed;
  (void)made->reader.release();  // the program's from now on
  devx_channels_.push_back({std::make_shared<Channel>(std::move(made->pipe)), flags == 0});
  return 0;
}

// Events of an object only: of the device itself there are none. An eventfd in place of the channel is not served.
int Context::devx_subscribe(Request& request) {
  if (const int failed = need_devx()) return failed;
  if (request.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM)) return -EOPNOTSUPP;
  if (!request.has(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE)) return -EOPNOTSUPP;
  const auto fd =
      static_cast<int>(static_cast<std::int64_t>(request.word(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE)));
  const DevxChannel* to = nullptr;
  for (const DevxChannel& one : devx_channels_) {
    if (one.channel->is_program_end(fd)) to = &one;
  }
  if (to == nullptr) return -EBADF;
  Object* const object = objects_.find_any(request.word(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE));
  if (object == nullptr) return -ENOENT;
  EventTarget* const events = events_of(*object);
  if (events == nullptr) return -EINVAL;
  std::array<std::uint16_t, kMostEvents> types{};
  const std::size_t bytes = request.length(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST);
  if (bytes % sizeof types[0] != 0 || bytes > sizeof types) return -EINVAL;
  if (const int failed = request.get(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, types.data(), bytes))
    return failed;
  std::vector<Subscription> wanted;
  for (std::size_t i = 0; i < bytes / sizeof types[0]; ++i) {
    const auto type = static_cast<wire::prm::EventType>(types[i]);
    // A completion queue of verbs without a channel is never armed.
    if (type == wire::prm::EventType::completion && object->as(Kind::devx) == nullptr) return -EOPNOTSUPP;
    wanted.push_back({type, to->channel, request.word(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE), to->with_data});
  }
  events->subscribe(std::move(wanted));
  return 0;
}

}  // namespace strait::soft::uverbs
