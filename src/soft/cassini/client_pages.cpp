// SPDX-License-Identifier: Apache-2.0
// What a client may mmap: cookies, each good for one mapping of exactly its size.
#include <cerrno>

#include "soft/cassini/client.hpp"
#include "sys/file_hold.hpp"

namespace strait::soft::cassini {

Client::Cookie* Client::make_cookie(Page page, std::uint64_t bytes, std::uint32_t& mapped, wire::MmInfo& info) {
  bytes = sys::round_up(bytes, sys::page_bytes());
  if (bytes > kPagesBytes - next_offset_) return nullptr;
  auto mapping = sys::map_file(pages_.get(), next_offset_, bytes, sys::Protect::read_write);
  if (!mapping) return nullptr;
  info = {.offset = next_offset_, .size = bytes};
  Cookie& cookie = cookies_[next_offset_];
  cookie.page = page;
  cookie.bytes = bytes;
  cookie.mapping = std::move(*mapping);
  cookie.mapped = &mapped;
  next_offset_ += bytes;
  return &cookie;
}

void Client::drop_cookies(const std::uint32_t& mapped) {
  for (auto each = cookies_.begin(); each != cookies_.end();) {
    if (each->second.mapped != &mapped) {
      ++each;
      continue;
    }
    // The offset is not handed out again, so its pages would be kept for nothing. Who still maps them sees zeros.
    (void)sys::drop_file_pages(pages_.get(), each->first, each->second.bytes);
    each = cookies_.erase(each);
  }
}

int Client::map(std::uint64_t offset, std::uint64_t bytes) {
  const auto found = cookies_.find(offset);
  if (found == cookies_.end() || !found->second.pending || found->second.bytes != bytes) return -EINVAL;
  found->second.pending = false;
  found->second.mapped_now = true;
  ++*found->second.mapped;
  return 0;
}

void Client::unmap(std::uint64_t offset) {
  const auto found = cookies_.find(offset);
  if (found == cookies_.end() || !found->second.mapped_now) return;
  found->second.mapped_now = false;
  --*found->second.mapped;
}

Client::Page Client::page(std::uint64_t offset) const {
  const auto found = cookies_.find(offset);
  return found == cookies_.end() ? Page::none : found->second.page;
}

}  // namespace strait::soft::cassini
