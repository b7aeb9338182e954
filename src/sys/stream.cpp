// SPDX-License-Identifier: Apache-2.0
#include "sys/stream.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace strait::sys {

Result<std::size_t> receive_some(int socket, std::span<std::byte> into) {
  const ssize_t got = ::recv(socket, into.data(), into.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0 || errno == ECONNRESET) return fail(Code::gone, "the other side closed the connection");
  if (errno == EAGAIN || errno == EINTR) return fail(Code::again, "nothing has arrived");
  return fail_errno(errno, "cannot receive");
}

Result<std::size_t> send_some(int socket, std::span<const std::byte> bytes) {
  const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EPIPE || errno == ECONNRESET) return fail(Code::gone, "the other side closed the connection");
  if (errno == EAGAIN || errno == EINTR) return fail(Code::again, "the other side does not read");
  return fail_errno(errno, "cannot send");
}

void finish_sending(int socket) {
  ::shutdown(socket, SHUT_WR);
}

bool at_end(int socket) {
  std::byte one{};
  const ssize_t got = ::recv(socket, &one, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void wait_any(std::span<pollfd> entries, int timeout_ms) {
  if (::poll(entries.data(), entries.size(), timeout_ms) >= 0) return;
  for (pollfd& entry : entries) entry.revents = 0;
}

}  // namespace strait::sys
