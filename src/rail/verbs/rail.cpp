// SPDX-License-Identifier: Apache-2.0
#include "rail/verbs/rail.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/plugin_answer.hpp"
#include "rail/proxy/check.hpp"
#include "sys/socket.hpp"

namespace strait::rail::verbs {

namespace {

constexpr std::uint32_t kMostInline = 512;
constexpr std::uint64_t kPassesPerLook = 32;     // how often a pass for one queue looks at the others too
constexpr std::uint64_t kPassesPerEvent = 4096;  // and at what the device says by itself, which is a system call

struct Config {
  std::string device;
  std::uint32_t max_message_bytes = UINT32_MAX;
};

Result<Config> parse(std::string_view text) {
  Config config;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    const char* const end = value.data() + value.size();
    if (name == "device" && equals != std::string_view::npos) {
      config.device = value;
    } else if (name == "max_message" && !value.empty() &&
               std::from_chars(value.data(), end, config.max_message_bytes).ptr == end &&
               config.max_message_bytes != 0) {
    } else {
      return fail(Code::invalid,
                  "the verbs rail does not know \"{}\" (device=NAME or NAME/GID_INDEX, max_message=BYTES)", pair);
    }
  }
  return config;
}

}  // namespace

Result<std::unique_ptr<VerbsRail>> VerbsRail::open(const std::string& config) {
  STRAIT_TRY(const Config wanted, parse(config));
  STRAIT_TRY(Port port, Port::open(wanted.device));
  port.limit_message(wanted.max_message_bytes);
  std::unique_ptr<VerbsRail> rail(new VerbsRail(std::move(port)));
  rail->channel_.reset(ibv_create_comp_channel(rail->port_.context()));
  if (!rail->channel_) return fail_errno(errno, fmt::format("{} made no completion channel", rail->port_.name()));
  STRAIT_TRY(rail->wakers_, sys::EventSet::make());
  STRAIT_CHECK(rail->wakers_.add(rail->channel_->fd));
  STRAIT_CHECK(rail->wakers_.add(rail->port_.context()->async_fd));
  const Owner<ibv_pd, ibv_dealloc_pd> probe(ibv_alloc_pd(rail->port_.context()));
  if (!probe) return fail_errno(errno, fmt::format("{} made no protection domain", rail->port_.name()));
  STRAIT_CHECK(rail->doorbells_.make());
  rail->memory_.probe_dmabuf(probe.get());
  return rail;
}

strait_nic_info VerbsRail::info() const {
  strait_nic_info out{};
  plugin::put_text(port_.name(), out.name, sizeof out.name);
  plugin::put_text(fmt::format("RDMA device by verbs, mlx5 rings read by the CPU, {}",
                               memory_.takes_dmabuf() ? "takes dma-bufs" : "takes no dma-bufs (EOPNOTSUPP)"),
                   out.description, sizeof out.description);
  plugin::put_text(gid_text(port_.address().gid), out.address_text, sizeof out.address_text);
  out.software = port_.software() ? 1 : 0;
  out.max_inline_bytes = kMostInline;
  out.imports_fds = 1;
  out.wants_pages = memory_.takes_dmabuf() ? 0 : 1;
  // That a module is loaded does not mean that it answers, and one that answers may have no file.
  out.plain_ways =
      STRAIT_NIC_WAY_UNKNOWN | (Memory::peer_client_seen() ? std::uint32_t{STRAIT_NIC_WAY_PEER_MEMORY} : 0u);
  return out;
}

// ---- Objects --------------------------------------------------------------------------------------------------------

Result<VerbsRail::Domain*> VerbsRail::find_pd(std::uint32_t pd) {
  const auto found = domains_.find(pd);
  if (found == domains_.end()) return fail(Code::invalid, "no protection domain has the number {}", pd);
  return &found->second;
}

Result<ProxyQueue*> VerbsRail::find_qp(std::uint32_t qpn) {
  const auto found = queues_.find(qpn);
  if (found == queues_.end()) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  return found->second.get();
}

Result<std::uint32_t> VerbsRail::alloc_pd() {
  const std::lock_guard lock(mutex_);
  STRAIT_CHECK(refuse_if_gone());
  Domain made{Owner<ibv_pd, ibv_dealloc_pd>(ibv_alloc_pd(port_.context())), 0};
  if (!made.domain) return fail_errno(errno, fmt::format("{} made no protection domain", port_.name()));
  domains_.emplace(next_pd_, std::move(made));
  return next_pd_++;
}

Status VerbsRail::free_pd(std::uint32_t pd) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(const Domain* domain, find_pd(pd));
  if (domain->users != 0)
    return fail(Code::again, "{} objects still belong to protection domain {}", domain->users, pd);
  domains_.erase(pd);
  return {};
}

Result<strait_nic_mr> VerbsRail::register_memory(const strait_nic_mr_request& request) {
  const std::lock_guard lock(mutex_);
  STRAIT_CHECK(refuse_if_gone());
  STRAIT_TRY(Domain * domain, find_pd(request.pd));
  STRAIT_TRY(const strait_nic_mr made, memory_.add(port_.name(), domain->domain.get(), request));
  ++domain->users;
  return made;
}

Status VerbsRail::deregister_memory(std::uint32_t lkey) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(const std::uint32_t pd, memory_.remove(lkey));
  --domains_[pd].users;
  return {};
}

Result<std::string> VerbsRail::describe_memory(std::uint32_t lkey) {
  const std::lock_guard lock(mutex_);
  const Registration* const found = memory_.find(lkey);
  if (found == nullptr) return fail(Code::invalid, "no registration has the key {:#x}", lkey);
  return found->how;
}

Result<std::uint32_t> VerbsRail::registered_by(std::uint32_t lkey) {
  const std::lock_guard lock(mutex_);
  const Registration* const found = memory_.find(lkey);
  if (found == nullptr) return fail(Code::invalid, "no registration has the key {:#x}", lkey);
  return found->by;
}

Result<std::uint32_t> VerbsRail::create_cq(const strait_nic_cq_request& request) {
  const std::lock_guard lock(mutex_);
  return completions_.add(request);
}

Status VerbsRail::destroy_cq(std::uint32_t cqn) {
  const std::lock_guard lock(mutex_);
  return completions_.remove(cqn);
}

Result<strait_nic_qp> VerbsRail::create_qp(const strait_nic_qp_request& request) {
  STRAIT_CHECK(proxy::check(request));
  const std::lock_guard lock(mutex_);
  STRAIT_CHECK(refuse_if_gone());
  STRAIT_TRY(Domain * domain, find_pd(request.pd));
  STRAIT_TRY(CompletionWriter * sends, completions_.find(request.send_cqn));
  STRAIT_TRY(CompletionWriter * receives, completions_.find(request.recv_cqn));
  STRAIT_TRY(auto queue, ProxyQueue::make(port_, domain->domain.get(), channel_.get(), request, *sends, *receives,
                                          counts_, events_));
  ++domain->users;
  const strait_nic_qp out{queue->qpn(), 0, doorbells_.of(queue->qpn())};
  queues_.emplace(out.qpn, std::move(queue));
  return out;
}

Status VerbsRail::connect_qp(std::uint32_t qpn, const strait_nic_connect_request& request) {
  const std::lock_guard lock(mutex_);
  take_device_events();
  STRAIT_CHECK(events_.connectable());
  STRAIT_TRY(ProxyQueue * queue, find_qp(qpn));
  return queue->connect(request);
}

Status VerbsRail::fail_qp(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(ProxyQueue * queue, find_qp(qpn));
  queue->fail();
  return {};
}

Status VerbsRail::destroy_qp(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(const ProxyQueue* queue, find_qp(qpn));
  take_events();  // an event names its queue by address
  take_device_events();
  const std::uint32_t pd = queue->pd();
  queues_.erase(qpn);
  events_.forget_queue(qpn);
  --domains_[pd].users;
  return {};
}

Result<std::string> VerbsRail::describe_qp(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(const ProxyQueue* queue, find_qp(qpn));
  return queue->describe();
}

// ---- Progress -------------------------------------------------------------------------------------------------------

int VerbsRail::drive(std::uint32_t qpn_hint) {
  if (mark_.in_child()) return 0;
  if (!mutex_.try_lock()) {
    note_.store(true, std::memory_order_seq_cst);
    if (!mutex_.try_lock()) return 0;
    qpn_hint = 0;
  }
  int done = pass(qpn_hint);
  mutex_.unlock();
  while (note_.load(std::memory_order_seq_cst) && mutex_.try_lock()) {
    note_.store(false, std::memory_order_seq_cst);
    done += pass(0);
    mutex_.unlock();
  }
  return done;
}

int VerbsRail::pass(std::uint32_t qpn_hint) {
  ++passes_;
  if (passes_ % kPassesPerEvent == 0) take_device_events();
  if (qpn_hint != 0 && passes_ % kPassesPerLook != 0) {
    const auto found = queues_.find(qpn_hint);
    return found == queues_.end() ? 0 : found->second->service();
  }
  int done = 0;
  for (const auto& [qpn, queue] : queues_) done += queue->service();
  return done;
}

// The channel blocks when it is empty, so it is asked first: a system call, which is why only who goes to sleep does
// it.
void VerbsRail::take_events() {
  while (sys::wait_ready(channel_->fd, false, sys::Deadline::after_ns(0))) {
    ibv_cq* cq = nullptr;
    void* queue = nullptr;
    if (ibv_get_cq_event(channel_.get(), &cq, &queue) != 0) break;
    static_cast<ProxyQueue*>(queue)->on_event();
  }
}

// Everything that is under way ends with what the device said; a port that is down may come back before the device
// gives up, so that alone ends nothing.
void VerbsRail::take_device_events() {
  // What is gone has no more to say, and its descriptor would keep everybody awake.
  (void)events_.take();
  if (events_.device_gone() && !std::exchange(deaf_, true)) wakers_.remove(port_.context()->async_fd);
  for (const auto& [qpn, queue] : queues_) {
    if (events_.device_gone() || events_.queue_broken(qpn)) queue->fail();
  }
}

Status VerbsRail::refuse_if_gone() {
  take_device_events();
  return events_.usable();
}

bool VerbsRail::arm() {
  if (mark_.in_child()) return true;
  const std::lock_guard lock(mutex_);
  take_events();
  take_device_events();
  bool quiet = !note_.load(std::memory_order_seq_cst);
  for (const auto& [qpn, queue] : queues_) quiet = queue->arm() && quiet;
  return quiet;
}

std::string VerbsRail::counters() {
  const std::lock_guard lock(mutex_);
  return fmt::format(
      "registrations={},by_address={},by_dmabuf={},dmabuf_refused={},by_mapping={},by_device_address={},queue_pairs={},"
      "work_requests={},"
      "posted={},receives={},completions={},error_completions={},flushed={},completion_overruns={},events={},device_"
      "events={},"
      "device_gone={},port_down={}",
      memory_.size(), memory_.counts.by_address, memory_.counts.by_dmabuf, memory_.counts.dmabuf_refused,
      memory_.counts.by_mapping, memory_.counts.by_device_address, queues_.size(), counts_.work_requests,
      counts_.posted, counts_.receives, counts_.completions, counts_.error_completions, counts_.flushed,
      counts_.overruns, counts_.events, events_.count(), events_.device_gone() ? 1 : 0, events_.port_down() ? 1 : 0);
}

}  // namespace strait::rail::verbs
