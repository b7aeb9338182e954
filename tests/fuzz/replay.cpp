// SPDX-License-Identifier: Apache-2.0
// Replays a corpus without libFuzzer: every file, all its beginnings, and every input one bit away from it.
//
// The neighbours cost nothing and make this more than a record of the past: they are what a fuzzer tries first. Where
// an input is a whole device and its life, they cost minutes: a second argument takes one in so many.
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "require.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;

// A copy of exactly this size on the heap: AddressSanitizer then sees the first byte read beyond it.
void feed(const Bytes& bytes, std::size_t size) {
  const Bytes exact(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::size_t replay(Bytes bytes, std::size_t step) {
  constexpr std::size_t kNeighboursUpTo = 1024;
  feed(bytes, bytes.size());
  if (bytes.size() > kNeighboursUpTo) return 1;
  for (std::size_t size = 0; size < bytes.size(); size += step) feed(bytes, size);
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += step) {
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1U << bit % 8));
    feed(bytes, bytes.size());
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1U << bit % 8));
  }
  return 1 + bytes.size() * 9 / step;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) return std::fprintf(stderr, "usage: %s CORPUS_FOLDER [ONE_IN]\n", argv[0]), 2;
  const unsigned long step = argc == 3 ? std::stoul(argv[2]) : 1;
  if (step == 0) return std::fprintf(stderr, "one in 0 is none\n"), 2;
  std::size_t files = 0;
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) return std::fprintf(stderr, "cannot read %s\n", entry.path().c_str()), 1;
    inputs += replay(std::move(bytes), step);
    ++files;
  }
  std::printf("%zu files, %zu inputs\n", files, inputs);
  if (files == 0) return std::fprintf(stderr, "%s is empty: nothing was tested\n", argv[1]), 1;
  return 0;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
