// SPDX-License-Identifier: Apache-2.0
// One 64-byte put command into a command ring in this process's memory, and the ring's write pointer stored: by a Lane,
// by the calls of cxi.h, and by libcxi's inline functions where their headers were at hand (cxi_emit_peer.c).
//
//   cxi_emit lane|named|libcxi COUNT    does it COUNT times, so that callgrind counts the function called count_*
//   cxi_emit time COUNT                 nanoseconds of one, of each that was built, in turns; the middle of 15
//
// The device's side is scenery: every 32nd command the read pointer is moved up. The functions called count_* are not
// inlined; a call and a return are part of each.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cxi_emit.h"
#include "strait/cxi.h"
#include "strait/device/cxi/lane.hpp"

namespace {

namespace sd = strait::device;
namespace ki = strait::device::cxi;

constexpr std::uint32_t kBlocks = 256;
alignas(4096) std::uint8_t ring[kBlocks * 64];
alignas(4096) std::uint64_t page[512];
alignas(4096) std::uint8_t triggered[4096];
alignas(4096) std::uint64_t triggered_page[512];

std::uint64_t word = 0;
ki::CounterState counter{{sd::head_of<ki::Counter>(), &word, nullptr, 5, 0}, 0, 0};
ki::QueueState state{};
cxi_cq named{};
ki::LocalMemory from{sd::head_of<ki::LocalMemory>(), 0x7f0000000000, std::uint64_t{1} << 32, 2, 0};
ki::RemoteMemory to{sd::head_of<ki::RemoteMemory>(), 0, std::uint64_t{1} << 32, 0, 0x12345, 3, 0, 0, 0, 0};
ki::Lane<sd::Sharing::one_thread>* lane = nullptr;
c_full_dma_cmd prepared{};

}  // namespace

extern "C" {

[[gnu::noinline]] int count_lane(std::uint64_t offset, std::uint32_t bytes, std::uint64_t tag) {
  return lane->put(from, offset, to, offset, bytes, {.tag = tag}).ok() ? 0 : -1;
}

[[gnu::noinline]] int count_named(std::uint64_t offset, std::uint32_t bytes, std::uint64_t tag) {
  c_full_dma_cmd put = prepared;
  put.local_addr = (0x7f0000000000 + offset) & 0x1ffffffffffffff;
  put.remote_offset = offset & 0xffffffffffffff;
  put.request_len = bytes;
  put.user_ptr = tag;
  const int rc = cxi_cq_emit_dma(&named, &put);
  cxi_cq_ring(&named);
  return rc;
}
}

namespace {

using Emit = int (*)(std::uint64_t, std::uint32_t, std::uint64_t);

void open_all() {
  delete std::exchange(lane, nullptr);  // it gives its place back to the state
  const std::uint64_t fresh = strait::wire::cxi::initial_queue_status().word;
  std::memcpy(ring, &fresh, 8);
  std::memcpy(triggered, &fresh, 8);
  ki::QueueMemory memory;
  memory.transmit = {ring, kBlocks, page, nullptr, ki::RingKind::transmit, sd::Reach::system};
  memory.triggered = {triggered, 64, triggered_page, nullptr, ki::RingKind::triggered, sd::Reach::system};
  memory.counter = &counter;
  memory.counters = 1;
  memory.event_queue = 9;
  memory.initiator = 77;
  if (!ki::open_queue(state, memory)) std::abort();
  lane = new ki::Lane<sd::Sharing::one_thread>({sd::head_of<ki::Queue>(), sd::Sharing::one_thread, 0, &state});
  cxi_cq_init(&named, ring, kBlocks, page, 0);
  prepared.command.opcode = C_CMD_PUT;
  prepared.index_ext = 3;
  prepared.lac = 2;
  prepared.event_send_disable = prepared.event_success_disable = prepared.event_ct_ack = 1;
  prepared.dfa.word = 0x12345;
  prepared.ct = 5;
  prepared.eq = 9;
  prepared.initiator = 77;
  if (cxi_emit_peer_open != nullptr) cxi_emit_peer_open(ring, kBlocks, page);
}

void run(Emit emit, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (emit(i % 4096 * 8, 64, i) != 0) {
      std::fprintf(stderr, "cxi_emit: command %llu was refused\n", static_cast<unsigned long long>(i));
      std::exit(1);
    }
    if (i % 32 == 31) std::memcpy(ring, page, 2);  // the device has taken everything
  }
}

Emit emit_of(const std::string& name) {
  if (name == "lane") return count_lane;
  if (name == "named") return count_named;
  if (name == "libcxi") return count_libcxi;
  return nullptr;
}

// What the three leave in the ring is the same, or they did not do the same work.
void compare(const std::vector<std::string>& names) {
  std::vector<std::uint8_t> first;
  for (const std::string& name : names) {
    std::memset(ring, 0, sizeof ring);
    open_all();
    run(emit_of(name), 100);
    const std::vector<std::uint8_t> bytes(ring + 256, ring + sizeof ring);
    if (!first.empty() && bytes != first) {
      std::fprintf(stderr, "cxi_emit: %s writes other commands than %s\n", name.c_str(), names.front().c_str());
      std::exit(1);
    }
    first = bytes;
  }
}

double once(Emit emit, std::uint64_t count) {
  open_all();
  run(emit, 1000);
  const auto begin = std::chrono::steady_clock::now();
  run(emit, count);
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - begin).count() / static_cast<double>(count);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  const std::uint64_t count = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  std::vector<std::string> names{"lane", "named"};
  if (count_libcxi != nullptr) names.push_back("libcxi");
  if (count == 0 || (what != "time" && emit_of(what) == nullptr)) {
    std::fprintf(stderr, "usage: cxi_emit lane|named|libcxi|time COUNT%s\n",
                 count_libcxi == nullptr ? " (libcxi was not built: -DSTRAIT_CXI_HEADERS=FOLDER)" : "");
    return 2;
  }
  compare(names);
  if (what != "time") {
    open_all();
    run(emit_of(what), count);
    return 0;
  }
  std::vector<std::vector<double>> all(names.size());
  for (unsigned round = 0; round < 15; ++round)
    for (std::size_t i = 0; i < names.size(); ++i) all[i].push_back(once(emit_of(names[i]), count));
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::sort(all[i].begin(), all[i].end());
    std::printf("%s %.2f ns\n", names[i].c_str(), all[i][7]);
  }
  return 0;
}
