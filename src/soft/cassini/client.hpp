// SPDX-License-Identifier: Apache-2.0
// Client: one open of /dev/cxiN, as the driver serves it: write(2) with a command, mmap with a cookie, close.
// Handles are the device's own numbers; one that belongs to another client is as unknown as one of nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/fault_plan.hpp"
#include "soft/cassini/card.hpp"
#include "soft/cassini/faults.hpp"
#include "soft/cassini/strict.hpp"
#include "sys/fd.hpp"
#include "sys/mapping.hpp"

namespace strait::soft::cassini {

// Whom the kernel would see behind a call: the effective ids of the moment.
struct Who {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t netns = 0;  // inode of its network namespace
  bool admin = false;       // CAP_SYS_ADMIN
  bool net_raw = false;     // CAP_NET_RAW
};

// The descriptors that a command names by number: what the kernel would look up in the client's table. Address 0 of
// what these give is the first byte asked for, whatever the client calls it.
class CommandFiles {
 public:
  virtual ~CommandFiles() = default;
  // Device memory of a dma-buf descriptor: `bytes` from `offset` on. 0, or an errno (EBADF, EINVAL, EFAULT ...).
  virtual int dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) = 0;
  // Device memory by its address: what the vendors' page calls answer. EOPNOTSUPP: no driver of any is there.
  virtual int device_pages(std::uint64_t address, std::uint64_t bytes, std::unique_ptr<UserMemory>& out) = 0;
  // log2 of the pages that device_pages() gives out: NVIDIA's are of 64 KiB.
  virtual std::uint32_t device_page_shift(std::uint64_t address) {
    (void)address;
    return 16;
  }
};

// What a client needs from whoever carries its calls.
class ClientHost {
 public:
  virtual ~ClientHost() = default;
  virtual void raise(std::uint32_t wait) = 0;  // the wait object becomes ready (POLLPRI)
};

// How a client wants its device, for a program that is to be tested.
struct ClientOptions {
  bool strict = false;              // what the program may not do is noted
  std::optional<FaultPlan> faults;  // what goes wrong
  std::uint64_t strict_seed = 1;
};

class Client {
 public:
  // `pages` is the file that the client maps: cookies are offsets in it. Sparse, and as large as kPagesBytes.
  static constexpr std::uint64_t kPagesBytes = std::uint64_t{1} << 36;
  Client(Card& card, std::uint32_t id, Who who, UserMemory& memory, sys::Fd pages, ClientHost& host);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();  // frees everything left, in the driver's order

  // One write(2): the length of the command, or -errno. `command` is what the client's pointer held.
  [[nodiscard]] long write(std::span<const std::byte> command, CommandFiles& files);

  // Before its first command. The plan was checked (check_cassini_faults).
  void use(const ClientOptions& options);
  // What was found since the last call.
  [[nodiscard]] std::vector<Finding> take_findings(std::size_t most);

  // Who makes the calls from now on: a process may change its ids between two of them.
  void become(const Who& who) { who_ = who; }

  // Before the client maps [offset, offset + bytes): 0, or -EINVAL when that is no cookie or it was used before.
  [[nodiscard]] int map(std::uint64_t offset, std::uint64_t bytes);
  void unmap(std::uint64_t offset);
  enum class Page : std::uint8_t { none, ring, launch, event_state, doorbell, registers };
  [[nodiscard]] Page page(std::uint64_t offset) const;  // what is behind a cookie

  // The memory behind a dma-buf moves away: its descriptor is dead from now on.
  void tear_down(std::uint32_t md);

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] Card& card() { return card_; }
  [[nodiscard]] const sys::Fd& pages() const { return pages_; }

 private:
  // A part of `pages_` that this side has mapped, and whether the client has.
  struct Cookie {
    Page page = Page::none;
    std::uint64_t bytes = 0;
    sys::Mapping mapping;
    std::uint32_t* mapped = nullptr;  // the object's count of mappings
    bool pending = true;              // was not mapped by the client yet
    bool mapped_now = false;
  };
  struct CpHandle {
    std::shared_ptr<Cp> cp;
    Lni* lni = nullptr;
  };
  using Span = std::span<const std::byte>;

  template <class Command>
  long run(Span command, int (Client::*handler)(const Command&), bool admin_only = false);
  template <class Answer>
  [[nodiscard]] int respond(std::uint64_t to, const Answer& answer) {
    return memory_.write(to, &answer, sizeof answer) ? 0 : -EFAULT;
  }
  long run_service(wire::Op op, Span command);

  // ---- Lookups: null when there is no such handle of this client.
  [[nodiscard]] Lni* lni(std::uint32_t handle) const;
  template <class T>
  [[nodiscard]] T* own(const Table<T>& table, std::uint32_t handle) const {
    T* object = table.find(handle);
    return object != nullptr && object->lni->client == this ? object : nullptr;
  }
  [[nodiscard]] Cq* cq(std::uint32_t handle) const;

  // ---- Commands (client_*.cpp): 0 or -errno.
  int lni_alloc(const wire::LniAllocCmd& c);
  int lni_free(const wire::LniFreeCmd& c);
  int domain_reserve(const wire::DomainReserveCmd& c);
  int domain_alloc(const wire::DomainAllocCmd& c);
  int domain_free(const wire::DomainFreeCmd& c);
  int cp_alloc(const wire::CpAllocCmd& c);
  int trig_cp_alloc(const wire::TrigCpAllocCmd& c);
  int cp_free(const wire::CpFreeCmd& c);
  int cp_modify(const wire::CpModifyCmd& c);
  int cq_alloc(const wire::CqAllocCmd& c);
  int cq_alloc_buf(const wire::CqAllocBufCmd& c);
  int cq_free(const wire::CqFreeCmd& c);
  int cq_ack_counter(const wire::CqAckCounterCmd& c);
  int eq_alloc(const wire::EqAllocCmd& c);
  int eq_free(const wire::EqFreeCmd& c);
  int eq_resize(const wire::EqResizeCmd& c);
  int eq_resize_complete(const wire::EqResizeCompleteCmd& c);
  int eq_adjust_reserved_fc(const wire::EqAdjustReservedFcCmd& c);
  int ct_alloc(const wire::CtAllocCmd& c);
  int ct_free(const wire::CtFreeCmd& c);
  int ct_wb_update(const wire::CtWbUpdateCmd& c);
  int atu_map(const wire::AtuMapCmd& c);
  int atu_unmap(const wire::AtuUnmapCmd& c);
  int atu_update_md(const wire::AtuUpdateMdCmd& c);
  int pte_alloc(const wire::PteAllocCmd& c);
  int pte_free(const wire::PteFreeCmd& c);
  int pte_map(const wire::PteMapCmd& c);
  int pte_unmap(const wire::PteUnmapCmd& c);
  int pte_le_invalidate(const wire::PteLeInvalidateCmd& c);
  int pte_status(const wire::PteStatusCmd& c);
  int pte_transition_sm(const wire::PteTransitionSmCmd& c);
  int wait_alloc(const wire::WaitAllocCmd& c);
  int wait_free(const wire::WaitFreeCmd& c);
  int inbound_wait(const wire::InboundWaitCmd& c);
  int map_csrs(const wire::MapCsrsCmd& c);
  int dev_info_get(const wire::DevInfoGetCmd& c);
  int get_dev_properties(const wire::GetDevPropertiesCmd& c);
  int svc_alloc(const wire::SvcAllocCmd& c);
  int svc_update(const wire::SvcUpdateCmd& c);
  int svc_destroy(const wire::SvcDestroyCmd& c);
  int svc_get(const wire::SvcGetCmd& c);
  int svc_list_get(const wire::SvcListGetCmd& c);
  int svc_rsrc_get(const wire::SvcRsrcGetCmd& c);
  int svc_rsrc_list_get(const wire::SvcRsrcListGetCmd& c);
  int svc_enable(const wire::SvcEnableCmd& c);
  int svc_set_lpr(const wire::SvcLprCmd& c);
  int svc_get_lpr(const wire::SvcLprCmd& c);
  int svc_set_exclusive_cp(const wire::SvcSetExclusiveCpCmd& c);
  int svc_get_exclusive_cp(const wire::SvcGetExclusiveCpCmd& c);
  int svc_set_vni_range(const wire::SvcVniRangeCmd& c);
  int svc_get_vni_range(const wire::SvcVniRangeCmd& c);
  int svc_set_netns(const wire::SvcSetNetnsCmd& c);
  int svc_get_netns(const wire::SvcGetNetnsCmd& c);

  // ---- Networks: a profile that covers the VNI and admits the caller; root may have one made. 0 or -errno.
  int profile_for(std::uint32_t vni, std::shared_ptr<Profile>& out);
  [[nodiscard]] bool may_use(std::uint32_t vni) const;

  // ---- Pieces. `drop` frees without asking whether anything refers to it.
  int place_ring(Cq& cq, const wire::CqAllocOptsBuf& options, std::uint64_t bytes);
  int place_write_back(std::uint64_t address, Place& place, std::unique_ptr<UserMemory>& owned);
  int contiguous(std::uint64_t address, std::uint64_t bytes);
  int place_events(const Md* md, bool passthrough, std::uint64_t queue, std::uint64_t bytes, Place& place);
  int place_memory(const wire::AtuMapCmd& c, const wire::MdHints& hints, Md& md, bool& tries_sizes);
  int mirror(Md& md);
  void clean_queues(Lni& lni);
  void drop(Cq& cq);
  void drop(Eq& eq);
  void drop(Ct& ct);
  void drop(Pte& pte);
  void drop(Md& md);
  void drop(Domain& domain);
  void drop(Lni& lni);
  void drop_mapping(std::uint32_t index);
  void drop_cp(std::uint32_t handle);
  void clean(Lni& lni);

  // A new cookie whose pages are mapped here and zero; null: there is no memory, or no room in the file.
  Cookie* make_cookie(Page page, std::uint64_t bytes, std::uint32_t& mapped, wire::MmInfo& info);
  void drop_cookies(const std::uint32_t& mapped);

  Card& card_;
  std::uint32_t id_;
  Who who_;
  UserMemory& memory_;
  sys::Fd pages_;
  ClientHost& host_;
  CommandFiles* files_ = nullptr;  // of the command that runs
  std::uint64_t next_offset_;
  std::map<std::uint64_t, Cookie> cookies_;
  std::map<std::uint32_t, CpHandle> cps_;
  std::map<std::uint32_t, Wait> waits_;
  std::map<std::uint32_t, Lni*> wait_lnis_;
  std::uint64_t* registers_ = nullptr;  // its page of them, from map_csrs on
  std::uint32_t registers_mapped_ = 0;
  std::unique_ptr<Strict> strict_;
  std::unique_ptr<Faults> faults_;
};

}  // namespace strait::soft::cassini
