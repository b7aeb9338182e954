// SPDX-License-Identifier: Apache-2.0
#include "sys/local_datagram.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace strait::sys {
namespace {

struct Address {
  sockaddr_un storage{};
  socklen_t length = 0;
};

bool set_address(const LocalName& name, Address& out) {
  out.storage.sun_family = AF_UNIX;
  const std::size_t skip = name.abstract ? 1 : 0;  // an abstract name begins with a zero byte
  if (name.text.empty() || name.text.size() + 1 > sizeof out.storage.sun_path) return false;
  if (!name.abstract && name.text.find('\0') != std::string::npos) return false;
  std::memcpy(out.storage.sun_path + skip, name.text.data(), name.text.size());
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.text.size() + 1);
  return true;
}

const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

// A socket file that nobody listens to any more.
bool is_left_over(const LocalName& name, const Address& address, const Calls& calls) {
  struct stat info {};
  if (name.abstract || ::lstat(name.text.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  const Fd probe(calls.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe.valid() && ::connect(probe.get(), generic(address), address.length) != 0 && errno == ECONNREFUSED;
}

}  // namespace

Result<LocalDatagram> LocalDatagram::bind(const LocalName& name, const Calls& calls) {
  Address address;
  if (!set_address(name, address)) {
    return with_remedy(fail(Code::invalid, "\"{}\" cannot name a local socket", name.text),
                       fmt::format("use a name of 1 to {} bytes", sizeof address.storage.sun_path - 1));
  }
  Fd fd(calls.socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno(errno, "cannot make a local socket");
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return fail_errno(errno, "cannot have the senders of a local socket named");
  }
  // A queue in the kernel is bounded by count as well as by bytes; this is for the bytes.
  const int bytes = 4 << 20;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  int rc = ::bind(fd.get(), generic(address), address.length);
  if (rc != 0 && errno == EADDRINUSE && is_left_over(name, address, calls)) {
    (void)::unlink(name.text.c_str());
    rc = ::bind(fd.get(), generic(address), address.length);
  }
  if (rc != 0 && errno == EADDRINUSE) return fail(Code::again, "a process has the local socket \"{}\"", name.text);
  if (rc != 0) return fail_errno(errno, fmt::format("cannot bind the local socket \"{}\"", name.text));
  return LocalDatagram(std::move(fd), name.abstract ? std::string() : name.text);
}

LocalDatagram::LocalDatagram(LocalDatagram&& other) noexcept
    : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}

LocalDatagram::~LocalDatagram() {
  if (!path_.empty() && fd_.valid()) (void)::unlink(path_.c_str());
}

int LocalDatagram::send(const LocalName& to, std::span<const std::byte> head, std::span<const std::byte> body) const {
  Address address;
  if (!set_address(to, address)) return EINVAL;
  iovec pieces[2] = {{const_cast<std::byte*>(head.data()), head.size()},
                     {const_cast<std::byte*>(body.data()), body.size()}};
  msghdr header{};
  header.msg_name = &address.storage;
  header.msg_namelen = address.length;
  header.msg_iov = pieces;
  header.msg_iovlen = 2;
  for (;;) {
    if (::sendmsg(fd_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

Result<LocalDatagram::Got> LocalDatagram::receive(std::span<std::byte> into) const {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec piece{into.data(), into.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN) return fail(Code::again, "nothing has arrived");
    return fail_errno(errno, "cannot receive from a local socket");
  }
  Got out{static_cast<std::size_t>(got), static_cast<uid_t>(-1), (header.msg_flags & MSG_TRUNC) != 0};
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr; entry = CMSG_NXTHDR(&header, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_CREDENTIALS) continue;
    ucred credentials{};
    std::memcpy(&credentials, CMSG_DATA(entry), sizeof credentials);
    out.sender = credentials.uid;
  }
  return out;
}

uid_t effective_user() {
  return ::geteuid();
}

}  // namespace strait::sys
