// SPDX-License-Identifier: Apache-2.0
// Core: the composition root behind strait_node. Owns devices, registrations, rendezvous and progress; every handle
// keeps it alive, and after close() they answer that the Node is gone.
//
// Threads: any. Locks, in the order they may be taken: peers_mutex, regions_mutex, lanes_mutex. Nothing on the path of
// an operation takes one of them. (Leases and Doorbells have their own, under which no other is taken.)
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/counters.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/options.hpp"
#include "buffer/providers.hpp"
#include "export/through_host.hpp"
#include "grant/door.hpp"
#include "grant/host.hpp"
#include "keys/cache.hpp"
#include "keys/monitor.hpp"
#include "keys/ticket.hpp"
#include "node/export_book.hpp"
#include "node/fork.hpp"
#include "node/free_watch.hpp"
#include "node/leases.hpp"
#include "node/placement.hpp"
#include "node/progress.hpp"
#include "node/region.hpp"
#include "node/settings.hpp"
#include "node/sleeper.hpp"
#include "node/stopwatch.hpp"
#include "plan/record.hpp"
#include "rail/mlx5/device_queue.hpp"
#include "rail/mlx5/nic.hpp"
#include "rendezvous/client.hpp"
#include "rendezvous/service.hpp"
#include "strait/c.h"
#include "sys/address_space.hpp"
#include "sys/clock.hpp"
#include "sys/library.hpp"

namespace strait::node {

// A NIC with what the Node remembers about it.
struct Rail {
  std::unique_ptr<rail::Nic> nic;
  exports::NicAbilities abilities;
};

class Core final : public rendezvous::Handler, public grant::Clerk, public std::enable_shared_from_this<Core> {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Core>> open(Options options, Log log);
  Core() = default;
  ~Core() override;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Stops serving, detaches and flushes, revokes; handles stay as shells. Once.
  void close();
  // Code::gone after close() and in a forked child.
  [[nodiscard]] Status usable(const char* what) const;
  [[nodiscard]] bool in_child() const { return mark_.in_child(); }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }

  // The Node's default when a duration is negative.
  [[nodiscard]] sys::Deadline deadline(std::int64_t timeout_ns) const {
    return sys::Deadline::after_ns(timeout_ns < 0 ? settings_.deadline_ns : timeout_ns);
  }
  [[nodiscard]] sys::Deadline connect_deadline(std::int64_t timeout_ns) const {
    return sys::Deadline::after_ns(timeout_ns < 0 ? settings_.connect_deadline_ns : timeout_ns);
  }

  // memory.cpp
  // `networked`: exported and registered at once.
  [[nodiscard]] Result<strait_memory*> allocate(std::uint64_t length_bytes, const std::string& near_device,
                                                bool networked = false);
  [[nodiscard]] Status free(strait_memory* memory);  // the handle goes with it
  void drop(strait_memory* memory);
  // Between devices of two vendors through host memory, where that is allowed.
  [[nodiscard]] Status copy(void* to, const void* from, std::uint64_t length_bytes, sys::Deadline deadline);

  // region.cpp
  [[nodiscard]] Result<strait_region*> share(void* address, std::uint64_t length_bytes, std::uint32_t access);
  // share_fd.cpp. `address` 0: chosen here.
  [[nodiscard]] Result<strait_region*> share_fd(int fd, std::uint64_t offset, std::uint64_t length_bytes,
                                                std::uint64_t address, std::uint32_t access);
  [[nodiscard]] Status revoke(strait_region& region, sys::Deadline deadline);
  void drop(strait_region* region);
  [[nodiscard]] Status wait_signal(strait_region& region, std::uint32_t index, std::uint64_t at_least,
                                   sys::Deadline deadline, std::uint64_t& value);
  // Frees dropped regions whose operations have drained, and registrations of memory that was freed. Cheap when there
  // is none.
  void sweep();
  [[nodiscard]] std::size_t draining() const {
    return draining_count_.load(std::memory_order_relaxed) + (freed_.some.load(std::memory_order_relaxed) ? 1 : 0);
  }

  // publish.cpp
  [[nodiscard]] Result<strait_published*> publish(const std::string& name, strait_region& region);
  void withdraw(const strait_published& published);
  [[nodiscard]] Status make_ticket(strait_region& region, std::uint64_t offset, std::uint64_t length_bytes,
                                   std::uint32_t access, std::int64_t lifetime_ns, strait_ticket& out);

  // peer.cpp
  [[nodiscard]] Result<strait_peer*> connect(const std::string& address, sys::Deadline deadline);
  [[nodiscard]] Result<strait_peer*> accept(sys::Deadline deadline);
  [[nodiscard]] Status lookup(strait_peer& peer, const std::string& name, sys::Deadline deadline, strait_target& out);
  [[nodiscard]] Status redeem(strait_peer& peer, const strait_ticket& ticket, sys::Deadline deadline,
                              strait_target& out);
  [[nodiscard]] Result<strait_lane*> open_lane(strait_peer& peer, std::uint32_t depth, std::uint32_t signal_every,
                                               const std::string& near_device, sys::Deadline deadline);
  void close_peer(strait_peer* peer);
  void close_lane(strait_lane* lane);

  // device_queue.cpp: queues that others post to
  [[nodiscard]] Result<strait_device_queue*> open_device_queue(strait_peer& peer, rail::DeviceQueueShape shape,
                                                               const std::string& near_device, sys::Deadline deadline);
  void close_device_queue(strait_device_queue* queue);
  [[nodiscard]] Leases& leases() { return leases_; }

  // serve.cpp: what peers ask, on the service's thread.
  Result<rendezvous::ConnectReply> on_connect(rendezvous::PeerId peer,
                                              const rendezvous::ConnectRequest& request) override;
  Status on_ready(rendezvous::PeerId peer, const rendezvous::Ready& ready) override;
  Result<rendezvous::Target> on_lookup(rendezvous::PeerId peer, const std::string& name) override;
  Result<rendezvous::Target> on_redeem(rendezvous::PeerId peer, const rendezvous::TicketBytes& ticket) override;
  Result<std::string> on_describe(rendezvous::PeerId peer) override;
  Result<std::string> on_count(rendezvous::PeerId peer) override;
  void on_gone(rendezvous::PeerId peer) override;

  // grants.cpp: what peers of this host ask at the door, on its thread.
  Result<grant::Offer> on_ask(const grant::Subject& subject, const grant::Proof& proof, grant::Way only) override;
  bool still_shared(const grant::Subject& subject) override;
  [[nodiscard]] std::string why_no_copies() const override;
  [[nodiscard]] grant::Door* door() { return door_.get(); }  // null: no map and copy grants

  // Lanes tell the Node that they exist, so that regions in use can be found and the progress thread can keep away.
  void add_lane(strait_lane* lane);
  void remove_lane(strait_lane* lane);
  // Of all lanes: how often their callers polled. Changes while a caller drives the engine itself.
  [[nodiscard]] std::uint64_t caller_polls();
  // One bounded pass over every NIC, and over the doorbells that are passed on to them.
  std::int32_t drive_all();
  void reap_shared_lanes();

  [[nodiscard]] std::string info_json();  // info.cpp
  // The part of it that was counted, of this Node or of a running one, which is asked.
  [[nodiscard]] std::string counters_json();
  [[nodiscard]] Result<std::string> counters_of(const std::string& address, sys::Deadline deadline);
  // Every way from every NIC to memory of every kind (or device), tried; and what all of them need. reach_matrix.cpp
  [[nodiscard]] std::string reach_json(bool every_device);
  // As text or JSON: the ways from memory `from` of this Node to memory `to`, here or of a peer
  // ("cuda:0@10.0.0.7:7471").
  [[nodiscard]] Result<std::string> explain(const std::string& from, const std::string& to, std::uint32_t flags,
                                            sys::Deadline deadline);
  [[nodiscard]] std::string region_json(const strait_region& region) const;

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] std::vector<Rail>& rails() { return rails_; }
  [[nodiscard]] buffer::Providers& providers() { return *providers_; }
  [[nodiscard]] Placement& placement() { return placement_; }
  [[nodiscard]] Progress* progress() { return progress_.get(); }
  [[nodiscard]] const rendezvous::Secret& secret() const { return secret_; }
  [[nodiscard]] const Log& log() const { return log_; }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] const sys::ForkMark& mark() const { return mark_; }
  [[nodiscard]] Sleeper& sleeper() { return sleeper_; }
  std::atomic<std::uint64_t> poll_count{0};  // strait_node_poll and signal waits

 private:
  struct Incoming;  // a peer whose Ready has not come yet
  [[nodiscard]] Status open_devices();
  [[nodiscard]] Result<std::vector<buffer::Plugin>> accelerator_plugins(const std::vector<Wanted>& wanted) const;
  [[nodiscard]] Status open_nics(const Wanted& wanted);
  void open_cache();
  [[nodiscard]] Result<buffer::Claim> recognise(buffer::Range range, std::int64_t& took_ns);
  [[nodiscard]] std::optional<buffer::Claim> recognised_before(buffer::Range range);
  [[nodiscard]] static std::uint64_t next_number();
  [[nodiscard]] bool watch_host(const keys::Allocation& allocation);
  [[nodiscard]] Result<Reached::Files> register_early(buffer::Range range);
  [[nodiscard]] Result<keys::Lease> acquire(keys::Allocation allocation, Reached& exported, std::uint32_t access);
  [[nodiscard]] Result<ExportBook::Shared> next_way(const Reached& refused, const Error& why, bool may_stage,
                                                    Reached::Files& files);
  [[nodiscard]] Result<keys::Registration> register_everywhere(const keys::Allocation& allocation,
                                                               std::uint32_t access);
  // With every NIC that takes it, in their order; those that do not are noted with `exported`, and fail it only all
  // together, by the first one's error. `passing`: somebody refused for now only.
  [[nodiscard]] Result<std::vector<rail::MemoryKey>> register_with_all(Reached& exported,
                                                                       const rail::MemoryRequest& request,
                                                                       bool* passing = nullptr);
  [[nodiscard]] Status open_rail(const strait_nic_ops* ops, const std::string& config);
  [[nodiscard]] std::string soft_library_path() const;
  [[nodiscard]] std::string soft_nic_config(std::uint32_t index) const;
  [[nodiscard]] std::string cxi_config(const std::string& device) const;
  [[nodiscard]] std::string plain_ways_config(std::uint32_t index) const;
  [[nodiscard]] std::string verbs_library_path() const;
  [[nodiscard]] Status register_local(strait_region& region, const buffer::Claim& claim);
  [[nodiscard]] Status register_slice(strait_region& region, const Error& why);
  [[nodiscard]] Status register_remote(strait_region& region);
  [[nodiscard]] Result<std::vector<RemoteKeys>> make_remote_keys(strait_region& region);
  [[nodiscard]] Status make_signals(strait_region& region);
  [[nodiscard]] Status let_peers_name(strait_region& region);
  [[nodiscard]] bool may_be_mapped(const strait_region& region) const;
  [[nodiscard]] Status check_share(std::uint32_t access);
  [[nodiscard]] strait_region* adopt(std::unique_ptr<strait_region> region);
  [[nodiscard]] Result<rail::MemoryKey> register_part(const strait_region& region, Rail& rail, std::uint64_t offset,
                                                      std::uint64_t length_bytes, std::uint32_t access);
  [[nodiscard]] Status grant_part_locked(strait_region& region, const keys::TicketFields& fields,
                                         rendezvous::Target& target) STRAIT_REQUIRES(regions_mutex_);
  [[nodiscard]] Status stage(strait_region& region, const buffer::Claim& claim);
  void cut_off_locked(strait_region& region) STRAIT_REQUIRES(regions_mutex_);
  void release_local(strait_region& region);
  [[nodiscard]] nlohmann::json requirement_rows();
  // explain.cpp
  [[nodiscard]] plan::Memory record_of(const buffer::Device& device) const;
  [[nodiscard]] plan::Nic record_of(const Rail& rail) const;
  [[nodiscard]] plan::Machine machine() const;
  [[nodiscard]] plan::Peer any_peer() const;
  [[nodiscard]] plan::Policy plan_policy() const;
  [[nodiscard]] plan::Plan plan_for(const strait_region& region) const;
  [[nodiscard]] plan::Costs timed_for(const plan::Memory& source, const plan::Peer& peer, const plan::Policy& policy);
  [[nodiscard]] bool in_use(const strait_region& region);
  [[nodiscard]] bool lanes_hold(const strait_region& region, std::string* by_whom);
  void sleep_on_signal(strait_region& region, std::uint32_t index, std::uint64_t at_least, sys::Deadline deadline);
  // grants.cpp
  [[nodiscard]] std::string why_no_grants() const;
  [[nodiscard]] Status open_door();
  [[nodiscard]] grant::Proof proof_of(const grant::Subject& subject) const;
  void add_proof(rendezvous::Target& target) const;
  [[nodiscard]] std::shared_ptr<grant::Host> host_of(strait_peer& peer, sys::Deadline deadline);
  void bring_near(strait_lane& lane, strait_peer& peer, sys::Deadline deadline);
  void ask_for_grant(strait_peer& peer, const rendezvous::Target& target, sys::Deadline deadline);
  [[nodiscard]] std::vector<grant::Holdout> take_back(strait_region& region, sys::Deadline deadline);
  [[nodiscard]] bool is_held(const strait_region& region);
  // Null: done, or nothing to do. Otherwise why the pages stay those that the peer maps.
  [[nodiscard]] const char* leave_pages(strait_region& region, const std::vector<grant::Holdout>& holdouts);
  [[nodiscard]] std::optional<std::vector<strait_region*>> all_revoked_beside_locked(const strait_region& region)
      STRAIT_REQUIRES(regions_mutex_);
  [[nodiscard]] rendezvous::Target target_of(const strait_region& region) const;
  [[nodiscard]] Result<std::unique_ptr<strait_lane>> make_lane(std::uint32_t depth, std::uint32_t signal_every,
                                                               bool shared, std::uint8_t rail);
  // Asks the peer for a queue and connects ours to it, both ways: a rail::Queue or rail::DeviceQueue.
  template <class Queue>
  [[nodiscard]] Result<rendezvous::ConnectReply> join(const Queue& queue, std::uint32_t depth,
                                                      rendezvous::Client& client, rendezvous::LaneKind kind,
                                                      std::uint8_t rail, sys::Deadline deadline);
  // The same over the peer's rendezvous connection, which is made if there is none.
  template <class Queue>
  [[nodiscard]] Result<std::shared_ptr<rendezvous::Client>> join_peer(const Queue& queue, std::uint32_t depth,
                                                                      strait_peer& peer, std::uint8_t rail,
                                                                      std::uint8_t& far_rail, sys::Deadline deadline);
  // The NIC of the next queue to a peer: for memory of `near_device` the plan's best, else the best ones in turn.
  [[nodiscard]] Result<std::uint8_t> rail_for(const std::string& near_device);
  [[nodiscard]] bool same_wire(const Rail& rail) const;  // as the first one has: peers are connected over such only
  [[nodiscard]] strait_nic_connect_request connect_settings(const rendezvous::NicAddress& nic, std::uint32_t qpn,
                                                            sys::Deadline deadline) const;
  void wait_until_open() { const std::lock_guard open(opening_mutex_); }
  [[nodiscard]] strait_peer* find_served_locked(rendezvous::PeerId id) STRAIT_REQUIRES(peers_mutex_);
  void describe_lane(strait_lane& lane, const std::string& peer_name) const;
  void mention_grants(strait_lane& lane, strait_peer& peer) const;

  sys::ForkMark mark_;
  Sleeper sleeper_;
  Options options_;
  Settings settings_;
  Log log_;
  Counters counters_;
  // Of what is done often: looking a counter up takes a lock.
  Counter& regions_shared_ = counters_.get("regions_shared");
  Counter* host_remembered_ = nullptr;  // with the monitor
  Counter& claims_remembered_ = counters_.get("claims_remembered");
  keys::NodeId id_{};
  keys::TicketKey ticket_key_{};
  std::array<std::byte, 16> host_{};
  std::string address_;
  rendezvous::Secret secret_;
  std::vector<std::string> warnings_;
  std::atomic<bool> closed_{false};
  std::mutex opening_mutex_;  // held until the Node is open: peers may ask as soon as the service listens

  std::vector<sys::Library> nic_libraries_;  // unloaded after every device
  std::unique_ptr<buffer::Providers> providers_;
  std::unique_ptr<exports::HostRelay> relay_;  // goes before the providers it has memory of
  ExportBook book_;
  const std::uint64_t number_ = next_number();  // of Nodes in this process, never used again
  Mutex known_mutex_;
  // Allocations with an identity that were shared, by their base.
  std::map<std::uint64_t, buffer::Claim> known_ STRAIT_GUARDED_BY(known_mutex_);
  FreedMemory freed_;
  std::vector<Rail> rails_;
  // What one NIC or another can do: an allocation is exported once for all of them.
  exports::NicAbilities abilities_;
  std::atomic<std::uint32_t> turn_{0};  // whose turn it is among equal NICs
  Placement placement_;
  Stopwatch stopwatch_;                     // for plans that people ask for
  std::unique_ptr<keys::Cache> cache_;      // local registrations, of all rails; gone before the NICs
  std::unique_ptr<keys::Monitor> monitor_;  // of host memory; null unless asked for and possible
  sys::AddressSpace address_space_ = sys::AddressSpace::open();

  Mutex lanes_mutex_;
  std::vector<strait_lane*> lanes_ STRAIT_GUARDED_BY(lanes_mutex_);
  std::vector<strait_device_queue*> device_queues_ STRAIT_GUARDED_BY(lanes_mutex_);
  Doorbells doorbells_;  // those of them that need it

  Mutex regions_mutex_;
  std::uint64_t next_region_ STRAIT_GUARDED_BY(regions_mutex_) = 1;
  // Every one whose handle was not dropped.
  std::unordered_map<std::uint64_t, strait_region*> regions_ STRAIT_GUARDED_BY(regions_mutex_);
  std::vector<std::unique_ptr<strait_region>> draining_ STRAIT_GUARDED_BY(regions_mutex_);
  std::atomic<std::size_t> draining_count_{0};
  std::map<std::uint64_t, strait_memory*> memories_ STRAIT_GUARDED_BY(regions_mutex_);  // by base
  std::map<std::string, std::uint64_t> names_ STRAIT_GUARDED_BY(regions_mutex_);
  std::int64_t kept_fds_ STRAIT_GUARDED_BY(regions_mutex_) = 0;  // of memory that was allocated to be networked

  Mutex peers_mutex_;
  std::condition_variable accepted_;
  std::vector<strait_peer*> peers_ STRAIT_GUARDED_BY(peers_mutex_);  // that somebody holds a handle of
  std::map<rendezvous::PeerId, std::unique_ptr<Incoming>> incoming_ STRAIT_GUARDED_BY(peers_mutex_);
  std::deque<std::unique_ptr<strait_peer>> waiting_ STRAIT_GUARDED_BY(peers_mutex_);  // for strait_accept

  std::string no_grants_because_;          // no operation of this Node goes by map or copy; empty: they may
  std::unique_ptr<grant::Door> door_;      // null: no map and copy grants
  std::unique_ptr<grant::Visits> visits_;  // beside it

  Leases leases_{*this};
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<rendezvous::Service> service_;
};

}  // namespace strait::node

struct strait_node {
  std::shared_ptr<strait::node::Core> core;
};

struct strait_memory {
  std::shared_ptr<strait::node::Core> core;
  strait::buffer::Memory memory;
  strait::node::Reached::Files files;  // of `networked` memory; gone before the memory
  std::uint32_t shared = 0;            // regions over it; under regions_mutex
  bool dropped = false;                // goes with the last of them; the same lock
  bool mapped = false;                 // some peer was given the pages it has now; the same lock
};
