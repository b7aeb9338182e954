// SPDX-License-Identifier: Apache-2.0
// Keys that libmlx5 makes of parts of others (mlx5dv_wr_mr_list, mlx5dv_wr_mr_interleaved), in the hands of a peer: it
// writes and reads through them as through one range, until they are invalidated.
//
//   indirect_keys GID    the owner and its peer are two processes, over the address of that GID
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;

constexpr std::size_t kBytes = 1 << 20;
constexpr std::uint32_t kListBytes = 100 + 300'000 + 7;
constexpr std::uint32_t kRounds = 5'000;
constexpr std::uint32_t kRoundBytes = 24 + 10;
constexpr std::uint32_t kStridedBytes = kRounds * kRoundBytes;
constexpr std::size_t kSecond = 600'000;  // where the list ends and what is strided begins

// What the two tell each other beside the device.
struct Card {
  std::uint32_t qpn;
  std::uint32_t list;
  std::uint32_t strided;
  ibv_gid gid;
};
template <class T>
void tell(int socket, const T& what) {
  require(::write(socket, &what, sizeof what) == static_cast<ssize_t>(sizeof what), "the other process is told");
}
template <class T>
T hear(int socket) {
  T what{};
  require(::read(socket, &what, sizeof what) == static_cast<ssize_t>(sizeof what), "the other process tells");
  return what;
}

ibv_wc poll_one(ibv_cq* cq) {
  ibv_wc completion{};
  int found = 0;
  for (std::uint64_t i = 0; found == 0 && i < 4'000'000'000; ++i) found = ibv_poll_cq(cq, 1, &completion);
  require(found == 1, "a completion comes");
  return completion;
}

// The i-th byte of each key, counted through its parts.
std::size_t list_place(std::size_t i) {
  if (i < 100) return 4'000 + i;
  return i < 300'100 ? 10'000 + i - 100 : 1 + i - 300'100;
}
std::size_t strided_place(std::size_t i) {
  const std::size_t round = i / kRoundBytes;
  const std::size_t rest = i % kRoundBytes;
  return rest < 24 ? kSecond + round * 32 + rest : kSecond + 200'000 + round * 10 + rest - 24;
}

void own(int gid_index, int socket) {
  Host host = open_host(gid_index, false);
  ibv_cq* const cq = ibv_create_cq(host.context, 16, nullptr, nullptr, 0);
  require(cq != nullptr, "a completion queue");
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {16, 1, 1, 1, 256};
  init.pd = host.pd;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_LOCAL_INV;
  mlx5dv_qp_init_attr driver{};
  driver.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
  driver.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
  driver.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED;
  ibv_qp* const qp = mlx5dv_create_qp(host.context, &init, &driver);
  require(qp != nullptr, "a queue pair for keys");
  ibv_qp_ex* const work = ibv_qp_to_qp_ex(qp);
  mlx5dv_qp_ex* const keys = mlx5dv_qp_ex_from_ibv_qp_ex(work);
  mlx5dv_mkey* made[2] = {};
  for (mlx5dv_mkey*& key : made) {
    mlx5dv_mkey_init_attr wanted{};
    wanted.pd = host.pd;
    wanted.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
    wanted.max_entries = 4;
    key = mlx5dv_create_mkey(&wanted);
    require(key != nullptr, "an indirect key");
  }
  {
    Registered memory(host.pd, kBytes, 9);
    memory.bytes.assign(kBytes, 0);
    const auto theirs = hear<Card>(socket);
    connect(host, qp, theirs.qpn, theirs.gid);
    const std::uint32_t lkey = memory.mr->lkey;
    ibv_sge parts[] = {
        {memory.at(list_place(0)), 100, lkey}, {memory.at(10'000), 300'000, lkey}, {memory.at(1), 7, lkey}};
    mlx5dv_mr_interleaved strided[] = {{memory.at(kSecond), 24, 8, lkey}, {memory.at(kSecond + 200'000), 10, 0, lkey}};
    ibv_wr_start(work);
    work->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mr_list(keys, made[0], kAccess, 3, parts);
    mlx5dv_wr_mr_interleaved(keys, made[1], kAccess, kRounds, 2, strided);
    require(ibv_wr_complete(work) == 0, "two keys are filled");
    for (int i = 0; i < 2; ++i) require(poll_one(cq).status == IBV_WC_SUCCESS, "a key is filled");
    tell(socket, Card{qp->qp_num, made[0]->rkey, made[1]->rkey, host.gid});

    std::vector<std::uint8_t> expected(kBytes);
    const auto seed = hear<std::uint8_t>(socket);  // the peer has written, and read it back
    const Registered sent(host.pd, kListBytes, seed);
    for (std::size_t i = 0; i < kListBytes; ++i) expected[list_place(i)] = sent.bytes[i];
    for (std::size_t i = 5; i < kStridedBytes - 5; ++i) expected[strided_place(i)] = sent.bytes[i - 5];
    require(memory.bytes == expected, "the parts have what was written, and nothing else has");

    ibv_wr_start(work);
    work->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_local_inv(work, made[0]->rkey);
    require(ibv_wr_complete(work) == 0 && poll_one(cq).status == IBV_WC_SUCCESS, "a key is invalidated");
    tell(socket, true);
    require(hear<bool>(socket), "the peer was refused");
    require(memory.bytes == expected, "and has changed nothing");
  }
  require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "the queues go");
  for (mlx5dv_mkey* key : made) require(mlx5dv_destroy_mkey(key) == 0, "the keys go");
  close_host(host);
}

void use(int gid_index, int socket) {
  Host host = open_host(gid_index, false);
  ibv_cq* const cq = ibv_create_cq(host.context, 16, nullptr, nullptr, 0);
  require(cq != nullptr, "a completion queue");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {16, 1, 1, 1, 0};
  ibv_qp* const qp = ibv_create_qp(host.pd, &init);
  require(qp != nullptr, "a queue pair");
  tell(socket, Card{qp->qp_num, 0, 0, host.gid});
  const auto theirs = hear<Card>(socket);
  connect(host, qp, theirs.qpn, theirs.gid);
  {
    constexpr std::uint8_t kSeed = 11;
    Registered from(host.pd, kListBytes, kSeed);
    Registered back(host.pd, kListBytes, 0);
    const auto move = [&](ibv_wr_opcode opcode, const Registered& memory, std::uint32_t rkey, std::uint64_t at,
                          std::uint32_t length) {
      ibv_sge piece{memory.at(), length, memory.mr->lkey};
      ibv_send_wr wanted{};
      wanted.opcode = opcode;
      wanted.sg_list = &piece;
      wanted.num_sge = 1;
      wanted.send_flags = IBV_SEND_SIGNALED;
      wanted.wr.rdma.remote_addr = at;
      wanted.wr.rdma.rkey = rkey;
      ibv_send_wr* refused = nullptr;
      require(ibv_post_send(qp, &wanted, &refused) == 0, "a work request is posted");
      return poll_one(cq).status;
    };
    const auto there_and_back = [&](std::uint32_t rkey, std::uint64_t at, std::uint32_t length) {
      require(move(IBV_WR_RDMA_WRITE, from, rkey, at, length) == IBV_WC_SUCCESS, "a write through the key");
      back.bytes.assign(kListBytes, 0);
      require(move(IBV_WR_RDMA_READ, back, rkey, at, length) == IBV_WC_SUCCESS, "a read through the key");
      require(std::memcmp(back.bytes.data(), from.bytes.data(), length) == 0, "what was written is read");
    };
    there_and_back(theirs.list, 0, kListBytes);
    there_and_back(theirs.strided, 5, kStridedBytes - 10);
    tell(socket, kSeed);
    require(hear<bool>(socket), "the key is invalidated");
    require(move(IBV_WR_RDMA_WRITE, from, theirs.list, 0, 8) == IBV_WC_REM_ACCESS_ERR, "it maps nothing any more");
    tell(socket, true);
  }
  require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "the queues go");
  close_host(host);
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, "usage: indirect_keys GID");
  const int gid_index = std::atoi(argv[1]);
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "two processes have a socket between them");
  const pid_t child = ::fork();
  require(child >= 0, "there are two processes");
  ::close(ends[child == 0 ? 0 : 1]);
  if (child == 0) {
    own(gid_index, ends[1]);
    return 0;
  }
  use(gid_index, ends[0]);
  int status = 0;
  require(::waitpid(child, &status, 0) == child && status == 0, "the owner ends well");
  std::puts("indirect keys: lists and strided parts, written, read and invalidated");
  return 0;
}
