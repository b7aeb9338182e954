// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "soft/kernel/peer_clients.hpp"

namespace strait::soft::kernel {
namespace {

struct NvidiaContext {
  std::uint64_t first = 0;
  std::uint64_t length_bytes = 0;
  std::uint64_t token = 0;  // the allocation that is meant: small ones share a page
  std::uint64_t core_context = 0;
  P2pTable table;
  P2pMapping mapping;
  std::atomic<std::thread::id> in_callback{};
};

NvidiaContext& nvidia(const PeerContext& context) {
  return *static_cast<NvidiaContext*>(context.get());
}

class NvidiaClient final : public PeerClient {
 public:
  NvidiaClient(P2p& p2p, bool persistent) : p2p_(p2p), persistent_(persistent) {}
  const char* name() const override { return "nv_mem"; }
  void joined(std::function<int(std::uint64_t)> invalidate) override { invalidate_ = std::move(invalidate); }

  // Whose address it is, only the driver knows: pages are asked for and put back at once.
  int acquire(std::uint64_t address, std::uint64_t length_bytes, PeerContext& context) override {
    auto made = std::make_shared<NvidiaContext>();
    made->token = address;
    made->first = address / kP2pPageBytes * kP2pPageBytes;
    made->length_bytes = (address + length_bytes - made->first + kP2pPageBytes - 1) / kP2pPageBytes * kP2pPageBytes;
    P2pTable tried;
    if (p2p_.get_pages_persistent(made->first, made->length_bytes, tried, 0, address) != 0) return 0;
    (void)p2p_.put_pages_persistent(made->first, tried, 0);
    context = std::move(made);
    return 1;
  }

  int get_pages(std::uint64_t, std::uint64_t, bool, bool, PeerPages&, const PeerContext& context,
                std::uint64_t core_context) override {
    NvidiaContext& mine = nvidia(context);
    mine.core_context = core_context;
    if (persistent_) return p2p_.get_pages_persistent(mine.first, mine.length_bytes, mine.table, 0, mine.token);
    // Held until it is called or put: a callback that comes after the core has released has to find what to free.
    return p2p_.get_pages(mine.token, 0, mine.first, mine.length_bytes, mine.table,
                          [this, context] { on_free(context); });
  }

  int dma_map(PeerPages& pages, const PeerContext& context, const DmaDevice& device, int& mapped) override {
    NvidiaContext& mine = nvidia(context);
    if (const int failed = p2p_.dma_map_pages(device, mine.table, mine.mapping)) return failed;
    pages.first = mine.mapping->backed_first;
    pages.segments.push_back(mine.mapping->segment(pages.first, mine.mapping->bytes.size()));
    mapped = static_cast<int>(mine.mapping->addresses.size());
    return 0;
  }

  // In its own callback these do nothing: the driver that called has the teardown.
  int dma_unmap(PeerPages& pages, const PeerContext& context) override {
    NvidiaContext& mine = nvidia(context);
    pages.segments.clear();
    if (mine.in_callback.load() == std::this_thread::get_id()) return 0;
    return p2p_.dma_unmap_pages(mine.table, mine.mapping);
  }
  void put_pages(PeerPages&, const PeerContext& context) override {
    NvidiaContext& mine = nvidia(context);
    if (mine.in_callback.load() == std::this_thread::get_id()) return;
    if (persistent_) {
      (void)p2p_.put_pages_persistent(mine.first, mine.table, 0);
    } else {
      (void)p2p_.put_pages(0, 0, mine.first, mine.table);  // fails when the callback is on its way: that one frees it
    }
  }
  std::uint64_t get_page_size(const PeerContext&) override { return kP2pPageBytes; }
  void release(const PeerContext&) override {}
  void provoke(const PeerContext& context) override {
    if (nvidia(context).table) p2p_.provoke(nvidia(context).table);
  }

 private:
  void on_free(const PeerContext& context) {
    const auto mine = std::static_pointer_cast<NvidiaContext>(context);
    mine->in_callback = std::this_thread::get_id();
    if (invalidate_) (void)invalidate_(mine->core_context);
    if (mine->mapping) (void)p2p_.free_dma_mapping(mine->mapping);
    (void)p2p_.free_page_table(mine->table);
    mine->in_callback = std::thread::id();
  }

  P2p& p2p_;
  const bool persistent_;
  std::function<int(std::uint64_t)> invalidate_;
};

}  // namespace

std::shared_ptr<PeerClient> make_nvidia_client(P2p& p2p, bool persistent) {
  return std::make_shared<NvidiaClient>(p2p, persistent);
}

}  // namespace strait::soft::kernel
