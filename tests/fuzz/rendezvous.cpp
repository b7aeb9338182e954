// SPDX-License-Identifier: Apache-2.0
// Fuzz target: frames of the rendezvous. What is accepted is canonical: encoding it again gives the same bytes.
#include <algorithm>
#include <span>

#include "rendezvous/codec.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using strait::fuzz::require;
  namespace rendezvous = strait::rendezvous;
  const std::span<const std::byte> frame = std::as_bytes(std::span(data, size));

  const auto length = rendezvous::frame_bytes(frame);
  if (length && *length != 0) {
    require(*length >= rendezvous::kHeaderBytes && *length <= rendezvous::kMaxFrameBytes, "a frame has a sane length");
  }
  std::uint32_t id = 0;
  const auto message = rendezvous::parse(frame, &id);
  if (!message) {
    const auto code = message.error().code;
    require(code == strait::Code::invalid || code == strait::Code::unsupported, "a refusal is about the bytes");
    require(!message.error().text.empty(), "a refusal says why");
    return 0;
  }
  require(length && *length == size, "a frame is accepted only as long as it says it is");
  require(message->id == id, "the request id is told");
  const auto again = rendezvous::encode(*message);
  require(again && std::ranges::equal(*again, frame), "an accepted frame is encoded the same");
  return 0;
}
