// SPDX-License-Identifier: Apache-2.0
// The completion queues of a rail whose rings a CPU writes. The rail holds its lock around each call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "rail/proxy/check.hpp"
#include "rail/proxy/cqe.hpp"

namespace strait::rail::proxy {

class CompletionQueues {
 public:
  Result<std::uint32_t> add(const strait_nic_cq_request& request) {
    STRAIT_CHECK(check(request));
    writers_.emplace(next_, std::make_unique<CompletionWriter>(request));
    return next_++;
  }
  [[nodiscard]] Result<CompletionWriter*> find(std::uint32_t cqn) const {
    const auto found = writers_.find(cqn);
    if (found == writers_.end()) return fail(Code::invalid, "no completion queue has the number {}", cqn);
    return found->second.get();
  }
  Status remove(std::uint32_t cqn) {
    STRAIT_TRY(const CompletionWriter* writer, find(cqn));
    if (writer->users != 0)
      return fail(Code::again, "{} queue pairs still complete into completion queue {}", writer->users, cqn);
    writers_.erase(cqn);
    return {};
  }

 private:
  std::uint32_t next_ = 1;
  std::map<std::uint32_t, std::unique_ptr<CompletionWriter>> writers_;
};

}  // namespace strait::rail::proxy
