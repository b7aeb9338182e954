// SPDX-License-Identifier: Apache-2.0
#include "sys/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "sys/process.hpp"

namespace strait::sys {
static_assert(kHere == AT_FDCWD);
namespace {

// Group and others have no business with a secret, not even to see that it is there.
Status check_private(const struct stat& seen, const std::string& shown, const char* what, const char* mode) {
  if (seen.st_uid != ::geteuid()) {
    return with_remedy(fail(Code::denied, "the {} {} belongs to user {}, not to us (user {})", what, shown,
                            unsigned{seen.st_uid}, unsigned{::geteuid()}),
                       "Remove it, or give the secret with the option `secret`.");
  }
  if ((seen.st_mode & 077) != 0) {
    return with_remedy(fail(Code::denied, "the {} {} is open to other users (mode {:04o})", what, shown,
                            unsigned{seen.st_mode & 07777}),
                       fmt::format("chmod {} {}", mode, shown));
  }
  return {};
}

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& shown) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fail_errno(wrote == 0 ? EIO : errno, fmt::format("cannot write {}", shown));
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace

bool is_folder(const std::string& path) {
  struct stat seen {};
  return ::stat(path.c_str(), &seen) == 0 && S_ISDIR(seen.st_mode);
}

unsigned user_id() {
  return ::geteuid();
}

Result<Fd> open_private_folder(const std::string& path) {
  // A folder that is there is as good as one we made: it is checked below in either case.
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno(errno, fmt::format("cannot make the folder {}", path));
  }
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() && (errno == ENOTDIR || errno == ELOOP)) {
    return with_remedy(fail(Code::denied, "{} is not a folder but a file or a link", path),
                       "Remove it, or give the secret with the option `secret`.");
  }
  if (!fd.valid()) return fail_errno(errno, fmt::format("cannot open the folder {}", path));
  struct stat seen {};
  if (::fstat(fd.get(), &seen) != 0) return fail_errno(errno, fmt::format("cannot look at the folder {}", path));
  STRAIT_CHECK(check_private(seen, path, "folder", "700"));
  return fd;
}

Result<std::optional<std::vector<std::byte>>> read_private_file(int folder, const std::string& name,
                                                                const std::string& shown, std::size_t max_bytes) {
  using Answer = std::optional<std::vector<std::byte>>;
  // Not blocking: a FIFO under that name must not hold us up.
  Fd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) return Answer{};
  if (!fd.valid() && errno == ELOOP) return fail(Code::denied, "{} is a link: a secret has to be a plain file", shown);
  if (!fd.valid()) return fail_errno(errno, fmt::format("cannot open {}", shown));
  struct stat seen {};
  if (::fstat(fd.get(), &seen) != 0) return fail_errno(errno, fmt::format("cannot look at {}", shown));
  if (!S_ISREG(seen.st_mode)) return fail(Code::denied, "{} is not a plain file", shown);
  STRAIT_CHECK(check_private(seen, shown, "file", "600"));

  std::vector<std::byte> bytes(max_bytes + 1);
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, fmt::format("cannot read {}", shown));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled > max_bytes) return fail(Code::invalid, "{} is longer than {} bytes", shown, max_bytes);
  bytes.resize(filled);
  return Answer(std::move(bytes));
}

Result<bool> create_private_file(int folder, const std::string& name, const std::string& shown,
                                 std::span<const std::byte> bytes) {
  // Written under a name nobody guesses, then linked: link(2) fails when the name exists, so the first one wins and no
  // reader ever sees half of it. O_TMPFILE would do without the second name but not every file system has it.
  std::array<std::byte, 8> random{};
  STRAIT_CHECK(fill_random(random));
  std::string draft = name + ".";
  for (const std::byte each : random) draft += fmt::format("{:02x}", std::to_integer<unsigned>(each));

  const Fd fd(::openat(folder, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno(errno, fmt::format("cannot create {}", shown));
  Status written = write_all(fd.get(), bytes, shown);
  const int linked = written ? ::linkat(folder, draft.c_str(), folder, name.c_str(), 0) : -1;
  const int cause = errno;
  ::unlinkat(folder, draft.c_str(), 0);
  if (!written) return std::move(written).error();
  if (linked != 0 && cause != EEXIST) return fail_errno(cause, fmt::format("cannot create {}", shown));
  return linked == 0;
}

}  // namespace strait::sys
