// SPDX-License-Identifier: Apache-2.0
// The three ways a NIC's driver comes to the addresses of device memory, each with its own rule of lifetime.
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "soft/kernel/kernel.hpp"

namespace strait::soft::kernel {
namespace {

constexpr std::int64_t kFenceNs = 10'000'000'000;

// The part [offset, offset + length) of a list.
std::vector<Segment> trim_list(const DmaList& list, std::uint64_t offset, std::uint64_t length_bytes) {
  std::vector<Segment> out;
  for (const Segment& each : list.segments) {
    if (length_bytes == 0) break;
    if (offset >= each.length_bytes) {
      offset -= each.length_bytes;
      continue;
    }
    const std::uint64_t n = std::min(length_bytes, each.length_bytes - offset);
    // Segments that touch are one again: a list was cut for a device's longest segment only.
    if (!out.empty() && out.back().at + out.back().length_bytes == each.at + offset) {
      out.back().length_bytes += n;
    } else {
      out.push_back({each.at + offset, n});
    }
    offset = 0;
    length_bytes -= n;
  }
  return out;
}

// A reference holds the memory; before a move the table is zapped, and the next access maps again, or there is none for
// a device that does not follow.
class DmabufMemory final : public NicMemory {
 public:
  DmabufMemory(Kernel& kernel, std::shared_ptr<DmaBuf> buffer, std::uint64_t offset, std::uint64_t length_bytes,
               std::uint64_t iova)
      : NicMemory(iova, length_bytes),
        kernel_(kernel),
        buffer_(std::move(buffer)),
        offset_(offset),
        length_bytes_(length_bytes) {}

  int begin(const DmaDevice& device) {
    if (offset_ + length_bytes_ < offset_ || offset_ + length_bytes_ > buffer_->size_bytes() || length_bytes_ == 0)
      return -EINVAL;
    ImporterOps ops;
    ops.allow_peer2peer = true;
    ops.move_notify = [this](Attachment&) { on_move(); };
    const std::uint64_t page = sys::page_bytes();
    const std::uint64_t window = (offset_ + length_bytes_ + page - 1) / page * page - offset_ / page * page;
    follows_ = device.follows;
    if (const int failed = buffer_->attach(device, &ops, attachment_, window)) return failed;
    translation_.on_fault([this] { return bring_back(); });
    if (kernel_.faults().move_at && buffer_->moves())
      translation_.at_bytes(*kernel_.faults().move_at, [this] { (void)buffer_->move(); });
    return -bring_back();
  }

  ~DmabufMemory() override {
    if (attachment_ == nullptr) return;
    {
      const std::lock_guard lock(buffer_->reservation());
      translation_.revoke();
      if (mapped_) buffer_->unmap(*attachment_, list_);
    }
    buffer_->detach(*attachment_);
  }

  File file() const override {
    const Exporter::Whole whole = buffer_->whole();
    if (buffer_->moves() || whole.file < 0) return {};
    return {whole.file, whole.offset + offset_};
  }
  std::string text() const override { return fmt::format("dma-buf of {}", buffer_->exporter_name()); }
  std::uint32_t by() const override { return STRAIT_NIC_BY_DMABUF; }

 private:
  int bring_back() {
    const std::lock_guard lock(buffer_->reservation());
    if (mapped_) return 0;
    if (const int failed = buffer_->map(*attachment_, list_)) return -failed;
    if (!buffer_->reservation().wait_kernel_fences(sys::Deadline::after_ns(kFenceNs))) {
      buffer_->unmap(*attachment_, list_);
      return ETIMEDOUT;
    }
    mapped_ = true;
    translation_.set(trim_list(list_, offset_, length_bytes_));
    return 0;
  }

  // With the reservation lock held.
  void on_move() {
    follows_ ? translation_.zap() : translation_.revoke();
    if (std::exchange(mapped_, false)) buffer_->unmap(*attachment_, list_);
  }

  Kernel& kernel_;
  const std::shared_ptr<DmaBuf> buffer_;
  const std::uint64_t offset_;
  const std::uint64_t length_bytes_;
  Attachment* attachment_ = nullptr;
  bool follows_ = true;
  bool mapped_ = false;  // under the reservation lock, as the list
  DmaList list_;
};

// The client's upcall ends it.
class PeerClientMemory final : public NicMemory {
 public:
  using NicMemory::NicMemory;
  PeerClientMemory(std::uint64_t iova, std::uint64_t length_bytes) : NicMemory(iova, length_bytes) {}
  int begin(Kernel& kernel, const DmaDevice& device, std::uint64_t address, std::uint64_t length_bytes, bool write) {
    if (const int failed = kernel.peers().get(
            address, length_bytes, write, device, [this] { translation_.revoke(); }, umem_))
      return failed;
    if (kernel.faults().invalidate_at)
      translation_.at_bytes(*kernel.faults().invalidate_at, [this] { umem_->provoke(); });
    // An invalidate that came meanwhile has revoked the table: then this changes nothing.
    translation_.set(umem_->segments());
    return 0;
  }
  ~PeerClientMemory() override {
    if (umem_) umem_->close();
  }
  std::string text() const override { return fmt::format("peer-memory client {}", umem_->client_name()); }
  std::uint32_t by() const override { return STRAIT_NIC_BY_PEER_MEMORY; }

 private:
  std::shared_ptr<PeerUmem> umem_;
};

// The driver's free callback ends it.
class P2pMemory final : public NicMemory {
 public:
  P2pMemory(Kernel& kernel, std::uint64_t iova, std::uint64_t length_bytes)
      : NicMemory(iova, length_bytes), kernel_(kernel) {}

  int begin(const DmaDevice& device, std::uint64_t address, std::uint64_t length_bytes) {
    first_ = address / kP2pPageBytes * kP2pPageBytes;
    const std::uint64_t rounded = (address + length_bytes - first_ + kP2pPageBytes - 1) / kP2pPageBytes * kP2pPageBytes;
    State& mine = *state_;
    // The table is in its place before the callback can come.
    if (const int failed = kernel_.p2p().get_pages(address, 0, first_, rounded, mine.table,
                                                   [this, state = state_] { on_free(*state); }))
      return failed;
    const P2pTable table = mine.table;
    P2pMapping mapping;
    int failed = kernel_.p2p().dma_map_pages(device, table, mapping);
    const Segment all = failed == 0 ? mapping->segment(address, length_bytes) : Segment{};
    if (failed == 0 && all.length_bytes != length_bytes) failed = -EINVAL;
    {
      const std::lock_guard lock(mine.mutex);
      if (mine.phase != Phase::ready) {
        // Freed while it was registered. The callback had no mapping to free.
        if (mapping) (void)kernel_.p2p().free_dma_mapping(mapping);
        return -EFAULT;
      }
      mine.mapping = mapping;
      if (failed == 0) translation_.set({all});
    }
    if (kernel_.faults().invalidate_at)
      translation_.at_bytes(*kernel_.faults().invalidate_at, [this, table] { kernel_.p2p().provoke(table); });
    return failed;  // the destructor gives back what was taken
  }

  ~P2pMemory() override {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.phase != Phase::called; });
    if (state.phase == Phase::over || !state.table) return;
    state.phase = Phase::over;
    const P2pTable table = state.table;
    const P2pMapping mapping = state.mapping;
    lock.unlock();
    translation_.revoke();
    if (mapping) (void)kernel_.p2p().dma_unmap_pages(table, mapping);
    (void)kernel_.p2p().put_pages(0, 0, first_, table);  // fails while the callback comes: that one frees it
  }
  std::string text() const override { return "nvidia_p2p pages"; }
  std::uint32_t by() const override { return STRAIT_NIC_BY_P2P_PAGES; }

 private:
  enum class Phase { ready, called, over };
  // Apart from the object: a callback that lost the race against the destructor still finds it.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    Phase phase = Phase::ready;
    P2pTable table;
    P2pMapping mapping;
    P2p* p2p = nullptr;
  };

  void on_free(State& state) {
    P2p& p2p = *state.p2p;
    P2pTable table;
    P2pMapping mapping;
    {
      const std::lock_guard lock(state.mutex);
      table = state.table;
      mapping = state.mapping;
      const bool ours = state.phase == Phase::ready;
      if (ours) state.phase = Phase::called;
      if (!ours) {  // the destructor was first, and could not put what is called back
        if (mapping) (void)p2p.free_dma_mapping(mapping);
        if (table) (void)p2p.free_page_table(table);
        return;
      }
    }
    translation_.revoke();
    if (mapping) (void)p2p.free_dma_mapping(mapping);
    (void)p2p.free_page_table(table);
    const std::lock_guard lock(state.mutex);
    state.phase = Phase::over;
    state.changed.notify_all();
  }

  Kernel& kernel_;
  std::uint64_t first_ = 0;
  std::shared_ptr<State> state_ = [this] {
    auto made = std::make_shared<State>();
    made->p2p = &kernel_.p2p();
    return made;
  }();
};

template <class Memory, class Begin>
int make_memory(std::unique_ptr<Memory> made, NicMemoryOwner& out, Begin begin) {
  const int failed = begin(*made);
  if (failed == 0) out.reset(made.release());
  return failed;
}

}  // namespace

int make_dmabuf_memory(Kernel& kernel, std::shared_ptr<DmaBuf> buffer, const DmaDevice& device, std::uint64_t offset,
                       std::uint64_t length_bytes, std::uint64_t iova, NicMemoryOwner& out) {
  return make_memory(std::make_unique<DmabufMemory>(kernel, std::move(buffer), offset, length_bytes, iova), out,
                     [&](DmabufMemory& made) { return made.begin(device); });
}

int make_peer_memory(Kernel& kernel, const DmaDevice& device, std::uint64_t address, std::uint64_t length_bytes,
                     std::uint64_t iova, bool write, NicMemoryOwner& out) {
  return make_memory(std::make_unique<PeerClientMemory>(iova, length_bytes), out,
                     [&](PeerClientMemory& made) { return made.begin(kernel, device, address, length_bytes, write); });
}

int make_p2p_memory(Kernel& kernel, const DmaDevice& device, std::uint64_t address, std::uint64_t length_bytes,
                    std::uint64_t iova, NicMemoryOwner& out) {
  return make_memory(std::make_unique<P2pMemory>(kernel, iova, length_bytes), out,
                     [&](P2pMemory& made) { return made.begin(device, address, length_bytes); });
}

}  // namespace strait::soft::kernel
