// SPDX-License-Identifier: Apache-2.0
// Memory of accelerators under descriptors of a Cassini: by dma-buf and by address, where it moves, where it is freed,
// and what is refused. Every test with the cards in a server, in a server that has to ask for memory, and in this
// process.
#include <poll.h>
#include <sys/mman.h>

#include <atomic>
#include <mutex>

#include "soft/accel/window.hpp"
#include "soft/cassini_host/testing.hpp"

namespace strait::soft::cassini::testing {
namespace {

using wire::ReturnCode;

constexpr std::uint64_t kDeviceBytes = 200'000;
constexpr std::uint64_t kSkip = 70'001;  // in no page's first byte
constexpr std::uint32_t kSent = 100'000;

DeviceMemorySettings settings_of(const char* peer_memory, const char* faults = "", bool remap = false) {
  // As a run's options arrive.
  EXPECT_EQ(::setenv("STRAIT_PEER_MEMORY", peer_memory, 1), 0);
  EXPECT_EQ(::setenv("STRAIT_KERNEL_FAULTS", faults, 1), 0);
  EXPECT_EQ(::setenv("STRAIT_CASSINI_MOVES", remap ? "remap" : "tear_down", 1), 0);
  auto made = DeviceMemorySettings::from_environment();
  EXPECT_TRUE(made) << made.error().text;
  return made ? std::move(*made) : DeviceMemorySettings{};
}

class DeviceMemoryTest : public ::testing::TestWithParam<Where> {
 protected:
  // To and from device memory, at either end of a command; the other end is the peer's host memory.
  static void expect_traffic(Program& owner, Program& peer, const AcceleratorMemory& memory, const wire::Md& md,
                             std::uint64_t skip, unsigned seed) {
    const std::uint32_t index = owner.expose(md, md.iova, kSent);
    const std::string sent = some_text(kSent, seed);
    std::memcpy(peer.text(), sent.data(), kSent);
    EXPECT_EQ(peer.put({peer.host_md, 0, kSent}, owner, index), ReturnCode::ok);
    EXPECT_TRUE(memory.text(skip, kSent) == sent) << "what a peer put is on the accelerator";
    std::memset(peer.text(), 0, kSent);
    EXPECT_EQ(peer.get({peer.host_md, 0, kSent - 1000}, owner, index, 1000), ReturnCode::ok);
    EXPECT_TRUE(sent.substr(1000) == std::string(peer.text(), kSent - 1000)) << "what a peer gets is what is there";
    const std::string other = some_text(kSent, seed + 1);
    std::memcpy(memory.view.data() + skip, other.data(), kSent);
    EXPECT_EQ(owner.put({md, 0, kSent}, peer, peer.host_index, 100), ReturnCode::ok);
    EXPECT_TRUE(other == std::string(peer.text() + 100, kSent)) << "a put from the accelerator";
    std::memcpy(peer.text(), sent.data(), kSent);
    EXPECT_EQ(owner.get({md, 0, kSent}, peer, peer.host_index), ReturnCode::ok);
    EXPECT_TRUE(memory.text(skip, kSent) == sent) << "a get into the accelerator";
  }
  // The memory is gone: nothing lands in it, nothing comes from it, and everything else goes on.
  static void expect_gone(Program& owner, Program& peer, const wire::Md& md, std::uint32_t index) {
    EXPECT_EQ(peer.put({peer.host_md, 0, 64}, owner, index), ReturnCode::no_translation);
    EXPECT_EQ(peer.get({peer.host_md, 0, 64}, owner, index), ReturnCode::no_translation);
    EXPECT_EQ(owner.put({md, 0, 64}, peer, peer.host_index), ReturnCode::no_translation);
    expect_alive(owner, peer);
  }
  static void expect_alive(Program& one, Program& other) {
    for (Program* from : {&one, &other}) {
      Program& to = from == &one ? other : one;
      const std::string sent = some_text(500, 77);
      std::memcpy(from->text(), sent.data(), sent.size());
      EXPECT_EQ(from->put({from->host_md, 0, 500}, to, to.host_index, 9000), ReturnCode::ok);
      EXPECT_EQ(std::string(to.text() + 9000, 500), sent);
    }
  }

  Hosting host{GetParam(), "device-memory"};
};

TEST_P(DeviceMemoryTest, ADmabufOfEveryVendor) {
  Program owner(host, settings_of("")), peer(host, {}, 1);
  unsigned seed = 0;
  for (const std::uint32_t vendor :
       {STRAIT_SOFT_VENDOR_CUDA, STRAIT_SOFT_VENDOR_ROCM, STRAIT_SOFT_VENDOR_GAUDI, STRAIT_SOFT_VENDOR_SOFT}) {
    AcceleratorMemory memory(vendor, kDeviceBytes);
    sys::Fd exported = memory.file.duplicate().value();
    wire::Md md{};
    ASSERT_EQ(owner.map_dmabuf(exported.get(), memory.base + kSkip, kSent, kSkip, md), 0);
    exported.reset();  // the descriptor was needed for the call alone
    EXPECT_EQ(md.va % 4096, 0u);
    EXPECT_EQ(md.page_shift, 12) << "pages of a dma-buf are the machine's";
    expect_traffic(owner, peer, memory, md, kSkip, seed += 2);
    EXPECT_EQ(owner.unmap(md), 0);
    EXPECT_EQ(owner.put({md, 0, 64}, peer, peer.host_index), ReturnCode::no_translation);
  }
  EXPECT_EQ(owner.device->kernel().unbalanced(), "");
}

// What is written before and behind the range, and in its page, is not the descriptor's to touch.
TEST_P(DeviceMemoryTest, NothingAroundAPutIsTouched) {
  Program owner(host, settings_of("")), peer(host);
  AcceleratorMemory memory(STRAIT_SOFT_VENDOR_CUDA, kDeviceBytes);
  const std::string before = memory.text(0, kDeviceBytes);
  wire::Md md{};
  ASSERT_EQ(owner.map_dmabuf(memory.file.get(), memory.base + 4096, 8192, 4096, md), 0);
  const std::uint32_t index = owner.expose(md, md.iova, 8192);
  const std::string sent = some_text(100, 3);
  std::memcpy(peer.text(), sent.data(), 100);
  EXPECT_EQ(peer.put({peer.host_md, 0, 100}, owner, index, 8092), ReturnCode::ok);
  EXPECT_NE(peer.put({peer.host_md, 0, 101}, owner, index, 8092), ReturnCode::ok) << "one byte past the entry";
  std::string wanted = before;
  wanted.replace(4096 + 8092, 100, sent);
  EXPECT_TRUE(memory.text(0, kDeviceBytes) == wanted);
}

TEST_P(DeviceMemoryTest, WhatMovesIsTornDown) {
  Program owner(host, settings_of("")), peer(host);
  AcceleratorMemory memory(STRAIT_SOFT_VENDOR_ROCM, kDeviceBytes), stays(STRAIT_SOFT_VENDOR_CUDA, kDeviceBytes);
  wire::Md md{}, other{}, again{};
  ASSERT_EQ(owner.map_dmabuf(memory.file.get(), memory.base + kSkip, kSent, kSkip, md), 0);
  ASSERT_EQ(owner.map_dmabuf(stays.file.get(), stays.base + kSkip, kSent, kSkip, other), 0);
  const std::uint32_t index = owner.expose(md, md.iova, kSent);
  EXPECT_EQ(peer.put({peer.host_md, 0, 64}, owner, index), ReturnCode::ok);
  const std::string before = memory.text(0, kDeviceBytes);
  auto buffer = owner.device->kernel().get(memory.file.get());
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->move(), 0);
  std::memset(peer.text(), 0x11, 64);
  expect_gone(owner, peer, md, index);
  EXPECT_TRUE(memory.text(0, kDeviceBytes) == before) << "nothing was written at the old place";
  EXPECT_EQ(buffer->move(), 0);  // and again: nobody is told who has nothing
  expect_traffic(owner, peer, stays, other, kSkip, 5);
  // The same buffer may be mapped anew, beside the dead descriptor.
  ASSERT_EQ(owner.map_dmabuf(memory.file.get(), memory.base + kSkip, kSent, kSkip, again), 0);
  expect_traffic(owner, peer, memory, again, kSkip, 7);
  EXPECT_EQ(peer.put({peer.host_md, 0, 64}, owner, index), ReturnCode::no_translation) << "the dead one stays dead";
  for (const wire::Md& each : {md, other, again}) EXPECT_EQ(owner.unmap(each), 0);
  buffer.reset();
  EXPECT_EQ(owner.device->kernel().unbalanced(), "");
}

TEST_P(DeviceMemoryTest, WhatMovesIsMappedAgainOnRequest) {
  Program owner(host, settings_of("", "", true)), peer(host);
  AcceleratorMemory memory(STRAIT_SOFT_VENDOR_ROCM, kDeviceBytes);
  wire::Md md{};
  ASSERT_EQ(owner.map_dmabuf(memory.file.get(), memory.base + kSkip, kSent, kSkip, md), 0);
  auto buffer = owner.device->kernel().get(memory.file.get());
  ASSERT_TRUE(buffer);
  for (unsigned round = 0; round < 3; ++round) {
    EXPECT_EQ(buffer->move(), 0);
    expect_traffic(owner, peer, memory, md, kSkip, round);
  }
  EXPECT_GE(owner.device->kernel().counters().get("map").load(), 4u) << "once for each place";
  EXPECT_EQ(owner.unmap(md), 0);
  buffer.reset();
  EXPECT_EQ(owner.device->kernel().unbalanced(), "");
}

// The exporter moves when a certain byte of a transfer has come.
TEST_P(DeviceMemoryTest, AMoveInTheMiddleOfAPut) {
  for (const bool remap : {false, true}) {
    Program owner(host, settings_of("", "move@10000", remap)), peer(host);
    AcceleratorMemory memory(STRAIT_SOFT_VENDOR_SOFT, kDeviceBytes);
    const std::string before = memory.text(0, kDeviceBytes);
    wire::Md md{};
    ASSERT_EQ(owner.map_dmabuf(memory.file.get(), memory.base, kSent, 0, md), 0);
    const std::uint32_t index = owner.expose(md, md.iova, kSent);
    const std::string sent = some_text(kSent, 9);
    std::memcpy(peer.text(), sent.data(), kSent);
    const ReturnCode ended = peer.put({peer.host_md, 0, kSent}, owner, index);
    EXPECT_EQ(ended, remap ? ReturnCode::ok : ReturnCode::no_translation);
    EXPECT_EQ(memory.text(0, 10'000), sent.substr(0, 10'000)) << "what came before the move";
    EXPECT_TRUE(memory.text(10'000, kSent - 10'000) == (remap ? sent : before).substr(10'000, kSent - 10'000));
    if (!remap) expect_gone(owner, peer, md, index);
    EXPECT_EQ(owner.unmap(md), 0);
    expect_alive(owner, peer);
  }
}

// Two files behind one descriptor: the tear-down is the same.
TEST_P(DeviceMemoryTest, AWindowOnTwoAllocations) {
  for (const std::uint32_t vendor : {STRAIT_SOFT_VENDOR_CUDA, STRAIT_SOFT_VENDOR_ROCM}) {
    Program owner(host, settings_of("")), peer(host);
    AcceleratorMemory a(vendor, 65'536), b(vendor, 65'536);
    const accel::WindowPiece both[] = {{a.file.get(), 8192, 8192}, {b.file.get(), 4096, 4096}};
    const sys::Fd window = accel::make_window(both).value();
    wire::Md md{};
    ASSERT_EQ(owner.map_dmabuf(window.get(), 0x7000'0000, 12'288, 0, md), 0);
    const std::uint32_t index = owner.expose(md, md.iova, 12'288);
    std::memcpy(peer.text(), "over", 4);
    EXPECT_EQ(peer.put({peer.host_md, 0, 4}, owner, index, 8190), ReturnCode::ok);
    EXPECT_EQ(a.text(16'382, 2) + b.text(4096, 2), "over");
    if (vendor == STRAIT_SOFT_VENDOR_ROCM) {
      EXPECT_EQ(owner.device->kernel().get(window.get())->move(), 0);
      expect_gone(owner, peer, md, index);
    }
    EXPECT_EQ(owner.unmap(md), 0);
    EXPECT_EQ(owner.device->kernel().unbalanced(), "");
  }
}

// Moves come from another thread, at any moment of a descriptor's life.
TEST_P(DeviceMemoryTest, MovesWhileDescriptorsComeAndGo) {
  for (const bool remap : {false, true}) {
    Program owner(host, settings_of("", "", remap)), peer(host);
    AcceleratorMemory memory(STRAIT_SOFT_VENDOR_ROCM, kDeviceBytes);
    auto buffer = owner.device->kernel().get(memory.file.get());
    ASSERT_TRUE(buffer);
    std::atomic<bool> over{false};
    std::thread mover([&] {
      while (!over) {
        EXPECT_EQ(buffer->move(), 0);
        std::this_thread::yield();
      }
    });
    const std::string sent = some_text(4096, 4);
    std::memcpy(peer.text(), sent.data(), sent.size());
    for (int round = 0; round < 30; ++round) {
      wire::Md md{};
      ASSERT_EQ(owner.map_dmabuf(memory.file.get(), memory.base, 8192, 0, md), 0);
      const std::uint32_t index = owner.expose(md, md.iova, 8192);
      const ReturnCode ended = peer.put({peer.host_md, 0, 4096}, owner, index);
      EXPECT_TRUE(!remap || memory.text(0, 4096) == sent);
      EXPECT_TRUE(ended == ReturnCode::ok || (!remap && ended == ReturnCode::no_translation))
          << static_cast<int>(ended);
      EXPECT_EQ(owner.unmap(md), 0);
    }
    over = true;
    mover.join();
    expect_alive(owner, peer);
    buffer.reset();
    EXPECT_EQ(owner.device->kernel().unbalanced(), "");
  }
}

// A dma-buf is a reference of its own: freeing what it was made of ends nothing.
TEST_P(DeviceMemoryTest, ADmabufOutlivesTheAllocation) {
  Program owner(host, settings_of("")), peer(host);
  AcceleratorMemory memory(STRAIT_SOFT_VENDOR_CUDA, kDeviceBytes);
  wire::Md md{};
  ASSERT_EQ(owner.map_dmabuf(memory.file.get(), memory.base + kSkip, kSent, kSkip, md), 0);
  memory.free();
  expect_traffic(owner, peer, memory, md, kSkip, 1);
  EXPECT_EQ(owner.unmap(md), 0);
  EXPECT_EQ(owner.device->kernel().unbalanced(), "");
}

TEST_P(DeviceMemoryTest, NvidiaPagesThatSurviveTheFree) {
  for (const char* const ways : {"", "nvidia_persistent"}) {
    Program owner(host, settings_of(ways)), peer(host);
    AcceleratorMemory memory(STRAIT_SOFT_VENDOR_CUDA, kDeviceBytes);
    wire::Md md{};
    ASSERT_EQ(owner.map_address(memory.base + kSkip, kSent, md), 0);
    EXPECT_EQ(md.va % 65'536, 0u);
    EXPECT_EQ(md.page_shift, 16) << "NVIDIA's pages";
    expect_traffic(owner, peer, memory, md, kSkip, 1);
    memory.free();
    EXPECT_EQ(owner.device->kernel().counters().get("p2p_callback").load(), 0u) << "nobody is told";
    expect_traffic(owner, peer, memory, md, kSkip, 3);
    wire::Md late{};
    EXPECT_EQ(owner.map_address(memory.base + kSkip, kSent, late), EOPNOTSUPP) << "nobody's address any more";
    EXPECT_EQ(owner.unmap(md), 0);
    EXPECT_EQ(owner.device->kernel().unbalanced(), "");
  }
}

TEST_P(DeviceMemoryTest, NvidiaPagesWithACallback) {
  for (const char* const ways : {"nvidia", "p2p"}) {
    Program owner(host, settings_of(ways)), peer(host);
    AcceleratorMemory memory(STRAIT_SOFT_VENDOR_CUDA, kDeviceBytes);
    wire::Md md{};
    ASSERT_EQ(owner.map_address(memory.base + kSkip, kSent, md), 0);
    expect_traffic(owner, peer, memory, md, kSkip, 1);
    const std::uint32_t index = owner.expose(md, md.iova, kSent);
    memory.free();
    EXPECT_EQ(owner.device->kernel().counters().get("p2p_callback").load(), 1u);
    const std::string before = memory.text(0, kDeviceBytes);
    expect_gone(owner, peer, md, index);
    EXPECT_TRUE(memory.text(0, kDeviceBytes) == before);
    EXPECT_EQ(owner.unmap(md), 0);
    EXPECT_EQ(owner.device->kernel().unbalanced(), "");
  }
}

TEST_P(DeviceMemoryTest, PagesTakenBackInTheMiddleOfAPut) {
  Program owner(host, settings_of("p2p", "invalidate@10000")), peer(host);
  AcceleratorMemory memory(STRAIT_SOFT_VENDOR_CUDA, kDeviceBytes);
  wire::Md md{};
  ASSERT_EQ(owner.map_address(memory.base, kSent, md), 0);
  const std::uint32_t index = owner.expose(md, md.iova, kSent);
  const std::string before = memory.text(0, kDeviceBytes);
  std::memset(peer.text(), 0x77, kSent);
  EXPECT_EQ(peer.put({peer.host_md, 0, kSent}, owner, index), ReturnCode::no_translation);
  EXPECT_EQ(memory.text(0, 10'000), std::string(10'000, '\x77'));
  EXPECT_TRUE(memory.text(10'000, kSent) == before.substr(10'000, kSent));
  expect_gone(owner, peer, md, index);
  EXPECT_EQ(owner.unmap(md), 0);
}

TEST_P(DeviceMemoryTest, AmdPagesThroughItsClient) {
  for (const char* const ways : {"", "amd"}) {
    Program owner(host, settings_of(ways)), peer(host);
    AcceleratorMemory memory(STRAIT_SOFT_VENDOR_ROCM, kDeviceBytes);
    wire::Md md{};
    ASSERT_EQ(owner.map_address(memory.base + kSkip, kSent, md), 0);
    expect_traffic(owner, peer, memory, md, kSkip, 1);
    const std::uint32_t index = owner.expose(md, md.iova, kSent);
    memory.free();
    expect_gone(owner, peer, md, index);
    EXPECT_EQ(owner.unmap(md), 0);
    EXPECT_EQ(owner.device->kernel().unbalanced(), "");
  }
}

TEST_P(DeviceMemoryTest, WithoutAVendorsDriverThereAreNoPages) {
  AcceleratorMemory nvidia(STRAIT_SOFT_VENDOR_CUDA, kDeviceBytes), amd(STRAIT_SOFT_VENDOR_ROCM, kDeviceBytes);
  struct {
    const char* ways;
    int nvidia, amd;
  } const kTable[] = {{"none", EOPNOTSUPP, EOPNOTSUPP}, {"amd", EOPNOTSUPP, 0}, {"p2p", 0, EOPNOTSUPP}};
  for (const auto& row : kTable) {
    Program owner(host, settings_of(row.ways));
    wire::Md md{};
    EXPECT_EQ(owner.map_address(nvidia.base, kSent, md), row.nvidia) << row.ways;
    EXPECT_EQ(owner.map_address(amd.base, kSent, md), row.amd) << row.ways;
    EXPECT_EQ(owner.map_dmabuf(nvidia.file.get(), nvidia.base, kSent, 0, md), 0) << "dma-bufs need none";
    EXPECT_EQ(owner.map_dmabuf(wire::kNoDmabufFd, nvidia.base, kSent, 0, md), row.nvidia) << "which is no dma-buf";
    // Host memory is no device's.
    EXPECT_EQ(owner.map_address(reinterpret_cast<std::uint64_t>(owner.text()), 4096, md), EOPNOTSUPP);
  }
}

TEST_P(DeviceMemoryTest, DescriptorsAndRangesThatCannotBe) {
  Program owner(host, settings_of("")), peer(host);
  AcceleratorMemory memory(STRAIT_SOFT_VENDOR_CUDA, 65'536);
  const sys::Fd plain = sys::make_sealed_memfd("nobody's", 65'536).value();
  int closed = -1;
  { closed = memory.file.duplicate().value().get(); }
  wire::Md md{};
  const int fd = memory.file.get();
  const auto map = [&](int which, std::uint64_t bytes, std::uint64_t offset) {
    return owner.map_dmabuf(which, memory.base, bytes, offset, md);
  };
  EXPECT_EQ(map(closed, 4096, 0), EBADF);
  EXPECT_EQ(map(123'456, 4096, 0), EBADF);
  EXPECT_EQ(map(plain.get(), 4096, 0), EINVAL) << "a file that no driver exported";
  EXPECT_EQ(map(fd, 0, 0), EINVAL);
  EXPECT_EQ(map(fd, 4096, 65'536), EFAULT) << "behind its end";
  EXPECT_EQ(map(fd, 65'537, 0), EFAULT);
  EXPECT_EQ(map(fd, 4096, 61'441), EFAULT) << "its last byte is past the end";
  EXPECT_EQ(map(fd, 4096, ~std::uint64_t{0} - 100), EINVAL) << "goes round";
  EXPECT_EQ(owner.map_dmabuf(fd, ~std::uint64_t{0} - 100, 4096, 0, md), EOVERFLOW);
  EXPECT_EQ(owner.map_address(memory.base, 0, md), EINVAL);
  EXPECT_EQ(owner.map_address(memory.base + 65'536, 4096, md), EOPNOTSUPP) << "nobody's address";
  EXPECT_EQ(owner.map_address(memory.base, 65'537, md), EINVAL) << "runs out of the allocation";
  EXPECT_EQ(owner.map_address(memory.base, std::uint64_t{1} << 40, md), EINVAL);
  EXPECT_EQ(owner.map_address(~std::uint64_t{0} - 100, 4096, md), EOVERFLOW);
  AcceleratorMemory amd(STRAIT_SOFT_VENDOR_ROCM, 10'000);
  EXPECT_EQ(owner.map_address(amd.base, 10'001, md), EINVAL);
  AcceleratorMemory managed(STRAIT_SOFT_VENDOR_CUDA, 65'536, STRAIT_SOFT_NOT_EXPORTABLE);
  EXPECT_EQ(owner.map_dmabuf(managed.file.get(), managed.base, 4096, 0, md), EINVAL);
  EXPECT_EQ(owner.map_address(managed.base, 4096, md), EINVAL) << "NVIDIA gives no pages of managed memory";
  AcceleratorMemory gaudi(STRAIT_SOFT_VENDOR_GAUDI, 65'536);
  EXPECT_EQ(owner.map_address(gaudi.base, 4096, md), EINVAL) << "by dma-buf only";
  // The hint says that there is a descriptor; the flag is what counts.
  wire::AtuMapCmd without = owner.map_command(reinterpret_cast<std::uint64_t>(owner.text()), 4096, Program::kAll);
  without.hints.dmabuf_fd = closed;
  without.hints.dmabuf_valid = 1;
  wire::AtuMapResp made{};
  EXPECT_EQ(owner.ask(without, made), 0) << "without DEVICE it is host memory";
  EXPECT_EQ(map(fd, 65'536, 0), 0);
  expect_alive(owner, peer);
  EXPECT_EQ(owner.unmap(md), 0);
  EXPECT_EQ(owner.unmap(md), EINVAL);
  EXPECT_EQ(owner.device->kernel().unbalanced(), "");
}

TEST_P(DeviceMemoryTest, WhatTheExporterSaysIsPassedOn) {
  struct {
    const char* faults;
    std::uint32_t vendor;
    int wanted;
  } const kTable[] = {{"attach=524", STRAIT_SOFT_VENDOR_SOFT, 524},      {"topology", STRAIT_SOFT_VENDOR_CUDA, 524},
                      {"no_p2p", STRAIT_SOFT_VENDOR_GAUDI, EPERM},       {"reset", STRAIT_SOFT_VENDOR_GAUDI, EBUSY},
                      {"map=EAGAIN@1", STRAIT_SOFT_VENDOR_ROCM, EAGAIN}, {"bar=64K", STRAIT_SOFT_VENDOR_CUDA, ENOMEM}};
  for (const auto& row : kTable) {
    Program owner(host, settings_of("", row.faults));
    AcceleratorMemory memory(row.vendor, kDeviceBytes);
    wire::Md md{};
    EXPECT_EQ(owner.map_dmabuf(memory.file.get(), memory.base, kSent, 0, md), row.wanted) << row.faults;
    EXPECT_EQ(owner.device->kernel().unbalanced(), "") << row.faults;
  }
  for (const char* const faults : {"p2p_get=ENOMEM", "p2p_map=ENOMEM", "bar=64K"}) {
    Program owner(host, settings_of("", faults));
    AcceleratorMemory memory(STRAIT_SOFT_VENDOR_CUDA, kDeviceBytes);
    wire::Md md{};
    EXPECT_EQ(owner.map_address(memory.base, kSent, md), ENOMEM) << faults;
    EXPECT_EQ(owner.device->kernel().unbalanced(), "") << faults;
  }
}

// A ring in an accelerator's memory, by descriptor and by address; the device reads commands there.
TEST_P(DeviceMemoryTest, ARingInAnAccelerator) {
  Program owner(host, settings_of("")), peer(host);
  for (const bool by_descriptor : {true, false}) {
    AcceleratorMemory memory(STRAIT_SOFT_VENDOR_CUDA, 256 << 10);
    std::memset(memory.view.data(), 0, memory.view.size());
    const std::uint64_t skip = 8192;
    wire::CqAllocBufCmd c{};
    c.lni = owner.lni;
    c.opts.opts.count = 1025;  // that is 2048
    c.opts.opts.flags = wire::kCqIsTx;
    c.opts.buf = memory.base + skip;
    c.opts.dmabuf_fd = by_descriptor ? memory.file.get() : wire::kNoDmabufFd;
    c.opts.dmabuf_offset = skip;
    wire::CqAllocResp made{};
    ASSERT_EQ(owner.ask(c, made), 0);
    EXPECT_EQ(made.count, 2048u);
    EXPECT_EQ(made.cmds.size, 0u) << "there is nothing to map";
    ProgramRing ring{made.cq, memory.view.data() + skip, owner.map_pages(made.wp_addr), made.count};
    const wire::QueueStatus status = wire::initial_queue_status();  // the caller's affair
    std::memcpy(ring.ring, &status, sizeof status);
    std::memcpy(owner.text(), "first", 5);
    const wire::FullDmaCmd put =
        owner.command(wire::DmaOp::put, {owner.host_md, 0, 5}, peer, peer.host_index, by_descriptor ? 64 : 128);
    ring.emit(&put);
    EXPECT_EQ(owner.next_event(), ReturnCode::ok);
    EXPECT_EQ(std::string(peer.text() + (by_descriptor ? 64 : 128), 5), "first");
    // To the last block, and round: the second half of the ring is the accelerator's too.
    for (std::uint32_t i = 0; i < made.count; ++i) {
      wire::CqCmd nothing{};
      nothing.set_header(wire::CmdType::cq, wire::CmdSize::b64, wire::CqOp::noop);
      ring.emit(&nothing);
      if (i % 256 == 0) {
        ASSERT_EQ(ring.finished(), ReturnCode::ok);
      }
    }
    EXPECT_EQ(ring.finished(), ReturnCode::ok);
    ::munmap(ring.launch, 4096);
    owner.device->unmapped(ring.launch, 4096);
    wire::CqFreeCmd free_it{};
    free_it.cq = made.cq;
    EXPECT_EQ(owner.tell(free_it), 0);
  }
  EXPECT_EQ(owner.device->kernel().unbalanced(), "");
}

// A counter's word in an accelerator's memory: by its address, since there is no other way.
TEST_P(DeviceMemoryTest, ACounterInAnAccelerator) {
  Program owner(host, settings_of(""));
  AcceleratorMemory first(STRAIT_SOFT_VENDOR_CUDA, 65'536), second(STRAIT_SOFT_VENDOR_ROCM, 65'536);
  const auto word = [](const AcceleratorMemory& memory) {
    return reinterpret_cast<std::uint64_t*>(memory.view.data() + 4104);
  };
  *word(first) = *word(second) = 0;
  wire::CtAllocCmd c{};
  c.lni = owner.lni;
  c.wb = first.base + 4104;
  wire::CtAllocResp made{};
  ASSERT_EQ(owner.ask(c, made), 0);
  auto* const doorbell = reinterpret_cast<std::uint64_t*>(owner.map_pages(made.doorbell));
  const auto written = [&](const AcceleratorMemory& memory) {
    const auto deadline = sys::Deadline::after_ns(kPatienceNs);
    std::uint64_t seen = 0;
    while (seen == 0 && !deadline.passed()) seen = __atomic_load_n(word(memory), __ATOMIC_ACQUIRE);
    return wire::CtWriteback{seen};
  };
  __atomic_fetch_add(&doorbell[0], 5, __ATOMIC_RELEASE);
  __atomic_fetch_add(&doorbell[wire::kCtAddFailureOffset / 8], 1, __ATOMIC_RELEASE);
  EXPECT_EQ(written(first).failure(), 1u) << "the first failure is written back";
  wire::CtWbUpdateCmd move{};
  move.ctn = made.ctn;
  move.wb = second.base + 4104;
  ASSERT_EQ(owner.tell(move), 0);
  *word(first) = 0;
  __atomic_store_n(&doorbell[wire::kCtResetFailureOffset / 8], std::uint64_t{0}, __ATOMIC_RELEASE);
  const wire::CtWriteback seen = written(second);
  EXPECT_EQ(seen.success(), 5u);
  EXPECT_EQ(seen.failure(), 0u);
  EXPECT_EQ(*word(first), 0u) << "the old word is let go";
  ::munmap(doorbell, 4096);
  owner.device->unmapped(doorbell, 4096);
  wire::CtFreeCmd free_it{};
  free_it.ctn = made.ctn;
  EXPECT_EQ(owner.tell(free_it), 0);
  EXPECT_EQ(owner.device->kernel().unbalanced(), "");
}

// Closed while a peer puts: what the descriptors held goes after the device has let go of it.
TEST_P(DeviceMemoryTest, AnOwnerThatClosesUnderPuts) {
  Program peer(host);
  AcceleratorMemory memory(STRAIT_SOFT_VENDOR_ROCM, kDeviceBytes);
  for (int round = 0; round < 10; ++round) {
    auto owner = std::make_unique<Program>(host, settings_of("amd", "", true));
    wire::Md by_file{}, by_address{};
    ASSERT_EQ(owner->map_dmabuf(memory.file.get(), memory.base, kSent, 0, by_file), 0);
    ASSERT_EQ(owner->map_address(memory.base, kSent, by_address), 0);
    const std::uint32_t first = owner->expose(by_file, by_file.iova, kSent);
    const std::uint32_t second = owner->expose(by_address, by_address.iova, kSent);
    for (const std::uint32_t index : {first, second, first, second}) {
      const wire::FullDmaCmd c = peer.command(wire::DmaOp::put, {peer.host_md, 0, kSent}, *owner, index, 0);
      peer.transmit.emit(&c);
    }
    owner.reset();
    for (int i = 0; i < 4; ++i) EXPECT_NE(peer.next_event(), kNoAnswer) << "each put ends somehow";
  }
}

// Memory that only this process reaches, by functions: the thread of the cards calls them.
class CountingPort {
 public:
  CountingPort(std::uint64_t base, std::size_t size) : bytes_(size, '.'), base_(base) {
    port.abi_version = STRAIT_PLUGIN_ABI;
    port.struct_size = sizeof port;
    port.context = this;
    port.read = [](void* self, std::uint64_t address, void* into, std::uint64_t n) {
      return static_cast<CountingPort*>(self)->access(address, n, [&](char* at) { std::memcpy(into, at, n); });
    };
    port.write = [](void* self, std::uint64_t address, const void* from, std::uint64_t n) {
      return static_cast<CountingPort*>(self)->access(address, n, [&](char* at) { std::memcpy(at, from, n); });
    };
  }
  std::string text(std::size_t offset, std::size_t n) {
    const std::lock_guard lock(mutex_);
    return bytes_.substr(offset, n);
  }
  void set(const char* text) {
    const std::lock_guard lock(mutex_);
    bytes_.replace(0, std::strlen(text), text);
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  strait_memory_port port{};

 private:
  template <class Use>
  std::int32_t access(std::uint64_t address, std::uint64_t n, Use use) {
    const std::lock_guard lock(mutex_);
    ++calls_;
    if (address < base_ || address - base_ + n > bytes_.size()) return EFAULT;
    use(bytes_.data() + (address - base_));
    return 0;
  }
  std::mutex mutex_;
  std::string bytes_;
  const std::uint64_t base_;
  int calls_ = 0;
};

TEST_P(DeviceMemoryTest, SharePort) {
  Program owner(host, settings_of("none")), peer(host);
  // Two pieces in one page of NVIDIA's, at addresses of their own.
  constexpr std::uint64_t kBase = (std::uint64_t{0x30} << 40) + 4096;
  CountingPort one(kBase, 20'000), other(kBase + 24'576, 5000);
  OpenDevice& device = *owner.device;
  ASSERT_EQ(device.lend(kBase, 20'000, &one.port), 0);
  ASSERT_EQ(device.lend(kBase + 24'576, 5000, &other.port), 0);
  EXPECT_EQ(device.lend(kBase + 100, 10, &other.port), -EEXIST);
  EXPECT_EQ(device.lend(kBase - 100, 200, &other.port), -EEXIST);
  EXPECT_EQ(device.lend(kBase + 100, 10, &one.port), 0) << "its own";
  EXPECT_EQ(device.unshare(kBase + 100), 0);
  EXPECT_EQ(device.unshare(kBase + 100), -ENOENT);
  EXPECT_EQ(device.lend(kBase * 2, 0, &other.port), -EINVAL);
  EXPECT_EQ(device.lend(kBase * 2, 10, nullptr), -EINVAL);
  wire::Md first{}, second{}, none{};
  ASSERT_EQ(owner.map_address(kBase + 5, 19'000, first), 0);
  ASSERT_EQ(owner.map_address(kBase + 24'576, 5000, second), 0);
  EXPECT_EQ(owner.map_address(kBase + (1 << 20), 4096, none), EOPNOTSUPP);
  const std::uint32_t index = owner.expose(first, first.iova, 19'000);
  const std::string sent = some_text(10'000, 6);
  std::memcpy(peer.text(), sent.data(), sent.size());
  EXPECT_EQ(peer.put({peer.host_md, 0, 10'000}, owner, index, 50), ReturnCode::ok);
  EXPECT_EQ(one.text(55, 10'000), sent);
  EXPECT_EQ(one.text(0, 55), std::string(55, '.'));
  EXPECT_EQ(other.calls(), 0);
  other.set("other");
  EXPECT_EQ(owner.put({second, 0, 5}, peer, peer.host_index, 64), ReturnCode::ok);
  EXPECT_EQ(std::string(peer.text() + 64, 5), "other");
  // From one port's memory into the other's.
  EXPECT_EQ(owner.put({second, 0, 5}, owner, index, 1000), ReturnCode::ok);
  EXPECT_EQ(one.text(1005, 5), "other");
  // Beyond a piece there is nothing, though the page is mapped.
  EXPECT_EQ(owner.put({second, 4996, 5}, peer, peer.host_index), ReturnCode::no_translation);
  EXPECT_EQ(owner.put({first, 19'990, 8}, peer, peer.host_index), ReturnCode::no_translation);
  ASSERT_EQ(device.unshare(kBase), 0);
  const int calls = one.calls();
  EXPECT_EQ(peer.put({peer.host_md, 0, 64}, owner, index), ReturnCode::no_translation) << "it was taken back";
  EXPECT_EQ(one.calls(), calls);
  expect_alive(owner, peer);
  EXPECT_EQ(owner.unmap(first), 0);
  EXPECT_EQ(owner.unmap(second), 0);
}

// An event makes the descriptor of its wait object urgent; reading it makes it quiet again.
TEST_P(DeviceMemoryTest, AnEventMakesTheWaitUrgent) {
  Program program(host, settings_of("")), peer(host);
  wire::WaitAllocCmd ask{};
  wire::WaitAllocResp made{};
  ask.lni = program.lni;
  ASSERT_EQ(program.ask(ask, made), 0);
  auto fd = program.device->channel().wait(made.wait);
  ASSERT_TRUE(fd) << fd.error().explain();
  const auto urgent = [&](int timeout_ms) {
    pollfd entry{fd->get(), POLLPRI, 0};
    return ::poll(&entry, 1, timeout_ms) == 1 && (entry.revents & POLLPRI) != 0;
  };
  const sys::Mapping queue = sys::map_anonymous(8192, sys::Protect::read_write).value();
  const wire::Md md = program.map_host(queue.data(), 8192);
  std::byte* state = nullptr;
  const std::uint32_t eq = program.make_event_queue(queue.data(), 8192, md.id, made.wait, &state);
  EXPECT_FALSE(urgent(0));
  (void)program.expose(program.host_md, program.host_md.iova, 4096, eq);  // its change of state is an event
  EXPECT_TRUE(urgent(30'000));
  sys::Urgent::clear(fd->get());
  EXPECT_FALSE(urgent(0));
  // Read and acknowledged: the next event says so again.
  wire::EqSwState read{};
  read.set_rd_ptr(2);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(state), read.word, __ATOMIC_RELEASE);
  (void)program.expose(program.host_md, program.host_md.iova, 4096, eq);
  EXPECT_TRUE(urgent(30'000));
  program.device.reset();  // the queue's memory is older than the device
}

INSTANTIATE_TEST_SUITE_P(Hosts, DeviceMemoryTest, ::testing::Values(Where::server, Where::asked, Where::local),
                         where_name);

TEST(DeviceMemorySettings, WhatTheOptionsSay) {
  using Pages = DeviceMemorySettings::Pages;
  EXPECT_EQ(settings_of("").pages, Pages::persistent);
  EXPECT_TRUE(settings_of("").kernel.amd);
  EXPECT_EQ(settings_of("nvidia_persistent").pages, Pages::persistent);
  EXPECT_EQ(settings_of("nvidia").pages, Pages::callback);
  EXPECT_EQ(settings_of("p2p").pages, Pages::callback);
  EXPECT_EQ(settings_of("none").pages, Pages::none);
  EXPECT_FALSE(settings_of("none").kernel.amd);
  EXPECT_FALSE(settings_of("").remap);
  EXPECT_TRUE(settings_of("", "", true).remap);
  ASSERT_EQ(::setenv("STRAIT_CASSINI_MOVES", "sideways", 1), 0);
  const auto wrong = DeviceMemorySettings::from_environment();
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text.find("neither tear_down nor remap"), std::string::npos);
  ASSERT_EQ(::unsetenv("STRAIT_CASSINI_MOVES"), 0);
}

}  // namespace
}  // namespace strait::soft::cassini::testing
