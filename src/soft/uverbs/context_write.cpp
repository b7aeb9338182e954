// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "soft/uverbs/methods.hpp"
#include "soft/uverbs/write_call.hpp"

namespace strait::soft::uverbs {

int Context::invoke_write(Request& request) {
  const WriteMethod* const method = Tables::find_write(request.word(UVERBS_ATTR_WRITE_CMD));
  if (method == nullptr) return -EOPNOTSUPP;
  // libibverbs asks QUERY_DEVICE without any input to learn that this way of asking exists, and expects this errno.
  if (request.length(UVERBS_ATTR_CORE_IN) < method->in_bytes ||
      request.length(UVERBS_ATTR_CORE_OUT) < method->out_bytes)
    return -ENOSPC;
  if (!opened_ && !method->before_context) return -EINVAL;
  WriteCall call(request);
  return (this->*method->handler)(call);
}

}  // namespace strait::soft::uverbs
