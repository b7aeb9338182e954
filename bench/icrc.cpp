// SPDX-License-Identifier: Apache-2.0
// What an iCRC costs: GB/s of CRC-32 over packets of 1 KiB and 4 KiB, by every way this CPU has, and how many times
// faster than the table each is.
//
//   icrc [CPU] [--json]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "soft/roce/crc32.hpp"
#include "soft/roce/icrc.hpp"
#include "workload.hpp"

namespace bench {
namespace {

namespace roce = strait::soft::roce;
constexpr int kRounds = 21;
constexpr double kRoundNs = 2e6;

// GB/s of each of several rounds, the median of which counts: this machine has other things to do.
template <class Work>
double median_gbps(std::size_t bytes_each, Work work) {
  std::size_t count = 1;
  const auto time_ns = [&] {
    const std::uint64_t start = now_ns();
    for (std::size_t i = 0; i < count; ++i) work();
    return static_cast<double>(now_ns() - start);
  };
  while (time_ns() < kRoundNs) count *= 2;
  std::vector<double> values;
  for (int i = 0; i < kRounds; ++i) values.push_back(static_cast<double>(count * bytes_each) / time_ns());
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

// Each CRC begins with the one before: none can be left out or run ahead of time.
double crc_gbps(roce::CrcPath path, std::span<const std::byte> bytes) {
  std::uint32_t state = 0xffffffff;
  const double result = median_gbps(bytes.size(), [&] { state = roce::crc32_update(state, bytes, path); });
  if (state == 0) std::fputs(" ", stderr);  // `state` is used
  return result;
}

// A whole packet, headers and all, as a port seals it.
double seal_gbps(std::span<std::byte> packet) {
  const roce::Flow flow{roce::IpAddress::v4(10, 0, 0, 1), roce::IpAddress::v4(10, 0, 0, 2), 4791};
  return median_gbps(packet.size(), [&] {
    roce::seal(flow, packet);
    packet[20] = packet[packet.size() - 1];
  });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  namespace roce = strait::soft::roce;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0)
      json = true;
    else
      bench::pin(std::atoi(argv[i]));
  }
  if (json)
    std::printf("{\"best\": \"%s\", \"rows\": [", roce::crc_path_name(roce::best_crc_path()));
  else
    std::printf("%-10s %8s %10s %14s\n", "way", "bytes", "GB/s", "times table");
  const char* comma = "";
  for (const std::size_t bytes : {std::size_t{1024}, std::size_t{4096}}) {
    std::vector<std::byte> memory(bytes);
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(i * 31 + i / 256);
    double table = 0;
    for (const auto path : {roce::CrcPath::table, roce::CrcPath::instruction, roce::CrcPath::wide}) {
      if (!roce::crc_path_works(path)) continue;
      const double gbps = bench::crc_gbps(path, memory);
      if (path == roce::CrcPath::table) table = gbps;
      if (json) {
        std::printf("%s{\"way\": \"%s\", \"bytes\": %zu, \"gbps\": %.3f, \"ratio\": %.2f}", comma,
                    roce::crc_path_name(path), bytes, gbps, gbps / table);
      } else {
        std::printf("%-10s %8zu %10.2f %14.1f\n", roce::crc_path_name(path), bytes, gbps, gbps / table);
      }
      comma = ", ";
    }
    const double whole = bench::seal_gbps(memory);
    if (json) {
      std::printf(", {\"way\": \"seal\", \"bytes\": %zu, \"gbps\": %.3f, \"ratio\": %.2f}", bytes, whole,
                  whole / table);
    } else {
      std::printf("%-10s %8zu %10.2f %14.1f\n", "seal", bytes, whole, whole / table);
    }
  }
  if (json) std::printf("]}\n");
  return 0;
}
