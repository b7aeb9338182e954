// SPDX-License-Identifier: Apache-2.0
// DevX: the calls that carry command mailboxes. What is in them is the firmware's affair.
#include <rdma/mlx5_user_ioctl_cmds.h>

#include <cerrno>

#include "soft/uverbs/context.hpp"
#include "soft/uverbs/firmware.hpp"
#include "soft/uverbs/limits.hpp"

namespace strait::soft::uverbs {

// Every call needs a context that was opened for it.
int Context::need_devx() {
  if (!devx_) return -EINVAL;
  return need_engine();
}

Firmware Context::firmware() {
  return Firmware(*device_, *engine_, objects_, cqe_version_);
}

int Context::devx_other(Request& request) {
  if (const int failed = need_devx()) return failed;
  Mailbox mailbox;
  if (const int failed = mailbox.read(request, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT))
    return failed;
  mailbox.set(firmware().run(mailbox));
  return mailbox.answer(request);
}

int Context::devx_create(Request& request) {
  if (const int failed = need_devx()) return failed;
  Mailbox mailbox;
  if (const int failed =
          mailbox.read(request, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT))
    return failed;
  auto object = std::make_unique<DevxObject>();
  DevxObject& made = *object;
  mailbox.set(firmware().create(mailbox, made));
  if (made.inner == nullptr) return mailbox.answer(request);
  const std::uint32_t handle = objects_.add(std::move(object));
  int failed = mailbox.answer(request);
  if (failed == 0) failed = request.put_word(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, handle);
  if (failed != 0) {
    (void)firmware().destroy(made);
    objects_.remove(handle);
  } else if (dynamic_cast<const Qp*>(made.inner.get()) != nullptr) {
    trap_pages();
  }
  return failed;
}

int Context::devx_destroy(Request& request) {
  if (const int failed = need_devx()) return failed;
  const std::uint64_t handle = request.word(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE);
  DevxObject* const object = objects_.find<DevxObject>(handle);
  if (object == nullptr) return -ENOENT;
  if (const int failed = firmware().destroy(*object)) return failed;
  objects_.remove(static_cast<std::uint32_t>(handle));
  return 0;
}

// A queue pair of verbs may be named too. Whatever it is, the mailbox has to name the same.
int Context::devx_modify(Request& request) {
  if (const int failed = need_devx()) return failed;
  Object* const object = objects_.find_any(request.word(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE));
  if (object == nullptr) return -ENOENT;
  auto* const qp = static_cast<Qp*>(object->as(Kind::qp));
  Mailbox mailbox;
  if (const int failed =
          mailbox.read(request, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT))
    return failed;
  if (qp == nullptr || mailbox.get(wire::prm::kNumber) != qp->number) return -EINVAL;
  mailbox.set(firmware().modify(mailbox, *qp));
  return mailbox.answer(request);
}

int Context::devx_query(Request& request) {
  if (const int failed = need_devx()) return failed;
  Object* const object = objects_.find_any(request.word(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE));
  if (object == nullptr) return -ENOENT;
  Mailbox mailbox;
  if (const int failed = mailbox.read(request, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT))
    return failed;
  const auto* const qp = static_cast<const Qp*>(object->as(Kind::qp));
  const auto* const made = static_cast<const DevxObject*>(object->as(Kind::devx));
  if (qp != nullptr && mailbox.get(wire::prm::kNumber) != qp->number) return -EINVAL;
  if (made != nullptr && mailbox.get(wire::prm::kNumber) != made->number) return -EINVAL;
  mailbox.set(firmware().query(mailbox, *object));
  return mailbox.answer(request);
}

// The page behind one of the registers that a context of the older kind has.
int Context::devx_query_uar(Request& request) {
  if (const int failed = need_devx()) return failed;
  std::uint32_t index = 0;
  if (const int failed = request.get(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, index)) return failed;
  const std::uint32_t page = index / 2;  // two registers each
  const bool known = objects_.find_uar(page) != nullptr;
  if (!known && index >= limits::kDoorbells) return -EINVAL;
  if (!known) {
    auto uar = std::make_unique<Uar>();
    uar->page = page;
    (void)objects_.add(std::move(uar));  // stays as long as the context: nobody has a handle of it
  }
  return request.put(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, page);
}

int Context::devx_query_eqn(Request& request) {
  if (const int failed = need_devx()) return failed;
  std::uint32_t vector = 0;
  if (const int failed = request.get(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, vector)) return failed;
  if (vector >= limits::kCompletionVectors) return -EINVAL;
  const std::uint32_t number = vector + 1;  // which of them a completion queue names makes no difference
  return request.put(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, number);
}

}  // namespace strait::soft::uverbs
