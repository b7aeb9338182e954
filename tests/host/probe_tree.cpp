// SPDX-License-Identifier: Apache-2.0
// The tree below /sys/class/strait-test and /sys/devices/strait-test, asked for in all ways there are.
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "devices.hpp"
#include "probe.hpp"

namespace fs = std::filesystem;

namespace {

constexpr char kClass[] = "/sys/class/strait-test";
constexpr char kDevice[] = "/sys/class/strait-test/strait0";  // a link
constexpr char kTarget[] = "/sys/devices/strait-test/pci0/strait0";

std::set<std::string> names_in(DIR* folder) {
  EXPECT(folder != nullptr);
  std::set<std::string> names;
  while (const dirent* entry = readdir(folder)) names.insert(entry->d_name);
  closedir(folder);
  names.erase(".");
  names.erase("..");
  return names;
}

std::string text_of(int fd) {
  EXPECT(fd >= 0);
  char bytes[64];
  const ssize_t got = read(fd, bytes, sizeof bytes);
  close(fd);
  return std::string(bytes, got > 0 ? static_cast<std::size_t>(got) : 0);
}

std::string link_at(int folder, const char* path) {
  char bytes[PATH_MAX];
  const ssize_t got = readlinkat(folder, path, bytes, sizeof bytes);
  return got < 0 ? "" : std::string(bytes, static_cast<std::size_t>(got));
}

}  // namespace

void probe::folders() {
  EXPECT(names_in(opendir(kClass)) == (std::set<std::string>{"strait0", "version"}));
  EXPECT(names_in(opendir("/dev/strait-test/")) == (std::set<std::string>{"busy", "node0", "node1"}));
  EXPECT(names_in(fdopendir(open(kDevice, O_RDONLY | O_DIRECTORY))) == (std::set<std::string>{"device", "name"}));
  EXPECT(opendir("/sys/class/strait-test/nobody") == nullptr && errno == ENOENT);
  dirent** list = nullptr;
  const auto taken = [&](int count) {
    std::set<std::string> out;
    for (int i = 0; i < count; ++i) {
      out.insert(list[i]->d_name);
      free(list[i]);
    }
    free(list);
    return out;
  };
  EXPECT(taken(scandir(kClass, &list, nullptr, alphasort)).size() == 4);
  const int classes = open("/sys/class", O_RDONLY | O_DIRECTORY);
  EXPECT(taken(scandirat(classes, "strait-test", &list, nullptr, alphasort)).size() == 4);
  // Those above a claim have what is really there, too; and only what is asked for, in order.
  const std::set<std::string> real_and_claimed = taken(scandir("/sys/class", &list, nullptr, alphasort));
  EXPECT(real_and_claimed.contains("strait-test") && real_and_claimed.contains("net"));
  dirent64** wide = nullptr;
  const auto visible = [](const dirent64* entry) { return entry->d_name[0] == '.' ? 0 : 1; };
  for (const int folder : {AT_FDCWD, classes}) {
    const int count = folder == AT_FDCWD ? scandir64(kClass, &wide, visible, alphasort64)
                                         : scandirat64(folder, "strait-test", &wide, visible, alphasort64);
    EXPECT(count == 2 && std::string(wide[0]->d_name) == "strait0" && std::string(wide[1]->d_name) == "version");
    for (int i = 0; i < count; ++i) free(wide[i]);
    free(wide);
  }
  close(classes);
  EXPECT(scandir("/sys/class/strait-test/nobody", &list, nullptr, alphasort) == -1 && errno == ENOENT);
  EXPECT(scandir64("/sys/class/strait-test/version", &wide, nullptr, alphasort64) == -1 && errno == ENOTDIR);
  std::set<std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator("/sys/devices/strait-test"))
    found.insert(entry.path().string());
  EXPECT(found.contains("/sys/devices/strait-test/pci0/strait0/name"));
  EXPECT(fs::is_symlink(kDevice) && fs::is_directory(kDevice));
  char nothing[16];
  EXPECT(lgetxattr(kDevice, "user.x", nothing, sizeof nothing) == -1 && errno != ENOENT);
}

void probe::names() {
  EXPECT(link_at(AT_FDCWD, kDevice) == "../../devices/strait-test/pci0/strait0");
  EXPECT(link_at(AT_FDCWD, "/sys/class/strait-test/version").empty());
  char resolved[PATH_MAX];
  EXPECT(realpath(kDevice, resolved) == resolved && strcmp(resolved, kTarget) == 0);
  EXPECT(realpath("/sys/class/strait-test/strait0/device/..", resolved) == resolved);
  EXPECT(strcmp(resolved, "/sys/devices/strait-test") == 0);
  char* made = realpath("/sys/class/strait-test/../strait-test/version", nullptr);
  EXPECT(made != nullptr && strcmp(made, "/sys/class/strait-test/version") == 0);
  free(made);
  made = canonicalize_file_name("/sys/class/strait-test/strait0/device");
  EXPECT(made != nullptr && strcmp(made, "/sys/devices/strait-test/pci0") == 0);
  free(made);
  EXPECT(realpath("/sys/class/strait-test/nobody", resolved) == nullptr && errno == ENOENT);
  EXPECT(realpath("/usr/../usr/bin", resolved) == resolved && strcmp(resolved, "/usr/bin") == 0);
  const int fd = open("/sys/class/strait-test/version", O_RDONLY);
  EXPECT(link_at(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str()) == "/sys/class/strait-test/version");
  EXPECT(fs::canonical(kDevice) == kTarget);
  struct stat is;
  EXPECT(lstat(kDevice, &is) == 0 && S_ISLNK(is.st_mode));
  EXPECT(stat(kDevice, &is) == 0 && S_ISDIR(is.st_mode));
}

void probe::relative() {
  const int top = open("/", O_PATH | O_DIRECTORY);
  EXPECT(text_of(openat(top, "sys/class/strait-test/version", O_RDONLY)) == "7\n");
  const int folder = open(kClass, O_RDONLY | O_DIRECTORY);
  EXPECT(text_of(openat(folder, "strait0/name", O_RDONLY)) == "strait0\n");
  EXPECT(text_of(openat(folder, "strait0/device/strait0/name", O_RDONLY)) == "strait0\n");
  EXPECT(link_at(folder, "strait0") == "../../devices/strait-test/pci0/strait0");
  struct stat is, real;
  EXPECT(fstatat(folder, "../net", &is, 0) == 0 && stat("/sys/class/net", &real) == 0 && is.st_ino == real.st_ino);
  EXPECT(fstatat(folder, "..", &is, 0) == 0 && stat("/sys/class", &real) == 0 && is.st_ino == real.st_ino);
  EXPECT(openat(-1, "x", O_RDONLY) == -1 && errno == EBADF);
  EXPECT(openat(-1, kClass, O_RDONLY) >= 0);

  EXPECT(chdir("/sys/class") == 0);
  EXPECT(text_of(open("strait-test/version", O_RDONLY)) == "7\n");
  EXPECT(text_of(open("./net/../strait-test/version", O_RDONLY)) == "7\n");
  EXPECT(chdir("strait-test/strait0") == 0);
  char here[PATH_MAX];
  EXPECT(getcwd(here, sizeof here) == here && strcmp(here, kTarget) == 0);
  EXPECT(text_of(open("name", O_RDONLY)) == "strait0\n");
  EXPECT(text_of(open("../strait0/name", O_RDONLY)) == "strait0\n");
  EXPECT(chdir("../../../../class") == 0);
  EXPECT(getcwd(here, sizeof here) == here && strcmp(here, "/sys/class") == 0);
  EXPECT(chdir("/usr/lib") == 0);
  EXPECT(text_of(open("../../sys/class/strait-test/version", O_RDONLY)) == "7\n");
}

void probe::patterns() {
  glob_t found{};
  EXPECT(glob("/sys/class/strait-test/*/name", 0, nullptr, &found) == 0);
  EXPECT(found.gl_pathc == 1 && strcmp(found.gl_pathv[0], "/sys/class/strait-test/strait0/name") == 0);
  globfree(&found);
  EXPECT(glob("/sys/class/strait-test/x*", 0, nullptr, &found) == GLOB_NOMATCH);
  EXPECT(glob("/dev/strait-test/node?", GLOB_MARK, nullptr, &found) == 0 && found.gl_pathc == 2);
  globfree(&found);
  glob64_t wide{};
  EXPECT(glob64("/sys/class/strait-*/ver*", 0, nullptr, &wide) == 0 && wide.gl_pathc == 1);
  globfree64(&wide);
  EXPECT(glob("/usr/bi?", 0, nullptr, &found) == 0 && found.gl_pathc == 1);
  globfree(&found);
}

void probe::parents() {
  EXPECT(names_in(opendir("/sys/class")).contains("strait-test"));
  EXPECT(names_in(opendir("/sys/class")).contains("net"));
  EXPECT(names_in(opendir("/dev")).contains("strait-test"));
  EXPECT(names_in(fdopendir(open("/sys/devices", O_RDONLY | O_DIRECTORY))).contains("strait-test"));
  EXPECT(!names_in(opendir("/sys/class/net")).contains("strait-test"));
  EXPECT(!names_in(opendir("/usr")).contains("strait-test"));
  // Once, and again after a rewind; what is there really is not there twice.
  DIR* folder = opendir("/sys/class");
  for (int round = 0; round < 2; ++round) {
    int seen = 0, net = 0;
    while (const dirent* entry = readdir(folder)) {
      seen += strcmp(entry->d_name, "strait-test") == 0;
      net += strcmp(entry->d_name, "net") == 0;
    }
    EXPECT(seen == 1 && net == 1);
    EXPECT(readdir(folder) == nullptr && errno == 0);
    rewinddir(folder);
  }
  closedir(folder);
}

void probe::streams() {
  FILE* stream = fopen("/sys/class/strait-test/version", "r");
  EXPECT(stream != nullptr);
  char text[16];
  EXPECT(fgets(text, sizeof text, stream) == text && strcmp(text, "7\n") == 0);
  stream = freopen("/sys/class/strait-test/strait0/name", "re", stream);
  EXPECT(stream != nullptr && fgets(text, sizeof text, stream) == text && strcmp(text, "strait0\n") == 0);
  fclose(stream);
  EXPECT(fopen("/sys/class/strait-test/nobody", "r") == nullptr && errno == ENOENT);
  stream = fopen64(strait::testing::kNode, "r+");
  EXPECT(stream != nullptr);
  int value = 1;
  EXPECT(ioctl(fileno(stream), strait::testing::kAdd, &value) == 0 && value == 2);
  fclose(stream);
  stream = fopen("/etc/passwd", "r");
  EXPECT(stream != nullptr && fgets(text, sizeof text, stream) == text);
  fclose(stream);
}
