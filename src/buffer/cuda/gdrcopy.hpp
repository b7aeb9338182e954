// SPDX-License-Identifier: Apache-2.0
// Gdrcopy: NVIDIA's gdrcopy library, loaded at run time. It pins device memory in 64 KiB pages through its kernel
// module and maps them for the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "sys/library.hpp"

namespace strait::buffer::cuda {

class Gdrcopy {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Gdrcopy>> open();
  ~Gdrcopy();
  Gdrcopy(const Gdrcopy&) = delete;
  Gdrcopy& operator=(const Gdrcopy&) = delete;

  struct Pinned {
    unsigned long handle = 0;
    void* window = nullptr;  // of whole 64 KiB pages
    std::uint64_t window_bytes = 0;
    std::byte* cpu = nullptr;  // the first byte that was asked for
    [[nodiscard]] bool valid() const { return window != nullptr; }
  };
  [[nodiscard]] Result<Pinned> map(std::uint64_t address, std::uint64_t length_bytes);
  void unmap(const Pinned& pinned);
  void copy_in(const Pinned& pinned, std::uint64_t offset, const void* from, std::uint64_t length_bytes);
  void copy_out(const Pinned& pinned, std::uint64_t offset, void* to, std::uint64_t length_bytes);

 private:
  Gdrcopy() = default;
  struct Handle {  // gdr_mh_t: passed by value
    unsigned long h;
  };
  sys::Library library_;
  void* gdr_ = nullptr;
  int (*close_)(void*) = nullptr;
  int (*pin_)(void*, unsigned long, std::size_t, std::uint64_t, std::uint32_t, Handle*) = nullptr;
  int (*unpin_)(void*, Handle) = nullptr;
  int (*map_)(void*, Handle, void**, std::size_t) = nullptr;
  int (*unmap_)(void*, Handle, void*, std::size_t) = nullptr;
  int (*copy_in_)(Handle, void*, const void*, std::size_t) = nullptr;
  int (*copy_out_)(Handle, void*, const void*, std::size_t) = nullptr;
};

}  // namespace strait::buffer::cuda
