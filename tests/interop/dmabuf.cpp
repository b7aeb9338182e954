// SPDX-License-Identifier: Apache-2.0
// ibv_reg_dmabuf_mr: memory that is known by a descriptor only, and the errnos of what is no such memory.
//
//   dmabuf GID            both ends in this process, over the address of that GID
//   dmabuf GID udmabuf    the same with a dma-buf of the kernel's (/dev/udmabuf)
//
// A sealed memfd stands for the dma-buf in the first: it is what the software accelerator exports, and needs no device.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include <string>

#include "udmabuf.hpp"
#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 4;
constexpr std::size_t kSent = kPage + 100;  // across a page of the file

struct Buffer {
  int fd = -1;
  std::uint8_t* bytes = nullptr;

  explicit Buffer(bool real) {
    const std::size_t before = real ? kPage : 0;  // the dma-buf is a part of the file behind it
    fd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    require(fd >= 0 && ftruncate(fd, static_cast<off_t>(before + kPages * kPage)) == 0, "a memfd");
    require(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0, "it is sealed");
    void* const at = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(before));
    require(at != MAP_FAILED, "it is mapped");
    bytes = static_cast<std::uint8_t*>(at);
    if (real) {
      const int memfd = fd;
      fd = make_udmabuf(memfd, before, kPages * kPage);
      require(close(memfd) == 0, "the dma-buf is all there is");
    }
    for (std::size_t i = 0; i < kPages * kPage; ++i) bytes[i] = static_cast<std::uint8_t>(i * 13 + (i >> 8));
  }
  ~Buffer() {
    munmap(bytes, kPages * kPage);
    close(fd);
  }
};

void expect_errno(int wanted, ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                  int access, const char* what) {
  errno = 0;
  const ibv_mr* const mr = ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
  if (mr == nullptr && errno == wanted) return;
  std::fprintf(stderr, "failed: %s should be errno %d, and is %d\n", what, wanted, mr == nullptr ? errno : 0);
  std::exit(1);
}

void refusals(const Host& host, const Buffer& buffer) {
  constexpr std::uint64_t kIova = 0x7000'0000;
  const int no_memory = open("/dev/null", O_RDWR | O_CLOEXEC);
  require(no_memory >= 0, "/dev/null opens");
  const int not_open = dup(buffer.fd);
  close(not_open);  // last, so that nothing else gets its number
  ibv_pd* const pd = host.pd;
  expect_errno(EBADF, pd, 0, kPage, kIova, -1, kAccess, "no descriptor");
  expect_errno(EBADF, pd, 0, kPage, kIova, not_open, kAccess, "a descriptor that is closed");
  expect_errno(EINVAL, pd, 0, kPage, kIova, no_memory, kAccess, "a descriptor of no memory");
  expect_errno(EINVAL, pd, 0, kPage, kIova + 1, buffer.fd, kAccess, "an address that lies elsewhere in its page");
  expect_errno(EINVAL, pd, kPage + 8, kPage, kIova, buffer.fd, kAccess, "an offset that lies elsewhere in its page");
  expect_errno(EINVAL, pd, kPages * kPage, kPage, kIova, buffer.fd, kAccess, "an offset behind the end");
  expect_errno(EINVAL, pd, kPage, kPages * kPage, kIova, buffer.fd, kAccess, "a length past the end");
  expect_errno(EINVAL, pd, kPage, SIZE_MAX - 10, kIova, buffer.fd, kAccess, "a length past all ends");
  expect_errno(EINVAL, pd, 0, 0, kIova, buffer.fd, kAccess, "no length");
  expect_errno(EINVAL, pd, 0, kPage, kIova, buffer.fd, IBV_ACCESS_REMOTE_WRITE, "written from afar and not here");
  expect_errno(EINVAL, pd, 0, kPage, kIova, buffer.fd, kAccess | IBV_ACCESS_MW_BIND, "windows");
  close(no_memory);
}

// From the second page of the descriptor's memory into ordinary memory, and back to its first.
void traffic(const Host& host, const Buffer& buffer) {
  constexpr std::uint64_t kIova = 0x10'0000'0000;
  ibv_mr* const mr = ibv_reg_dmabuf_mr(host.pd, 0, kPages * kPage, kIova, buffer.fd, kAccess);
  require(mr != nullptr, "the descriptor's memory is registered");
  Registered other(host.pd, kSent, 1);
  ibv_cq* const cq = ibv_create_cq(host.context, 16, nullptr, nullptr, 0);
  require(cq != nullptr, "a completion queue");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {4, 4, 1, 1, 0};
  ibv_qp* const qp = ibv_create_qp(host.pd, &init);
  require(qp != nullptr, "a queue pair");
  connect(host, qp, qp->qp_num, host.gid);  // to itself

  const auto run = [&](ibv_wr_opcode opcode, std::uint64_t there) {
    ibv_sge piece{other.at(), kSent, other.mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {kIova + there, mr->rkey};
    ibv_send_wr* bad = nullptr;
    require(ibv_post_send(qp, &wr, &bad) == 0, "it is posted");
    const auto begun = std::chrono::steady_clock::now();
    ibv_wc done{};
    while (ibv_poll_cq(cq, 1, &done) == 0)
      require(std::chrono::steady_clock::now() - begun < std::chrono::nanoseconds(kPatienceNs), "it completes in time");
    require(done.status == IBV_WC_SUCCESS, "it succeeds");
  };
  run(IBV_WR_RDMA_READ, kPage);
  require(std::memcmp(other.bytes.data(), buffer.bytes + kPage, kSent) == 0, "what was read is what lies there");
  for (std::uint8_t& byte : other.bytes) byte = static_cast<std::uint8_t>(byte ^ 0xff);
  run(IBV_WR_RDMA_WRITE, 7);
  require(std::memcmp(other.bytes.data(), buffer.bytes + 7, kSent) == 0, "what was written lies there");
  require(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dereg_mr(mr) == 0, "all goes again");
}

}  // namespace

int main(int count, char** arguments) {
  const bool real = count > 2;
  require(!real || std::string(arguments[2]) == "udmabuf", "usage: dmabuf GID [udmabuf]");
  Host host = open_host(count > 1 ? std::atoi(arguments[1]) : 0, false);
  {
    const Buffer buffer(real);
    refusals(host, buffer);
    traffic(host, buffer);
  }
  close_host(host);
  std::printf("dmabuf: of %s, 11 refusals, a read and a write\n", real ? "a udmabuf" : "a memfd");
  return 0;
}
