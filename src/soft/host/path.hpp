// SPDX-License-Identifier: Apache-2.0
// Which paths belong to the software devices, and where their files really are.
//
// A *root* is a folder with a tree of its own: ROOT/sys/class/infiniband stands for /sys/class/infiniband. A *claim* is
// a path (/sys/class/infiniband) at and below which the root answers and the real file system does not.
//
// Used inside programs that know nothing of us, from signal handlers and before main(): no memory is allocated, nothing
// is locked, no run time of C++ is needed.
#pragma once

#include <cstddef>

namespace strait::soft::host {

inline constexpr std::size_t kPathBytes = 4096;
inline constexpr std::size_t kMaxClaims = 64;

// Folders of the root that are not shown: what the processes of a run leave for `strait run`.
inline constexpr const char* kReports = "/report";
inline constexpr const char* kCaptures = "/capture";
// What a file of the root begins with whose text a family makes anew for every open, and the file that says of a folder
// that every name in it is such a file.
inline constexpr char kLiveMark[] = "strait: live\n";
inline constexpr char kLiveFolder[] = "/.live";

// What a path looks like from outside, by the caller: tests hand in a tree of their own. The text of the link without a
// terminating zero, or -errno; -EINVAL: something is there that is no link.
using ReadLink = long (*)(void* context, const char* path, char* into, std::size_t capacity);

enum class Placed {
  unchanged,  // not ours: use the path that was given
  moved,      // use Place::path
  failed,     // Place::error: what the program sees
};

struct Place {
  char path[kPathBytes];  // absolute
  bool inside = false;    // in the root; otherwise a path left it through a link or ".."
  int error = 0;
};

class PathMap {
 public:
  // `root` absolute, without a slash at the end. False: too long.
  [[nodiscard]] bool set_root(const char* root);
  // False: not absolute, too long, or too many.
  [[nodiscard]] bool add_claim(const char* path);
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] const char* root() const { return root_; }
  [[nodiscard]] std::size_t root_length() const { return root_length_; }

  // May an absolute path, or one relative to an ordinary folder, be ours at all? Cheap; no means no.
  [[nodiscard]] bool may_concern(const char* path) const;
  // Is a relative path in this folder (absolute, as the kernel names it) to be looked at whatever it says?
  [[nodiscard]] bool concerns_folder(const char* folder) const;

  // Where `path` leads, seen from `folder` (absolute, as the kernel names it; ignored for an absolute path). `follow`:
  // also when its last part is a link.
  [[nodiscard]] Placed place(const char* folder, const char* path, bool follow, ReadLink read_link, void* context,
                             Place& out) const;

  // The name that programs know: turns ROOT/sys/... in place into /sys/...; false when it is not in the root.
  bool to_logical(char* path) const;
  // /sys/class/infiniband and everything below; `path` as programs know it, without "..".
  [[nodiscard]] bool claimed(const char* path, std::size_t length) const;
  // A folder above a claim: the n-th name in it that a claim brings, or null. Names may repeat.
  [[nodiscard]] const char* name_below(const char* folder, std::size_t n, std::size_t* length) const;

 private:
  [[nodiscard]] const char* below_root(const char* path) const;
  [[nodiscard]] bool above_claim(const char* path, std::size_t length) const;
  char root_[kPathBytes] = {};
  std::size_t root_length_ = 0;
  struct Claim {
    char path[256];
    std::size_t length;
  };
  Claim claims_[kMaxClaims] = {};
  std::size_t count_ = 0;
};

}  // namespace strait::soft::host
