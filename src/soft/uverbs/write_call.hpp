// SPDX-License-Identifier: Apache-2.0
// A command of the older kind, whose structs travel as attributes of INVOKE_WRITE: core input and output, and the
// driver's own behind them.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>

#include "soft/uverbs/request.hpp"

namespace strait::soft::uverbs {

class WriteCall {
 public:
  explicit WriteCall(Request& request) : request_(request) {}
  // Both return 0 or -errno. What the program did not send is zero; what it has no room for is left out.
  template <class T>
  [[nodiscard]] int get(T& into) const {
    return request_.get(UVERBS_ATTR_CORE_IN, into);
  }
  template <class T>
  [[nodiscard]] int put(const T& value) {
    return request_.put(UVERBS_ATTR_CORE_OUT, value);
  }
  template <class T>
  [[nodiscard]] int get_driver(T& into) const {
    return request_.get(UVERBS_ATTR_UHW_IN, into);
  }
  template <class T>
  [[nodiscard]] int put_driver(const T& value) {
    return request_.put(UVERBS_ATTR_UHW_OUT, value);
  }
  [[nodiscard]] std::size_t driver_out_bytes() const { return request_.length(UVERBS_ATTR_UHW_OUT); }
  [[nodiscard]] Request& request() { return request_; }

 private:
  Request& request_;
};

}  // namespace strait::soft::uverbs
