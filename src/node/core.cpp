// SPDX-License-Identifier: Apache-2.0
// Opening and closing a Node.
#include "node/core.hpp"

#include <algorithm>

#include "node/device_queue.hpp"
#include "node/incoming.hpp"
#include "node/lane.hpp"
#include "node/peer.hpp"
#include "sys/host.hpp"

namespace strait::node {
namespace {

constexpr std::int64_t kCloseGraceNs = 20'000'000;  // for all peers together to let go of this Node's memory

}  // namespace

Result<std::shared_ptr<Core>> Core::open(Options options, Log log) {
  auto core = std::make_shared<Core>();
  core->options_ = std::move(options);
  core->settings_ = Settings::from(core->options_);
  core->log_ = std::move(log);
  core->warnings_ = core->options_.warnings();
  for (const std::string& warning : core->warnings_) core->log_.write(Level::warn, "{}", warning);
  STRAIT_TRY(core->id_, keys::new_node_id());
  STRAIT_TRY(core->ticket_key_, keys::new_ticket_key());
  core->host_ = sys::host_id();

  rendezvous::ServiceSettings service;
  STRAIT_TRY(service.at, sys::parse_endpoint(core->options_.text("listen")));
  STRAIT_TRY(core->secret_, rendezvous::find_secret(core->options_.text("secret"), core->options_.text("secret_file")));
  service.secret = core->secret_;
  STRAIT_CHECK(core->sleeper_.open());
  STRAIT_CHECK(core->open_devices());
  {
    const sys::NodeWish pages(core->placement_.ring_node());
    STRAIT_CHECK(core->open_door());
  }
  STRAIT_TRY(core->progress_, Progress::start(*core));
  const std::lock_guard opening(core->opening_mutex_);
  auto started = rendezvous::Service::start(service, *core);
  if (!started) {
    core->close();
    return started.error();
  }
  core->service_ = std::move(*started);
  core->address_ = core->service_->endpoint().text();
  core->log_.write(Level::info, "node at {}, {} NIC(s), {} memory device(s)", core->address_, core->rails_.size(),
                   core->providers_->devices().size());
  return core;
}

Core::~Core() {
  if (in_child()) {  // every object below belongs to the parent; see bury()
    for (Rail& rail : rails_) rail.nic->abandon();
    return;
  }
  close();
}

Status Core::usable(const char* what) const {
  if (in_child()) return dead_after_fork(what);
  if (closed()) return fail(Code::gone, "the Node of this {} was closed", what);
  return {};
}

void Core::close() {
  if (in_child() || closed_.exchange(true)) return;
  service_.reset();  // from here on nobody connects, and on_gone has been called for every peer
  progress_.reset();
  accepted_.notify_all();
  std::deque<std::unique_ptr<strait_peer>> waiting;
  {
    const Locked lock(peers_mutex_);
    waiting.swap(waiting_);
    incoming_.clear();
  }
  for (auto& peer : waiting) remove_lane(peer->lane.get());
  waiting.clear();
  leases_.stop();
  std::vector<strait_lane*> lanes;
  std::vector<strait_device_queue*> device_queues;
  {
    const Locked lock(lanes_mutex_);
    lanes = lanes_;
    device_queues = device_queues_;
  }
  for (strait_device_queue* queue : device_queues) {
    doorbells_.remove(*queue->queue);
    queue->shut();
  }
  for (strait_lane* lane : lanes) {
    const Using use(*lane);
    lane->closed.store(true);
    lane->words.store(nullptr);
    lane->core.close();
  }
  std::vector<strait_peer*> peers;
  {
    const Locked lock(peers_mutex_);
    peers = peers_;
    for (strait_peer* peer : peers_) peer->passive.clear();
  }
  sweep();
  std::vector<strait_region*> regions;
  {
    const Locked lock(regions_mutex_);
    for (const auto& [id, region] : regions_) regions.push_back(region);
    names_.clear();
    for (const auto& [base, memory] : memories_) {
      if (!std::exchange(memory->files, nullptr)) continue;
      --kept_fds_;
    }
  }
  const sys::Deadline grace = sys::Deadline::after_ns(kCloseGraceNs);
  for (strait_region* region : regions) {
    region->state.store(RegionState::revoked);
    region->epoch.fetch_add(1);
    {
      const Locked lock(regions_mutex_);
      cut_off_locked(*region);
    }
    (void)leave_pages(*region, take_back(*region, grace));
    release_local(*region);
  }
  visits_.reset();
  door_.reset();
  // Dropped, and held by a peer until now. Each holds this Node, so that neither would ever go.
  std::vector<std::unique_ptr<strait_region>> held;
  {
    const Locked lock(regions_mutex_);
    held.swap(draining_);
    draining_count_.store(0, std::memory_order_relaxed);
  }
  for (const auto& region : held) release_local(*region);
  // The cache gives its registrations back, then the NICs close. The providers stay until the last handle is gone:
  // memory that was allocated here belongs to the application.
  monitor_.reset();
  cache_.reset();
  rails_.clear();
}

void Core::add_lane(strait_lane* lane) {
  const Locked lock(lanes_mutex_);
  lanes_.push_back(lane);
}

void Core::remove_lane(strait_lane* lane) {
  const Locked lock(lanes_mutex_);
  std::erase(lanes_, lane);
}

std::uint64_t Core::caller_polls() {
  std::uint64_t polls = poll_count.load(std::memory_order_relaxed);
  const Locked lock(lanes_mutex_);
  for (const strait_lane* lane : lanes_) polls += lane->polls.load(std::memory_order_relaxed);
  return polls;
}

std::int32_t Core::drive_all() {
  std::int32_t did = doorbells_.ring_for_posters();
  for (const Rail& rail : rails_) did += rail.nic->drive(0);
  sleeper_.rouse();
  return did;
}

void Core::reap_shared_lanes() {
  const Locked lock(lanes_mutex_);
  for (strait_lane* lane : lanes_) {
    if (!lane->shared) continue;
    const std::unique_lock use(lane->mutex, std::try_to_lock);  // whoever has it reaps as well
    if (use.owns_lock() && !lane->closed.load()) lane->core.reap();
  }
}

}  // namespace strait::node
