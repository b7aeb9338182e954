// SPDX-License-Identifier: Apache-2.0
// Queues as libraries for GPUs make them: in memory of the program's own choice, by command (DevX), with a doorbell
// page of their own; posted to and polled by strait/device. One side lies in ordinary memory with a collapsed
// completion queue, the other in a file descriptor as an accelerator would export it.
//
//   devx_queues GID                 both ends in this process, over the address of that GID
//   devx_queues GID udmabuf         the descriptor is a dma-buf of the kernel's
//   devx_queues GID cuda            rings, records and completions lie in a GPU's memory, where the NIC can map that
//   devx_queues GID cuda ERRNO      it cannot, and the umem is refused with that
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string_view>

#include "cuda_memory.hpp"
#include "strait/device/completion_ring.hpp"
#include "strait/device/post.hpp"
#include "strait/device/receive_ring.hpp"
#include "strait/device/send_ring.hpp"
#include "strait/device/wait.hpp"
#include "strait/wire/prm.hpp"
#include "udmabuf.hpp"
#include "verbs_objects.hpp"

namespace {

using namespace strait::interop;
namespace device = strait::device;
namespace wire = strait::wire;
namespace prm = strait::wire::prm;
constexpr auto kOne = device::Sharing::one_thread;

constexpr std::uint32_t kLogBlocks = 6;
constexpr std::uint32_t kLogReceives = 4;
constexpr std::uint32_t kLogCqes = 6;
constexpr std::size_t kRounds = 200;
constexpr std::size_t kBytes = 8192;

// One piece of memory holds everything: completion ring, receive and send ring, records.
constexpr std::size_t kCqAt = 0;
constexpr std::size_t kWqAt = kCqAt + (64u << kLogCqes);
constexpr std::size_t kSqAt = kWqAt + (16u << kLogReceives);
constexpr std::size_t kCqRecordAt = kSqAt + (64u << kLogBlocks);
constexpr std::size_t kQpRecordAt = kCqRecordAt + 64;
constexpr std::size_t kAll = 16384;
static_assert(kQpRecordAt + 64 <= kAll);

struct Command {
  std::array<std::uint8_t, 272> in{};
  std::array<std::uint8_t, 272> out{};

  explicit Command(prm::Command command) { put(prm::kOpcode, static_cast<std::uint64_t>(command)); }
  void put(prm::Field field, std::uint64_t value) { prm::put(in.data(), field, value); }
  [[nodiscard]] std::uint32_t number() const { return static_cast<std::uint32_t>(prm::get(out.data(), prm::kNumber)); }
  mlx5dv_devx_obj* create(ibv_context* context, const char* what) {
    mlx5dv_devx_obj* const made = mlx5dv_devx_obj_create(context, in.data(), in.size(), out.data(), out.size());
    if (made == nullptr)
      std::fprintf(stderr, "status %#x syndrome %#x\n", static_cast<unsigned>(prm::get(out.data(), prm::kStatus)),
                   static_cast<unsigned>(prm::get(out.data(), prm::kSyndrome)));
    require(made != nullptr, what);
    return made;
  }
  void modify(mlx5dv_devx_obj* object, std::uint32_t qpn, const char* what) {
    put(prm::kNumber, qpn);
    const int failed = mlx5dv_devx_obj_modify(object, in.data(), in.size(), out.data(), out.size());
    if (failed != 0)
      std::fprintf(stderr, "status %#x syndrome %#x\n", static_cast<unsigned>(prm::get(out.data(), prm::kStatus)),
                   static_cast<unsigned>(prm::get(out.data(), prm::kSyndrome)));
    require(failed == 0, what);
  }
};

enum class File { memfd, udmabuf, cuda };
File file_kind = File::memfd;  // of the side whose queues lie in a file

struct Side {
  const Host& host;
  bool collapsed;
  std::uint8_t* memory = nullptr;
  int fd = -1;
  int dmabuf = -1;  // of the file, where the kernel's are asked for
  std::unique_ptr<CudaMemory> gpu;
  mlx5dv_devx_umem* umem = nullptr;
  mlx5dv_devx_uar* uar = nullptr;
  mlx5dv_devx_obj* cq = nullptr;
  mlx5dv_devx_obj* qp = nullptr;
  std::uint32_t qpn = 0;
  device::SendRing send{};
  device::ReceiveRing receive{};
  device::CompletionRing completions{};

  Side(const Host& on, bool in_file, bool with_collapsed) : host(on), collapsed(with_collapsed) {
    take_memory(in_file);
    uar = mlx5dv_devx_alloc_uar(host.context, in_file ? MLX5DV_UAR_ALLOC_TYPE_NC : MLX5DV_UAR_ALLOC_TYPE_BF);
    require(uar != nullptr, "a doorbell page");
    const std::uint32_t cqn = make_cq();
    make_qp(cqn);
    auto* const record = reinterpret_cast<wire::mlx5::QueueRecord*>(memory + kQpRecordAt);
    require(device::open_send_ring(send, {memory + kSqAt, kLogBlocks, qpn, record, uar->reg_addr, nullptr, 0}) &&
                device::open_receive_ring(receive, {memory + kWqAt, kLogReceives, 4, record, nullptr, 0}) &&
                device::open_completion_ring(
                    completions,
                    {memory + kCqAt, kLogCqes, 64, reinterpret_cast<wire::mlx5::CqRecord*>(memory + kCqRecordAt), 0}),
            "the rings fit strait/device");
  }
  ~Side() {
    require(mlx5dv_devx_obj_destroy(qp) == 0 && mlx5dv_devx_obj_destroy(cq) == 0, "the queues go");
    mlx5dv_devx_free_uar(uar);
    require(mlx5dv_devx_umem_dereg(umem) == 0, "the umem goes");
    require(::munmap(memory, kAll) == 0, "the memory goes");
    if (fd >= 0) ::close(fd);
    if (dmabuf >= 0) ::close(dmabuf);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void take_memory(bool in_file) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (in_file && file_kind == File::cuda) {
      gpu = std::make_unique<CudaMemory>(kAll);
      flags = MAP_SHARED;
    } else if (in_file) {
      fd = ::memfd_create("queues", MFD_CLOEXEC | MFD_ALLOW_SEALING);
      require(fd >= 0 && ::ftruncate(fd, kAll) == 0 && ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0,
              "a sealed file");
      flags = MAP_SHARED;
      if (file_kind == File::udmabuf) dmabuf = make_udmabuf(fd, 0, kAll);
    }
    const int file = gpu != nullptr ? gpu->fd() : fd;
    memory = static_cast<std::uint8_t*>(::mmap(nullptr, kAll, PROT_READ | PROT_WRITE, flags, file, 0));
    require(memory != MAP_FAILED, "memory for the queues");
    std::memset(memory + kCqAt, 0xff, kWqAt - kCqAt);
    mlx5dv_devx_umem_in in{};
    in.addr = in_file ? nullptr : memory;
    in.size = kAll;
    in.access = IBV_ACCESS_LOCAL_WRITE;
    in.pgsz_bitmap = ~std::uint64_t{4095};
    in.comp_mask = in_file ? std::uint64_t{MLX5DV_UMEM_MASK_DMABUF} : 0;
    in.dmabuf_fd = dmabuf >= 0 ? dmabuf : file;
    umem = mlx5dv_devx_umem_reg_ex(host.context, &in);
    require(umem != nullptr, "a umem");
  }

  std::uint32_t make_cq() {
    std::uint32_t eqn = 0;
    require(mlx5dv_devx_query_eqn(host.context, 0, &eqn) == 0, "an event queue");
    Command create(prm::Command::create_cq);
    const auto say = [&](prm::Field field, std::uint64_t value) {
      create.put(prm::at(prm::create_cq::kContext, field), value);
    };
    say(prm::cqc::kCollapsed, collapsed);
    say(prm::cqc::kIgnoreOverrun, collapsed);
    say(prm::cqc::kLogSize, kLogCqes);
    say(prm::cqc::kUarPage, uar->page_id);
    say(prm::cqc::kEventQueue, eqn);
    say(prm::cqc::kRecordUmemId, umem->umem_id);
    say(prm::cqc::kRecordAddress, kCqRecordAt);
    create.put(prm::create_cq::kUmemId, umem->umem_id);
    create.put(prm::create_cq::kUmemOffset, kCqAt);
    cq = create.create(host.context, "a completion queue by command");
    return create.number();
  }

  void make_qp(std::uint32_t cqn) {
    mlx5dv_pd pd{};
    mlx5dv_obj objects{};
    objects.pd = {host.pd, &pd};
    require(mlx5dv_init_obj(&objects, MLX5DV_OBJ_PD) == 0, "the domain's number");
    Command create(prm::Command::create_qp);
    const auto say = [&](prm::Field field, std::uint64_t value) {
      create.put(prm::at(prm::create_qp::kContext, field), value);
    };
    say(prm::qpc::kService, static_cast<std::uint64_t>(prm::QpService::rc));
    say(prm::qpc::kMigration, prm::qpc::kMigrated);
    say(prm::qpc::kPd, pd.pdn);
    say(prm::qpc::kUarPage, uar->page_id);
    say(prm::qpc::kSendCqn, cqn);
    say(prm::qpc::kReceiveCqn, cqn);
    say(prm::qpc::kLogSqSize, kLogBlocks);
    say(prm::qpc::kLogRqSize, kLogReceives);
    say(prm::qpc::kLogRqStride, 0);
    say(prm::qpc::kRecordUmemId, umem->umem_id);
    say(prm::qpc::kRecordAddress, kQpRecordAt);
    create.put(prm::create_qp::kUmemId, umem->umem_id);
    create.put(prm::create_qp::kUmemOffset, kWqAt);
    qp = create.create(host.context, "a queue pair by command");
    qpn = create.number();
  }

  void connect_to(const Side& peer) {
    Command init(prm::Command::rst2init_qp);
    const auto say = [](Command& command, prm::Field field, std::uint64_t value) {
      command.put(prm::at(prm::modify_qp::kContext, field), value);
    };
    const auto path = [](prm::Field field) { return prm::at(prm::qpc::kPath, field); };
    say(init, path(prm::ads::kPort), 1);
    for (const prm::Field right : {prm::qpc::kRemoteRead, prm::qpc::kRemoteWrite, prm::qpc::kRemoteAtomic})
      say(init, right, 1);
    init.modify(qp, qpn, "INIT by command");

    Command rtr(prm::Command::init2rtr_qp);
    say(rtr, prm::qpc::kMtu, 3);
    say(rtr, prm::qpc::kLogMaxMessage, 30);
    say(rtr, prm::qpc::kRemoteQpn, peer.qpn);
    say(rtr, prm::qpc::kLogReadsIn, 2);
    say(rtr, prm::qpc::kMinRnrTimer, 12);
    say(rtr, prm::qpc::kNextReceivePsn, 100);
    say(rtr, path(prm::ads::kPort), 1);
    say(rtr, path(prm::ads::kHopLimit), 64);
    say(rtr, path(prm::ads::kSourceIndex), static_cast<std::uint64_t>(host.gid_index));
    say(rtr, path(prm::ads::kRemoteGidHigh), be64toh(peer.host.gid.global.subnet_prefix));
    say(rtr, path(prm::ads::kRemoteGidLow), be64toh(peer.host.gid.global.interface_id));
    rtr.modify(qp, qpn, "RTR by command");

    Command rts(prm::Command::rtr2rts_qp);
    say(rts, path(prm::ads::kAckTimeout), 21);
    say(rts, prm::qpc::kRetries, 7);
    say(rts, prm::qpc::kRnrRetries, 7);
    say(rts, prm::qpc::kLogReadsOut, 2);
    say(rts, prm::qpc::kNextSendPsn, 100);
    rts.modify(qp, qpn, "RTS by command");
  }

  void require_state(std::uint64_t state, std::uint32_t to_qpn) const {
    Command query(prm::Command::query_qp);
    query.put(prm::kNumber, qpn);
    require(mlx5dv_devx_obj_query(qp, query.in.data(), query.in.size(), query.out.data(), query.out.size()) == 0,
            "a question about the queue pair");
    const auto says = [&](prm::Field field) {
      return prm::get(query.out.data(), prm::at(prm::query_qp::kContext, field));
    };
    require(says(prm::qpc::kState) == state && says(prm::qpc::kRemoteQpn) == to_qpn &&
                says(prm::qpc::kLogSqSize) == kLogBlocks,
            "the answer says what was said");
  }

  void wait_sent(const device::Pending& pending) {
    require(pending.ok(), "a post has room");
    device::ring_doorbell<kOne>(send);
    device::Completion completion{};
    const auto deadline = device::Deadline::after_ns(kPatienceNs);
    using device::CompletionMode;
    const auto waited = collapsed ? device::wait_until_done<kOne, CompletionMode::collapsed>(
                                        send, completions, pending.start, deadline, completion)
                                  : device::wait_until_done<kOne, CompletionMode::normal>(
                                        send, completions, pending.start, deadline, completion);
    if (waited == device::Waited::error) std::fprintf(stderr, "%s\n", wire::mlx5::sentence(completion.syndrome));
    require(waited == device::Waited::ok, "a work request completes");
  }
};

// A key by command over memory of ours, under a low byte of our choice.
struct Key {
  std::uint8_t* bytes = nullptr;
  mlx5dv_devx_umem* umem = nullptr;
  mlx5dv_devx_obj* object = nullptr;
  std::uint32_t key = 0;

  explicit Key(const Host& host) {
    bytes =
        static_cast<std::uint8_t*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    require(bytes != MAP_FAILED, "memory for a key");
    umem = mlx5dv_devx_umem_reg(host.context, bytes, kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    require(umem != nullptr, "a umem for a key");
    mlx5dv_pd pd{};
    mlx5dv_obj objects{};
    objects.pd = {host.pd, &pd};
    require(mlx5dv_init_obj(&objects, MLX5DV_OBJ_PD) == 0, "the domain's number");
    Command create(prm::Command::create_mkey);
    const auto say = [&](prm::Field field, std::uint64_t value) {
      create.put(prm::at(prm::create_mkey::kContext, field), value);
    };
    say(prm::mkc::kAccessMode, static_cast<std::uint64_t>(prm::AccessMode::pages));
    for (const prm::Field right : {prm::mkc::kLocalRead, prm::mkc::kLocalWrite, prm::mkc::kRemoteRead,
                                   prm::mkc::kRemoteWrite, prm::mkc::kAtomic})
      say(right, 1);
    say(prm::mkc::kQpn, 0xffffff);
    say(prm::mkc::kVariant, 0x5d);
    say(prm::mkc::kPd, pd.pdn);
    say(prm::mkc::kStart, reinterpret_cast<std::uintptr_t>(bytes));
    say(prm::mkc::kLength, kBytes);
    say(prm::mkc::kLogPageSize, 12);
    create.put(prm::create_mkey::kUmemId, umem->umem_id);
    object = create.create(host.context, "a key by command");
    key = create.number() << 8 | 0x5d;
  }
  ~Key() {
    require(mlx5dv_devx_obj_destroy(object) == 0, "the key goes");
    require(mlx5dv_devx_umem_dereg(umem) == 0, "its umem goes");
    require(::munmap(bytes, kBytes) == 0, "its memory goes");
  }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  [[nodiscard]] std::uint64_t at() const { return reinterpret_cast<std::uintptr_t>(bytes); }
};

// Work requests and completions are where they are said to be, and no copy of them.
void lie_on_the_gpu(const Side& side) {
  if (side.gpu == nullptr) return;
  const std::vector<std::uint8_t> seen(side.memory, side.memory + kAll);
  std::vector<std::uint8_t> there(kAll);
  side.gpu->read(there.data(), 0, kAll);
  require(there == seen, "the GPU's memory is what the NIC and the CPU see of it");
  const auto* const first = reinterpret_cast<const wire::mlx5::CtrlSeg*>(there.data() + kSqAt);
  require(first->index() % (1u << kLogBlocks) == 0 && first->ds() != 0, "a work request lies in the GPU's memory");
}

// The two ends talk: writes and reads from a, messages from b to a.
void exchange(const Host& host) {
  Side a(host, false, true);
  Side b(host, true, false);
  a.require_state(0, 0);
  a.connect_to(b);
  b.connect_to(a);
  a.require_state(3, b.qpn);
  const Key from(host);
  const Key to(host);
  Registered back(host.pd, kBytes, 9);
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t j = 0; j < kBytes; ++j) from.bytes[j] = static_cast<std::uint8_t>(round + j * 13 + (j >> 8));
    const device::Remote there{to.at(), to.key};
    a.wait_sent(device::post_write<kOne>(a.send, there, {from.at(), kBytes, from.key}, device::kSignaled));
    require(std::memcmp(to.bytes, from.bytes, kBytes) == 0, "a write between keys made by command");
    a.wait_sent(device::post_read<kOne>(a.send, there, {back.at(), kBytes, back.mr->lkey}, device::kSignaled));
    require(std::memcmp(back.bytes.data(), from.bytes, kBytes) == 0, "a read into memory of verbs");
    a.wait_sent(device::post_fetch_add<kOne>(a.send, there, 3, {back.at(), 8, back.mr->lkey}, device::kSignaled));
    std::uint64_t old = 0;
    std::uint64_t now = 0;
    std::memcpy(&old, back.bytes.data(), 8);
    std::memcpy(&now, to.bytes, 8);
    require(now == old + 3, "fetch-and-add through a key made by command");

    // b's own messages arrive where b receives: a sends, b takes.
    require(device::post_receive<kOne>(b.receive, {to.at(), kBytes, to.key}).ok(), "a receive has room");
    device::publish_receives<kOne>(b.receive);
    a.wait_sent(device::post_send<kOne>(a.send, {from.at(), 1000, from.key}, device::kSignaled));
    device::Completion got{};
    require(
        device::wait_for_completion(b.completions, device::Deadline::after_ns(kPatienceNs), got) == device::Waited::ok,
        "a message arrives");
    require(got.opcode == wire::mlx5::CqeOpcode::responder_send && got.byte_count == 1000 &&
                device::take_receive<kOne>(b.receive, got.wqe_counter).known &&
                std::memcmp(to.bytes, from.bytes, 1000) == 0,
            "with its bytes");
    // And from the file's side.
    b.wait_sent(device::post_write_inline<kOne>(b.send, {from.at(), from.key}, &old, 8, device::kSignaled));
    require(std::memcmp(from.bytes, &old, 8) == 0, "a write from queues in a file");
  }
  lie_on_the_gpu(b);
}

// Memory that only the GPU's copy engine reaches.
void refuse_a_umem(const Host& host, int wanted) {
  const CudaMemory gpu(kAll);
  mlx5dv_devx_umem_in in{};
  in.size = kAll;
  in.access = IBV_ACCESS_LOCAL_WRITE;
  in.pgsz_bitmap = ~std::uint64_t{4095};
  in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
  in.dmabuf_fd = gpu.fd();
  errno = 0;
  require(mlx5dv_devx_umem_reg_ex(host.context, &in) == nullptr, "a umem that the NIC cannot map is refused");
  if (errno != wanted) std::fprintf(stderr, "errno %d, not %d\n", errno, wanted);
  require(errno == wanted, "with its errno");
}

// What a device does not have says so, in the device's own words.
void be_refused(const Host& host) {
  Command unknown(static_cast<prm::Command>(0x7ff));
  require(mlx5dv_devx_general_cmd(host.context, unknown.in.data(), 16, unknown.out.data(), 16) != 0 &&
              errno == EREMOTEIO &&
              prm::get(unknown.out.data(), prm::kStatus) == static_cast<std::uint64_t>(prm::Status::bad_opcode) &&
              prm::get(unknown.out.data(), prm::kSyndrome) != 0,
          "an unknown command is refused with status and syndrome");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view file = argc > 2 ? argv[2] : "";
  require(file.empty() || file == "udmabuf" || file == "cuda", "usage: devx_queues GID [udmabuf | cuda [ERRNO]]");
  file_kind = file == "udmabuf" ? File::udmabuf : file == "cuda" ? File::cuda : File::memfd;
  Host host = open_host(argc > 1 ? std::atoi(argv[1]) : 0, true);
  if (argc > 3)
    refuse_a_umem(host, std::atoi(argv[3]));
  else
    exchange(host);
  be_refused(host);
  close_host(host);
  std::puts("devx queues: all as posted");
  return 0;
}
