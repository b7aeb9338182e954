// SPDX-License-Identifier: Apache-2.0
// Memory of another process. The other process is this program again, with the word "peer": it opens what it is told,
// says what the first byte was, and adds one to it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <sstream>

#include "soft/cuda/testing.hpp"
#include "sys/child.hpp"
#include "sys/clock.hpp"
#include "sys/file_hold.hpp"

namespace strait::soft::cuda {
namespace {

using testing::kMega;
using testing::kStep;

std::string to_hex(const void* data, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", static_cast<const unsigned char*>(data)[i]);
  return text;
}

template <class T>
T from_hex(const std::string& text) {
  T value{};
  for (std::size_t i = 0; i < sizeof value && 2 * i + 1 < text.size(); ++i)
    reinterpret_cast<unsigned char*>(&value)[i] =
        static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return value;
}

struct Opened {
  CUresult answer = CUDA_SUCCESS;
  CUdeviceptr address = 0;
};

Opened open_legacy(const std::string& handle) {
  Opened opened;
  opened.answer = CUDA(cuIpcOpenMemHandle_v2)(&opened.address, from_hex<CUipcMemHandle>(handle), 1);
  return opened;
}

Opened open_vmm(pid_t process, int fd) {
  Opened opened;
  const sys::Fd file = sys::open_of_process(process, fd).value();
  CUmemGenericAllocationHandle handle = 0;
  opened.answer = CUDA(cuMemImportFromShareableHandle)(&handle, reinterpret_cast<void*>(std::intptr_t{file.get()}),
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (opened.answer != CUDA_SUCCESS) return opened;
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (const CUresult answer :
       {CUDA(cuMemAddressReserve)(&opened.address, kStep, 0, 0, 0), CUDA(cuMemMap)(opened.address, kStep, 0, handle, 0),
        CUDA(cuMemSetAccess)(opened.address, kStep, &access, 1), CUDA(cuMemRelease)(handle)}) {
    if (answer != CUDA_SUCCESS) opened.answer = answer;
  }
  return opened;
}

Opened open_pool(pid_t process, int fd, const std::string& data) {
  Opened opened;
  const sys::Fd file = sys::open_of_process(process, fd).value();
  CUmemoryPool pool = nullptr;
  opened.answer = CUDA(cuMemPoolImportFromShareableHandle)(&pool, reinterpret_cast<void*>(std::intptr_t{file.get()}),
                                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (opened.answer != CUDA_SUCCESS) return opened;
  auto exported = from_hex<CUmemPoolPtrExportData>(data);
  opened.answer = CUDA(cuMemPoolImportPointer)(&opened.address, pool, &exported);
  return opened;
}

int serve_peer() {
  CUcontext context = nullptr;
  if (CUDA(cuInit)(0) != CUDA_SUCCESS || CUDA(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
      CUDA(cuCtxSetCurrent)(context) != CUDA_SUCCESS)
    return 1;
  std::string line;
  CUdeviceptr last = 0;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string what;
    std::string data;
    pid_t process = 0;
    int fd = -1;
    words >> what >> process >> fd >> data;
    if (what == "close" || what == "free") {
      const CUresult answer = what == "close" ? CUDA(cuIpcCloseMemHandle)(last) : CUDA(cuMemFree_v2)(last);
      std::cout << (what == "close" ? "closed " : "freed ") << answer << std::endl;
      continue;
    }
    const Opened opened = what == "legacy" ? open_legacy(data)
                          : what == "vmm"  ? open_vmm(process, fd)
                                           : open_pool(process, fd, data);
    unsigned char byte = 0;
    if (opened.answer == CUDA_SUCCESS) {
      last = opened.address;
      CUresult moved = CUDA(cuMemcpyDtoH_v2)(&byte, opened.address, 1);
      const unsigned char next = static_cast<unsigned char>(byte + 1);
      if (moved == CUDA_SUCCESS) moved = CUDA(cuMemcpyHtoD_v2)(opened.address, &next, 1);
      if (moved != CUDA_SUCCESS) return 1;
    }
    std::cout << opened.answer << " " << int{byte} << std::endl;
  }
  return 0;
}

class CudaIpcTest : public testing::CudaTest {
 protected:
  static std::string ask(sys::Child& peer, const std::string& line) {
    EXPECT_TRUE(peer.write(line));
    return peer.read(sys::Deadline::after_ns(30'000'000'000)).value();
  }
  static sys::Child start_peer() { return sys::Child::start_self({"peer"}).value(); }
};

TEST_F(CudaIpcTest, LegacyHandle) {
  sys::Child peer = start_peer();
  const CUdeviceptr other = allocate(1000);
  const CUdeviceptr a = allocate(1000);
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(a, 40, 1000), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS)
      << "a memset does not wait for its end, and the peer has a stream of its own";
  CUipcMemHandle handle{};
  ASSERT_EQ(CUDA(cuIpcGetMemHandle)(&handle, a + 7), CUDA_SUCCESS);
  CUdeviceptr own = 0;
  EXPECT_EQ(CUDA(cuIpcOpenMemHandle_v2)(&own, handle, 1), CUDA_ERROR_INVALID_CONTEXT) << "one's own cannot be opened";
  const std::string line = "legacy 0 0 " + to_hex(&handle, sizeof handle);
  EXPECT_EQ(ask(peer, line), "0 40") << "the whole allocation, from its first byte";
  EXPECT_EQ(read(a, 2), (std::vector<unsigned char>{41, 40}));
  EXPECT_EQ(ask(peer, line), "0 41") << "a second time";
  EXPECT_EQ(ask(peer, "free"), "freed 1") << "closed, not freed";
  EXPECT_EQ(ask(peer, "close"), "closed 0");
  EXPECT_EQ(ask(peer, "close"), "closed 0");
  EXPECT_EQ(ask(peer, "close"), "closed 1");
  free(a);
  free(other);
  EXPECT_EQ(ask(peer, line), "1 0") << "freed";
  handle.reserved[20] = static_cast<char>(handle.reserved[20] + 1);
  EXPECT_EQ(ask(peer, "legacy 0 0 " + to_hex(&handle, sizeof handle)), "1 0") << "not one of ours";
  EXPECT_EQ(peer.finish(sys::Deadline::after_ns(30'000'000'000)).value(), 0);
}

TEST_F(CudaIpcTest, APeerKeepsMemoryThatWasFreed) {
  sys::Child peer = start_peer();
  const CUdeviceptr a = allocate(4 * kMega);
  CUipcMemHandle handle{};
  ASSERT_EQ(CUDA(cuIpcGetMemHandle)(&handle, a), CUDA_SUCCESS);
  EXPECT_EQ(ask(peer, "legacy 0 0 " + to_hex(&handle, sizeof handle)), "0 0");
  free(a);
  EXPECT_EQ(free_before_ - free_bytes(), 4 * kMega);
  EXPECT_EQ(ask(peer, "close"), "closed 0");
  EXPECT_EQ(free_bytes(), free_before_);
}

TEST_F(CudaIpcTest, HandleAsADescriptor) {
  sys::Child peer = start_peer();
  CUmemAllocationProp with{};
  with.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  with.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  with.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(CUDA(cuMemCreate)(&handle, kStep, &with, 0), CUDA_SUCCESS);
  CUdeviceptr a = 0;
  ASSERT_EQ(CUDA(cuMemAddressReserve)(&a, kStep, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemMap)(a, kStep, 0, handle, 0), CUDA_SUCCESS);
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(CUDA(cuMemSetAccess)(a, kStep, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(a, 7, kStep), CUDA_SUCCESS);
  EXPECT_EQ(attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a), 1u);
  ASSERT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
  int fd = -1;
  ASSERT_EQ(CUDA(cuMemExportToShareableHandle)(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_SUCCESS);
  EXPECT_EQ(ask(peer, fmt::format("vmm {} {}", ::getpid(), fd)), "0 7");
  EXPECT_EQ(read(a, 1)[0], 8);
  // In the same process it is the same memory again.
  CUmemGenericAllocationHandle again = 0;
  ASSERT_EQ(CUDA(cuMemImportFromShareableHandle)(&again, reinterpret_cast<void*>(std::intptr_t{fd}),
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemRelease)(again), CUDA_SUCCESS);
  ::close(fd);
  ASSERT_EQ(CUDA(cuMemUnmap)(a, kStep), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemAddressFree)(a, kStep), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemRelease)(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_bytes(), kStep) << "the peer has it";
  EXPECT_EQ(peer.finish(sys::Deadline::after_ns(30'000'000'000)).value(), 0);
}

TEST_F(CudaIpcTest, PoolAndPointer) {
  sys::Child peer = start_peer();
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(CUDA(cuMemPoolCreate)(&pool, &props), CUDA_SUCCESS);
  CUdeviceptr a = 0;
  ASSERT_EQ(CUDA(cuMemAllocFromPoolAsync)(&a, 5000, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuMemsetD8_v2)(a, 90, 5000), CUDA_SUCCESS);
  ASSERT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
  int fd = -1;
  ASSERT_EQ(CUDA(cuMemPoolExportToShareableHandle)(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  CUmemPoolPtrExportData data{};
  ASSERT_EQ(CUDA(cuMemPoolExportPointer)(&data, a), CUDA_SUCCESS);
  EXPECT_EQ(ask(peer, fmt::format("pool {} {} {}", ::getpid(), fd, to_hex(&data, sizeof data))), "0 90");
  EXPECT_EQ(read(a, 1)[0], 91);
  EXPECT_EQ(ask(peer, "free"), "freed 0") << "of a pool: freed, in every process that has it";
  EXPECT_EQ(ask(peer, "free"), "freed 1");
  data.reserved[0] = 0;
  EXPECT_EQ(ask(peer, fmt::format("pool {} {} {}", ::getpid(), fd, to_hex(&data, sizeof data))), "1 0");
  ::close(fd);
  CUmemoryPool plain = nullptr;
  ASSERT_EQ(CUDA(cuDeviceGetDefaultMemPool)(&plain, 0), CUDA_SUCCESS);
  EXPECT_EQ(CUDA(cuMemPoolExportToShareableHandle)(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE)
      << "the default one is not for others";
  EXPECT_EQ(peer.finish(sys::Deadline::after_ns(30'000'000'000)).value(), 0);
  free(a);
  ASSERT_EQ(CUDA(cuMemPoolDestroy)(pool), CUDA_SUCCESS);
}

}  // namespace
}  // namespace strait::soft::cuda

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "peer") == 0) return strait::soft::cuda::serve_peer();
  if (argc == 3 && std::strcmp(argv[1], "visible") == 0) return strait::soft::cuda::say_visible(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
