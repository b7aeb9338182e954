// SPDX-License-Identifier: Apache-2.0
#include "sys/open_watch.hpp"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "sys/quiet_thread.hpp"

namespace strait::sys {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "say which AUDIT_ARCH_ this machine is"
#endif

#ifdef SYS_open
constexpr std::uint32_t kOpen = SYS_open;
#else
constexpr std::uint32_t kOpen = SYS_openat;  // there is no other
#endif

// open, openat and openat2 are told to the listener; everything else is none of its business.
constexpr sock_filter kFilter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 4),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOpen, 3, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
};

union Control {
  cmsghdr head;
  char bytes[CMSG_SPACE(sizeof(int))];
};

bool send_fd(int socket, int fd) {
  char byte = 0;
  iovec piece{&byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return ::sendmsg(socket, &message, 0) == 1;
}

Fd receive_fd(int socket) {
  char byte;
  iovec piece{&byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return {};
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return Fd(fd);
}

// A text in another process; what can be read of it. A page at a time: it may end just before one that is not there.
std::string text_in(pid_t process, std::uint64_t address) {
  constexpr std::uint64_t kPage = 4096;
  std::string text;
  char bytes[kPage];
  while (text.size() < kPage) {
    const std::size_t count = static_cast<std::size_t>(kPage - address % kPage);
    const iovec local{bytes, count};
    const iovec remote{reinterpret_cast<void*>(address), count};
    const ssize_t got = ::process_vm_readv(process, &local, 1, &remote, 1, 0);
    if (got <= 0) break;
    const std::size_t length = ::strnlen(bytes, static_cast<std::size_t>(got));
    text.append(bytes, length);
    if (length < static_cast<std::size_t>(got)) break;
    address += static_cast<std::uint64_t>(got);
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<OpenWatch>> OpenWatch::prepare(Heard heard) {
  std::unique_ptr<OpenWatch> watch(new OpenWatch(std::move(heard)));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_errno(errno, "making a socket pair");
  watch->ours_ = Fd(ends[0]);
  watch->theirs_ = Fd(ends[1]);
  STRAIT_TRY(watch->stop_, Event::make());
  return watch;
}

int OpenWatch::begin_in_child() const {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  sock_fprog program{};
  program.len = sizeof kFilter / sizeof kFilter[0];
  program.filter = const_cast<sock_filter*>(kFilter);
  const long listener = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (listener < 0) return errno;
  const bool sent = send_fd(theirs_.get(), static_cast<int>(listener));
  ::close(static_cast<int>(listener));
  return sent ? 0 : EIO;
}

Status OpenWatch::listen() {
  theirs_.reset();  // so that a child that ended before it sent anything is noticed
  listener_ = receive_fd(ours_.get());
  if (!listener_.valid()) return fail(Code::unsupported, "the child could not begin to be watched");
  STRAIT_TRY(thread_, start_quiet_thread([this] { serve(); }));
  return {};
}

void OpenWatch::serve() {
  for (;;) {
    pollfd fds[2] = {{listener_.get(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    if ((fds[0].revents & POLLIN) != 0) {
      answer_one();
    } else if (fds[0].revents != 0) {
      return;  // everybody is gone
    }
  }
}

void OpenWatch::answer_one() {
  seccomp_notif asked{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
  const bool plain = static_cast<std::uint32_t>(asked.data.nr) == kOpen && kOpen != SYS_openat;
  const pid_t process = static_cast<pid_t>(asked.pid);
  const std::string path = text_in(process, asked.data.args[plain ? 0 : 1]);
  // Still the same process? Its number could be another's by now, and the text with it.
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &asked.id) == 0 && !path.empty()) heard_(process, path);
  seccomp_notif_resp answer{};
  answer.id = asked.id;
  answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

OpenWatch::~OpenWatch() {
  if (!thread_.joinable()) return;
  stop_.raise();
  thread_.join();
}

}  // namespace strait::sys
