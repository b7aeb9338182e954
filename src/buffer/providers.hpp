// SPDX-License-Identifier: Apache-2.0
// Providers: every memory provider of a Node, and the questions asked of all of them.
//
// Threads: any. Opened once, unchanged until it is destroyed; closes in reverse order of opening.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "buffer/claim.hpp"
#include "buffer/memory.hpp"
#include "buffer/provider.hpp"
#include "sys/address_space.hpp"
#include "sys/clock.hpp"

namespace strait::buffer {

class Providers {
 public:
  // Host memory is built in and always there; `plugins` are opened after it, in order. The first that fails closes the
  // ones before it and its error is returned.
  [[nodiscard]] static Result<std::unique_ptr<Providers>> open(std::vector<Plugin> plugins = {});
  Providers(const Providers&) = delete;
  Providers& operator=(const Providers&) = delete;
  ~Providers();

  // Accelerators are asked first, then host. Never touches the memory and never crashes on a bad pointer: null, empty,
  // wrapping, unmapped, freed and overlong ranges are Code::invalid with the sentence that says which.
  [[nodiscard]] Result<Claim> classify(const void* address, std::uint64_t length_bytes) const;
  [[nodiscard]] Result<Claim> classify(Range range) const;

  // The answer for ordinary memory of this process, when the caller knows that it is: nobody is asked.
  [[nodiscard]] Claim host_claim(Range range, bool writable = true) const;

  // `device`: a name of devices(), "" is "host". Code::invalid lists those there are.
  struct Place {
    Provider* provider = nullptr;
    const Device* device = nullptr;
    std::uint32_t index = 0;  // in provider->devices()
  };
  [[nodiscard]] Result<Place> find(std::string_view device) const;
  // The Memory must be gone before the Providers.
  [[nodiscard]] Result<Memory> allocate(std::string_view device, std::uint64_t length_bytes);

  // Both sides are classified; whoever owns the accelerator side copies, host to host is a memcpy. At the deadline:
  // Code::timeout, and the copy still owns both ranges until it has finished. 0 bytes: nothing happens.
  [[nodiscard]] Status copy(void* to, const void* from, std::uint64_t length_bytes, sys::Deadline deadline);

  // Host first, then in the order of opening.
  [[nodiscard]] std::vector<const Device*> devices() const;
  [[nodiscard]] const std::vector<std::unique_ptr<Provider>>& providers() const { return providers_; }
  // Optional ones that are not on this machine.
  struct Absent {
    std::string kind;
    std::string because;
  };
  [[nodiscard]] const std::vector<Absent>& absent() const { return absent_; }

 private:
  explicit Providers(sys::AddressSpace space) : space_(std::move(space)) {}
  [[nodiscard]] Result<Claim> classify_host(Range range) const;

  sys::AddressSpace space_;
  std::vector<std::unique_ptr<Provider>> providers_;  // [0] is host
  std::vector<Absent> absent_;
};

}  // namespace strait::buffer
