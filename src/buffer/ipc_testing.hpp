// SPDX-License-Identifier: Apache-2.0
// What the tests of memory between processes share: the other process, which owns memory and lends it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "buffer/provider.hpp"
#include "sys/child.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"

namespace strait::buffer {

[[nodiscard]] inline sys::Deadline ipc_soon() {
  return sys::Deadline::after_ns(60'000'000'000);
}
[[nodiscard]] std::vector<unsigned char> ipc_pattern(std::size_t length_bytes, unsigned seed);
[[nodiscard]] Plugin plugin_of(const std::string& kind, const std::string& config);

// A handle as it came out of a socket, with the descriptor that came with it.
class Lent {
 public:
  explicit Lent(const strait_ipc_handle& handle, sys::Fd fd = {}) : handle_(handle), fd_(std::move(fd)) {
    handle_.fd = fd_.get();
  }
  [[nodiscard]] const strait_ipc_handle& handle() const { return handle_; }

 private:
  strait_ipc_handle handle_;
  sys::Fd fd_;
};

class Owner {
 public:
  Owner();
  // Kinds: host, cuda, vmm, pool, rocm, gaudi. Filled with ipc_pattern(seed); numbered from 0.
  [[nodiscard]] Lent make(const std::string& kind, std::uint64_t length_bytes, unsigned seed);
  [[nodiscard]] std::string ask(const std::string& line);
  void kill() { child_.reset(); }

 private:
  std::unique_ptr<sys::Child> child_;
  sys::Fd socket_;
};

// What that process does; its exit status.
int serve_owner();

}  // namespace strait::buffer
