// SPDX-License-Identifier: Apache-2.0
// Completion queues, and the channels on which their events arrive.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/hooks.hpp"
#include "soft/uverbs/limits.hpp"
#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

int Context::create_channel(WriteCall& call) {
  // Those whose descriptor the program has closed are not missed.
  std::erase_if(channels_, [](const auto& channel) { return channel.use_count() == 1 && channel->abandoned(); });
  auto made = sys::EventPipe::make();
  if (!made) return -errno_of(made.error());
  ib_uverbs_create_comp_channel_resp out{};
  out.fd = static_cast<std::uint32_t>(made->reader.get());
  if (const int failed = call.put(out)) return failed;
  (void)made->reader.release();
  channels_.push_back(std::make_shared<Channel>(std::move(made->pipe)));
  return 0;
}

std::shared_ptr<Channel> Context::find_channel(std::int64_t fd) {
  for (const auto& channel : channels_) {
    if (channel->is_program_end(static_cast<int>(fd))) return channel;
  }
  return nullptr;
}

int Context::create_cq(Request& request) {
  if (const int failed = need_engine()) return failed;
  std::uint32_t cqe = 0;
  std::uint32_t vector = 0;
  if (const int failed = request.get(UVERBS_ATTR_CREATE_CQ_CQE, cqe)) return failed;
  if (const int failed = request.get(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, vector)) return failed;
  if (vector >= limits::kCompletionVectors) return -EINVAL;
  const std::uint64_t flags = request.word(UVERBS_ATTR_CREATE_CQ_FLAGS);
  constexpr std::uint64_t kKnown = IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
  if ((flags & ~kKnown) != 0) return -EOPNOTSUPP;
  mlx5_ib_create_cq driver{};
  if (request.length(UVERBS_ATTR_UHW_IN) < offsetof(mlx5_ib_create_cq, flags)) return -EINVAL;
  if (const int failed = request.get(UVERBS_ATTR_UHW_IN, driver)) return failed;
  if (driver.cqe_size != 64 && driver.cqe_size != 128) return -EINVAL;
  if (driver.cqe_comp_en != 0) return -EOPNOTSUPP;
  constexpr std::uint32_t kKnownByDriver =
      MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD | MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
  if ((driver.flags & ~kKnownByDriver) != 0) return -EOPNOTSUPP;
  if ((driver.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD) != 0 && driver.cqe_size != 128) return -EOPNOTSUPP;
  // Programs are told one less than the ring has.
  if (cqe == 0 || cqe > limits::kCompletionEntries || !std::has_single_bit(cqe + 1)) return -EINVAL;
  const std::uint32_t entries = cqe + 1;

  auto cq = std::make_unique<Cq>();
  if ((driver.flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) != 0) {
    cq->uar = objects_.find_uar(driver.uar_page_index);
    if (cq->uar == nullptr) return -EINVAL;
  }
  cq->entries = entries;
  cq->events.element = request.word(UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
  cq->events.async = async_;
  if (request.has(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL)) {
    cq->events.completions = find_channel(static_cast<std::int64_t>(request.word(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL)));
    if (!cq->events.completions) return -EBADF;
  }
  nic::CqRequest wanted;
  wanted.entries = entries;
  wanted.cqe_bytes = driver.cqe_size;
  wanted.events = cq->events.completions != nullptr;
  wanted.ignore_overrun = (flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0;
  wanted.timestamps =
      (flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION) != 0 || wants_timestamps(device_->memory(), cq->events.element);
  wanted.user = reinterpret_cast<std::uintptr_t>(&cq->events);
  wanted.ring = device_->memory().lasting(driver.buf_addr, std::uint64_t{entries} * driver.cqe_size, true);
  wanted.record = device_->memory().lasting(driver.db_addr, 8, true);
  if (wanted.ring == nullptr || wanted.record == nullptr) return -EFAULT;
  const auto made = engine_->create_cq(wanted);
  if (!made) return -errno_of(made.error());
  cq->number = *made;

  Uar* const uar = cq->uar;
  const std::uint64_t user_handle = cq->events.element;
  const std::uint32_t handle = objects_.add(std::move(cq));
  mlx5_ib_create_cq_resp out{};
  out.cqn = *made;
  int failed = request.put(UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe);
  if (failed == 0) failed = request.put(UVERBS_ATTR_UHW_OUT, out);
  if (failed == 0) failed = request.put_word(UVERBS_ATTR_CREATE_CQ_HANDLE, handle);
  if (failed != 0) {
    (void)engine_->destroy_cq(*made);
    objects_.remove(handle);
    return failed;
  }
  if (uar != nullptr) ++uar->users;
  if (Progress* const progress = device_->progress()) hook_cq(device_->memory(), user_handle, *progress);
  return 0;
}

int Context::destroy_cq(Request& request) {
  const std::uint64_t handle = request.word(UVERBS_ATTR_DESTROY_CQ_HANDLE);
  Cq* const cq = objects_.find<Cq>(handle);
  if (cq == nullptr) return -ENOENT;
  if (cq->users != 0) return -EBUSY;
  if (const Status destroyed = engine_->destroy_cq(cq->number); !destroyed) return -errno_of(destroyed.error());
  // libibverbs waits until the program has acknowledged what it has read; what it has not is taken back.
  ib_uverbs_destroy_cq_resp out{};
  out.comp_events_reported = cq->events.completions_read();
  out.async_events_reported = cq->events.async_read();
  if (cq->uar != nullptr) --cq->uar->users;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return request.put(UVERBS_ATTR_DESTROY_CQ_RESP, out);
}

int Context::resize_cq(WriteCall& call) {
  ib_uverbs_resize_cq wanted{};
  mlx5_ib_resize_cq driver{};
  if (const int failed = call.get(wanted)) return failed;
  if (const int failed = call.get_driver(driver)) return failed;
  Cq* const cq = objects_.find<Cq>(wanted.cq_handle);
  if (cq == nullptr) return -EINVAL;
  if (driver.reserved0 != 0 || driver.reserved1 != 0) return -EINVAL;
  if (driver.cqe_size != 64 && driver.cqe_size != 128) return -EINVAL;
  if (wanted.cqe == 0 || wanted.cqe > limits::kCompletionEntries) return -EINVAL;
  // The ring is a power of two, and one entry is not for programs.
  const std::uint32_t entries = std::bit_ceil(wanted.cqe + 1);
  std::byte* const ring = device_->memory().lasting(driver.buf_addr, std::uint64_t{entries} * driver.cqe_size, true);
  if (ring == nullptr) return -EFAULT;
  ib_uverbs_resize_cq_resp out{};
  out.cqe = entries - 1;
  if (const int failed = call.put(out)) return failed;
  if (const Status resized = engine_->resize_cq(cq->number, ring, entries, driver.cqe_size); !resized)
    return -errno_of(resized.error());
  cq->entries = entries;
  return 0;
}

}  // namespace strait::soft::uverbs
