// SPDX-License-Identifier: Apache-2.0
// Memory: the one owner of an allocation that a provider made for us.
#pragma once

#include <cstdint>
#include <utility>

#include "buffer/claim.hpp"
#include "buffer/provider.hpp"

namespace strait::buffer {

class Memory {
 public:
  Memory() = default;
  Memory(Provider* provider, const Device* device, Range range) : provider_(provider), device_(device), range_(range) {}
  Memory(Memory&& other) noexcept
      : provider_(std::exchange(other.provider_, nullptr)),
        device_(std::exchange(other.device_, nullptr)),
        range_(std::exchange(other.range_, {})) {}
  Memory& operator=(Memory&& other) noexcept {
    if (this != &other) {
      drop();
      provider_ = std::exchange(other.provider_, nullptr);
      device_ = std::exchange(other.device_, nullptr);
      range_ = std::exchange(other.range_, {});
    }
    return *this;
  }
  ~Memory() { drop(); }

  // A device address: the CPU may follow it only when device()->capabilities says so.
  [[nodiscard]] void* data() const { return reinterpret_cast<void*>(range_.address); }
  [[nodiscard]] std::uint64_t size() const { return range_.length_bytes; }
  [[nodiscard]] Range range() const { return range_; }
  [[nodiscard]] const Device* device() const { return device_; }
  [[nodiscard]] bool valid() const { return provider_ != nullptr; }

  // Gives it back now and says how that went; the destructor has nobody to tell.
  [[nodiscard]] Status free() {
    if (provider_ == nullptr) return fail(Code::gone, "this memory was already freed");
    return std::exchange(provider_, nullptr)->free(std::exchange(range_, {}).address);
  }
  // Leaves the allocation to live until the provider closes: for memory that a copy may still write to.
  void abandon() { provider_ = nullptr; }

 private:
  void drop() {
    if (provider_ != nullptr) (void)free();
  }
  Provider* provider_ = nullptr;
  const Device* device_ = nullptr;
  Range range_;
};

}  // namespace strait::buffer
