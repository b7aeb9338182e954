// SPDX-License-Identifier: Apache-2.0
#include "rail/cxi/rail.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/plugin_answer.hpp"
#include "rail/proxy/check.hpp"

namespace strait::rail::cxi {

namespace {

constexpr std::uint32_t kMostInlineBytes = 512;
constexpr std::uint64_t kPassesPerSweep = 32;  // how often a pass for one queue looks at the others too
constexpr int kEventsPerPass = 256;
constexpr std::uint32_t kSerialMask = (1u << 24) - 1;

bool read_number(std::string_view text, std::uint32_t most, std::uint32_t& out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc{} && stop == end && out != 0 && out <= most;
}

// What a software device is told beside its number.
bool is_trial(std::string_view name) {
  constexpr std::array<std::string_view, 8> kTrial = {"strict",  "strict_seed",   "strict_report", "faults",
                                                      "cassini", "cassini_moves", "peer_memory",   "kernel_faults"};
  return std::ranges::find(kTrial, name) != kTrial.end();
}

Result<PortRequest> parse_config(std::string_view text) {
  PortRequest request;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = equals == pair.size() ? std::string_view() : pair.substr(equals + 1);
    if (name == "device") {
      const std::size_t slash = std::min(value.find('/'), value.size());
      request.device.name = value.substr(0, slash);
      if (slash != value.size() && !read_number(value.substr(slash + 1), 65535, request.vni))
        return fail(Code::invalid, "\"{}\" does not name a VNI behind the slash (1 to 65535)", value);
    } else if (name == "soft_library") {
      request.device.soft_library = value;
    } else if (is_trial(name)) {
      request.device.trial += fmt::format(",{}", pair);
    } else if (name != "service" || !read_number(value, UINT32_MAX, request.service)) {
      return fail(Code::invalid, "the CXI rail does not know \"{}\" (device=NAME or NAME/VNI, service=NUMBER)", pair);
    }
  }
  return request;
}

}  // namespace

Result<std::unique_ptr<CxiRail>> CxiRail::open(const std::string& config) {
  STRAIT_TRY(const PortRequest request, parse_config(config));
  STRAIT_TRY(std::unique_ptr<Port> port, Port::open(request));
  return open(std::move(port));
}

Result<std::unique_ptr<CxiRail>> CxiRail::open(std::unique_ptr<Port> port) {
  std::unique_ptr<CxiRail> rail(new CxiRail(std::move(port)));
  rail->port_->dispatch = [self = rail.get()](const Event& event) { self->dispatch(event); };
  STRAIT_CHECK(rail->doorbells_.make());
  STRAIT_CHECK(rail->port_->enable_portals());
  rail->memory_.probe_dmabuf();
  return rail;
}

CxiRail::~CxiRail() {
  // Each may have to hear of its commands, so all of them are known until the last has ended.
  if (!port_->device().in_child())
    for (const auto& [qpn, queue] : queues_) queue->fail();
  by_serial_.clear();
  queues_.clear();
}

strait_nic_info CxiRail::info() const {
  strait_nic_info out{};
  const Device& device = port_->device();
  plugin::put_text(device.name(), out.name, sizeof out.name);
  plugin::put_text(fmt::format("{}, mlx5 rings read by the CPU, {}",
                               device.software() ? "software Cassini" : "Slingshot NIC by its kernel interface",
                               memory_.takes_dmabuf() ? "takes dma-bufs" : "takes no dma-bufs (EOPNOTSUPP)"),
                   out.description, sizeof out.description);
  plugin::put_text(fmt::format("{} vni {}", port_->address().text(), port_->address().vni), out.address_text,
                   sizeof out.address_text);
  out.software = device.software() ? 1 : 0;
  out.max_inline_bytes = kMostInlineBytes;
  out.imports_fds = 1;
  out.has_packets = 1;
  out.wants_pages = memory_.takes_dmabuf() ? 0 : 1;
  out.plain_ways = STRAIT_NIC_WAY_UNKNOWN;
  return out;
}

// ---- Objects --------------------------------------------------------------------------------------------------------

Result<std::uint32_t*> CxiRail::find_pd(std::uint32_t pd) {
  const auto found = domains_.find(pd);
  if (found == domains_.end()) return fail(Code::invalid, "no protection domain has the number {}", pd);
  return &found->second;
}

Result<QueuePair*> CxiRail::find_qp(std::uint32_t qpn) {
  const auto found = queues_.find(qpn);
  if (found == queues_.end()) return fail(Code::invalid, "no queue pair has the number {:#x}", qpn);
  return found->second.get();
}

Result<std::uint32_t> CxiRail::alloc_pd() {
  const std::lock_guard lock(mutex_);
  domains_.emplace(next_pd_, 0);
  return next_pd_++;
}

Status CxiRail::free_pd(std::uint32_t pd) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(const std::uint32_t* users, find_pd(pd));
  if (*users != 0) return fail(Code::again, "{} objects still belong to protection domain {}", *users, pd);
  domains_.erase(pd);
  return {};
}

Result<strait_nic_mr> CxiRail::register_memory(const strait_nic_mr_request& request) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(std::uint32_t * users, find_pd(request.pd));
  STRAIT_TRY(const strait_nic_mr made, memory_.add(request));
  ++*users;
  return made;
}

Status CxiRail::deregister_memory(std::uint32_t lkey) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(const std::uint32_t pd, memory_.remove(lkey));
  --domains_[pd];
  return {};
}

Result<std::string> CxiRail::describe_memory(std::uint32_t lkey) {
  const std::lock_guard lock(mutex_);
  const Registration* const found = memory_.find(lkey);
  if (found == nullptr) return fail(Code::invalid, "no registration has the key {:#x}", lkey);
  return found->how;
}

Result<std::uint32_t> CxiRail::registered_by(std::uint32_t lkey) {
  const std::lock_guard lock(mutex_);
  const Registration* const found = memory_.find(lkey);
  if (found == nullptr) return fail(Code::invalid, "no registration has the key {:#x}", lkey);
  return found->by;
}

Result<std::uint32_t> CxiRail::create_cq(const strait_nic_cq_request& request) {
  const std::lock_guard lock(mutex_);
  return completions_.add(request);
}

Status CxiRail::destroy_cq(std::uint32_t cqn) {
  const std::lock_guard lock(mutex_);
  return completions_.remove(cqn);
}

Result<strait_nic_qp> CxiRail::create_qp(const strait_nic_qp_request& request) {
  STRAIT_CHECK(proxy::check(request));
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(std::uint32_t * users, find_pd(request.pd));
  STRAIT_TRY(proxy::CompletionWriter * sends, completions_.find(request.send_cqn));
  STRAIT_TRY(proxy::CompletionWriter * receives, completions_.find(request.recv_cqn));
  // 24 bits come back in events; an answer that is too late must not meet another queue pair.
  while (next_serial_ == 0 || by_serial_.contains(next_serial_)) next_serial_ = (next_serial_ + 1) & kSerialMask;
  STRAIT_TRY(auto queue, QueuePair::make(*port_, memory_, next_serial_, request, *sends, *receives, counts_));
  next_serial_ = (next_serial_ + 1) & kSerialMask;
  ++*users;
  const strait_nic_qp out{queue->qpn(), 0, doorbells_.of(queue->qpn())};
  by_serial_[queue->serial()] = queue.get();
  queues_.emplace(out.qpn, std::move(queue));
  return out;
}

Status CxiRail::connect_qp(std::uint32_t qpn, const strait_nic_connect_request& request) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(QueuePair * queue, find_qp(qpn));
  STRAIT_CHECK(queue->connect(request));
  // Receives that were posted before: a peer may send at once.
  (void)queue->service();
  port_->ring();
  return {};
}

Status CxiRail::fail_qp(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(QueuePair * queue, find_qp(qpn));
  queue->fail();
  (void)serve_noted();
  return {};
}

Status CxiRail::destroy_qp(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(QueuePair * queue, find_qp(qpn));
  queue->fail();
  by_serial_.erase(queue->serial());
  std::erase(noted_, queue);
  const std::uint32_t pd = queue->pd();
  queues_.erase(qpn);
  --domains_[pd];
  (void)serve_noted();
  return {};
}

Result<std::string> CxiRail::describe_qp(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  STRAIT_TRY(const QueuePair* queue, find_qp(qpn));
  return queue->describe();
}

// ---- Progress -------------------------------------------------------------------------------------------------------

void CxiRail::note(QueuePair* queue) {
  if (queue->noted) return;
  queue->noted = true;
  noted_.push_back(queue);
}

void CxiRail::dispatch(const Event& event) {
  switch (event.type) {
    case w::EventType::ack:
    case w::EventType::reply: {
      port_->give_transmit_credit();
      const auto answer = event.as<w::InitiatorShort>();
      const auto user = QueuePair::User::of(answer.user_ptr());
      const auto found = by_serial_.find(user.serial);
      if (found == by_serial_.end()) return;
      found->second->on_answer(user, event.code, answer.mlength());
      note(found->second);
      return;
    }
    case w::EventType::put: {
      const auto message = event.as<w::TargetLong>();
      if (message.ptlte_index() != port_->message_portal().number()) return;
      // Also told of: a message that no receive was there for. Its sender tries again.
      if (event.code == w::ReturnCode::entry_not_found || event.code == w::ReturnCode::no_match) return;
      const auto found = queues_.find(static_cast<std::uint32_t>(message.match_bits()));
      if (found == queues_.end()) return;
      found->second->on_message(message, event.code);
      note(found->second.get());
      return;
    }
    case w::EventType::unlink:
    case w::EventType::link: {
      const auto about = event.as<w::TargetLong>();
      if (about.ptlte_index() != port_->message_portal().number()) return;
      for (const auto& [qpn, queue] : queues_) {
        if (event.type == w::EventType::unlink) {
          queue->on_unlinked(about.buffer_id(), event.code);
        } else if (!event.ok()) {
          queue->on_append_failed(about.buffer_id());
        }
      }
      return;
    }
    default: return;
  }
}

int CxiRail::serve_noted() {
  int done = 0;
  // Serving notes nobody: only events do.
  for (QueuePair* const queue : noted_) {
    queue->noted = false;
    done += queue->service();
  }
  noted_.clear();
  if (done != 0) port_->ring();
  return done;
}

int CxiRail::drive(std::uint32_t qpn_hint) {
  if (port_->device().in_child()) return 0;
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

int CxiRail::pass(std::uint32_t qpn_hint) {
  int done = port_->take_events(kEventsPerPass);
  if (qpn_hint != 0 && ++passes_ % kPassesPerSweep != 0) {
    if (const auto found = queues_.find(qpn_hint); found != queues_.end()) done += found->second->service();
  } else {
    for (const auto& [qpn, queue] : queues_) done += queue->service();
    if (port_->events().lost_any()) ++port_->lost_events;
  }
  done += serve_noted();
  port_->ring();
  return done;
}

bool CxiRail::arm() {
  if (port_->device().in_child()) return true;
  const std::lock_guard lock(mutex_);
  port_->wake_by_events(true);
  bool quiet = !note_.load(std::memory_order_seq_cst) && !port_->events().any();
  std::int64_t due = INT64_MAX;
  for (const auto& [qpn, queue] : queues_) {
    quiet = queue->idle() && quiet;
    due = std::min(due, queue->due_ns());
  }
  if (!quiet) {
    port_->wake_by_events(false);
    return false;
  }
  port_->wake_after_ns(due == INT64_MAX ? -1 : std::max<std::int64_t>(due - sys::now_ns(), 0));
  return true;
}

std::string CxiRail::counters() {
  const std::lock_guard lock(mutex_);
  return fmt::format(
      "registrations={},by_address={},by_dmabuf={},dmabuf_refused={},by_mapping={},by_device_address={},by_port={},"
      "list_entries={},queue_pairs={},work_requests={},commands={},immediate={},lookups={},receives={},completions={},"
      "error_completions={},flushed={},completion_overruns={},receiver_not_ready={},timeouts={},events={},"
      "events_lost={},command_failures={}",
      memory_.size(), memory_.counts.by_address, memory_.counts.by_dmabuf, memory_.counts.dmabuf_refused,
      memory_.counts.by_mapping, memory_.counts.by_device_address, memory_.counts.by_port, memory_.counts.list_entries,
      queues_.size(), counts_.work_requests, counts_.commands, counts_.immediate, counts_.lookups, counts_.receives,
      counts_.completions, counts_.error_completions, counts_.flushed, counts_.overruns, counts_.not_ready,
      counts_.timeouts, port_->events_taken, port_->lost_events, port_->command_failures);
}

}  // namespace strait::rail::cxi
