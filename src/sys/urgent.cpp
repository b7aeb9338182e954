// SPDX-License-Identifier: Apache-2.0
#include "sys/urgent.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace strait::sys {
namespace {

constexpr int kAcceptMs = 5000;

// The other end of a connection has to be ours: anybody on this host may connect to a loopback port.
bool same_ends(int accepted, int connected) {
  sockaddr_in from{}, self{};
  socklen_t from_length = sizeof from, self_length = sizeof self;
  return ::getpeername(accepted, reinterpret_cast<sockaddr*>(&from), &from_length) == 0 &&
         ::getsockname(connected, reinterpret_cast<sockaddr*>(&self), &self_length) == 0 &&
         from.sin_port == self.sin_port && from.sin_addr.s_addr == self.sin_addr.s_addr;
}

}  // namespace

Result<Urgent> Urgent::make() {
  constexpr const char* kWhat = "cannot make a descriptor that polls as urgent";
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Fd raise(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid() || !raise.valid()) return fail_errno(errno, kWhat);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      ::listen(listener.get(), 8) != 0 || ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0)
    return fail_errno(errno, kWhat);
  if (::connect(raise.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 && errno != EINPROGRESS)
    return fail_errno(errno, kWhat);
  Fd watch;
  while (!watch.valid()) {
    pollfd entry{listener.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, kAcceptMs);
    if (ready == 0) return fail_errno(ETIMEDOUT, kWhat);
    if (ready < 0 && errno != EINTR) return fail_errno(errno, kWhat);
    Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted.valid() && same_ends(accepted.get(), raise.get())) watch = std::move(accepted);
  }
  const int on = 1;
  (void)::setsockopt(raise.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // The byte stays in the stream: then an ordinary read takes it, and the state with it.
  if (::setsockopt(watch.get(), SOL_SOCKET, SO_OOBINLINE, &on, sizeof on) != 0) return fail_errno(errno, kWhat);
  return Urgent(std::move(raise), std::move(watch));
}

void Urgent::raise() const {
  pollfd entry{watch_.get(), POLLPRI, 0};
  if (::poll(&entry, 1, 0) == 1 && (entry.revents & POLLPRI) != 0) return;
  const char byte = 1;
  (void)!::send(raise_.get(), &byte, 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Urgent::clear(int watch) {
  char bytes[64];
  while (::recv(watch, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
}

}  // namespace strait::sys
