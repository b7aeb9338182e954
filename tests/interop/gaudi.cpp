// SPDX-License-Identifier: Apache-2.0
// Gaudi memory under an InfiniBand key, by the calls that a program on hardware makes: SynapseAI allocates on the
// device, hl-thunk exports its pool as a dma-buf, libibverbs registers that, and another process writes and reads it by
// RDMA.
//
//   gaudi GID    two processes, over the address of that GID; on accelerators `gaudi:1` of `strait run`
//
// Only what is in the vendor's libraries is called, found by name.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;
constexpr std::size_t kBytes = 200'000;     // of the buffer on the device
constexpr std::size_t kOffset = 4096 + 40;  // what is moved begins somewhere inside
constexpr std::size_t kMoved = 100'001;

std::uint8_t byte_of(std::size_t i, unsigned seed) {
  return static_cast<std::uint8_t>(i * 29 + (i >> 8) + seed * 101);
}

template <class Function>
Function* find(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  require(found != nullptr, name);
  return found;
}

struct DeviceInfo {  // synDeviceInfoV2
  std::uint64_t sram_base, dram_base;
  std::uint32_t sram_bytes;
  std::uint64_t dram_bytes, tpc_mask;
  std::uint8_t dram_enabled;
  std::uint32_t device_id, fd;
  int type;
  std::uint8_t index;
  std::uint64_t pool_base;
};

// The device's side of SynapseAI: memory, and copies through a mapped host buffer.
class Gaudi {
 public:
  Gaudi() {
    void* const synapse = dlopen("libSynapse.so", RTLD_NOW);
    require(synapse != nullptr, "libSynapse.so");
    require(find<int()>(synapse, "synInitialize")() == 0, "synInitialize");
    require(find<int(std::uint32_t*, const char*)>(synapse, "synDeviceAcquire")(&device_, nullptr) == 0,
            "synDeviceAcquire");
    require(find<int(std::uint32_t, DeviceInfo*)>(synapse, "synDeviceGetInfoV2")(device_, &info) == 0,
            "synDeviceGetInfoV2");
    require(find<int(std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t*)>(
                synapse, "synDeviceMalloc")(device_, kBytes, 0, 0, &buffer) == 0,
            "synDeviceMalloc");
    require(find<int(std::uint32_t, std::uint64_t, std::uint32_t, void**)>(synapse, "synHostMalloc")(device_, kBytes, 0,
                                                                                                     &host_) == 0,
            "synHostMalloc");
    require(
        find<int(void**, std::uint32_t, std::uint32_t)>(synapse, "synStreamCreateGeneric")(&stream_, device_, 0) == 0,
        "synStreamCreateGeneric");
    copy_ = find<int(void*, std::uint64_t, std::uint64_t, std::uint64_t, int)>(synapse, "synMemCopyAsync");
    synchronize_ = find<int(void*)>(synapse, "synStreamSynchronize");
    release_ = find<int(std::uint32_t)>(synapse, "synDeviceRelease");
  }
  Gaudi(const Gaudi&) = delete;
  ~Gaudi() { require(release_(device_) == 0, "synDeviceRelease"); }

  // By the copy engine: all of the buffer, from and to the mapped host memory.
  void write() { move(reinterpret_cast<std::uintptr_t>(host_), buffer, 0); }
  void read() { move(buffer, reinterpret_cast<std::uintptr_t>(host_), 1); }
  [[nodiscard]] std::uint8_t* host() const { return static_cast<std::uint8_t*>(host_); }

  // The whole pool's, as drivers give it; where the buffer lies in it is the difference of the addresses.
  [[nodiscard]] int export_buffer() const {
    void* const thunk = dlopen("libhl-thunk.so", RTLD_NOW);
    require(thunk != nullptr, "libhl-thunk.so");
    const int fd = find<int(int, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t)>(
        thunk, "hlthunk_device_mapped_memory_export_dmabuf_fd")(static_cast<int>(info.fd), info.pool_base,
                                                                (kBytes + 4095) / 4096 * 4096, buffer - info.pool_base,
                                                                O_RDWR | O_CLOEXEC);
    require(fd >= 0, "hlthunk_device_mapped_memory_export_dmabuf_fd");
    return fd;
  }

  DeviceInfo info{};
  std::uint64_t buffer = 0;

 private:
  void move(std::uint64_t from, std::uint64_t to, int direction) {
    require(copy_(stream_, from, kBytes, to, direction) == 0, "synMemCopyAsync");
    require(synchronize_(stream_) == 0, "synStreamSynchronize");
  }
  std::uint32_t device_ = 0;
  void* host_ = nullptr;
  void* stream_ = nullptr;
  int (*copy_)(void*, std::uint64_t, std::uint64_t, std::uint64_t, int) = nullptr;
  int (*synchronize_)(void*) = nullptr;
  int (*release_)(std::uint32_t) = nullptr;
};

// What the two processes tell each other.
struct Told {
  std::uint32_t qpn;
  std::uint32_t rkey;
  std::uint64_t address;
};
void tell(int socket, const Told& told) {
  require(write(socket, &told, sizeof told) == sizeof told, "the other process is told");
}
Told hear(int socket) {
  Told told{};
  require(read(socket, &told, sizeof told) == sizeof told, "the other process answers");
  return told;
}

struct Queue {
  ibv_cq* cq;
  ibv_qp* qp;
  explicit Queue(const Host& host) : cq(ibv_create_cq(host.context, 16, nullptr, nullptr, 0)), qp(nullptr) {
    require(cq != nullptr, "a completion queue");
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {4, 4, 1, 1, 0};
    qp = ibv_create_qp(host.pd, &init);
    require(qp != nullptr, "a queue pair");
  }
  Queue(const Queue&) = delete;
  ~Queue() { require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0, "the queues go"); }
  void run(ibv_wr_opcode opcode, std::uint64_t here, std::uint32_t lkey, const Told& there) {
    ibv_sge piece{here, kMoved, lkey};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {there.address + kOffset, there.rkey};
    ibv_send_wr* bad = nullptr;
    require(ibv_post_send(qp, &wr, &bad) == 0, "it is posted");
    const auto begun = std::chrono::steady_clock::now();
    ibv_wc done{};
    while (ibv_poll_cq(cq, 1, &done) == 0)
      require(std::chrono::steady_clock::now() - begun < std::chrono::nanoseconds(kPatienceNs), "it completes in time");
    require(done.status == IBV_WC_SUCCESS, "it succeeds");
  }
};

// Has ordinary memory; writes into the device's and reads what is there.
int peer(int socket, int gid_index) {
  Host host = open_host(gid_index, false);
  {
    Queue queue(host);
    Registered memory(host.pd, kMoved, 0);
    for (std::size_t i = 0; i < kMoved; ++i) memory.bytes[i] = byte_of(i, 1);
    const Told there = hear(socket);
    tell(socket, {queue.qp->qp_num, 0, 0});
    connect(host, queue.qp, there.qpn, host.gid);
    (void)hear(socket);  // its queue pair is ready too
    queue.run(IBV_WR_RDMA_WRITE, memory.at(), memory.mr->lkey, there);
    tell(socket, {});
    (void)hear(socket);  // the device has other bytes now
    queue.run(IBV_WR_RDMA_READ, memory.at(), memory.mr->lkey, there);
    for (std::size_t i = 0; i < kMoved; ++i)
      require(memory.bytes[i] == byte_of(i, 2), "what was read is what the device's copy engine wrote");
    tell(socket, {});
  }
  close_host(host);
  return 0;
}

void owner(int socket, int gid_index) {
  Gaudi gaudi;
  for (std::size_t i = 0; i < kBytes; ++i) gaudi.host()[i] = 0x5a;
  gaudi.write();
  Host host = open_host(gid_index, false);
  {
    Queue queue(host);
    const int fd = gaudi.export_buffer();
    ibv_mr* const mr = ibv_reg_dmabuf_mr(host.pd, 0, kBytes, gaudi.buffer, fd, kAccess);
    require(mr != nullptr, "ibv_reg_dmabuf_mr");
    require(close(fd) == 0, "the descriptor is not needed any more");
    tell(socket, {queue.qp->qp_num, mr->rkey, gaudi.buffer});
    connect(host, queue.qp, hear(socket).qpn, host.gid);
    tell(socket, {});
    (void)hear(socket);
    gaudi.read();
    for (std::size_t i = 0; i < kBytes; ++i) {
      const bool moved = i >= kOffset && i < kOffset + kMoved;
      require(gaudi.host()[i] == (moved ? byte_of(i - kOffset, 1) : 0x5a),
              "the device has exactly what the peer wrote");
    }
    for (std::size_t i = 0; i < kMoved; ++i) gaudi.host()[kOffset + i] = byte_of(i, 2);
    gaudi.write();
    tell(socket, {});
    (void)hear(socket);
    require(ibv_dereg_mr(mr) == 0, "the key goes");
  }
  close_host(host);
}

}  // namespace

int main(int count, char** arguments) {
  const int gid_index = count > 1 ? std::atoi(arguments[1]) : 0;
  int sockets[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0, "a socket pair");
  const pid_t child = fork();  // before either end has a device
  require(child >= 0, "fork");
  if (child == 0) {
    close(sockets[0]);
    return peer(sockets[1], gid_index);
  }
  close(sockets[1]);
  owner(sockets[0], gid_index);
  int status = 0;
  require(waitpid(child, &status, 0) == child && status == 0, "the peer ends well");
  std::puts("gaudi: written by a peer and read by the device, written by the device and read by the peer");
  return 0;
}
