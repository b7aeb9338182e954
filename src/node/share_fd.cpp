// SPDX-License-Identifier: Apache-2.0
// Sharing memory that the caller has as a descriptor: a dma-buf that some driver exported, or a sealed memfd.
#include "node/core.hpp"
#include "node/region.hpp"
#include "sys/files.hpp"
#include "sys/mapping.hpp"

namespace strait::node {
namespace {

const buffer::Device& descriptor_device() {
  static const buffer::Device device{
      .name = "dma-buf", .kind = "dma-buf", .description = "memory behind a descriptor that the application has"};
  return device;
}

Status check_descriptor(int fd, std::uint64_t offset, std::uint64_t length_bytes, std::uint64_t address) {
  if (length_bytes == 0) return fail(Code::invalid, "cannot share 0 bytes of a descriptor");
  if (!sys::is_open_fd(fd)) return fail(Code::invalid, "the descriptor {} is not open in this process", fd);
  if (offset + length_bytes < offset || address + length_bytes < address)
    return fail(Code::invalid, "{} bytes at offset {} wrap around", length_bytes, offset);
  if (!sys::is_dmabuf(fd)) {
    if (const Status sealed = sys::check_sealed(fd, 0); !sealed)
      return with_remedy(
          fail(Code::invalid, "the descriptor {} is neither a dma-buf nor a memfd that cannot shrink: {}", fd,
               sealed.error().text),
          "Pass the descriptor that the accelerator's driver exported.");
  }
  const std::int64_t size = sys::file_bytes(fd);
  if (size >= 0 && offset + length_bytes > static_cast<std::uint64_t>(size))
    return fail(Code::invalid, "{} bytes at offset {} end past the {} bytes behind the descriptor {}", length_bytes,
                offset, size, fd);
  const std::uint64_t page = sys::page_bytes();
  if (address != 0 && address % page != offset % page)
    return fail(Code::invalid,
                "the address {:#x} and the offset {} are not at the same place in a page of {} bytes, and a NIC maps "
                "whole pages",
                address, offset, page);
  return {};
}

}  // namespace

Result<strait_region*> Core::share_fd(int fd, std::uint64_t offset, std::uint64_t length_bytes, std::uint64_t address,
                                      std::uint32_t access) {
  STRAIT_CHECK(check_share(access));
  STRAIT_CHECK(check_descriptor(fd, offset, length_bytes, address));
  auto region = std::make_unique<strait_region>();
  if (address == 0) {
    // Addresses that nothing else has: what operations call the bytes, though no CPU finds them there.
    const std::uint64_t skip = offset % sys::page_bytes();
    STRAIT_TRY(region->reserved, sys::map_anonymous(skip + length_bytes, sys::Protect::none));
    address = reinterpret_cast<std::uint64_t>(region->reserved.data()) + skip;
  }
  region->address = region->local_address = address;
  region->length_bytes = length_bytes;
  region->access = access;
  region->core = shared_from_this();
  region->claim.device = &descriptor_device();
  region->claim.asked = region->claim.whole = {address, length_bytes};
  exports::Exported exported;
  exported.way = exports::Way::dmabuf;
  exported.range = {address, length_bytes};
  STRAIT_TRY(exported.fd, exports::ExportedFd::copy_of(fd, offset));
  exported.text = fmt::format("dma-buf of the application at offset {}", offset);
  region->exported = std::make_shared<Reached>(std::move(exported), region->claim, region->files);
  rail::MemoryRequest request;
  request.address = address;
  request.length_bytes = length_bytes;
  request.access = STRAIT_NIC_LOCAL_WRITE;
  request.fd = region->files->fd.fd();
  request.fd_offset = offset;
  STRAIT_TRY(region->own_keys, register_with_all(*region->exported, request));
  for (std::size_t i = 0; i < rails_.size(); ++i)
    if (region->own_keys[i].valid()) region->lkeys[i] = region->own_keys[i].lkey();
  STRAIT_CHECK(register_remote(*region));
  return adopt(std::move(region));
}

}  // namespace strait::node
