// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/service.hpp"

#include <algorithm>
#include <atomic>
#include <list>
#include <thread>

#include "rendezvous/session.hpp"
#include "sys/clock.hpp"
#include "sys/event.hpp"
#include "sys/fork.hpp"
#include "sys/process.hpp"
#include "sys/quiet_thread.hpp"
#include "sys/stream.hpp"

namespace strait::rendezvous {
namespace {

constexpr std::int64_t kNever = INT64_MAX;
constexpr std::int64_t kDrainNs = 500'000'000;        // for a refusal to be read before the connection is cut
constexpr std::int64_t kAcceptPauseNs = 100'000'000;  // when there are no descriptors left
constexpr int kStepsPerTurn = 16;                     // frames of one connection before the others get their turn

}  // namespace

class Service::Loop {
 public:
  Loop(const ServiceSettings& settings, Handler& handler)
      : settings_(settings), host_{settings_.secret, handler, counters, [this] { return admit(); }} {}

  Status open() {
    STRAIT_TRY(sys::Fd listener, sys::tcp_listen(settings_.at, &endpoint));
    // The address that was taken, not the name that was given: "127.example.org" is not loopback.
    STRAIT_CHECK(check_listen(endpoint, settings_.secret));
    listener_ = sys::ProcessFd(std::move(listener));
    STRAIT_TRY(wake_, sys::Event::make());
    STRAIT_TRY(thread_, sys::start_quiet_thread([this] { run(); }));
    return {};
  }

  void stop() {
    stopping_.store(true);
    wake_.raise();
    if (thread_.joinable()) thread_.join();
    listener_.reset();
  }

  sys::Endpoint endpoint;
  ServiceCounters counters;
  const sys::ForkMark mark;

 private:
  struct Connection {
    sys::ProcessFd fd;
    Session session;
    std::int64_t deadline_ns = kNever;
    bool draining = false;  // everything was sent, the end was announced: waiting for the other side to close
    bool dead = false;
    bool more = false;  // whole frames wait in the session
  };

  // Time spent in the handler does not count against anybody's deadline.
  [[nodiscard]] std::int64_t now() const { return sys::now_ns() - handler_ns_; }

  void run() {
    while (!stopping_.load()) {
      const int timeout_ms = prepare();
      sys::wait_any(polled_, timeout_ms);
      wake_.clear();
      if (stopping_.load()) break;
      serve_ready();
      if (listener_polled_ && polled_[1].revents != 0) accept_all();
      sweep();
    }
    for (Connection& each : connections_) close(each);
    connections_.clear();
  }

  // Fills polled_: the wake event, the listener, then one entry for every connection in order. Returns the timeout.
  int prepare() {
    std::int64_t first = resume_accept_ns_;
    listener_polled_ = counters.strangers < settings_.max_strangers && resume_accept_ns_ == kNever;
    polled_.clear();
    polled_.push_back({wake_.fd(), POLLIN, 0});
    polled_.push_back({listener_polled_ ? listener_.get() : -1, POLLIN, 0});
    bool more = false;
    for (Connection& each : connections_) {
      const bool writing = !each.session.out().empty();
      polled_.push_back({each.fd.get(), static_cast<short>(writing ? POLLOUT : POLLIN), 0});
      first = std::min(first, each.deadline_ns);
      more |= each.more;
    }
    if (more) return 0;
    if (first == kNever) return -1;
    return static_cast<int>(std::clamp<std::int64_t>((first - now() + 999'999) / 1'000'000, 0, 60'000));
  }

  void serve_ready() {
    std::size_t i = 2;
    for (Connection& each : connections_) {
      const short events = polled_[i++].revents;
      if (events == 0 && !each.more) continue;
      if (!each.session.out().empty()) flush(each);
      if (!each.dead && each.session.out().empty()) read(each, events != 0);
    }
  }

  void read(Connection& c, bool ready) {
    std::array<std::byte, 16384> chunk;
    const std::size_t room = c.draining ? chunk.size() : std::min(chunk.size(), c.session.room());
    if (ready && room > 0) {
      auto got = sys::receive_some(c.fd.get(), std::span(chunk).first(room));
      if (!got && got.error().code == Code::again) return;
      if (!got) return close(c);
      if (c.draining) return;  // nobody listens any more
      c.session.receive(std::span(chunk).first(*got));
    }
    const bool was_peer = c.session.is_peer();
    const std::int64_t before = sys::now_ns();
    bool stepped = true;
    for (int i = 0; i < kStepsPerTurn && stepped && c.session.out().empty(); ++i) stepped = c.session.step();
    handler_ns_ += sys::now_ns() - before;
    c.more = stepped && !c.session.finished();
    if (!was_peer && c.session.is_peer()) count(-1, +1);
    flush(c);
    if (!c.dead && !c.draining) set_deadline(c, was_peer);
  }

  // A stranger has one deadline from start to end, whatever it sends; a peer one for each frame and each answer.
  void set_deadline(Connection& c, bool was_peer) {
    if (!c.session.is_peer() && !c.session.finished()) return;
    const bool waiting = c.session.partial() || !c.session.out().empty();
    if (!waiting && !c.session.finished()) {
      c.deadline_ns = kNever;
    } else if (c.deadline_ns == kNever || !was_peer) {
      c.deadline_ns = now() + settings_.frame_ns;
    }
  }

  void flush(Connection& c) {
    auto& out = c.session.out();
    while (!out.empty()) {
      auto sent = sys::send_some(c.fd.get(), out);
      if (!sent && sent.error().code == Code::again) return;
      if (!sent) return close(c);
      out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(*sent));
    }
    if (!c.session.finished() || c.draining) return;
    // Closing with unread input would reset the connection and could take the refusal with it.
    sys::finish_sending(c.fd.get());
    c.draining = true;
    c.deadline_ns = now() + kDrainNs;
  }

  void accept_all() {
    while (counters.strangers < settings_.max_strangers) {
      auto fd = sys::accept_one(listener_.get());
      if (!fd && fd.error().code == Code::again) return;
      Bytes32 nonce{};
      if (!fd || !sys::fill_random(nonce)) {
        resume_accept_ns_ = now() + kAcceptPauseNs;
        return;
      }
      counters.accepted.add();
      count(+1, 0);
      connections_.push_back({sys::ProcessFd(std::move(*fd)), Session(host_, nonce), now() + settings_.greeting_ns});
    }
  }

  void sweep() {
    const std::int64_t at = now();
    if (at >= resume_accept_ns_) resume_accept_ns_ = kNever;
    for (Connection& each : connections_) {
      if (each.dead || at < each.deadline_ns) continue;
      if (!each.draining) counters.timed_out.add();
      close(each);
    }
    connections_.remove_if([](const Connection& each) { return each.dead; });
  }

  void close(Connection& c) {
    if (c.dead) return;
    c.dead = true;
    c.fd.reset();
    if (!c.session.is_peer()) return count(-1, 0);
    count(0, -1);
    const std::int64_t before = sys::now_ns();
    host_.handler.on_gone(c.session.peer());
    handler_ns_ += sys::now_ns() - before;
  }

  Result<PeerId> admit() {
    if (counters.peers >= settings_.max_peers) {
      return fail(Code::limit, "this node serves {} peers already, which is its limit", settings_.max_peers);
    }
    return ++last_peer_;
  }

  void count(int strangers, int peers) {
    counters.strangers += static_cast<std::size_t>(strangers);
    counters.peers += static_cast<std::size_t>(peers);
  }

  const ServiceSettings settings_;
  SessionHost host_;
  sys::ProcessFd listener_;
  sys::Event wake_;
  std::atomic<bool> stopping_{false};

  // Of the thread alone:
  std::list<Connection> connections_;
  std::vector<pollfd> polled_;
  bool listener_polled_ = false;
  std::int64_t resume_accept_ns_ = kNever;
  std::int64_t handler_ns_ = 0;
  PeerId last_peer_ = 0;

  std::thread thread_;
};

Service::Service(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

Result<std::unique_ptr<Service>> Service::start(const ServiceSettings& settings, Handler& handler) {
  auto loop = std::make_unique<Loop>(settings, handler);
  STRAIT_CHECK(loop->open());
  return std::unique_ptr<Service>(new Service(std::move(loop)));
}

Service::~Service() {
  stop();
  // In a forked child the thread object names a thread that is not there: it can be neither joined nor destroyed.
  if (loop_->mark.in_child()) (void)loop_.release();
}

void Service::stop() {
  if (!loop_->mark.in_child()) loop_->stop();
}

const sys::Endpoint& Service::endpoint() const {
  return loop_->endpoint;
}

ServiceStats Service::stats() const {
  const ServiceCounters& c = loop_->counters;
  return {c.accepted.load(),  c.authenticated.load(), c.denied.load(), c.garbage.load(),
          c.timed_out.load(), c.requests.load(),      c.strangers,     c.peers};
}

}  // namespace strait::rendezvous
