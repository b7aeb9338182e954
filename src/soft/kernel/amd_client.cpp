// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cerrno>
#include <functional>
#include <utility>

#include "soft/kernel/peer_clients.hpp"

namespace strait::soft::kernel {
namespace {

struct AmdContext {
  std::shared_ptr<DeviceMemory> memory;
  std::uint64_t address = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t core_context = 0;
  std::uint64_t watch = 0;
  std::uint64_t bar_bytes = 0;
  sys::Mapping bytes;
  std::atomic<bool> freed{false};  // the free callback has come: what it took is not put again
};

AmdContext& amd(const PeerContext& context) {
  return *static_cast<AmdContext*>(context.get());
}

class AmdClient final : public PeerClient {
 public:
  AmdClient(Drivers& drivers, BarSpace& bar, KernelFaults& faults) : drivers_(drivers), bar_(bar), faults_(faults) {}
  const char* name() const override { return "amdkfd"; }
  void joined(std::function<int(std::uint64_t)> invalidate) override { invalidate_ = std::move(invalidate); }

  int acquire(std::uint64_t address, std::uint64_t length_bytes, PeerContext& context) override {
    auto memory = drivers_.find(address);
    if (!memory || !memory->covers(address, length_bytes)) return 0;
    const strait_soft_driver_memory& said = memory->said();
    if (said.vendor != STRAIT_SOFT_VENDOR_ROCM && said.vendor != STRAIT_SOFT_VENDOR_SOFT) return 0;
    if ((said.flags & STRAIT_SOFT_P2P_CAPABLE) == 0) return 0;
    auto made = std::make_shared<AmdContext>();
    made->memory = std::move(memory);
    made->address = address;
    made->length_bytes = length_bytes;
    context = std::move(made);
    return 1;
  }

  int get_pages(std::uint64_t, std::uint64_t, bool, bool, PeerPages&, const PeerContext& context,
                std::uint64_t core_context) override {
    AmdContext& mine = amd(context);
    mine.core_context = core_context;
    const strait_soft_driver_memory& said = mine.memory->said();
    const std::uint64_t bytes = sys::round_up(mine.length_bytes, sys::page_bytes());
    if (!bar_.take(BarSpace::of(said.vendor, said.device), bytes, faults_.bar_bytes)) return -ENOMEM;
    mine.bar_bytes = bytes;
    std::weak_ptr<void> weak = context;
    const std::uint64_t watch = mine.memory->watch([this, weak] { on_free(weak); });
    if (watch == 0) {
      give_bar_back(mine);
      return -EINVAL;
    }
    mine.watch = watch;
    return 0;
  }

  int dma_map(PeerPages& pages, const PeerContext& context, const DmaDevice& device, int& mapped) override {
    AmdContext& mine = amd(context);
    if (!device.peer_path || faults_.no_p2p) return -EINVAL;
    if (mine.freed) return -EINVAL;
    const std::uint64_t offset = mine.memory->file_offset(mine.address);
    const std::uint64_t skip = offset % sys::page_bytes();
    auto bytes = sys::map_file(mine.memory->file(), offset - skip, mine.length_bytes + skip, sys::Protect::read_write);
    if (!bytes) return -ENOMEM;
    mine.bytes = std::move(*bytes);
    pages.first = mine.address - skip;
    // One entry for each page, as its table has them.
    const std::uint64_t page = sys::page_bytes();
    for (std::uint64_t at = 0; at < mine.bytes.size(); at += page)
      pages.segments.push_back({mine.bytes.data() + at, std::min<std::uint64_t>(page, mine.bytes.size() - at)});
    mapped = static_cast<int>(pages.segments.size());
    return 0;
  }

  int dma_unmap(PeerPages& pages, const PeerContext& context) override {
    pages.segments.clear();
    amd(context).bytes.reset();
    return 0;
  }
  void put_pages(PeerPages&, const PeerContext& context) override {
    AmdContext& mine = amd(context);
    if (!mine.freed) (void)mine.memory->unwatch(mine.watch);
    give_bar_back(mine);
  }
  std::uint64_t get_page_size(const PeerContext&) override { return sys::page_bytes(); }
  void release(const PeerContext&) override {}
  void provoke(const PeerContext& context) override {
    if (amd(context).memory->unwatch(amd(context).watch)) on_free(context);
  }

 private:
  void on_free(const std::weak_ptr<void>& weak) {
    const auto mine = std::static_pointer_cast<AmdContext>(weak.lock());
    if (!mine) return;
    mine->freed = true;
    if (invalidate_) (void)invalidate_(mine->core_context);
  }
  void give_bar_back(AmdContext& mine) {
    const strait_soft_driver_memory& said = mine.memory->said();
    bar_.give_back(BarSpace::of(said.vendor, said.device), std::exchange(mine.bar_bytes, 0));
  }

  Drivers& drivers_;
  BarSpace& bar_;
  KernelFaults& faults_;
  std::function<int(std::uint64_t)> invalidate_;
};

}  // namespace

std::shared_ptr<PeerClient> make_amd_client(Drivers& drivers, BarSpace& bar, KernelFaults& faults) {
  return std::make_shared<AmdClient>(drivers, bar, faults);
}

}  // namespace strait::soft::kernel
