// SPDX-License-Identifier: Apache-2.0
#include "sys/event_pipe.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "sys/socket.hpp"

namespace strait::sys {

namespace {

constexpr std::size_t kMostBytes = 64;

std::uint64_t inode_of(int fd) {
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0 || !S_ISSOCK(about.st_mode)) return 0;
  return about.st_ino;
}

bool put(int fd, std::span<const std::byte> event) {
  return ::send(fd, event.data(), event.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

}  // namespace

Result<EventPipe::Made> EventPipe::make() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno(errno, "cannot make a pair of sockets for events");
  Made made;
  made.pipe.fd_ = Fd(ends[0]);
  made.reader = Fd(ends[1]);
  made.pipe.reader_fd_ = ends[1];
  made.pipe.reader_inode_ = inode_of(ends[1]);
  return made;
}

void EventPipe::flush() {
  std::size_t sent = 0;
  while (sent < waiting_.size() && put(fd_.get(), waiting_[sent])) ++sent;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent));
}

void EventPipe::send(std::span<const std::byte> event) {
  flush();
  if (!waiting_.empty() || !put(fd_.get(), event)) waiting_.emplace_back(event.begin(), event.end());
}

std::uint32_t EventPipe::take_back(const std::function<bool(std::span<const std::byte>)>& is_mine) {
  std::vector<std::vector<std::byte>> all;
  // The reader's own end is the only place where they can be had. If it goes by another number now, they are its.
  while (is_reader(reader_fd_)) {
    std::array<std::byte, kMostBytes> event{};
    const ssize_t n = ::recv(reader_fd_, event.data(), event.size(), MSG_DONTWAIT);
    if (n <= 0) break;
    all.emplace_back(event.begin(), event.begin() + n);
  }
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  const auto taken = std::erase_if(all, [&](const auto& event) { return is_mine(event); });
  waiting_ = std::move(all);
  flush();
  return static_cast<std::uint32_t>(taken);
}

bool EventPipe::is_reader(int fd) const {
  return reader_inode_ != 0 && inode_of(fd) == reader_inode_;
}

bool EventPipe::abandoned() const {
  return peer_closed(fd_.get());
}

}  // namespace strait::sys
