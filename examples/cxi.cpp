// SPDX-License-Identifier: Apache-2.0
// A Slingshot NIC that a kernel posts to, twice: by Lane, and by the driver's own names. The kernels are lambdas here
// and their grid is CPU threads, so it runs anywhere; the bodies of real ones would be the same.
//
//   cxi                 between two software Cassinis of this process
//   cxi cxi0 cxi0       on a Slingshot NIC
#include <strait/cxi.h>
#include <cstdio>
#include <cstring>
#include <strait/cxi/library.hpp>
#include <strait/cxi_queue.hpp>
#include <strait/device/cpu_grid.hpp>
#include <strait/device/cxi/lane.hpp>
#include <strait/device/wait.hpp>

namespace device = strait::device;

namespace {

constexpr unsigned kThreads = 4;
constexpr std::uint64_t kPiece = 4096;

device::Deadline in_time() {
  return device::Deadline::after_ns(10'000'000'000);
}

// Four threads of one side put a piece each and raise its signal; four of the other wait for them and look.
bool by_lane(const char* from_name, const char* to_name) {
  alignas(4096) static char source[kThreads * kPiece], target[kThreads * kPiece];
  alignas(4096) static std::uint64_t signals[512];
  for (unsigned i = 0; i < kThreads; ++i) std::memset(source + i * kPiece, 'a' + static_cast<int>(i), kPiece);

  const auto from = strait::CxiDevice::open(from_name).value();
  const auto to = strait::CxiDevice::open(to_name).value();
  const auto sender = strait::CxiQueue::open(from, {.sharing = device::Sharing::many_threads}).value();
  const auto receiver = strait::CxiQueue::open(to, {.sharing = device::Sharing::many_threads}).value();
  // What would travel to the other program, as plain bytes. Nobody gets more than the right to write.
  using strait::access::remote_write;
  const auto data = receiver.expose({target, sizeof target}, STRAIT_CXI_NO_COUNTER, remote_write).value();
  const auto words = receiver.expose({signals, sizeof signals}, STRAIT_CXI_NO_COUNTER, remote_write).value();

  const auto send_handle = sender.handle().value(), receive_handle = receiver.handle().value();
  const auto local = sender.local({source, sizeof source}).value();
  const auto remote = sender.remote(data, &words).value();
  device::Signal signal[kThreads];
  for (unsigned i = 0; i < kThreads; ++i) signal[i] = receiver.signal(signals + i).value();

  bool good[2][kThreads] = {};
  device::run_on_cpu({.blocks = 2, .threads = kThreads}, [&](unsigned block, unsigned thread) {
    using Lane = device::cxi::Lane<device::Sharing::many_threads>;
    if (block == 0) {
      Lane lane(send_handle);
      const auto put = lane.put_signal(local, thread * kPiece, remote, thread * kPiece, kPiece, thread, 1);
      good[0][thread] = put.ok() && lane.wait(put, in_time()).waited == device::Waited::ok;
    } else {
      Lane lane(receive_handle);
      good[1][thread] = lane.wait_signal(signal[thread], 1, in_time()).waited == device::Waited::ok &&
                        target[(thread + 1) * kPiece - 1] == 'a' + static_cast<int>(thread);
    }
  });
  bool all = receiver.unexpose(data) && receiver.unexpose(words);
  for (const auto& side : good) {
    for (const bool each : side) all = all && each;
  }
  return all;
}

// One thread emits and rings the put that libcxi's users know; another one sees the bytes. To itself, for brevity.
bool by_name(const char* name) {
  alignas(4096) static std::uint64_t memory[1024];  // the first half is put into the second
  cxi_dev* const dev = cxi_dev_open(name);
  if (dev == nullptr) return false;
  strait_cxi_about about{};
  about.struct_size = sizeof about;
  strait_cxi_about_device(static_cast<strait_cxi_device*>(dev->device), &about, nullptr);
  cxi_lni* const lni = cxi_lni_alloc(dev, 1);
  cxi_cp* const cp = cxi_trig_cp_alloc(lni, 1, CXI_TC_BEST_EFFORT, CXI_TC_TYPE_DEFAULT, ANY_LCID);
  cxi_domain* const domain = cxi_domain_alloc(lni, 1, 511);
  if (lni == nullptr || cp == nullptr || domain == nullptr) return false;
  cxi_cq_alloc_opts opts{};
  opts.count = 64;
  cxi_cq* const target = cxi_cq_alloc(lni, nullptr, &opts);
  opts.flags = CXI_CQ_IS_TX;
  opts.lcid = cp->lcid;
  cxi_cq* const transmit = cxi_cq_alloc(lni, nullptr, &opts);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  cxi_md* const md = cxi_map(lni, address, sizeof memory, CXI_MAP_PIN | CXI_MAP_READ | CXI_MAP_WRITE, nullptr);
  const cxi_pt_alloc_opts portal{};
  cxi_pte* const pte = cxi_pte_alloc(lni, nullptr, &portal);
  unsigned index = 0;
  if (target == nullptr || transmit == nullptr || md == nullptr || pte == nullptr) return false;
  if (cxi_pte_map(pte, domain, 0, false, &index) != 0) return false;

  c_target_cmd append{};
  append.command.opcode = C_CMD_TGT_APPEND;
  append.ptlte_index = pte->id & 0x7ff;
  append.op_put = 1;
  append.event_link_disable = append.event_comm_disable = append.event_unlink_disable = 1;
  append.lac = md->lac & 7;
  append.start = CXI_VA_TO_IOVA(md, address + 4096) & 0x1ffffffffffffff;
  append.length = 4096;
  append.match_id = 0xffffffff;
  append.ignore_bits = ~std::uint64_t{0};
  c_set_state_cmd enable{};
  enable.command.opcode = C_CMD_TGT_SETSTATE;
  enable.ptlte_state = C_PTLTE_ENABLED;
  enable.ptlte_index = pte->id & 0x7ff;
  c_full_dma_cmd put{};
  put.command.opcode = C_CMD_PUT;
  put.lac = md->lac & 7;
  put.event_send_disable = put.event_success_disable = 1;
  put.dfa.unicast.nid = about.nid & 0xfffff;
  put.dfa.unicast.endpoint_defined = domain->pid & 0xfff;
  put.local_addr = CXI_VA_TO_IOVA(md, address) & 0x1ffffffffffffff;
  put.request_len = 8;

  bool good[2] = {};
  device::run_on_cpu({.blocks = 2, .threads = 1}, [&](unsigned block, unsigned) {
    if (block == 0) {
      good[0] = cxi_cq_emit_target(target, &append) == 0 && cxi_cq_emit_target(target, &enable) == 0;
      cxi_cq_ring(target);
      // It has read them when its read pointer is behind both: a put that is earlier finds a portal that is disabled.
      const auto linked = [&] {
        return device::cxi::status_of(static_cast<std::uint8_t*>(target->cmds)).rd_ptr() == 6 ? device::Turn::finished
                                                                                              : device::Turn::idle;
      };
      good[0] = good[0] && device::wait_bounded({in_time()}, linked) == device::Waited::ok;
      memory[0] = 4711;
      good[0] = good[0] && cxi_cq_emit_dma(transmit, &put) == 0;
      cxi_cq_ring(transmit);
    } else {
      const auto landed = [&] {
        return __atomic_load_n(&memory[512], __ATOMIC_ACQUIRE) == 4711 ? device::Turn::finished : device::Turn::idle;
      };
      good[1] = device::wait_bounded({in_time()}, landed) == device::Waited::ok;
    }
  });
  cxi_cq_free(transmit);
  cxi_cq_free(target);
  cxi_pte_unmap(pte, domain, static_cast<int>(index));
  cxi_pte_free(pte);
  cxi_unmap(md);
  cxi_domain_free(domain);
  cxi_cp_free(cp);
  const bool all_gone = cxi_lni_free(lni) == 0;
  cxi_dev_close(dev);
  return good[0] && good[1] && all_gone;
}

}  // namespace

int main(int argc, char** argv) try {
  const char* const from = argc > 1 ? argv[1] : "local0";
  const char* const to = argc > 2 ? argv[2] : "local1";
  if (!by_lane(from, to)) {
    std::fprintf(stderr, "cxi: a put or its signal did not arrive\n");
    return 1;
  }
  std::printf("%u pieces of %llu bytes, each with its signal\n", kThreads, static_cast<unsigned long long>(kPiece));
  if (!by_name(from)) {
    std::fprintf(stderr, "cxi: the put by the driver's names did not arrive\n");
    return 1;
  }
  std::printf("and one by cxi_cq_emit_dma\n");
} catch (const strait::Failure& failure) {
  std::fprintf(stderr, "cxi: %s\n", failure.what());
  return 1;
}
