// SPDX-License-Identifier: Apache-2.0
// The walk: one name after the other, as the kernel does it, in the tree that the program believes in.
#include "soft/host/path.hpp"

#include <errno.h>
#include <string.h>

namespace strait::soft::host {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's limit

// A text of bounded length that never overflows: too long is remembered and becomes ENAMETOOLONG.
class Text {
 public:
  Text(char* bytes, std::size_t capacity) : bytes_(bytes), capacity_(capacity) { cut(0); }
  void append(const char* text, std::size_t length) {
    if (length >= capacity_ - length_) {
      too_long_ = true;
      return;
    }
    memcpy(bytes_ + length_, text, length);
    cut(length_ + length);
  }
  void cut(std::size_t length) {
    length_ = length;
    bytes_[length] = '\0';
  }
  void cut_last_name() {
    while (length_ > 0 && bytes_[length_ - 1] != '/') --length_;
    cut(length_ > 0 ? length_ - 1 : 0);
  }
  [[nodiscard]] const char* text() const { return bytes_; }
  [[nodiscard]] std::size_t length() const { return length_; }
  [[nodiscard]] bool too_long() const { return too_long_; }

 private:
  char* bytes_;
  std::size_t capacity_;
  std::size_t length_ = 0;
  bool too_long_ = false;
};

std::size_t name_length(const char* path) {
  return strcspn(path, "/");
}

const char* skip_slashes(const char* path) {
  while (*path == '/') ++path;
  return path;
}

bool is_name(const char* at, std::size_t length, const char* name) {
  return strlen(name) == length && memcmp(at, name, length) == 0;
}

bool has_name(const char* path, const char* name, std::size_t length) {
  for (path = skip_slashes(path); *path != '\0'; path = skip_slashes(path)) {
    const std::size_t n = name_length(path);
    if (n == length && memcmp(path, name, n) == 0) return true;
    path += n;
  }
  return false;
}

// The part of a path that is yet to be walked. A link puts its text in front of it.
class Ahead {
 public:
  explicit Ahead(const char* path) : at_(bytes_) {
    const std::size_t length = strlen(path);
    too_long_ = length >= sizeof bytes_;
    if (!too_long_) memcpy(bytes_, path, length + 1);
  }
  [[nodiscard]] bool too_long() const { return too_long_; }
  // The next name; false at the end.
  bool next(const char** name, std::size_t* length) {
    at_ = skip_slashes(at_);
    if (*at_ == '\0') return false;
    *name = at_;
    *length = name_length(at_);
    at_ += *length;
    return true;
  }
  [[nodiscard]] const char* rest() const { return at_; }
  [[nodiscard]] bool put_in_front(const char* link, std::size_t length) {
    const std::size_t left = strlen(at_);
    if (length + left >= sizeof bytes_) return false;
    memmove(bytes_ + length, at_, left + 1);
    memcpy(bytes_, link, length);
    at_ = bytes_;
    return true;
  }

 private:
  char bytes_[kPathBytes];
  const char* at_;
  bool too_long_ = false;
};

}  // namespace

bool PathMap::set_root(const char* root) {
  const std::size_t length = strlen(root);
  if (length == 0 || root[0] != '/' || root[length - 1] == '/' || length >= sizeof root_ / 2) return false;
  memcpy(root_, root, length + 1);
  root_length_ = length;
  return true;
}

bool PathMap::add_claim(const char* path) {
  const std::size_t length = strlen(path);
  if (count_ == kMaxClaims || length < 2 || path[0] != '/' || path[length - 1] == '/' || length >= sizeof(Claim::path))
    return false;
  memcpy(claims_[count_].path, path, length + 1);
  claims_[count_++].length = length;
  return true;
}

bool PathMap::claimed(const char* path, std::size_t length) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const Claim& claim = claims_[i];
    if (length >= claim.length && memcmp(path, claim.path, claim.length) == 0 &&
        (length == claim.length || path[claim.length] == '/'))
      return true;
  }
  return false;
}

// "" and "/sys" and "/sys/class" when "/sys/class/infiniband" is a claim.
bool PathMap::above_claim(const char* path, std::size_t length) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (length < claims_[i].length && claims_[i].path[length] == '/' && memcmp(path, claims_[i].path, length) == 0)
      return true;
  }
  return false;
}

const char* PathMap::name_below(const char* folder, std::size_t n, std::size_t* length) const {
  const std::size_t depth = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
  for (std::size_t i = 0; i < count_; ++i) {
    const Claim& claim = claims_[i];
    if (depth >= claim.length || claim.path[depth] != '/' || memcmp(folder, claim.path, depth) != 0) continue;
    if (n-- != 0) continue;
    *length = name_length(claim.path + depth + 1);
    return claim.path + depth + 1;
  }
  return nullptr;
}

bool PathMap::may_concern(const char* path) const {
  const bool absolute = path[0] == '/';
  const char* first = skip_slashes(path);
  const std::size_t length = name_length(first);
  if (absolute && root_length_ != 0 && strncmp(path, root_, root_length_) == 0) return true;
  const bool turns_back = has_name(path, "..", 2);
  if (!absolute && !turns_back) return false;
  for (std::size_t i = 0; i < count_; ++i) {
    const char* top = claims_[i].path + 1;
    const std::size_t top_length = name_length(top);
    if (absolute && length == top_length && memcmp(first, top, length) == 0) return true;
    // "../../sys/class": worth the walk only if the name is in it at all.
    if (turns_back && has_name(path, top, top_length)) return true;
  }
  return absolute && is_name(first, length, "..");
}

// The part of a path behind the root, or null: not in the root.
const char* PathMap::below_root(const char* path) const {
  if (root_length_ == 0 || strncmp(path, root_, root_length_) != 0) return nullptr;
  const char end = path[root_length_];
  return end == '/' || end == '\0' ? path + root_length_ : nullptr;
}

bool PathMap::concerns_folder(const char* folder) const {
  const std::size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
  return below_root(folder) != nullptr || claimed(folder, length) || above_claim(folder, length);
}

bool PathMap::to_logical(char* path) const {
  const char* below = below_root(path);
  if (below == nullptr || !claimed(below, strlen(below))) return false;
  memmove(path, below, strlen(below) + 1);
  return true;
}

Placed PathMap::place(const char* folder, const char* path, bool follow, ReadLink read_link, void* context,
                      Place& out) const {
  const auto failed = [&](int error) {
    out.error = error;
    return Placed::failed;
  };
  if (path[0] == '\0' || empty()) return Placed::unchanged;
  // A folder that was opened in the root, or a name that leaked out of it.
  const char* in_root = path[0] == '/' ? below_root(path) : below_root(folder);
  if (path[0] == '/' && in_root != nullptr && !claimed(in_root, strlen(in_root))) return Placed::unchanged;
  bool strayed = in_root != nullptr;  // the kernel would understand the path that was given in another way
  if (path[0] == '/' && in_root != nullptr) path = in_root;
  Ahead ahead(path);
  if (ahead.too_long()) return Placed::unchanged;  // the kernel has the word for it

  // What is walked stands behind the root's own name, so that it can be asked for in the root as it is.
  memcpy(out.path, root_, root_length_);
  Text walked(out.path + root_length_, sizeof out.path - root_length_ - 1);  // one more for a slash at the end
  if (path[0] != '/') {
    const char* start = in_root != nullptr ? in_root : folder;
    if (strcmp(start, "/") != 0) walked.append(start, strlen(start));
  }

  const std::size_t given = strlen(path);
  const bool wants_folder =
      path[given - 1] == '/' || (given >= 2 && memcmp(path + given - 2, "/.", 2) == 0) || is_name(path, given, ".");
  char link[kPathBytes];
  int links = 0;
  const char* name;
  std::size_t length;
  while (ahead.next(&name, &length)) {
    if (is_name(name, length, ".")) continue;
    if (is_name(name, length, "..")) {
      if (claimed(walked.text(), walked.length())) {
        // Only a folder has something above it.
        const std::size_t here = walked.length();
        walked.append("/.", 2);
        if (walked.too_long()) return failed(ENAMETOOLONG);
        const long is = read_link(context, out.path, link, sizeof link);
        if (is < 0 && is != -EINVAL) return failed(static_cast<int>(-is));
        walked.cut(here);
        strayed = true;
      }
      walked.cut_last_name();
      continue;
    }
    const std::size_t before = walked.length();
    walked.append("/", 1);
    walked.append(name, length);
    if (walked.too_long()) return failed(ENAMETOOLONG);
    const bool last = *skip_slashes(ahead.rest()) == '\0';
    const bool inside = claimed(walked.text(), walked.length());
    if (!inside) {
      if (above_claim(walked.text(), walked.length())) continue;
      // Out of our reach for good, unless the path turns back.
      if (!has_name(ahead.rest(), "..", 2)) {
        walked.append(ahead.rest(), strlen(ahead.rest()));
        if (walked.too_long()) return failed(ENAMETOOLONG);
        break;
      }
    } else if (last && !follow && !wants_folder) {
      break;
    }
    const char* real = inside ? out.path : walked.text();
    const long text = read_link(context, real, link, sizeof link);
    if (text < 0) continue;  // no link, or nothing there: whoever uses the path is told
    if (++links > kMaxLinks) return failed(ELOOP);
    if (!ahead.put_in_front(link, static_cast<std::size_t>(text))) return failed(ENAMETOOLONG);
    walked.cut(text > 0 && link[0] == '/' ? 0 : before);
    strayed = strayed || inside;
  }

  out.inside = claimed(walked.text(), walked.length());
  if (!out.inside && !strayed) return Placed::unchanged;
  if (wants_folder && (walked.length() == 0 || walked.text()[walked.length() - 1] != '/')) walked.append("/", 1);
  if (walked.too_long()) return failed(ENAMETOOLONG);
  if (!out.inside) {
    memmove(out.path, walked.text(), walked.length() + 1);
    if (out.path[0] == '\0') memcpy(out.path, "/", 2);
  }
  return Placed::moved;
}

}  // namespace strait::soft::host
