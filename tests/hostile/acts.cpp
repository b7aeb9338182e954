// SPDX-License-Identifier: Apache-2.0
#include "acts.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_cm.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace hostile {
namespace {

void fill(Dice& dice, void* at, std::size_t bytes) {
  auto* const to = static_cast<std::uint8_t*>(at);
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(dice.roll());
}

// ib_uverbs_ioctl_hdr without the array of no length at its end.
struct Header {
  std::uint16_t length, object_id, method_id, num_attrs;
  std::uint64_t reserved1;
  std::uint32_t driver_id, reserved2;
};
static_assert(sizeof(Header) == sizeof(ib_uverbs_ioctl_hdr));

// As docs/grant-ring.md has it.
constexpr std::size_t kHeader = 4096;
constexpr std::size_t kSlot = 64;
constexpr std::size_t kSlots = 2048;

std::uint64_t sequence_at(const std::uint8_t* ring, std::uint64_t position) {
  std::uint64_t sequence = 0;
  std::memcpy(&sequence, ring + (position % kSlots) * kSlot, sizeof sequence);
  return sequence & ((std::uint64_t{1} << 48) - 1);
}

// Where the next message of this ring goes: behind the newest one that is numbered as it should be.
std::uint64_t end_of(const std::uint8_t* ring) {
  std::uint64_t end = 0;
  for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
    const std::uint64_t sequence = sequence_at(ring, slot);
    if (sequence == 0 || (sequence - 1) % kSlots != slot || sequence > std::uint64_t{1} << 30) continue;
    const std::uint64_t past = sequence - 1 + ring[slot * kSlot + 10];
    if (past > end) end = past;
  }
  return end;
}

// A message with the right number; its other fields are now and then what they could be.
void forge(Dice& dice, std::uint8_t* ring, std::uint64_t& position) {
  std::array<std::uint8_t, kSlot> message{};
  fill(dice, message.data(), message.size());
  const auto put32 = [&](std::size_t at, std::uint64_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    std::memcpy(message.data() + at, &word, sizeof word);
  };
  // Names of queue pairs from a message that was sent before, so that it finds its way.
  std::uint8_t* const old = ring + ((position + kSlots - 1) % kSlots) * kSlot;
  if (dice.below(4) != 0) message[8] = static_cast<std::uint8_t>(1 + dice.below(12));
  if (dice.below(4) != 0) message[10] = static_cast<std::uint8_t>(1 + dice.below(3));
  if (dice.below(4) != 0) std::memcpy(message.data() + 12, old + 12, 8);
  if (dice.below(4) != 0) put32(20, dice.below(64));
  if (dice.below(2) != 0) put32(24, dice.below(64));
  if (dice.below(2) != 0) std::memcpy(message.data() + 28, old + 28, 4);
  if (dice.below(2) != 0) std::memcpy(message.data() + 32, old + 32, 8);
  if (dice.below(2) != 0) put32(40, dice.below(20000));
  const std::uint64_t sequence = position + 1;
  std::uint8_t* const to = ring + (position % kSlots) * kSlot;
  std::memcpy(to + 8, message.data() + 8, kSlot - 8);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), sequence, __ATOMIC_RELEASE);
  position += message[10] == 0 ? 1 : message[10];
}

}  // namespace

std::uint64_t Dice::roll() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t word = state_;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

std::size_t scribble_grants(Dice& dice, bool well_numbered) {
  std::size_t found = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:strait-channel") == std::string::npos) continue;
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    ++found;
    auto* const memory = reinterpret_cast<std::uint8_t*>(begin);
    if (!well_numbered) {
      fill(dice, memory, end - begin);
      continue;
    }
    for (int side = 0; side < 2; ++side) {
      std::uint8_t* const ring = memory + kHeader + static_cast<std::size_t>(side) * kSlots * kSlot;
      std::uint64_t position = end_of(ring);
      for (int i = 0; i < 64; ++i) forge(dice, ring, position);
    }
  }
  return found;
}

std::string scribble_queue(const Queue& queue, Dice& dice) {
  mlx5dv_qp rings{};
  mlx5dv_cq completions{};
  mlx5dv_obj object{};
  object.qp = {queue.qp(), &rings};
  object.cq = {queue.cq(), &completions};
  if (const int error = mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ); error != 0)
    return std::string("the queues cannot be seen: ") + std::strerror(error);
  fill(dice, rings.sq.buf, std::size_t{rings.sq.wqe_cnt} * rings.sq.stride);
  fill(dice, rings.rq.buf, std::size_t{rings.rq.wqe_cnt} * rings.rq.stride);
  fill(dice, completions.buf, std::size_t{completions.cqe_cnt} * completions.cqe_size);
  for (int i = 0; i < 100; ++i) {
    fill(dice, rings.dbrec, 8);
    fill(dice, completions.dbrec, 8);
    if (rings.bf.reg != nullptr) fill(dice, rings.bf.reg, 8);
    ::usleep(1000);
  }
  return {};
}

void call_ioctls(const Device& device, Dice& dice, int count) {
  // Where pointers lead: memory that is there, a page that may not be written, one that is not there, nothing.
  const std::size_t room = 16 * kPage;
  auto* const sandbox =
      static_cast<std::uint8_t*>(::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (sandbox == MAP_FAILED) return;
  ::mprotect(sandbox + 14 * kPage, kPage, PROT_READ);
  ::mprotect(sandbox + 15 * kPage, kPage, PROT_NONE);
  const auto somewhere = [&]() -> std::uint64_t {
    switch (dice.below(8)) {
      case 0: return 0;
      case 1: return dice.roll();
      case 2: return ~dice.below(4096);
      case 3: return dice.below(64);  // a handle
      default: return reinterpret_cast<std::uintptr_t>(sandbox) + dice.below(room);
    }
  };
  struct {
    Header header;
    ib_uverbs_attr attributes[20];
  } call;
  for (int i = 0; i < count; ++i) {
    if (dice.below(2) == 0) {
      // What is pointed at: addresses, small numbers, zeros.
      for (std::size_t at = 0; at < 14 * kPage; at += 8) {
        const std::uint64_t value = dice.below(3) == 0 ? 0 : dice.below(2) == 0 ? dice.below(64) : somewhere();
        std::memcpy(sandbox + at, &value, sizeof value);
      }
    }
    std::memset(&call, 0, sizeof call);
    const auto attributes = static_cast<std::uint16_t>(dice.below(20));
    for (std::uint16_t k = 0; k < attributes; ++k) {
      ib_uverbs_attr& attribute = call.attributes[k];
      attribute.attr_id = static_cast<std::uint16_t>(dice.below(8) == 0 ? 0x1000 + dice.below(2) : k);
      attribute.len = static_cast<std::uint16_t>(dice.below(3) == 0   ? 0
                                                 : dice.below(3) == 0 ? dice.roll()
                                                                      : dice.below(200));
      attribute.flags = static_cast<std::uint16_t>(dice.below(4) == 0 ? dice.roll() : 0);
      attribute.data = somewhere();
    }
    const bool command = dice.below(2) == 0;  // of the older ones, with the attributes it takes
    if (command) {
      call.attributes[0] = {UVERBS_ATTR_CORE_IN, static_cast<std::uint16_t>(dice.below(200)), 0, {}, {}};
      call.attributes[0].data = somewhere();
      call.attributes[1] = {UVERBS_ATTR_CORE_OUT, static_cast<std::uint16_t>(dice.below(200)), 0, {}, {}};
      call.attributes[1].data = somewhere();
      call.attributes[2] = {UVERBS_ATTR_WRITE_CMD, 8, 0, {}, {}};
      call.attributes[2].data = dice.below(60) | (dice.below(2) != 0 ? 0x80000000u : 0u);
      call.attributes[3] = {UVERBS_ATTR_UHW_IN, static_cast<std::uint16_t>(dice.below(100)), 0, {}, {}};
      call.attributes[3].data = somewhere();
      call.attributes[4] = {UVERBS_ATTR_UHW_OUT, static_cast<std::uint16_t>(dice.below(100)), 0, {}, {}};
      call.attributes[4].data = somewhere();
    }
    call.header.num_attrs = command ? 5 : attributes;
    call.header.length =
        static_cast<std::uint16_t>(sizeof call.header + call.header.num_attrs * sizeof(ib_uverbs_attr));
    call.header.object_id = static_cast<std::uint16_t>(command ? std::uint64_t{UVERBS_OBJECT_DEVICE} : dice.below(20));
    call.header.method_id =
        static_cast<std::uint16_t>(command ? std::uint64_t{UVERBS_METHOD_INVOKE_WRITE} : dice.below(8));
    call.header.driver_id = RDMA_DRIVER_MLX5;
    if (dice.below(16) == 0) fill(dice, &call.header, sizeof call.header);
    void* const argument = dice.below(64) == 0 ? reinterpret_cast<void*>(somewhere()) : &call;
    (void)::ioctl(device.context->cmd_fd, RDMA_VERBS_IOCTL, argument);
  }
}

std::string command_cm(Dice& dice, int count) {
  const int fd = ::open("/dev/infiniband/rdma_cm", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::string("/dev/infiniband/rdma_cm: ") + std::strerror(errno);
  std::array<std::uint8_t, 512> bytes{};
  std::array<std::uint8_t, 1024> answer{};
  for (int i = 0; i < count; ++i) {
    if (dice.below(2) == 0) {
      bytes.fill(0);
      // Small numbers in words: identifiers that may exist.
      for (std::size_t at = 8; at + 4 <= bytes.size(); at += 4) bytes[at] = static_cast<std::uint8_t>(dice.below(6));
    } else {
      fill(dice, bytes.data(), bytes.size());
    }
    rdma_ucm_cmd_hdr header{};
    header.cmd = static_cast<std::uint32_t>(dice.below(30));
    header.in = static_cast<std::uint16_t>(dice.below(8) == 0 ? dice.roll() : dice.below(400));
    header.out = static_cast<std::uint16_t>(dice.below(8) == 0 ? dice.roll() : dice.below(400));
    std::memcpy(bytes.data(), &header, sizeof header);
    // Where most commands say where their answer goes.
    const std::uint64_t place = dice.below(8) == 0 ? dice.roll() : reinterpret_cast<std::uintptr_t>(answer.data());
    for (const std::size_t at : {8u, 16u})
      if (dice.below(2) == 0) std::memcpy(bytes.data() + at, &place, sizeof place);
    const std::size_t length = dice.below(4) == 0 ? dice.below(bytes.size()) : sizeof header + header.in % 400;
    (void)!::write(fd, bytes.data(), length);
  }
  ::close(fd);
  return {};
}

void close_everything(bool raw) {
  std::vector<int> open;
  if (DIR* const folder = ::opendir("/proc/self/fd")) {
    while (const dirent* entry = ::readdir(folder)) {
      const int fd = std::atoi(entry->d_name);
      if (fd > 2 && fd != ::dirfd(folder)) open.push_back(fd);
    }
    ::closedir(folder);
  }
  for (const int fd : open) {
    if (raw)
      (void)::syscall(SYS_close, fd);
    else
      (void)::close(fd);
  }
}

}  // namespace hostile
