// SPDX-License-Identifier: Apache-2.0
#include "sys/scratch.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

namespace strait::sys {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "lock";
constexpr const char* kUnfinished = ".new";
constexpr auto kForgotten = std::chrono::hours(1);  // an unfinished one has no lock yet to ask

// The lock goes last: who is killed half-way leaves something that can be told from what lives.
void remove_tree(const std::string& path) {
  std::error_code failed, ignored;
  for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().filename() != kLock) fs::remove_all(at->path(), ignored);
  }
  fs::remove_all(path, ignored);
}

bool is_ours(const std::string& path) {
  struct stat is;
  return ::lstat(path.c_str(), &is) == 0 && S_ISDIR(is.st_mode) && is.st_uid == ::geteuid();
}

bool owner_is_gone(const std::string& path) {
  const Fd lock(::open((path + "/" + kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

bool is_forgotten(const fs::path& path) {
  std::error_code failed;
  const auto made = fs::last_write_time(path, failed);
  return !failed && fs::file_time_type::clock::now() - made > kForgotten;
}

}  // namespace

std::string temporary_folder() {
  const char* given = ::getenv("TMPDIR");
  return given != nullptr && given[0] == '/' ? given : "/tmp";
}

Result<Scratch> Scratch::create(const std::string& parent, const std::string& name) {
  char* resolved = ::realpath(parent.c_str(), nullptr);
  if (resolved == nullptr) return fail_errno(errno, fmt::format("finding the folder for temporary files {}", parent));
  const std::string folder = resolved;
  ::free(resolved);

  // Made under another name, and given its own once it is locked: who sweeps never finds it without.
  std::string unfinished = folder + "/" + name + kUnfinished + ".XXXXXX";
  if (::mkdtemp(unfinished.data()) == nullptr)
    return with_remedy(fail_errno(errno, fmt::format("making a folder in {}", folder)),
                       "Set TMPDIR to a folder that can be written to.");
  Fd lock(::open((unfinished + "/" + kLock).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    remove_tree(unfinished);
    return fail_errno(error, fmt::format("locking a file in {}", unfinished));
  }
  std::string path = folder + "/" + name + unfinished.substr(unfinished.rfind('.'));
  if (::rename(unfinished.c_str(), path.c_str()) != 0) {
    const int error = errno;
    remove_tree(unfinished);
    return fail_errno(error, fmt::format("naming the folder {}", path));
  }
  return Scratch(std::move(path), std::move(lock));
}

Scratch::~Scratch() {
  if (lock_.valid() && !mark_.in_child()) remove_tree(path_);
}

int Scratch::sweep(const std::string& parent, const std::string& name) {
  std::error_code failed;
  int removed = 0;
  for (fs::directory_iterator at(parent, fs::directory_options::skip_permission_denied, failed), end;
       !failed && at != end; at.increment(failed)) {
    const std::string entry = at->path().filename().string();
    const std::string path = at->path().string();
    if (!entry.starts_with(name + ".") || !is_ours(path)) continue;
    // Without a lock: somebody else's, or of one who was killed between the last two steps of removing it.
    std::error_code unknown;
    const bool has_lock = fs::exists(fs::symlink_status(path + "/" + kLock, unknown));
    const bool half_made = entry.starts_with(name + kUnfinished + ".");
    if (!has_lock && !half_made && ::rmdir(path.c_str()) == 0) {
      ++removed;
      continue;
    }
    if (half_made || !has_lock ? !is_forgotten(at->path()) : !owner_is_gone(path)) continue;
    remove_tree(path);
    ++removed;
  }
  return removed;
}

}  // namespace strait::sys
