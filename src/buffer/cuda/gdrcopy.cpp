// SPDX-License-Identifier: Apache-2.0
#include "buffer/cuda/gdrcopy.hpp"

namespace strait::buffer::cuda {
namespace {

constexpr std::uint64_t kGpuPage = 65536;

}  // namespace

Result<std::unique_ptr<Gdrcopy>> Gdrcopy::open() {
  std::unique_ptr<Gdrcopy> made(new Gdrcopy);
  STRAIT_TRY(made->library_, sys::Library::open("libgdrapi.so.2"));
  const sys::Library& library = made->library_;
  STRAIT_TRY(const auto open, library.symbol<void* (*)()>("gdr_open"));
  STRAIT_TRY(made->close_, library.symbol<decltype(made->close_)>("gdr_close"));
  STRAIT_TRY(made->pin_, library.symbol<decltype(made->pin_)>("gdr_pin_buffer"));
  STRAIT_TRY(made->unpin_, library.symbol<decltype(made->unpin_)>("gdr_unpin_buffer"));
  STRAIT_TRY(made->map_, library.symbol<decltype(made->map_)>("gdr_map"));
  STRAIT_TRY(made->unmap_, library.symbol<decltype(made->unmap_)>("gdr_unmap"));
  STRAIT_TRY(made->copy_in_, library.symbol<decltype(made->copy_in_)>("gdr_copy_to_mapping"));
  STRAIT_TRY(made->copy_out_, library.symbol<decltype(made->copy_out_)>("gdr_copy_from_mapping"));
  made->gdr_ = open();
  if (made->gdr_ == nullptr) return fail(Code::unsupported, "gdr_open failed: is /dev/gdrdrv there?");
  return made;
}

Gdrcopy::~Gdrcopy() {
  if (gdr_ != nullptr) (void)close_(gdr_);
}

Result<Gdrcopy::Pinned> Gdrcopy::map(std::uint64_t address, std::uint64_t length_bytes) {
  Pinned pinned;
  const std::uint64_t first = address / kGpuPage * kGpuPage;
  pinned.window_bytes = (address + length_bytes - first + kGpuPage - 1) / kGpuPage * kGpuPage;
  Handle handle{};
  if (const int code = pin_(gdr_, first, pinned.window_bytes, 0, 0, &handle); code != 0)
    return fail_errno(code, fmt::format("gdrcopy cannot pin {} bytes at {:#x}", pinned.window_bytes, first));
  if (const int code = map_(gdr_, handle, &pinned.window, pinned.window_bytes); code != 0) {
    (void)unpin_(gdr_, handle);
    return fail_errno(code, fmt::format("gdrcopy cannot map {} bytes at {:#x}", pinned.window_bytes, first));
  }
  pinned.handle = handle.h;
  pinned.cpu = static_cast<std::byte*>(pinned.window) + (address - first);
  return pinned;
}

void Gdrcopy::unmap(const Pinned& pinned) {
  (void)unmap_(gdr_, Handle{pinned.handle}, pinned.window, pinned.window_bytes);
  (void)unpin_(gdr_, Handle{pinned.handle});
}

void Gdrcopy::copy_in(const Pinned& pinned, std::uint64_t offset, const void* from, std::uint64_t length_bytes) {
  (void)copy_in_(Handle{pinned.handle}, pinned.cpu + offset, from, length_bytes);
}

void Gdrcopy::copy_out(const Pinned& pinned, std::uint64_t offset, void* to, std::uint64_t length_bytes) {
  (void)copy_out_(Handle{pinned.handle}, to, pinned.cpu + offset, length_bytes);
}

}  // namespace strait::buffer::cuda
