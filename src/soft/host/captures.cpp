// SPDX-License-Identifier: Apache-2.0
// The captures of a run's processes as one: packets in the order of their times, behind the header that all of them
// have alike. A process that was killed leaves half a block at the end of its file; what is before that counts.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <queue>
#include <span>
#include <vector>

#include "soft/host/report.hpp"
#include "sys/output_file.hpp"

namespace strait::soft::host {
namespace {

namespace fs = std::filesystem;

// pcapng; all numbers as this machine's own, which wrote them.
constexpr std::uint32_t kSectionBlock = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::uint32_t kShortestBlock = 12;
constexpr std::uint32_t kShortestPacketBlock = 32;
constexpr std::uint32_t kLongestBlock = 1u << 20;
constexpr std::size_t kAppendBytes = 1u << 20;

class CapturePart {
 public:
  explicit CapturePart(const fs::path& file) : in_(file, std::ios::binary) {}

  // The blocks before the first packet, which then is the current one if there is any. False: this is no capture.
  [[nodiscard]] bool begin(std::vector<std::byte>& header) {
    if (!read_block() || type_ != kSectionBlock) return false;
    do {
      header.insert(header.end(), block_.begin(), block_.end());
    } while (read_block() && type_ == kInterfaceBlock);
    if (type_ != kPacketBlock) (void)next();
    return true;
  }
  // On to the next packet. False: there is none.
  bool next() {
    while (read_block()) {
      if (type_ == kPacketBlock) return true;
    }
    return false;
  }
  [[nodiscard]] bool at_packet() const { return !block_.empty(); }
  [[nodiscard]] const std::vector<std::byte>& block() const { return block_; }
  [[nodiscard]] std::uint64_t time() const { return std::uint64_t{word(12)} << 32 | word(16); }

 private:
  [[nodiscard]] std::uint32_t word(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, block_.data() + at, sizeof value);
    return value;
  }
  // A block says how long it is at both ends.
  bool read_block() {
    type_ = 0;
    if (ended_) return false;
    block_.resize(8);
    if (!read(0, 8)) return false;
    const std::uint32_t bytes = word(4);
    if (bytes < kShortestBlock || bytes > kLongestBlock || bytes % 4 != 0) return end();
    const std::uint32_t type = word(0);
    block_.resize(bytes);
    if (!read(8, bytes - 8)) return false;
    if (word(bytes - 4) != bytes || (type == kPacketBlock && bytes < kShortestPacketBlock)) return end();
    type_ = type;
    return true;
  }
  bool read(std::size_t at, std::size_t bytes) {
    in_.read(reinterpret_cast<char*>(block_.data() + at), static_cast<std::streamsize>(bytes));
    return static_cast<std::size_t>(in_.gcount()) == bytes || end();
  }
  bool end() {
    block_.clear();
    ended_ = true;
    return false;
  }

  std::ifstream in_;
  std::vector<std::byte> block_;
  std::uint32_t type_ = 0;
  bool ended_ = false;
};

}  // namespace

Result<std::uint64_t> join_captures(const std::string& root, const std::string& file) {
  STRAIT_TRY(sys::OutputFile out, sys::OutputFile::create(file));
  std::vector<std::unique_ptr<CapturePart>> parts;
  std::vector<std::byte> pending;
  for (const fs::path& path : files_in(root + kCaptures)) {
    auto part = std::make_unique<CapturePart>(path);
    std::vector<std::byte> header;
    if (!part->begin(header)) continue;
    if (parts.empty()) pending = std::move(header);
    parts.push_back(std::move(part));
  }
  // The earliest on top; of two at the same time that of the first file, so that a run is always joined alike.
  const auto after = [&](std::size_t a, std::size_t b) {
    return std::pair(parts[a]->time(), a) > std::pair(parts[b]->time(), b);
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(after)> waiting(after);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]->at_packet()) waiting.push(i);
  }
  while (!waiting.empty()) {
    const std::size_t i = waiting.top();
    waiting.pop();
    const auto& block = parts[i]->block();
    pending.insert(pending.end(), block.begin(), block.end());
    if (parts[i]->next()) waiting.push(i);
    if (pending.size() < kAppendBytes) continue;
    STRAIT_CHECK(out.append(pending));
    pending.clear();
  }
  STRAIT_CHECK(out.append(pending));
  return parts.size();
}

}  // namespace strait::soft::host
