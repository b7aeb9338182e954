// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/server.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "soft/cassini_host/protocol.hpp"
#include "sys/caller.hpp"
#include "sys/clock.hpp"
#include "sys/pause.hpp"
#include "sys/socket.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::size_t kMostSessions = 4096;
// Passes between two looks at the sockets and the clock while there is work in the rings, or was a moment ago: a look
// is a system call, and as long as a put with everything that comes of it.
constexpr std::uint32_t kPassesPerLook = 256;
// Looks at the queue that was busy last between two passes that look at everything and found nothing.
constexpr std::uint32_t kLooksPerPass = 8;
// Without a device that is open there are no rings: only sockets speak.
constexpr std::int64_t kNoRingsNs = 1'000'000'000;

// Its user ids at the moment of the connection, or any that it can go back to.
bool may_come_in(const sys::PeerCredentials& peer) {
  const std::uint32_t self = sys::real_user();
  return peer.uid == self || peer.uid == 0 || sys::process_has_user(peer.pid, self);
}

}  // namespace

std::string server_name() {
  const char* const given = std::getenv("STRAIT_CASSINI");
  return server_name(given != nullptr ? std::string(given) : std::string());
}

std::string server_name(const std::string& given) {
  return fmt::format("strait-cassini.{}.{}.{}", protocol::kVersion, sys::real_user(), given.empty() ? "all" : given);
}

Server::Server(ServerSettings settings, sys::Fd listener, sys::EventSet events, sys::Event stopping)
    : settings_(std::move(settings)),
      listener_(std::move(listener)),
      events_(std::move(events)),
      stopping_(std::move(stopping)),
      fabric_(settings_.cards),
      relay_([this](std::uint64_t owner) { return held_up_enough(static_cast<pid_t>(owner)); }) {}

Result<std::unique_ptr<Server>> Server::create(ServerSettings settings) {
  auto listener = sys::unix_listen(settings.name);
  if (!listener) {
    if (listener.error().sys_errno == EADDRINUSE)
      return fail(Code::again, "a server of software Cassinis listens at \"{}\" already", settings.name);
    return listener.error();
  }
  STRAIT_TRY(sys::EventSet events, sys::EventSet::make());
  STRAIT_TRY(sys::Event stopping, sys::Event::make());
  STRAIT_CHECK(events.add(listener->get()));
  STRAIT_CHECK(events.add(stopping.fd()));
  return std::unique_ptr<Server>(
      new Server(std::move(settings), std::move(*listener), std::move(events), std::move(stopping)));
}

void Server::stop() {
  stop_.store(true, std::memory_order_release);
  stopping_.raise();
}

std::shared_ptr<Patience> Server::patience_with(pid_t process) {
  const std::int64_t now = sys::now_ns();
  std::erase_if(patience_, [&](const auto& each) { return each.second.use_count() == 1 && each.second->whole(now); });
  auto& known = patience_[process];
  if (!known) known = std::make_shared<Patience>(now);
  return known;
}

void Server::take_newcomers() {
  while (sessions_.size() < kMostSessions) {
    auto socket = sys::accept_one(listener_.get());
    if (!socket) return;
    const auto peer = sys::peer_credentials(socket->get());
    if (!peer || !may_come_in(*peer)) continue;
    auto session = std::make_unique<Session>(fabric_, relay_, std::move(*socket), *peer, next_id_,
                                             !settings_.ask_for_memory, patience_with(peer->pid));
    if (!events_.add(session->socket())) continue;
    ++next_id_;
    sessions_.push_back(std::move(session));
  }
}

bool Server::look_at_sockets() {
  if (!events_.wait_ns(0)) return false;
  take_newcomers();
  for (std::size_t i = 0; i < sessions_.size();) {
    if (sessions_[i]->serve()) {
      ++i;
      continue;
    }
    events_.remove(sessions_[i]->socket());
    std::swap(sessions_[i], sessions_.back());
    sessions_.pop_back();
  }
  return true;
}

bool Server::held_up_enough(pid_t process) {
  const std::int64_t now = sys::now_ns();
  std::erase_if(copying_, [&](const auto& each) { return each.second.whole(now); });
  Patience& patience = copying_.try_emplace(process, now).first->second;
  patience.waited(now - sys::Relay::kTickNs - Patience::kPromptNs, now);
  return patience.left_ns(now) == 0;
}

Status Server::run() {
  return relay_.run([this] {
    serve();
    sessions_.clear();  // what they copy at their end is bounded, too
  });
}

void Server::serve() {
  Pace pace;
  Pace::Rest rest = Pace::Rest::sleep;
  std::int64_t alone_since = sys::now_ns();
  while (!stop_.load(std::memory_order_acquire)) {
    bool worked = false;
    for (std::uint32_t passes = rest == Pace::Rest::spin ? kPassesPerLook : 1; passes != 0; --passes) {
      const bool did = fabric_.drive() != 0;
      worked = worked || did;
      if (!did && rest == Pace::Rest::spin) fabric_.await_busiest(kLooksPerPass);
    }
    worked = look_at_sockets() || worked;
    const std::int64_t now = sys::now_ns();
    if (sessions_.empty()) {
      const std::int64_t left = alone_since + settings_.linger_ns - now;
      if (left <= 0) return;
      (void)events_.wait_ns(left);
      continue;
    }
    alone_since = now;
    if (std::none_of(sessions_.begin(), sessions_.end(), [](const auto& each) { return each->has_client(); })) {
      (void)events_.wait_ns(kNoRingsNs);
      continue;
    }
    rest = pace.after(worked, now);
    switch (rest) {
      case Pace::Rest::spin: break;
      case Pace::Rest::yield: std::this_thread::yield(); break;
      case Pace::Rest::sleep: (void)events_.wait_ns(pace.sleep_ns()); break;
    }
  }
}

}  // namespace strait::soft::cassini
