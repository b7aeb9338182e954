// SPDX-License-Identifier: Apache-2.0
// device/lane.hpp on a GPU: the suite that CPU threads pass, and the bytes of both compared.
#include "cpu_machine.hpp"
#include "gpu/cuda_machine.cuh"
#include "lane_suite.hpp"
#include "near_suite.hpp"

namespace suite {

INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, LaneOn, CudaMachine);
INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, NearOn, CudaMachine);

// What one thread posts, byte by byte: addresses differ between the two runs, so the regions lie at made-up ones and
// the NIC is stopped.
struct Script {
  Stage s;
  STRAIT_HD void operator()(unsigned, unsigned) const {
    Lane<Sharing::one_thread> lane(s.a);
    unsigned n = 0;
    How silent, fenced;
    silent.silent = true;
    fenced.flags = kFenced;
    for (std::uint64_t i = 0; i < 3; ++i) {
      s.answers[n++] = code(lane.put(s.local, 64 * i, s.remote, 128 * i, 100 + i, silent));
      s.answers[n++] = code(lane.get(s.local, 64 * i, s.remote, 128 * i, 1 + i));
      s.answers[n++] = code(lane.put_value(std::uint8_t{0x12}, s.remote, i));
      s.answers[n++] = code(lane.put_value(std::uint16_t{0x1234}, s.remote, 2 * i));
      s.answers[n++] = code(lane.put_value(std::uint32_t{0x12345678}, s.remote, 4 * i));
      s.answers[n++] = code(lane.put_value(std::uint64_t{0x123456789abcdef0}, s.remote, 8 * i, fenced));
      s.answers[n++] = code(lane.put_signal(s.local, 0, s.remote, 0, 4096, 5, i));
      s.answers[n++] = code(lane.signal(s.remote, 2, 7));
      s.answers[n++] = code(lane.fetch_add(s.remote, 8 * i, 99, s.local, 8));
      lane.fence();
      s.answers[n++] = code(lane.compare_swap(s.remote, 8 * i, 1, 2, s.local, 16));
      s.answers[n++] = code(lane.send(s.local, 0, 33));
      s.answers[n++] = code(lane.send_imm(s.local, 0, 34, 0xfeedface));
      s.answers[n++] = code(lane.put(s.local, 0, s.remote, 0, 0));
    }
  }
  static constexpr unsigned kAnswers = 39, kBlocks = 42;
};

template <class Machine>
std::vector<std::uint8_t> bytes_of_script() {
  Street<Machine> street({Sharing::one_thread, 6, 65500});
  street.nic_.stall(true);
  Stage stage = street.stage();
  stage.local.address = 0x10000000;
  stage.remote.address = 0x20000000;
  stage.remote.signal_address = 0x30000000;
  QueueState state = street.state();
  state.sink_address = 0x40000000;
  street.machine_.store(street.states_[0], &state, sizeof state);
  street.run(1, 1, Script{stage});
  for (unsigned i = 0; i < Script::kAnswers; ++i) EXPECT_EQ(street.answers_[i], 0u) << i;
  EXPECT_EQ(street.state().send.slots.reserved, 65500u + Script::kBlocks);
  // Bytes behind the last segment of a WQE are nobody's: zero here, since the memory began so.
  return {street.ends_[0].send, street.ends_[0].send + 64 * 64};
}

TEST(Bytes, AreTheSameOnCpuAndGpu) {
  const auto cpu = bytes_of_script<CpuMachine>();
  const auto gpu = bytes_of_script<CudaMachine>();
  same_bytes(cpu, gpu);
}

TEST(Bytes, OfAWarpAreTheSameOnCpuAndGpu) {
  same_bytes(bytes_of_group<CpuMachine, Warp, true>(32, kListBlocks + kMemberBlocks),
             bytes_of_group<CudaMachine, Warp, true>(32, kListBlocks + kMemberBlocks));
}

}  // namespace suite
