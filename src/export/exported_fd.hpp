// SPDX-License-Identifier: Apache-2.0
// ExportedFd: the owner of a descriptor that stands for accelerator memory. Vendors differ in who closes it and how, so
// it goes back through the provider that made it, never through close(2). An open one keeps the memory, even after a
// free.
#pragma once

#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "buffer/provider.hpp"
#include "sys/fd.hpp"

namespace strait::exports {

class ExportedFd {
 public:
  ExportedFd() = default;
  // The provider must outlive it.
  [[nodiscard]] static Result<ExportedFd> make(buffer::Provider& provider, buffer::Range range) {
    STRAIT_TRY(const buffer::Provider::RawFd raw, provider.export_fd(range));
    return ExportedFd(&provider, raw);
  }
  // The memfd behind such a descriptor, for a NIC that takes no dma-buf.
  [[nodiscard]] static Result<ExportedFd> make_pages(buffer::Provider& provider, buffer::Range range) {
    STRAIT_TRY(const buffer::Provider::RawFd raw, provider.export_pages(range));
    return ExportedFd(&provider, raw);
  }
  // One that the caller of the library has: a duplicate of it, closed as any file. No vendor's closer is asked, because
  // no provider made it.
  [[nodiscard]] static Result<ExportedFd> copy_of(int fd, std::uint64_t offset) {
    STRAIT_TRY(sys::Fd mine, sys::Fd::copy_of(fd));
    ExportedFd out;
    out.raw_ = {mine.get(), offset};
    out.own_ = std::move(mine);
    return out;
  }
  ExportedFd(ExportedFd&& other) noexcept
      : provider_(std::exchange(other.provider_, nullptr)),
        raw_(std::exchange(other.raw_, {})),
        own_(std::move(other.own_)) {}
  ExportedFd& operator=(ExportedFd&& other) noexcept {
    if (this != &other) {
      reset();
      provider_ = std::exchange(other.provider_, nullptr);
      raw_ = std::exchange(other.raw_, {});
      own_ = std::move(other.own_);
    }
    return *this;
  }
  ~ExportedFd() { reset(); }

  [[nodiscard]] int fd() const { return raw_.fd; }
  [[nodiscard]] std::uint64_t offset() const { return raw_.offset; }  // of the range's first byte in the file
  [[nodiscard]] bool valid() const { return provider_ != nullptr || own_.valid(); }
  void reset() {
    if (own_.valid()) {
      own_.reset();
      raw_ = {};
    }
    if (provider_ != nullptr) std::exchange(provider_, nullptr)->close_fd(std::exchange(raw_, {}).fd);
  }

 private:
  ExportedFd(buffer::Provider* provider, buffer::Provider::RawFd raw) : provider_(provider), raw_(raw) {}
  buffer::Provider* provider_ = nullptr;
  buffer::Provider::RawFd raw_;
  sys::Fd own_;
};

}  // namespace strait::exports
