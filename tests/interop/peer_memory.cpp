// SPDX-License-Identifier: Apache-2.0
// A GPU program as people wrote them for ten years: cuMemAlloc, then ibv_reg_mr on the pointer, or a dma-buf of it.
//
//   peer_memory GID works            plain registration: writes and reads, both ends checked through the GPU
//   peer_memory GID refused ERRNO    plain registration fails with that errno
//   peer_memory GID dmabuf           by descriptor, which is closed at once
//   peer_memory GID dmabuf ERRNO     and refused
//   peer_memory GID freed            cuMemFree under a registration: later requests end with access errors
//   peer_memory GID invalidated      the driver takes the pages back in the middle of a transfer (kernel_faults)
//
// libcuda is found as any program finds it; what is behind it this one cannot tell.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;

constexpr std::size_t kBytes = 1 << 20;
constexpr std::size_t kOffset = 70'001;  // in no page's first byte
constexpr std::size_t kSent = 300'000;

struct Cuda {
  using Ptr = unsigned long long;
  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*alloc)(Ptr*, std::size_t);
  int (*free)(Ptr);
  int (*to_device)(Ptr, const void*, std::size_t);
  int (*to_host)(void*, Ptr, std::size_t);
  int (*handle)(void*, Ptr, std::size_t, int, unsigned long long);

  Cuda() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    require(library != nullptr, "libcuda.so.1 is found");
    const auto get = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      require(function != nullptr, name);
    };
    get(init, "cuInit");
    get(retain, "cuDevicePrimaryCtxRetain");
    get(set_current, "cuCtxSetCurrent");
    get(alloc, "cuMemAlloc_v2");
    get(free, "cuMemFree_v2");
    get(to_device, "cuMemcpyHtoD_v2");
    get(to_host, "cuMemcpyDtoH_v2");
    get(handle, "cuMemGetHandleForAddressRange");
    require(init(0) == 0, "cuInit");
    void* context = nullptr;
    require(retain(&context, 0) == 0 && set_current(context) == 0, "a context");
  }
};

struct Gpu {
  Cuda cuda;
  Cuda::Ptr at = 0;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(kBytes);
  Gpu() {
    for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * 31 + (i >> 9));
    require(cuda.alloc(&at, kBytes) == 0 && cuda.to_device(at, bytes.data(), kBytes) == 0, "memory on the GPU");
  }
  [[nodiscard]] bool holds(std::size_t offset, const std::vector<std::uint8_t>& wanted) const {
    std::vector<std::uint8_t> now(wanted.size());
    require(cuda.to_host(now.data(), at + offset, now.size()) == 0, "it is read back");
    return now == wanted;
  }
};

struct Loop {
  const Host& host;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_qp* other = nullptr;  // whose side refuses: a queue pair that refuses what it sent itself is only flushed
  explicit Loop(const Host& h) : host(h) {
    cq = ibv_create_cq(host.context, 16, nullptr, nullptr, 0);
    require(cq != nullptr, "a completion queue");
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {4, 4, 1, 1, 0};
    qp = ibv_create_qp(host.pd, &init);
    other = ibv_create_qp(host.pd, &init);
    require(qp != nullptr && other != nullptr, "two queue pairs");
    connect(host, qp, other->qp_num, host.gid);
    connect(host, other, qp->qp_num, host.gid);
  }
  ~Loop() {
    require(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(other) == 0 && ibv_destroy_cq(cq) == 0, "the queues go");
  }

  ibv_wc_status run(ibv_wr_opcode opcode, std::uint64_t here, std::uint32_t lkey, std::uint64_t there,
                    std::uint32_t rkey, std::uint32_t length) const {
    ibv_sge piece{here, length, lkey};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {there, rkey};
    ibv_send_wr* bad = nullptr;
    require(ibv_post_send(qp, &wr, &bad) == 0, "it is posted");
    const auto begun = std::chrono::steady_clock::now();
    ibv_wc done{};
    while (ibv_poll_cq(cq, 1, &done) == 0)
      require(std::chrono::steady_clock::now() - begun < std::chrono::nanoseconds(kPatienceNs), "it completes in time");
    return done.status;
  }
};

// Into the GPU's memory and out of it again, with its key at either end.
void traffic(const Host& host, const Gpu& gpu, const ibv_mr* mr) {
  const Loop loop(host);
  Registered other(host.pd, kSent, 1);
  const std::uint64_t there = gpu.at + kOffset;
  require(loop.run(IBV_WR_RDMA_WRITE, other.at(), other.mr->lkey, there, mr->rkey, kSent) == IBV_WC_SUCCESS, "a write");
  require(gpu.holds(kOffset, other.bytes), "what was written is on the GPU");
  for (std::uint8_t& byte : other.bytes) byte = static_cast<std::uint8_t>(byte ^ 0x5a);
  require(gpu.cuda.to_device(there, other.bytes.data(), kSent) == 0, "the GPU writes it anew");
  std::vector<std::uint8_t> wanted = other.bytes;
  std::fill(other.bytes.begin(), other.bytes.end(), std::uint8_t{0});
  require(loop.run(IBV_WR_RDMA_READ, other.at(), other.mr->lkey, there, mr->rkey, kSent) == IBV_WC_SUCCESS, "a read");
  require(other.bytes == wanted, "what was read is what the GPU wrote");
  std::fill(other.bytes.begin(), other.bytes.end(), std::uint8_t{0});
  require(loop.run(IBV_WR_RDMA_WRITE, there, mr->lkey, other.at(), other.mr->rkey, kSent) == IBV_WC_SUCCESS,
          "a write from the GPU");
  require(other.bytes == wanted, "it came from the GPU");
}

ibv_mr* by_address(const Host& host, const Gpu& gpu) {
  return ibv_reg_mr(host.pd, reinterpret_cast<void*>(gpu.at), kBytes, kAccess);
}

ibv_mr* by_descriptor(const Host& host, const Gpu& gpu) {
  int fd = -1;
  require(gpu.cuda.handle(&fd, gpu.at, kBytes, 1, 0) == 0, "the driver makes a descriptor");
  ibv_mr* const mr = ibv_reg_dmabuf_mr(host.pd, 0, kBytes, gpu.at, fd, kAccess);
  const int error = errno;
  require(close(fd) == 0, "it is closed at once");
  errno = error;
  return mr;
}

void expect_refused(const ibv_mr* mr, int wanted) {
  const int error = errno;
  if (mr == nullptr && error == wanted) return;
  std::fprintf(stderr, "failed: it should be refused with errno %d, and is %d\n", wanted, mr == nullptr ? error : 0);
  std::exit(1);
}

void freed(const Host& host, Gpu& gpu) {
  ibv_mr* const mr = by_address(host, gpu);
  require(mr != nullptr, "it is registered");
  Registered other(host.pd, kSent, 1);
  require(gpu.cuda.free(gpu.at) == 0, "it is freed under the registration");
  {
    const Loop loop(host);
    require(loop.run(IBV_WR_RDMA_WRITE, other.at(), other.mr->lkey, gpu.at, mr->rkey, kSent) == IBV_WC_REM_ACCESS_ERR,
            "a write to it is a remote access error");
  }
  {
    const Loop loop(host);
    require(loop.run(IBV_WR_RDMA_WRITE, gpu.at, mr->lkey, other.at(), other.mr->rkey, kSent) == IBV_WC_LOC_PROT_ERR,
            "a write from it is a local protection error");
  }
  require(ibv_dereg_mr(mr) == 0, "it is deregistered after all");
}

void invalidated(const Host& host, const Gpu& gpu) {
  ibv_mr* const mr = by_address(host, gpu);
  require(mr != nullptr, "it is registered");
  Registered other(host.pd, kSent, 1);
  const Loop loop(host);
  require(loop.run(IBV_WR_RDMA_WRITE, other.at(), other.mr->lkey, gpu.at, mr->rkey, kSent) == IBV_WC_REM_ACCESS_ERR,
          "the transfer in which the pages went is a remote access error");
  std::vector<std::uint8_t> tail(gpu.bytes.begin() + kSent - 4096, gpu.bytes.begin() + kSent);
  require(gpu.holds(kSent - 4096, tail), "nothing was written past that");
  require(ibv_dereg_mr(mr) == 0, "it is deregistered");
}

}  // namespace

int main(int count, char** arguments) {
  require(count >= 3, "usage: peer_memory GID works|refused ERRNO|dmabuf [ERRNO]|freed|invalidated");
  Host host = open_host(std::atoi(arguments[1]), false);
  const std::string mode = arguments[2];
  const int wanted = count > 3 ? std::atoi(arguments[3]) : 0;
  {
    Gpu gpu;
    if (mode == "refused") {
      expect_refused(by_address(host, gpu), wanted);
    } else if (mode == "dmabuf" && wanted != 0) {
      expect_refused(by_descriptor(host, gpu), wanted);
    } else if (mode == "works" || mode == "dmabuf") {
      ibv_mr* const mr = mode == "works" ? by_address(host, gpu) : by_descriptor(host, gpu);
      require(mr != nullptr, "the GPU's memory is registered");
      traffic(host, gpu, mr);
      require(ibv_dereg_mr(mr) == 0, "it is deregistered");
    } else if (mode == "freed") {
      freed(host, gpu);
    } else {
      require(mode == "invalidated", "a mode that exists");
      invalidated(host, gpu);
    }
    if (mode != "freed") require(gpu.cuda.free(gpu.at) == 0, "the memory is freed");
  }
  close_host(host);
  std::printf("peer_memory: %s\n", mode.c_str());
  return 0;
}
