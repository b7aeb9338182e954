// SPDX-License-Identifier: Apache-2.0
// Accelerators' memory under descriptors of a Cassini, as a program on hardware has it: the vendors' libraries
// allocate, copy and export, /dev/cxi0 maps. Run under `strait run --cassini 1 --accelerators cuda:1,rocm:1,gaudi:1`.
//
//   accelerators works            by dma-buf of each vendor, by address of NVIDIA's and AMD's; both directions
//   accelerators refused ERRNO    by address, refused; by dma-buf as above
//   accelerators freed            freed by the vendor's library while it is mapped by its address
//   accelerators moves CODE       of a put in which the exporter moves (kernel_faults): its return code
#include <dlfcn.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "program.hpp"

namespace {

constexpr std::size_t kBytes = 200'000;  // of each vendor's memory
constexpr std::size_t kSkip = 70'001;
constexpr std::uint32_t kMoved = 100'000;
constexpr auto kOk = static_cast<std::uint32_t>(wire::ReturnCode::ok);

template <class Function>
Function* named(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function*>(library != nullptr ? dlsym(library, name) : nullptr);
  check(found != nullptr, name);
  if (found == nullptr) exit(1);
  return found;
}

// Memory of one vendor: a device address, copies by the vendor's own calls, and its export.
struct Vendor {
  const char* name = "";
  bool by_address = false;
  std::uint64_t address = 0;
  virtual ~Vendor() = default;
  virtual void write(const std::vector<std::uint8_t>& bytes) = 0;
  virtual std::vector<std::uint8_t> read() = 0;
  virtual int export_it(std::uint64_t& offset) = 0;
  virtual void free() = 0;
};

struct Cuda final : Vendor {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  Cuda() {
    name = "cuda", by_address = true;
    CHECK(named<int(unsigned)>(library, "cuInit")(0) == 0);
    void* context = nullptr;
    CHECK(named<int(void**, int)>(library, "cuDevicePrimaryCtxRetain")(&context, 0) == 0);
    CHECK(named<int(void*)>(library, "cuCtxSetCurrent")(context) == 0);
    unsigned long long at = 0;
    CHECK(named<int(unsigned long long*, std::size_t)>(library, "cuMemAlloc_v2")(&at, kBytes) == 0);
    address = at;
  }
  void write(const std::vector<std::uint8_t>& bytes) override {
    CHECK(named<int(unsigned long long, const void*, std::size_t)>(library, "cuMemcpyHtoD_v2")(address, bytes.data(),
                                                                                               kBytes) == 0);
  }
  std::vector<std::uint8_t> read() override {
    std::vector<std::uint8_t> out(kBytes);
    CHECK(named<int(void*, unsigned long long, std::size_t)>(library, "cuMemcpyDtoH_v2")(out.data(), address, kBytes) ==
          0);
    return out;
  }
  int export_it(std::uint64_t& offset) override {
    int fd = -1;
    const std::size_t whole = (kBytes + 4095) / 4096 * 4096;
    offset = 0;
    CHECK(named<int(void*, unsigned long long, std::size_t, int, unsigned long long)>(
              library, "cuMemGetHandleForAddressRange")(&fd, address, whole, 1, 0) == 0);
    return fd;
  }
  void free() override { CHECK(named<int(unsigned long long)>(library, "cuMemFree_v2")(address) == 0); }
};

struct Hsa final : Vendor {
  struct Handle {
    std::uint64_t handle;
  };
  void* library = dlopen("libhsa-runtime64.so.1", RTLD_NOW);
  Hsa() {
    name = "hsa", by_address = true;
    CHECK(named<int()>(library, "hsa_init")() == 0);
    static auto* const info = named<int(Handle, int, void*)>(library, "hsa_agent_get_info");
    Handle gpu{}, pool{};
    const auto find_gpu = [](Handle agent, void* out) -> int {
      std::uint32_t kind = 0;
      if (info(agent, 17, &kind) == 0 && kind == 1) *static_cast<Handle*>(out) = agent;
      return 0;
    };
    CHECK(named<int(int (*)(Handle, void*), void*)>(library, "hsa_iterate_agents")(find_gpu, &gpu) == 0);
    const auto find_pool = [](Handle each, void* out) -> int {
      if (static_cast<Handle*>(out)->handle == 0) *static_cast<Handle*>(out) = each;
      return 0;
    };
    CHECK(named<int(Handle, int (*)(Handle, void*), void*)>(library, "hsa_amd_agent_iterate_memory_pools")(
              gpu, find_pool, &pool) == 0);
    void* at = nullptr;
    CHECK(named<int(Handle, std::size_t, std::uint32_t, void**)>(library, "hsa_amd_memory_pool_allocate")(pool, kBytes,
                                                                                                          0, &at) == 0);
    address = reinterpret_cast<std::uint64_t>(at);
  }
  void copy(void* to, const void* from) const {
    CHECK(named<int(void*, const void*, std::size_t)>(library, "hsa_memory_copy")(to, from, kBytes) == 0);
  }
  void write(const std::vector<std::uint8_t>& bytes) override { copy(reinterpret_cast<void*>(address), bytes.data()); }
  std::vector<std::uint8_t> read() override {
    std::vector<std::uint8_t> out(kBytes);
    copy(out.data(), reinterpret_cast<void*>(address));
    return out;
  }
  int export_it(std::uint64_t& offset) override {
    int fd = -1;
    CHECK(named<int(const void*, std::size_t, int*, std::uint64_t*)>(library, "hsa_amd_portable_export_dmabuf")(
              reinterpret_cast<void*>(address), kBytes, &fd, &offset) == 0);
    return fd;
  }
  void free() override {
    CHECK(named<int(void*)>(library, "hsa_amd_memory_pool_free")(reinterpret_cast<void*>(address)) == 0);
  }
};

struct Gaudi final : Vendor {
  struct Info {  // synDeviceInfoV2
    std::uint64_t sram_base, dram_base;
    std::uint32_t sram_bytes;
    std::uint64_t dram_bytes, tpc_mask;
    std::uint8_t dram_enabled;
    std::uint32_t device_id, fd;
    int type;
    std::uint8_t index;
    std::uint64_t pool_base;
  };
  void* library = dlopen("libSynapse.so", RTLD_NOW);
  std::uint32_t device = 0;
  Info info{};
  void* host = nullptr;
  void* stream = nullptr;
  Gaudi() {
    name = "gaudi";
    CHECK(named<int()>(library, "synInitialize")() == 0);
    CHECK(named<int(std::uint32_t*, const char*)>(library, "synDeviceAcquire")(&device, nullptr) == 0);
    CHECK(named<int(std::uint32_t, Info*)>(library, "synDeviceGetInfoV2")(device, &info) == 0);
    CHECK(named<int(std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t*)>(
              library, "synDeviceMalloc")(device, kBytes, 0, 0, &address) == 0);
    CHECK(named<int(std::uint32_t, std::uint64_t, std::uint32_t, void**)>(library, "synHostMalloc")(device, kBytes, 0,
                                                                                                    &host) == 0);
    CHECK(named<int(void**, std::uint32_t, std::uint32_t)>(library, "synStreamCreateGeneric")(&stream, device, 0) == 0);
  }
  void copy(std::uint64_t from, std::uint64_t to, int direction) const {
    CHECK(named<int(void*, std::uint64_t, std::uint64_t, std::uint64_t, int)>(library, "synMemCopyAsync")(
              stream, from, kBytes, to, direction) == 0);
    CHECK(named<int(void*)>(library, "synStreamSynchronize")(stream) == 0);
  }
  void write(const std::vector<std::uint8_t>& bytes) override {
    memcpy(host, bytes.data(), kBytes);
    copy(reinterpret_cast<std::uint64_t>(host), address, 0);
  }
  std::vector<std::uint8_t> read() override {
    copy(address, reinterpret_cast<std::uint64_t>(host), 1);
    const auto* const first = static_cast<const std::uint8_t*>(host);
    return {first, first + kBytes};
  }
  int export_it(std::uint64_t& offset) override {
    offset = 0;
    return named<int(int, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t)>(
        dlopen("libhl-thunk.so", RTLD_NOW), "hlthunk_device_mapped_memory_export_dmabuf_fd")(
        static_cast<int>(info.fd), info.pool_base, (kBytes + 4095) / 4096 * 4096, address - info.pool_base,
        O_RDWR | O_CLOEXEC);
  }
  void free() override { CHECK(named<int(std::uint32_t)>(library, "synDeviceRelease")(device) == 0); }
};

std::vector<std::uint8_t> pattern(unsigned seed) {
  std::vector<std::uint8_t> out(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) out[i] = static_cast<std::uint8_t>(i * 31 + (i >> 9) + seed * 57);
  return out;
}

// Into the memory by a put at its portal entry, out of it by a put from it.
void traffic(Cxi& cxi, Vendor& vendor, const wire::Md& md, unsigned seed) {
  std::vector<std::uint8_t> wanted = pattern(seed);
  vendor.write(wanted);
  const std::vector<std::uint8_t> sent = pattern(seed + 1);
  memcpy(cxi.memory, sent.data(), kMoved);
  const std::uint32_t index = cxi.expose(md.iova, md.lac, kMoved, 0);
  check(cxi.run(wire::DmaOp::put, cxi.md, 0, kMoved, index) == kOk, vendor.name);
  memcpy(wanted.data() + kSkip, sent.data(), kMoved);
  check(vendor.read() == wanted, "the accelerator has what was put, and the rest as it was");
  vendor.write(pattern(seed + 2));
  memset(cxi.memory, 0, kMoved);
  check(cxi.run(wire::DmaOp::put, md, 0, kMoved, 0) == kOk, vendor.name);
  check(memcmp(cxi.memory, pattern(seed + 2).data() + kSkip, kMoved) == 0, "what came is what the accelerator wrote");
}

bool map_exported(Cxi& cxi, Vendor& vendor, std::size_t skip, wire::Md& md) {
  std::uint64_t offset = 0;
  const int fd = vendor.export_it(offset);
  CHECK(fd >= 0);
  const bool mapped = cxi.map(vendor.address + skip, kMoved, wire::kMapDevice, fd, offset + skip, md);
  const int error = errno;
  close(fd);
  errno = error;
  return mapped;
}

void by_dmabuf(Cxi& cxi, Vendor& vendor) {
  wire::Md md{};
  check(map_exported(cxi, vendor, kSkip, md), vendor.name);
  traffic(cxi, vendor, md, 1);
  CHECK(cxi.unmap(md));
}

void by_address(Cxi& cxi, Vendor& vendor, int refused_with, bool freed) {
  wire::Md md{};
  const bool mapped = cxi.map(vendor.address + kSkip, kMoved, wire::kMapDevice, -1, 0, md);
  if (refused_with != 0) return CHECK(!mapped && errno == refused_with);
  check(mapped, vendor.name);
  traffic(cxi, vendor, md, 5);
  if (freed) {
    vendor.free();
    CHECK(cxi.run(wire::DmaOp::put, md, 0, 64, 0) == static_cast<std::uint32_t>(wire::ReturnCode::no_translation));
    CHECK(cxi.run(wire::DmaOp::put, cxi.md, 4096, 64, 0) == kOk);
  }
  CHECK(cxi.unmap(md));
}

// What the exporter moves is torn down in the middle of the put, or mapped again.
void moves(Cxi& cxi, Vendor& vendor, std::uint32_t wanted) {
  wire::Md md{};
  vendor.write(pattern(1));
  check(map_exported(cxi, vendor, 0, md), vendor.name);
  const std::uint32_t index = cxi.expose(md.iova, md.lac, kMoved, 0);
  const std::vector<std::uint8_t> sent = pattern(2);
  memcpy(cxi.memory, sent.data(), kMoved);
  CHECK(cxi.run(wire::DmaOp::put, cxi.md, 0, kMoved, index) == wanted);
  CHECK(cxi.run(wire::DmaOp::put, cxi.md, 0, kMoved, index) == wanted);
  const std::vector<std::uint8_t> now = vendor.read();
  CHECK((memcmp(now.data(), sent.data(), kMoved) == 0) == (wanted == kOk));
  CHECK(cxi.run(wire::DmaOp::put, cxi.md, 4096, 64, 0) == kOk);
  CHECK(cxi.unmap(md));
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  const int number = count > 2 ? atoi(arguments[2]) : 0;
  {
    Cxi cxi;
    Cuda cuda;
    Hsa hsa;
    Gaudi gaudi;
    if (mode == "moves") {
      moves(cxi, hsa, static_cast<std::uint32_t>(number));
    } else {
      for (Vendor* vendor : {static_cast<Vendor*>(&cuda), static_cast<Vendor*>(&hsa), static_cast<Vendor*>(&gaudi)}) {
        by_dmabuf(cxi, *vendor);
        if (vendor->by_address) by_address(cxi, *vendor, mode == "refused" ? number : 0, mode == "freed");
      }
    }
    if (mode != "freed") cuda.free(), hsa.free();
    gaudi.free();
  }
  if (wrong == 0) puts("accelerators: all as it should be");
  return wrong;
}
