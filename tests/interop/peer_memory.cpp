// SPDX-License-Identifier: Apache-2.0
// A GPU program as people wrote them for ten years: memory of the vendor's own call, then ibv_reg_mr on the pointer, or
// a dma-buf of it. VENDOR is cuda or rocm.
//
//   peer_memory VENDOR GID works            plain registration: writes and reads, both ends checked through the GPU
//   peer_memory VENDOR GID refused ERRNO    plain registration fails with that errno
//   peer_memory VENDOR GID dmabuf           by descriptor, which is closed at once
//   peer_memory VENDOR GID dmabuf ERRNO     and refused
//   peer_memory VENDOR GID freed            freed under a registration: later requests end with access errors
//   peer_memory VENDOR GID invalidated      the driver takes the pages back in the middle of a transfer (kernel_faults)
//
// The vendor's library is found as any program finds it; what is behind it this one cannot tell.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;

constexpr std::size_t kBytes = 1 << 20;
constexpr std::size_t kOffset = 70'001;  // in no page's first byte
constexpr std::size_t kSent = 300'000;

using Address = unsigned long long;

struct Exported {
  int fd = -1;
  std::uint64_t offset = 0;  // of the memory's first byte in the file
};

// What is asked of a vendor's library, by its own calls; one device, one piece of memory.
class Vendor {
 public:
  virtual ~Vendor() = default;
  virtual Address allocate(std::size_t bytes) = 0;
  virtual bool free(Address at) = 0;
  virtual bool to_device(Address to, const void* from, std::size_t bytes) = 0;
  virtual bool to_host(void* to, Address from, std::size_t bytes) = 0;
  virtual Exported dmabuf(Address at, std::size_t bytes) = 0;
  virtual bool close_dmabuf(int fd) = 0;

 protected:
  explicit Vendor(const char* library) : library_(dlopen(library, RTLD_NOW)) { require(library_ != nullptr, library); }
  template <class Function>
  void get(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    require(function != nullptr, name);
  }

 private:
  void* library_;
};

class Cuda final : public Vendor {
 public:
  Cuda() : Vendor("libcuda.so.1") {
    int (*init)(unsigned);
    int (*retain)(void**, int);
    int (*set_current)(void*);
    get(init, "cuInit");
    get(retain, "cuDevicePrimaryCtxRetain");
    get(set_current, "cuCtxSetCurrent");
    get(alloc_, "cuMemAlloc_v2");
    get(free_, "cuMemFree_v2");
    get(to_device_, "cuMemcpyHtoD_v2");
    get(to_host_, "cuMemcpyDtoH_v2");
    get(handle_, "cuMemGetHandleForAddressRange");
    require(init(0) == 0, "cuInit");
    void* context = nullptr;
    require(retain(&context, 0) == 0 && set_current(context) == 0, "a context");
  }
  Address allocate(std::size_t bytes) override {
    Address at = 0;
    require(alloc_(&at, bytes) == 0, "memory on the GPU");
    return at;
  }
  bool free(Address at) override { return free_(at) == 0; }
  bool to_device(Address to, const void* from, std::size_t bytes) override { return to_device_(to, from, bytes) == 0; }
  bool to_host(void* to, Address from, std::size_t bytes) override { return to_host_(to, from, bytes) == 0; }
  Exported dmabuf(Address at, std::size_t bytes) override {
    Exported made;
    require(handle_(&made.fd, at, bytes, 1, 0) == 0, "the driver makes a descriptor");
    return made;
  }
  bool close_dmabuf(int fd) override { return close(fd) == 0; }

 private:
  int (*alloc_)(Address*, std::size_t) = nullptr;
  int (*free_)(Address) = nullptr;
  int (*to_device_)(Address, const void*, std::size_t) = nullptr;
  int (*to_host_)(void*, Address, std::size_t) = nullptr;
  int (*handle_)(void*, Address, std::size_t, int, unsigned long long) = nullptr;
};

// Written without AMD's headers: those of Debian 12 do not have the export.
class Rocm final : public Vendor {
  struct Handle {  // hsa_agent_t, hsa_amd_memory_pool_t
    std::uint64_t value;
  };
  using Info = int (*)(Handle, int, void*);
  struct Search {
    Info info;
    Handle found;
  };

 public:
  Rocm() : Vendor("libhsa-runtime64.so.1") {
    int (*init)();
    int (*agents)(int (*)(Handle, void*), void*);
    int (*pools)(Handle, int (*)(Handle, void*), void*);
    Search gpu{}, pool{};
    get(init, "hsa_init");
    get(agents, "hsa_iterate_agents");
    get(pools, "hsa_amd_agent_iterate_memory_pools");
    get(gpu.info, "hsa_agent_get_info");
    get(pool.info, "hsa_amd_memory_pool_get_info");
    get(allocate_, "hsa_amd_memory_pool_allocate");
    get(free_, "hsa_amd_memory_pool_free");
    get(copy_, "hsa_memory_copy");
    get(export_, "hsa_amd_portable_export_dmabuf");
    get(close_, "hsa_amd_portable_close_dmabuf");
    require(init() == 0, "hsa_init");
    require(agents(is_gpu, &gpu) == kBreak, "a GPU");
    require(pools(gpu.found, is_vram, &pool) == kBreak, "its memory");
    pool_ = pool.found;
  }
  Address allocate(std::size_t bytes) override {
    void* at = nullptr;
    require(allocate_(pool_, bytes, 0, &at) == 0, "memory on the GPU");
    return reinterpret_cast<Address>(at);
  }
  bool free(Address at) override { return free_(reinterpret_cast<void*>(at)) == 0; }
  bool to_device(Address to, const void* from, std::size_t bytes) override {
    return copy_(reinterpret_cast<void*>(to), from, bytes) == 0;
  }
  bool to_host(void* to, Address from, std::size_t bytes) override {
    return copy_(to, reinterpret_cast<void*>(from), bytes) == 0;
  }
  Exported dmabuf(Address at, std::size_t bytes) override {
    Exported made;
    require(export_(reinterpret_cast<void*>(at), bytes, &made.fd, &made.offset) == 0, "the driver makes a descriptor");
    require(made.offset != 0, "so small a piece is a part of a block");
    return made;
  }
  bool close_dmabuf(int fd) override { return close_(fd) == 0; }

 private:
  static constexpr int kBreak = 1;               // HSA_STATUS_INFO_BREAK
  static int is_gpu(Handle agent, void* data) {  // HSA_AGENT_INFO_DEVICE is HSA_DEVICE_TYPE_GPU
    auto& search = *static_cast<Search*>(data);
    int type = 0;
    if (search.info(agent, 17, &type) != 0 || type != 1) return 0;
    search.found = agent;
    return kBreak;
  }
  static int is_vram(Handle pool, void* data) {  // the global segment, coarse grained
    auto& search = *static_cast<Search*>(data);
    std::uint32_t segment = 1, flags = 0;
    if (search.info(pool, 0, &segment) != 0 || segment != 0) return 0;
    if (search.info(pool, 1, &flags) != 0 || (flags & 4) == 0) return 0;
    search.found = pool;
    return kBreak;
  }

  Handle pool_{};
  int (*allocate_)(Handle, std::size_t, std::uint32_t, void**) = nullptr;
  int (*free_)(void*) = nullptr;
  int (*copy_)(void*, const void*, std::size_t) = nullptr;
  int (*export_)(const void*, std::size_t, int*, std::uint64_t*) = nullptr;
  int (*close_)(int) = nullptr;
};

std::unique_ptr<Vendor> open_vendor(const std::string& name) {
  if (name == "cuda") return std::make_unique<Cuda>();
  require(name == "rocm", "a vendor that exists: cuda, rocm");
  return std::make_unique<Rocm>();
}

struct Gpu {
  std::unique_ptr<Vendor> vendor;
  Address at = 0;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(kBytes);
  explicit Gpu(const std::string& name) : vendor(open_vendor(name)), at(vendor->allocate(kBytes)) {
    for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * 31 + (i >> 9));
    require(vendor->to_device(at, bytes.data(), kBytes), "it is filled");
  }
  [[nodiscard]] bool holds(std::size_t offset, const std::vector<std::uint8_t>& wanted) const {
    std::vector<std::uint8_t> now(wanted.size());
    require(vendor->to_host(now.data(), at + offset, now.size()), "it is read back");
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
  require(gpu.vendor->to_device(there, other.bytes.data(), kSent), "the GPU writes it anew");
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
  const Exported made = gpu.vendor->dmabuf(gpu.at, kBytes);
  ibv_mr* const mr = ibv_reg_dmabuf_mr(host.pd, made.offset, kBytes, gpu.at, made.fd, kAccess);
  const int error = errno;
  require(gpu.vendor->close_dmabuf(made.fd), "it is closed at once");
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
  require(gpu.vendor->free(gpu.at), "it is freed under the registration");
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
  require(count >= 4, "usage: peer_memory VENDOR GID works|refused ERRNO|dmabuf [ERRNO]|freed|invalidated");
  Host host = open_host(std::atoi(arguments[2]), false);
  const std::string mode = arguments[3];
  const int wanted = count > 4 ? std::atoi(arguments[4]) : 0;
  {
    Gpu gpu(arguments[1]);
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
    if (mode != "freed") require(gpu.vendor->free(gpu.at), "the memory is freed");
  }
  close_host(host);
  std::printf("peer_memory: %s %s\n", arguments[1], mode.c_str());
  return 0;
}
