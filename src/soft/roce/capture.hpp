// SPDX-License-Identifier: Apache-2.0
// Captures of packets as pcapng files, which Wireshark and tshark read. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "soft/roce/address.hpp"
#include "sys/output_file.hpp"

namespace strait::soft::roce {

class Capture {
 public:
  // Replaces a file of that name.
  [[nodiscard]] static Result<Capture> open(const std::string& path);
  Capture(Capture&&) = default;
  Capture& operator=(Capture&&) = delete;
  ~Capture();  // flushes

  // `ns`: of the wall clock. IP and UDP headers are made from the flow. Whole blocks are collected and written
  // together; what a crash loses is what was not flushed, and the file stays readable.
  [[nodiscard]] Status write(const Flow& flow, std::int64_t ns, std::span<const std::byte> bth_to_icrc,
                             std::string_view comment, bool outgoing);
  [[nodiscard]] Status flush();
  [[nodiscard]] std::uint64_t packets() const { return packets_; }

 private:
  explicit Capture(sys::OutputFile file) : file_(std::move(file)) {}
  sys::OutputFile file_;
  std::vector<std::byte> buffer_;
  std::uint64_t packets_ = 0;
};

}  // namespace strait::soft::roce
