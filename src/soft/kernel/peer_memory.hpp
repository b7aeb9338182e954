// SPDX-License-Identifier: Apache-2.0
// Peer-memory clients, as the RDMA core of some distributions knows them: drivers of accelerators register as clients,
// and a plain registration of an address that is no host memory asks each in turn whether it is theirs.
//
// A registration's life: acquire (1: mine), get_pages, dma_map, ... dma_unmap, put_pages, release; each success is
// undone once, in reverse. The client may invalidate at any time after get_pages: when that returns no DMA is active
// and the registration has let go of everything. get_pages and dma_map are called with no lock held that invalidate
// takes, so a client may call back from inside them.
//
// Threads: any. Answers are 0 or -errno.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/counters.hpp"
#include "soft/kernel/dma_buf.hpp"

namespace strait::soft::kernel {

class PeerRegistry;
using PeerContext = std::shared_ptr<void>;  // what a client remembers of one registration

// A client's pages of a range, rounded outward; segments are filled in by dma_map.
struct PeerPages {
  std::uint64_t first = 0;  // device address of the first segment's first byte
  std::vector<Segment> segments;
};

class PeerClient {
 public:
  virtual ~PeerClient() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual const char* version() const { return "1.0"; }
  // Upcalls. Called once, when the client is registered; clients that never invalidate ignore it.
  virtual void joined(std::function<int(std::uint64_t core_context)> invalidate) { (void)invalidate; }

  [[nodiscard]] virtual int acquire(std::uint64_t address, std::uint64_t length_bytes, PeerContext& context) = 0;
  [[nodiscard]] virtual int get_pages(std::uint64_t address, std::uint64_t length_bytes, bool write, bool force,
                                      PeerPages& pages, const PeerContext& context, std::uint64_t core_context) = 0;
  [[nodiscard]] virtual int dma_map(PeerPages& pages, const PeerContext& context, const DmaDevice& device,
                                    int& mapped) = 0;
  virtual int dma_unmap(PeerPages& pages, const PeerContext& context) = 0;
  virtual void put_pages(PeerPages& pages, const PeerContext& context) = 0;
  [[nodiscard]] virtual std::uint64_t get_page_size(const PeerContext& context) = 0;  // obsolete, and still asked for
  virtual void release(const PeerContext& context) = 0;
  // The client undoes its pages itself once invalidate returned: the core then calls neither unmap nor put in it.
  [[nodiscard]] virtual bool invalidate_unmaps() const { return false; }
  // Its driver takes the pages back although nobody freed the memory.
  virtual void provoke(const PeerContext& context) = 0;
};

// One registration through a client.
class PeerUmem {
 public:
  ~PeerUmem();
  PeerUmem(const PeerUmem&) = delete;
  PeerUmem& operator=(const PeerUmem&) = delete;
  [[nodiscard]] const std::vector<Segment>& segments() const { return trimmed_; }  // exactly the range
  [[nodiscard]] const char* client_name() const { return client_->name(); }
  void provoke() { client_->provoke(context_); }
  // By who registered, before what `revoke` touches goes: an invalidate that is under way has ended when this returns.
  void close();

 private:
  friend class PeerRegistry;
  PeerUmem(PeerRegistry& registry, std::shared_ptr<PeerClient> client, std::function<void()> revoke)
      : registry_(registry), client_(std::move(client)), revoke_(std::move(revoke)) {}
  enum class Phase { beginning, ready, invalidating, over };
  void undo(bool pages);

  PeerRegistry& registry_;
  const std::shared_ptr<PeerClient> client_;
  const std::function<void()> revoke_;
  std::uint64_t ticket_ = 0;
  PeerContext context_;
  PeerPages pages_;
  std::vector<Segment> trimmed_;
  bool acquired_ = false, got_ = false, mapped_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::beginning;
  bool wanted_over_ = false;  // invalidated while it began
  std::thread::id beginner_;
};

class PeerRegistry {
 public:
  PeerRegistry(KernelFaults& faults, Counters& counters) : faults_(faults), counters_(counters) {}

  // The handle. A client that takes no invalidate function is never torn down under its registrations.
  std::uint64_t add(std::shared_ptr<PeerClient> client, bool invalidates);
  // -EBUSY while registrations of it live, -ENOENT.
  [[nodiscard]] int remove(std::uint64_t handle);
  [[nodiscard]] std::vector<std::string> names() const;

  // -EFAULT: nobody claims the address. `revoke` stops the NIC; it is called once, from invalidate, and takes no lock
  // that is held while memory is registered.
  [[nodiscard]] int get(std::uint64_t address, std::uint64_t length_bytes, bool write, const DmaDevice& device,
                        std::function<void()> revoke, std::shared_ptr<PeerUmem>& out);
  // What a client calls. 0 also when the registration has gone meanwhile.
  [[nodiscard]] int invalidate(std::uint64_t core_context);

 private:
  friend class PeerUmem;
  [[nodiscard]] int begin(PeerUmem& umem, std::uint64_t address, std::uint64_t length_bytes, bool write,
                          const DmaDevice& device);
  [[nodiscard]] int take_steps(PeerUmem& umem, std::uint64_t address, std::uint64_t length_bytes, bool write,
                               const DmaDevice& device);
  void forget(std::uint64_t ticket);

  struct Registered {
    std::uint64_t handle;
    std::shared_ptr<PeerClient> client;
  };
  KernelFaults& faults_;
  Counters& counters_;
  mutable std::mutex mutex_;
  std::vector<Registered> clients_;  // in the order they are asked
  std::map<std::uint64_t, std::weak_ptr<PeerUmem>> umems_;
  std::uint64_t next_ = 1;
};

}  // namespace strait::soft::kernel
