// SPDX-License-Identifier: Apache-2.0
// Fuzz target: CM messages from strangers. What was read is written again with the same meaning, and the addresses in
// front of the private data are read only where they are whole.
//
// Input: the datagram.
#include <cstring>
#include <memory>
#include <span>

#include "require.hpp"
#include "soft/cm/message.hpp"

namespace cm = strait::soft::cm;
using strait::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Of exactly the datagram's size: AddressSanitizer sees the first byte beyond it.
  const std::unique_ptr<std::byte[]> memory(new std::byte[size]);
  if (size != 0) std::memcpy(memory.get(), data, size);
  const std::span<const std::byte> bytes(memory.get(), size);

  cm::Message message;
  const cm::Refusal refusal = cm::parse(bytes, message);
  require(std::strlen(cm::refusal_text(refusal)) > 0, "a refusal has a reason");
  if (refusal == cm::Refusal::none) {
    require(size == strait::wire::mad::kBytes, "only whole datagrams are accepted");
    const cm::Mad written = cm::write(message);
    cm::Message again;
    require(cm::parse(written, again) == cm::Refusal::none, "what was read can be written");
    require(again == message, "and means the same");
    require(std::strlen(cm::name_of(message.body)) > 0, "a message has a name");
  }

  const auto addresses = cm::parse_ip_header(bytes);
  if (addresses) {
    require(addresses->source.is_v4() || (std::to_integer<unsigned>(bytes[1]) >> 4) == 6, "one of two IP versions");
    std::byte again[cm::kIpHeaderBytes];
    cm::write_ip_header(*addresses, again);
    // An IPv6 header may hold mapped IPv4 addresses, which are written as what they are.
    if (!addresses->source.is_v4() && !addresses->destination.is_v4())
      require(cm::parse_ip_header(again) == addresses, "addresses come back");
  }
  return 0;
}
