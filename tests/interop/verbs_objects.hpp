// SPDX-License-Identifier: Apache-2.0
// For programs of ours that use libibverbs and libmlx5 as anybody would: what every one of them needs before it gets to
// its point. They end the process where something fails, with a sentence.
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace strait::interop {

inline constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr std::uint64_t kPatienceNs = 60'000'000'000;  // a loaded machine is no failure

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s (errno: %s)\n", what, std::strerror(errno));
  std::exit(1);
}

struct Host {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_gid gid{};
  int gid_index = 0;
};

// The first device, by GID `gid_index`; devx: with the right to talk to the firmware.
inline Host open_host(int gid_index, bool devx) {
  Host host;
  ibv_device** const list = ibv_get_device_list(nullptr);
  require(list != nullptr && list[0] != nullptr, "there is a verbs device");
  require(mlx5dv_is_supported(list[0]), "it is an mlx5 device");
  mlx5dv_context_attr attributes{};
  attributes.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
  host.context = devx ? mlx5dv_open_device(list[0], &attributes) : ibv_open_device(list[0]);
  require(host.context != nullptr, "the device opens");
  ibv_free_device_list(list);
  host.pd = ibv_alloc_pd(host.context);
  require(host.pd != nullptr, "a protection domain");
  require(ibv_query_gid(host.context, 1, gid_index, &host.gid) == 0, "the GID is there");
  host.gid_index = gid_index;
  return host;
}

inline void close_host(Host& host) {
  require(ibv_dealloc_pd(host.pd) == 0, "the protection domain goes");
  require(ibv_close_device(host.context) == 0, "the device closes");
}

// Through INIT, RTR and RTS, to a queue pair behind `gid`.
inline void connect(const Host& host, ibv_qp* qp, std::uint32_t to_qpn, const ibv_gid& gid) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = kAccess;
  require(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = to_qpn;
  a.max_dest_rd_atomic = 4;
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = gid;
  a.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(host.gid_index);
  a.ah_attr.grh.hop_limit = 64;
  require(ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "RTR");
  a = {};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = 21;
  a.retry_cnt = 7;
  a.rnr_retry = 7;
  a.max_rd_atomic = 4;
  require(ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "RTS");
}

// Memory under a key, with bytes that nothing else has.
struct Registered {
  std::vector<std::uint8_t> bytes;
  ibv_mr* mr = nullptr;

  Registered(ibv_pd* pd, std::size_t n, std::uint8_t seed) : bytes(n) {
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(seed + i * 7 + (i >> 8));
    mr = ibv_reg_mr(pd, bytes.data(), n, kAccess);
    require(mr != nullptr, "memory is registered");
  }
  ~Registered() { require(ibv_dereg_mr(mr) == 0, "memory is deregistered"); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  [[nodiscard]] std::uint64_t at(std::size_t offset = 0) const {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) + offset;
  }
};

}  // namespace strait::interop
