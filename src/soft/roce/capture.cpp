// SPDX-License-Identifier: Apache-2.0
// pcapng: a section header, one interface of raw IP packets with nanoseconds, then enhanced packet blocks. Numbers are
// little-endian, which the section header says.
#include "soft/roce/capture.hpp"

#include <algorithm>

#include "soft/roce/ip_udp.hpp"

namespace strait::soft::roce {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint16_t kLinkRawIp = 101;
constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kSectionApplication = 4;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kInterfaceResolution = 9;
constexpr std::uint16_t kPacketFlags = 2;
constexpr std::size_t kMostCommentBytes = 4096;

class Block {
 public:
  Block(std::vector<std::byte>& out, std::uint32_t type) : out_(out), start_(out.size()) {
    put32(type);
    put32(0);
  }
  void put16(unsigned value) {
    for (unsigned i = 0; i < 2; ++i) out_.push_back(static_cast<std::byte>(value >> 8 * i));
  }
  void put32(std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) out_.push_back(static_cast<std::byte>(value >> 8 * i));
  }
  void put(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void pad() { out_.resize(start_ + (out_.size() - start_ + 3) / 4 * 4); }
  void option(std::uint16_t code, std::span<const std::byte> value) {
    put16(code);
    put16(static_cast<unsigned>(value.size()));
    put(value);
    pad();
  }
  void option(std::uint16_t code, std::string_view text) { option(code, std::as_bytes(std::span(text))); }
  // The length stands at both ends of a block, so that files can be read backwards.
  void end() {
    const auto length = static_cast<std::uint32_t>(out_.size() - start_ + 4);
    put32(length);
    for (unsigned i = 0; i < 4; ++i) out_[start_ + 4 + i] = static_cast<std::byte>(length >> 8 * i);
  }

 private:
  std::vector<std::byte>& out_;
  std::size_t start_;
};

void put_file_header(std::vector<std::byte>& out) {
  Block section(out, kSectionHeader);
  section.put32(0x1a2b3c4d);
  section.put16(1);
  section.put16(0);
  section.put32(0xffffffff);  // the section's length is not known
  section.put32(0xffffffff);
  section.option(kSectionApplication, "strait");
  section.option(kEndOfOptions, std::span<const std::byte>());
  section.end();

  Block interface(out, kInterfaceDescription);
  interface.put16(kLinkRawIp);
  interface.put16(0);
  interface.put32(0);  // packets are never cut
  interface.option(kInterfaceName, "strait soft NIC");
  const std::byte nanoseconds[] = {std::byte{9}};
  interface.option(kInterfaceResolution, nanoseconds);
  interface.option(kEndOfOptions, std::span<const std::byte>());
  interface.end();
}

}  // namespace

Result<Capture> Capture::open(const std::string& path) {
  STRAIT_TRY(auto file, sys::OutputFile::create(path));
  Capture out(std::move(file));
  put_file_header(out.buffer_);
  STRAIT_CHECK(out.flush());
  return out;
}

Capture::~Capture() {
  if (file_.is_open()) (void)flush();
}

Status Capture::write(const Flow& flow, std::int64_t ns, std::span<const std::byte> bth_to_icrc,
                      std::string_view comment, bool outgoing) {
  if (!file_.is_open()) return fail(Code::gone, "the capture ended when its file could not be written");
  std::byte headers[kMaxIpUdpBytes];
  const std::size_t header_bytes = write_ip_udp(flow, bth_to_icrc, {}, headers);
  const auto length = static_cast<std::uint32_t>(header_bytes + bth_to_icrc.size());
  const auto time = static_cast<std::uint64_t>(ns);
  Block block(buffer_, kEnhancedPacket);
  block.put32(0);  // the interface
  block.put32(static_cast<std::uint32_t>(time >> 32));
  block.put32(static_cast<std::uint32_t>(time));
  block.put32(length);
  block.put32(length);
  block.put({headers, header_bytes});
  block.put(bth_to_icrc);
  block.pad();
  if (!comment.empty()) block.option(kComment, comment.substr(0, kMostCommentBytes));
  const std::byte flags[4] = {outgoing ? std::byte{2} : std::byte{1}};
  block.option(kPacketFlags, flags);
  block.option(kEndOfOptions, std::span<const std::byte>());
  block.end();
  ++packets_;
  return buffer_.size() >= kBufferBytes ? flush() : Status{};
}

Status Capture::flush() {
  if (buffer_.empty()) return {};
  const Status written = file_.append(buffer_);
  buffer_.clear();
  if (!written) file_ = {};  // after a hole, nothing that follows would be a block
  return written;
}

}  // namespace strait::soft::roce
