// SPDX-License-Identifier: Apache-2.0
// The sorts of CUDA memory, made by the driver itself and recognised by the provider: VMM, pools, managed, pinned, and
// contexts that strait neither creates nor leaves behind. Runs on whatever libcuda.so.1 the loader finds: the software
// one under `strait run --accelerators cuda:2`, or a machine's own.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "buffer/cuda/cuda.hpp"
#include "buffer/cuda/driver.hpp"
#include "buffer/providers.hpp"
#include "sys/files.hpp"
#include "sys/library.hpp"

namespace strait::buffer::cuda {
namespace {

struct AllocationProp {
  int type = 1;  // pinned
  int handle_types = 0;
  Location location{1, 0};
  void* unused = nullptr;
  unsigned char compression = 0;
  unsigned char rdma = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

class CudaSorts : public ::testing::Test {
 protected:
  void SetUp() override {
    auto driver = Driver::get();
    ASSERT_TRUE(driver) << driver.error().explain();
    driver_ = *driver;
    library_ = sys::Library::open("libcuda.so.1").value();
    std::vector<Plugin> plugins;
    plugins.push_back(use_plugin(cuda_provider_ops()).value());
    auto all = Providers::open(std::move(plugins));
    ASSERT_TRUE(all) << all.error().explain();
    all_ = std::move(*all);
    provider_ = all_->providers()[1].get();
  }
  void TearDown() override {
    Context current = nullptr;
    ASSERT_EQ(driver_->current(&current), kOk);
    EXPECT_EQ(current, nullptr) << "strait left a context current";
  }
  template <class Function>
  [[nodiscard]] Function call(const char* symbol) const {
    return library_.symbol<Function>(symbol).value();
  }
  [[nodiscard]] bool active() const {
    unsigned flags = 0;
    int is = 0;
    EXPECT_EQ(driver_->primary_state(0, &flags, &is), kOk);
    return is != 0;
  }
  // What a program does by using the device: its primary context, current on this thread.
  class Using {
   public:
    explicit Using(const Driver& driver) : driver_(driver) {
      Context context = nullptr;
      EXPECT_EQ(driver_.primary_retain(&context, 0), kOk);
      EXPECT_EQ(driver_.push(context), kOk);
    }
    ~Using() {
      Context context = nullptr;
      EXPECT_EQ(driver_.pop(&context), kOk);
      EXPECT_EQ(driver_.primary_release(0), kOk);
    }

   private:
    const Driver& driver_;
  };
  void fill_and_compare(std::uint64_t address, std::size_t length_bytes) {
    std::vector<unsigned char> in(length_bytes);
    std::vector<unsigned char> out(length_bytes);
    for (std::size_t i = 0; i < length_bytes; ++i) in[i] = static_cast<unsigned char>(i * 5 + 3);
    const auto deadline = sys::Deadline::after_ns(30'000'000'000);
    const Status put = all_->copy(reinterpret_cast<void*>(address), in.data(), length_bytes, deadline);
    ASSERT_TRUE(put) << put.error().explain();
    const Status got = all_->copy(out.data(), reinterpret_cast<void*>(address), length_bytes, deadline);
    ASSERT_TRUE(got) << got.error().explain();
    EXPECT_EQ(in, out);
  }

  const Driver* driver_ = nullptr;
  sys::Library library_;
  std::unique_ptr<Providers> all_;
  Provider* provider_ = nullptr;
};

TEST_F(CudaSorts, NoContextIsCreatedUntilMemoryIsAskedFor) {
  EXPECT_FALSE(active()) << "opening created a context";
  int here = 0;
  const auto address = reinterpret_cast<std::uint64_t>(&here);
  EXPECT_FALSE(provider_->classify(address));
  EXPECT_EQ(provider_->identity({address, 4}), 0u);
  EXPECT_FALSE(provider_->export_fd({address, 4}));
  EXPECT_FALSE(provider_->advise({address, 4}, STRAIT_ADVICE_READ_MOSTLY, 0));
  EXPECT_TRUE(provider_->flush(0, false));
  EXPECT_FALSE(provider_->requirements().empty());
  EXPECT_FALSE(active()) << "looking created a context";
  {
    const Memory memory = all_->allocate("cuda:0", 4096).value();
    EXPECT_TRUE(active());
    fill_and_compare(memory.range().address, 4096);
  }
  all_.reset();
  EXPECT_FALSE(active()) << "closing did not give the context back";
}

TEST_F(CudaSorts, ThereAreAsManyAsTheDriverShows) {
  int count = 0;
  ASSERT_EQ(driver_->device_count(&count), kOk);
  EXPECT_EQ(provider_->devices().size(), static_cast<std::size_t>(count));
}

TEST_F(CudaSorts, MemoryOfAContextTheProgramMadeItself) {
  const auto make = call<CuResult (*)(Context*, unsigned, CuDevice)>("cuCtxCreate_v2");
  const auto destroy = call<CuResult (*)(Context)>("cuCtxDestroy_v2");
  Context own = nullptr;
  ASSERT_EQ(make(&own, 0, 0), kOk);
  Pointer address = 0;
  ASSERT_EQ(driver_->alloc(&address, 100'000), kOk);
  Context popped = nullptr;
  ASSERT_EQ(driver_->pop(&popped), kOk);
  const auto claim = all_->classify(Range{address + 5, 10});
  ASSERT_TRUE(claim) << claim.error().explain();
  EXPECT_EQ(claim->sort, static_cast<std::uint32_t>(STRAIT_SORT_DEVICE));
  fill_and_compare(address, 100'000);
  const auto exported = provider_->export_fd({address, 4096});
  EXPECT_TRUE(exported) << exported.error().explain();
  if (exported) provider_->close_fd(exported->fd);
  EXPECT_FALSE(active()) << "the primary context was made for it";
  ASSERT_EQ(destroy(own), kOk);
}

TEST_F(CudaSorts, HandlesSideBySideAreOneRangeUntilOneIsExchanged) {
  using Create = CuResult (*)(Handle*, std::size_t, const AllocationProp*, unsigned long long);
  using Granularity = CuResult (*)(std::size_t*, const AllocationProp*, int);
  const auto create = call<Create>("cuMemCreate");
  const Using device(*driver_);
  AllocationProp prop;
  std::size_t unit = 0;
  ASSERT_EQ(call<Granularity>("cuMemGetAllocationGranularity")(&unit, &prop, 0), kOk);
  Pointer base = 0;
  ASSERT_EQ(driver_->reserve(&base, 4 * unit, 0, 0, 0), kOk);
  const AccessDesc access{{kLocationDevice, 0}, kAccessReadWrite};
  const auto map_new = [&](std::size_t at) {
    Handle handle = 0;
    ASSERT_EQ(create(&handle, unit, &prop, 0), kOk);
    ASSERT_EQ(driver_->map(base + at * unit, unit, 0, handle, 0), kOk);
    ASSERT_EQ(driver_->set_access(base + at * unit, unit, &access, 1), kOk);
    ASSERT_EQ(driver_->release_handle(handle), kOk);
  };
  map_new(0);
  map_new(1);

  const auto one = provider_->classify(base + unit - 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->sort, static_cast<std::uint32_t>(STRAIT_SORT_VMM));
  EXPECT_EQ(one->base, base);
  EXPECT_EQ(one->length_bytes, unit);
  EXPECT_EQ(one->identity, provider_->identity({base, 100}));
  const auto both = provider_->range_of(base + unit + 5);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->base, base);
  EXPECT_EQ(both->length_bytes, 2 * unit);
  EXPECT_EQ(both->identity, provider_->identity({base, 2 * unit}));

  const auto claim = all_->classify(Range{base + unit - 1000, 2000});
  ASSERT_TRUE(claim) << claim.error().explain();
  EXPECT_EQ(claim->whole, (Range{base, 2 * unit}));
  EXPECT_EQ(claim->identity, both->identity);
  fill_and_compare(base + unit - 5000, 10'000);
  const auto exported = provider_->export_fd({base, 2 * unit});
  ASSERT_TRUE(exported) << exported.error().explain();
  EXPECT_EQ(sys::file_bytes(exported->fd), static_cast<std::int64_t>(2 * unit));
  provider_->close_fd(exported->fd);

  // Past what is mapped, inside the reservation.
  const auto past = all_->classify(Range{base + 2 * unit - 10, 20});
  ASSERT_FALSE(past);
  EXPECT_NE(past.error().text.find("past the allocation"), std::string::npos) << past.error().text;
  EXPECT_FALSE(provider_->export_fd({base, 3 * unit}));
  EXPECT_EQ(provider_->identity({base, 3 * unit}), 0u);

  // Another handle under the second half: the same addresses are somebody else.
  ASSERT_EQ(driver_->unmap(base + unit, unit), kOk);
  EXPECT_EQ(provider_->identity({base, 2 * unit}), 0u);
  map_new(1);
  EXPECT_NE(provider_->identity({base, 2 * unit}), both->identity);
  EXPECT_EQ(provider_->identity({base, unit}), one->identity) << "the first half did not change";
  ASSERT_EQ(driver_->unmap(base, unit), kOk);
  ASSERT_EQ(driver_->unmap(base + unit, unit), kOk);
  ASSERT_EQ(driver_->unreserve(base, 4 * unit), kOk);
  EXPECT_FALSE(provider_->classify(base));
}

TEST_F(CudaSorts, PoolMemoryIsExportedButNotOpenedElsewhere) {
  const Using device(*driver_);
  using AllocAsync = CuResult (*)(Pointer*, std::size_t, Stream);
  using FreeAsync = CuResult (*)(Pointer, Stream);
  Pointer address = 0;
  ASSERT_EQ(call<AllocAsync>("cuMemAllocAsync")(&address, 1 << 20, nullptr), kOk);
  ASSERT_EQ(driver_->stream_wait(nullptr), kOk);
  const auto claim = provider_->classify(address + 100);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->sort, static_cast<std::uint32_t>(STRAIT_SORT_POOL));
  EXPECT_NE(claim->identity, 0u);
  EXPECT_EQ(claim->identity, provider_->identity({address, 1 << 20}));
  fill_and_compare(address, 1 << 20);
  const auto exported = provider_->export_fd({address, 1 << 20});
  ASSERT_TRUE(exported) << exported.error().explain();
  provider_->close_fd(exported->fd);
  const auto handle = provider_->ipc_export({address, 4096});
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, Code::unsupported) << handle.error().text;
  ASSERT_EQ(call<FreeAsync>("cuMemFreeAsync")(address, nullptr), kOk);
  ASSERT_EQ(driver_->stream_wait(nullptr), kOk);
}

TEST_F(CudaSorts, ManagedMemoryIsNeverExported) {
  const Using device(*driver_);
  using Managed = CuResult (*)(Pointer*, std::size_t, unsigned);
  Pointer address = 0;
  ASSERT_EQ(call<Managed>("cuMemAllocManaged")(&address, 1 << 20, 1), kOk);
  const auto claim = all_->classify(Range{address, 1 << 20});
  ASSERT_TRUE(claim) << claim.error().explain();
  EXPECT_EQ(claim->sort, static_cast<std::uint32_t>(STRAIT_SORT_MANAGED));
  EXPECT_TRUE(claim->cpu_accessible());
  EXPECT_FALSE(claim->can_export());
  const auto exported = provider_->export_fd({address, 4096});
  ASSERT_FALSE(exported);
  EXPECT_NE(exported.error().text.find("it moves"), std::string::npos) << exported.error().text;
  const auto advised = provider_->advise({address, 1 << 20}, STRAIT_ADVICE_READ_MOSTLY, 0);
  ASSERT_TRUE(advised) << advised.error().explain();
  EXPECT_NE(*advised, Provider::Advised::ignored);
  ASSERT_EQ(driver_->free(address), kOk);
}

TEST_F(CudaSorts, PinnedHostMemoryIsHostMemory) {
  const Using device(*driver_);
  using HostAlloc = CuResult (*)(void**, std::size_t, unsigned);
  using HostFree = CuResult (*)(void*);
  void* memory = nullptr;
  ASSERT_EQ(call<HostAlloc>("cuMemHostAlloc")(&memory, 1 << 16, 0), kOk);
  const auto claim = all_->classify(memory, 1 << 16);
  ASSERT_TRUE(claim) << claim.error().explain();
  EXPECT_EQ(claim->sort, static_cast<std::uint32_t>(STRAIT_SORT_PINNED_HOST));
  EXPECT_EQ(claim->device->name, "host");
  EXPECT_TRUE(claim->cpu_accessible());
  EXPECT_TRUE(claim->writable);
  ASSERT_EQ(call<HostFree>("cuMemFreeHost")(memory), kOk);
}

// What the program has pinned or registered itself is reached as it is, as often as asked, and left to it.
TEST_F(CudaSorts, HostMemoryThatTheDriverKnowsIsReachedAsItIs) {
  const Using device(*driver_);
  void* pinned = nullptr;
  ASSERT_EQ(call<int (*)(void**, std::size_t, unsigned)>("cuMemHostAlloc")(&pinned, 8192, 0), kOk);
  alignas(4096) static std::byte registered[8192];
  ASSERT_EQ(driver_->host_register(registered, sizeof registered, 0), kOk);
  for (void* const each : {pinned, static_cast<void*>(registered)}) {
    const auto address = reinterpret_cast<std::uint64_t>(each);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(provider_->reach_host(0, {address + 4096, 4096}, 0).value(), address + 4096);
    for (int i = 0; i < 2; ++i) {
      const Status released = provider_->release_host({address + 4096, 4096});
      EXPECT_TRUE(released) << released.error().explain();
    }
  }
  EXPECT_EQ(driver_->host_unregister(registered), kOk) << "still the program's";
  EXPECT_EQ(call<int (*)(void*)>("cuMemFreeHost")(pinned), kOk);
}

// A NIC must not read bytes that a synchronous copy still has on the way. A context that strait uses has a flag for
// that; of the program's own contexts each allocation is told when it is exported.
TEST_F(CudaSorts, ExportedMemoryIsSynchronousAlsoInTheProgramsOwnContext) {
  const auto synchronous = [&](Pointer address) {
    std::uint64_t on = 0;
    EXPECT_EQ(driver_->attribute(&on, kPtrSyncMemops, address), kOk);
    return (on & 1) != 0;
  };
  const auto exported = [&](Pointer address) {
    const auto fd = provider_->export_fd({address, 1 << 16});
    ASSERT_TRUE(fd) << fd.error().explain();
    provider_->close_fd(fd->fd);
  };
  Context own = nullptr;
  ASSERT_EQ((call<CuResult (*)(Context*, unsigned, CuDevice)>("cuCtxCreate_v2")(&own, 0, 0)), kOk);
  Pointer theirs = 0;
  ASSERT_EQ(driver_->alloc(&theirs, 1 << 16), kOk);
  EXPECT_FALSE(synchronous(theirs));
  for (int with_primary = 0; with_primary < 2; ++with_primary) {
    const std::optional<Memory> in_use =
        with_primary != 0 ? std::optional(all_->allocate("cuda:0", 1 << 16).value()) : std::nullopt;
    exported(theirs);
    EXPECT_TRUE(synchronous(theirs)) << "whoever's context is current";
    const unsigned no = 0;
    ASSERT_EQ(driver_->set_attribute(&no, kPtrSyncMemops, theirs), kOk);
    if (!in_use) continue;
    exported(in_use->range().address);
    unsigned flags = 0;
    const Using device(*driver_);
    EXPECT_TRUE(synchronous(in_use->range().address) ||
                (driver_->context_flags(&flags) == kOk && (flags & kContextSyncMemops) != 0));
  }
  EXPECT_EQ(driver_->free(theirs), kOk);
  EXPECT_EQ(call<CuResult (*)(Context)>("cuCtxDestroy_v2")(own), kOk);
}

TEST_F(CudaSorts, DeviceMemoryIsNotAdvised) {
  const Memory memory = all_->allocate("cuda:0", 1 << 16).value();
  const auto advised = provider_->advise(memory.range(), STRAIT_ADVICE_PREFER_PLACE, 0);
  ASSERT_TRUE(advised);
  EXPECT_EQ(*advised, Provider::Advised::ignored);
  const auto pcie = provider_->export_fd(memory.range(), STRAIT_EXPORT_PCIE_MAPPING);
  if (!pcie) {
    EXPECT_EQ(pcie.error().code, Code::unsupported) << pcie.error().text;
  } else {
    provider_->close_fd(pcie->fd);  // a coherent part
  }
}

}  // namespace
}  // namespace strait::buffer::cuda
