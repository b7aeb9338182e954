// SPDX-License-Identifier: Apache-2.0
// The program: tests, or with "--peer" another process of the same machine that reads commands and answers each with a
// number; with "--2021" a program that was written for the library of that year.
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <sstream>

#include "soft/gaudi/machine.hpp"
#include "soft/gaudi/testing.hpp"
#include "sys/scratch.hpp"

namespace strait::soft::gaudi::testing {
namespace {

constexpr std::size_t kLinkedBytes = 300'000;

// A device of this process with memory on it, for others to reach over the link.
class Linked {
 public:
  // Its address; 0: it cannot be had.
  std::int64_t make(std::uint32_t module, std::uint32_t seed) {
    (void)SYN(Initialize)();
    if (SYN(DeviceAcquireByModuleId)(&device_, module) != syn::kSuccess ||
        SYN(StreamCreateGeneric)(&stream_, device_, 0) != syn::kSuccess ||
        SYN(DeviceMalloc)(device_, kLinkedBytes, 0, 0, &address_) != syn::kSuccess)
      return 0;
    std::vector<std::byte> bytes = pattern(kLinkedBytes, seed);
    return move(bytes, syn::kHostToDram) ? static_cast<std::int64_t>(address_) : 0;
  }
  std::int64_t holds(std::uint32_t seed) {
    std::vector<std::byte> bytes(kLinkedBytes);
    return move(bytes, syn::kDramToHost) && bytes == pattern(kLinkedBytes, seed) ? 1 : 0;
  }

 private:
  bool move(std::vector<std::byte>& bytes, std::int32_t direction) {
    const auto host = reinterpret_cast<std::uint64_t>(bytes.data());
    const bool in = direction == syn::kHostToDram;
    return SYN(HostMap)(device_, bytes.size(), bytes.data()) == syn::kSuccess &&
           SYN(MemCopyAsync)(stream_, in ? host : address_, bytes.size(), in ? address_ : host, direction) ==
               syn::kSuccess &&
           SYN(StreamSynchronize)(stream_) == syn::kSuccess && SYN(HostUnmap)(device_, bytes.data()) == syn::kSuccess;
  }
  syn::DeviceId device_ = 0;
  syn::StreamHandle stream_ = nullptr;
  std::uint64_t address_ = 0;
};

void run_peer() {
  std::string line;
  int fd = -1;
  Linked linked;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string command;
    int number = 0, seed = 0;
    in >> command >> number >> seed;
    std::int64_t answer = -9998;
    if (command == "link") answer = linked.make(static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(seed));
    if (command == "holds") answer = linked.holds(static_cast<std::uint32_t>(number));
    if (command == "host_bytes") answer = static_cast<std::int64_t>(counter("host_bytes"));
    if (command == "release") answer = SYN(DeviceRelease)(static_cast<std::uint32_t>(number));
    if (command == "reset")
      answer = named<decltype(&strait_soft_gaudi_reset)>("libstrait-gaudi.so",
                                                         "strait_soft_gaudi_reset")(static_cast<std::uint32_t>(number));
    if (command == "open") answer = fd = HL(open_by_module_id)(static_cast<std::uint32_t>(number));
    if (command == "control") answer = HL(open_control)(number, nullptr);
    if (command == "close") answer = HL(close)(fd);
    if (command == "active") {
      shapes::OpenStats stats{};
      const int control = HL(open_control)(number, nullptr);
      answer = HL(get_open_stats)(control, &stats) == 0 ? stats.is_compute_ctx_active : -1;
      HL(close)(control);
    }
    if (command == "acquire") {
      syn::DeviceId device = 0;
      (void)SYN(Initialize)();
      answer = SYN(DeviceAcquireByModuleId)(&device, static_cast<std::uint32_t>(number));
    }
    // Opens a device, exports memory of it, and goes on with the descriptor only.
    if (command == "leak") {
      fd = HL(open_by_module_id)(static_cast<std::uint32_t>(number));
      const std::uint64_t handle = HL(device_memory_alloc)(fd, 65536, 0, true, false);
      const std::uint64_t address = HL(device_memory_map)(fd, handle, 0);
      answer = HL(device_mapped_memory_export_dmabuf_fd)(fd, address, 65536, 0, 2);
      HL(close)(fd);
    }
    std::cout << answer << std::endl;
  }
}

template <class Function>
Function old(const char* name) {
  return named<Function>("gaudi2021/libhl-thunk.so", name);
}
#define OLD(name) (old<shapes::hlthunk_##name>("hlthunk_" #name))
#define OLD_SHAPE(name) (old<shapes::year2021::hlthunk_##name>("hlthunk_" #name))

// How many checks failed.
int run_2021() {
  int wrong = 0;
  const auto check = [&](bool good, const char* what) {
    if (!good) std::cerr << "2021: " << what << '\n';
    wrong += good ? 0 : 1;
  };
  const sys::Library& old_library = library("gaudi2021/libhl-thunk.so");
  check(!old_library.symbol<void*>("hlthunk_device_mapped_memory_export_dmabuf_fd"), "a name of today is there");
  check(!old_library.symbol<void*>("hlthunk_get_device_count"), "a name of today is there");
  check(bool(old_library.symbol<void*>("hlthunk_wait_for_interrupt")), "a name of 2021 is not there");
  const int descriptors = sys::count_open_fds();
  const int fd = OLD(open)(2, nullptr);
  check(fd >= 0, "open");
  check(OLD(open)(5, nullptr) == -ENODEV, "a Gaudi 2 was opened");
  check(OLD(get_device_name_from_fd)(fd) == 2, "the name");
  hl::HwIpInfo2021 info{};
  check(OLD_SHAPE(get_hw_ip_info)(fd, &info) == 0 && info.dram_size == 16u << 20 && info.device_id == 0x1000, "hw_ip");
  const std::uint64_t handle = OLD_SHAPE(device_memory_alloc)(fd, 100'000, true, true);
  check(handle != 0, "alloc with four arguments");
  const std::uint64_t address = OLD(device_memory_map)(fd, handle, 0);
  check(address != 0, "map");
  const int dmabuf = OLD(device_memory_export_dmabuf_fd)(fd, handle, 65536, 2);
  check(dmabuf >= 0, "export by handle");
  check(OLD(device_memory_export_dmabuf_fd)(fd, address, 65536, 2) == -EINVAL, "export by address");
  check(OLD(device_memory_export_dmabuf_fd)(fd, handle, 1 << 20, 2) == -EINVAL, "export of too much");
  check(OLD(memory_unmap)(fd, address) == -EINVAL, "unmapped while exported");
  ::close(dmabuf);
  check(OLD(memory_unmap)(fd, address) == 0, "unmap");
  check(OLD(device_memory_free)(fd, handle) == 0, "free");
  void* memory = OLD_SHAPE(malloc)(100);
  check(memory != nullptr && OLD_SHAPE(malloc)(-1) == nullptr, "malloc");
  OLD(free)(memory);
  scal::Handle handle_of_scal = nullptr;
  check(SCAL(init)(fd, "", &handle_of_scal, nullptr) == scal::kFailure, "scal in 2021");
  check(OLD(close)(fd) == 0, "close");
  const int control = OLD(open_control)(0, nullptr);
  check(control >= 0 && OLD(close)(control) == 0, "control");
  check(sys::count_open_fds() == descriptors, "a device of the process's own leaves descriptors behind");
  return wrong;
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (under_run) return RUN_ALL_TESTS();
  auto root = sys::Scratch::create(sys::temporary_folder(), "strait-gaudi-test");
  accel::VendorSpec spec;
  spec.devices = 4;
  spec.memory_bytes = 16u << 20;
  if (!root) return 1;
  const auto machine = Machine::create(root->path(), spec);
  if (!machine) {
    std::cerr << machine.error().text << '\n';
    return 1;
  }
  ::setenv("STRAIT_HOST_ROOT", root->path().c_str(), 1);
  ::setenv("STRAIT_SOFT_ACCELERATORS", "gaudi:4x16M", 1);
  return RUN_ALL_TESTS();
}

}  // namespace

TEST(Gaudi2021, AProgramOfThatYearRuns) {
  ::setenv("STRAIT_SOFT_ACCELERATORS", "gaudi:1x16M@2021", 1);
  const std::string root = std::getenv("STRAIT_HOST_ROOT");
  ::unsetenv("STRAIT_HOST_ROOT");
  auto child = sys::Child::start_self({"--2021"});
  ::setenv("STRAIT_SOFT_ACCELERATORS", "gaudi:4x16M", 1);
  ::setenv("STRAIT_HOST_ROOT", root.c_str(), 1);
  ASSERT_TRUE(child) << child.error().text;
  const auto status = child->finish(sys::Deadline::after_ns(60'000'000'000));
  ASSERT_TRUE(status) << status.error().text;
  EXPECT_EQ(*status, 0) << "what was wrong is above";
}

}  // namespace strait::soft::gaudi::testing

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  strait::soft::gaudi::testing::under_run =
      std::getenv("STRAIT_HOST_ROOT") != nullptr && first.find("peer") == first.npos;
  if (first == "--peer") {
    strait::soft::gaudi::testing::run_peer();
    return 0;
  }
  if (first == "--2021") return strait::soft::gaudi::testing::run_2021();
  return strait::soft::gaudi::testing::run_tests(argc, argv);
}
