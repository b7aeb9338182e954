// SPDX-License-Identifier: Apache-2.0
// Two processes that post writes by hand, unsignaled, and wait by looking at memory: after they are connected neither
// calls anything. Only who notices the stores to their doorbells can send at once.
//
//   quiet_post GID ROUNDS [apart]    apart: each process on one processor, the first and the last of those there are
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "strait/device/post.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/wait.hpp"
#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;
namespace device = strait::device;
namespace wire = strait::wire;
constexpr auto kOne = device::Sharing::one_thread;
constexpr std::uint32_t kBlocks = 256;  // no completion ever makes room

struct Said {
  std::uint32_t qpn = 0, key = 0;
  std::uint64_t address = 0;
  ibv_gid gid{};
};

Said exchange(int socket, const Said& own) {
  Said other;
  require(write(socket, &own, sizeof own) == sizeof own, "the other process is told");
  require(read(socket, &other, sizeof other) == sizeof other, "the other process says");
  return other;
}

void wait_for(const Registered& memory, std::uint64_t value, device::Deadline deadline) {
  const auto* const word = reinterpret_cast<const std::uint64_t*>(memory.bytes.data());
  for (std::uint32_t turn = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; ++turn) {
    if (turn % 4096 == 0) require(!deadline.passed(), "the other's write arrives in time");
  }
}

void hold_to_one_cpu(bool first) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  require(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "there are processors");
  std::size_t chosen = CPU_SETSIZE;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && (chosen == CPU_SETSIZE || !first)) chosen = cpu;
  }
  CPU_SET(chosen, &one);
  require(sched_setaffinity(0, sizeof one, &one) == 0, "one of them");
}

// `first`: it begins, and the other answers.
void play(int socket, bool first, int gid, std::uint64_t rounds) {
  Host host = open_host(gid, false);
  ibv_cq* const cq = ibv_create_cq(host.context, 63, nullptr, nullptr, 0);
  require(cq != nullptr, "a completion queue");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {kBlocks, 1, 1, 1, 8};
  ibv_qp* const qp = ibv_create_qp(host.pd, &init);
  require(qp != nullptr, "a queue pair");
  mlx5dv_qp dv{};
  mlx5dv_obj objects{};
  objects.qp = {qp, &dv};
  require(mlx5dv_init_obj(&objects, MLX5DV_OBJ_QP) == 0, "mlx5dv_init_obj shows the rings");
  device::SendRing send{};
  require(device::open_send_ring(send, {dv.sq.buf, static_cast<std::uint32_t>(__builtin_ctz(dv.sq.wqe_cnt)), qp->qp_num,
                                        reinterpret_cast<wire::mlx5::QueueRecord*>(dv.dbrec), dv.bf.reg, nullptr, 0}),
          "the send ring fits strait/device");
  {
    Registered memory(host.pd, 4096, 0);
    const Said other = exchange(socket, {qp->qp_num, memory.mr->rkey, memory.at(), host.gid});
    connect(host, qp, other.qpn, other.gid);
    (void)exchange(socket, {});  // both are connected
    const device::Deadline deadline = device::Deadline::after_ns(kPatienceNs);
    std::vector<double> took_us;
    took_us.reserve(rounds);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      const std::uint64_t word = round << 20 | 0x5a5a5;
      if (!first) wait_for(memory, word, deadline);
      require(device::post_write_inline<kOne>(send, {other.address, other.key}, &word, sizeof word, 0).ok(),
              "a write has room");
      device::ring_doorbell<kOne>(send);
      if (first) wait_for(memory, word, deadline);
      took_us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    std::ranges::sort(took_us);
    if (first && rounds != 0) std::printf("there and back, typical: %.1f us\n", took_us[rounds / 2]);
    (void)exchange(socket, {});  // neither leaves before the other has everything
  }
  require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "the queues go");
  close_host(host);
}

}  // namespace

int main(int argc, char** argv) {
  const int gid = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::uint64_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  require(rounds <= kBlocks, "no more rounds than the ring has blocks");
  int sockets[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0, "a way to talk");
  const pid_t child = fork();  // before there is any device, or a thread
  require(child >= 0, "a second process");
  close(sockets[child == 0 ? 0 : 1]);
  if (argc > 3) hold_to_one_cpu(child != 0);
  play(sockets[child == 0 ? 1 : 0], child != 0, gid, rounds);
  if (child == 0) return 0;
  int status = 0;
  require(waitpid(child, &status, 0) == child && status == 0, "the other process succeeds");
  std::puts("quiet post: all arrived");
  return 0;
}
