// SPDX-License-Identifier: Apache-2.0
// Reads captures and checks the iCRC of every packet with an implementation that shares nothing with the one that made
// it: bit by bit, over the bytes as they lie in the file. Wireshark shows that field and does not verify it.
//
//   check_capture FILE...    prints how many packets there were; 1: one is wrong, or a file has none
#include <cstdio>
#include <fstream>
#include <iterator>

#include "soft/roce/testing.hpp"

namespace {

using strait::soft::roce::testing::Bytes;

std::uint32_t little32(const Bytes& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

// The packets of a pcapng file; false: it is not one.
template <typename Use>
bool each_packet(const Bytes& file, const Use& use) {
  constexpr std::uint32_t kEnhancedPacket = 6;
  constexpr std::size_t kFixed = 28;
  std::size_t at = 0;
  while (at + 12 <= file.size()) {
    const std::uint32_t type = little32(file, at);
    const std::uint32_t length = little32(file, at + 4);
    if (length < 12 || length % 4 != 0 || length > file.size() - at || little32(file, at + length - 4) != length)
      return false;
    if (type == kEnhancedPacket) {
      const std::uint32_t captured = little32(file, at + 20);
      if (captured + kFixed > length) return false;
      const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at + kFixed);
      use(Bytes(begin, begin + captured));
    }
    at += length;
  }
  return at == file.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s FILE...\n", argv[0]), 2;
  std::size_t total = 0;
  std::size_t wrong = 0;
  for (int i = 1; i < argc; ++i) {
    std::ifstream stream(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const auto* const data = reinterpret_cast<const std::byte*>(text.data());
    const std::size_t before = total;
    const bool read = each_packet(Bytes(data, data + text.size()), [&](Bytes packet) {
      ++total;
      std::uint32_t found = 0;
      if (packet.size() > 4) {
        found = little32(packet, packet.size() - 4);
        packet.erase(packet.end() - 4, packet.end());
        if (strait::soft::roce::testing::slow_icrc(packet) == found) return;
      }
      ++wrong;
      std::fprintf(stderr, "%s: packet %zu has the wrong iCRC %08x\n", argv[i], total - before, found);
    });
    if (!read || total == before) return std::fprintf(stderr, "%s: no capture, or an empty one\n", argv[i]), 1;
  }
  std::printf("%zu\n", total);
  return wrong == 0 ? 0 : 1;
}
