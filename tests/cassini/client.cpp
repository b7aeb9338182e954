// SPDX-License-Identifier: Apache-2.0
// A program that uses /dev/cxi0 as libcxi would, and knows nothing of us: run under `strait run --cassini 1`. Says on
// stderr what was not as the driver does it, and ends with the number of such things.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "program.hpp"

namespace {

std::string text_of(const std::string& path) {
  std::string out(256, '\0');
  FILE* file = fopen(path.c_str(), "r");
  if (file == nullptr) return "";
  out.resize(fread(out.data(), 1, out.size(), file));
  fclose(file);
  return out;
}

void look_around() {
  glob_t found{};
  CHECK(glob("/sys/class/cxi_user/cxi*", 0, nullptr, &found) == 0 && found.gl_pathc == 1);
  globfree(&found);
  char path[PATH_MAX];
  CHECK(realpath("/sys/class/cxi_user/cxi0/device/driver", path) != nullptr && strstr(path, "/cxi_ss1") != nullptr);
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  CHECK(realpath("/sys/class/cxi_user/cxi0/device", path) != nullptr &&
        sscanf(strrchr(path, '/') + 1, "%x:%x:%x.%x", &domain, &bus, &device, &function) == 4);
  struct stat is {};
  CHECK(stat("/sys/class/cxi_user/cxi0/device/resource0", &is) == 0 && is.st_size >= (off_t{2} << 30));
  CHECK(stat("/dev/cxi0", &is) == 0 && S_ISCHR(is.st_mode));
  CHECK(text_of("/sys/class/cxi_user/cxi0/device/vendor") == "0x17db\n");
  CHECK(text_of("/sys/class/cxi_user/cxi0/device/properties/pid_granule") == "256\n");
  CHECK(text_of("/sys/class/net/hsn0/operstate") == "up\n");
  char net[PATH_MAX];
  CHECK(realpath("/sys/class/net/hsn0/device", net) != nullptr && strcmp(net, path) == 0);
  unsigned long value = 0, nanoseconds = 0;
  long seconds = 0;
  const std::string told = text_of("/sys/class/cxi/cxi0/device/telemetry/any_name_0");
  CHECK(sscanf(told.c_str(), "%lu@%ld.%09lu", &value, &seconds, &nanoseconds) == 3 && seconds > 1'600'000'000);
  CHECK(text_of("/sys/module/cxi_ss1/parameters/ac_size_dbl") == "5\n");
  CHECK(open("/dev/cxi100", O_RDWR) == -1 && errno == ENOENT);
}

// Who cannot ask the device reads files.
void same_in_sysfs(const wire::DevInfo& said) {
  const std::string device = "/sys/class/cxi_user/cxi0/device/", properties = device + "properties/";
  const std::pair<const char*, std::uint64_t> numbers[] = {
      {"nid", said.nid},
      {"pid_bits", said.pid_bits},
      {"pid_count", said.pid_count},
      {"pid_granule", said.pid_granule},
      {"min_free_shift", said.min_free_shift},
      {"rdzv_get_idx", said.rdzv_get_idx},
      {"rev", said.device_rev},
      {"proto", said.device_proto},
      {"platform", static_cast<std::uint64_t>(said.device_platform)},
      {"pct_eq", said.pct_eq},
      {"uc_nic", static_cast<std::uint64_t>(said.uc_nic)},
      {"hpc_mtu", said.link_mtu},
      {"speed", said.link_speed},
      {"link", said.link_state},
      {"num_ptes", said.num_ptes},
      {"num_txqs", said.num_txqs},
      {"num_tgqs", said.num_tgqs},
      {"num_eqs", said.num_eqs},
      {"num_cts", said.num_cts},
      {"num_acs", said.num_acs},
      {"num_tles", said.num_tles},
      {"num_les", said.num_les},
      {"system_type_identifier", static_cast<std::uint64_t>(said.system_type_identifier)},
  };
  for (const auto& [name, value] : numbers) {
    const std::string text = text_of(properties + name);
    const bool same = !text.empty() && strtoull(text.c_str(), nullptr, 0) == value;
    if (!same) fprintf(stderr, "%s: %s", name, text.c_str());
    CHECK(same);
  }
  CHECK(said.cassini_version == wire::CassiniVersion::v1_1 && text_of(properties + "cassini_version") == "1.1\n");
  CHECK(strtoull(text_of(device + "vendor").c_str(), nullptr, 0) == said.vendor_id);
  CHECK(strtoull(text_of(device + "device").c_str(), nullptr, 0) == said.device_id);
  CHECK(text_of(device + "fru/description") == std::string(said.fru_description) + "\n");
}

long groups_left() {
  return atol(text_of("/sys/class/cxi/cxi0/device/properties/rgids_avail").c_str());
}

void talk(int fd) {
  wire::DevInfoGetCmd ask{};
  std::vector<std::byte> info(sizeof(wire::DevInfo));
  ask.resp = reinterpret_cast<std::uint64_t>(info.data());
  CHECK(send(fd, ask) == sizeof ask);
  wire::DevInfo said{};
  memcpy(&said, info.data(), sizeof said);
  CHECK(said.pid_granule == 256 && said.vendor_id == 0x17db);
  CHECK(static_cast<std::uint32_t>(said.device_platform) == 1);
  same_in_sysfs(said);

  errno = 0;
  const void* volatile nowhere = nullptr;  // the compiler would not let it through
  CHECK(write(fd, nowhere, 24) == -1 && errno == EFAULT);
  CHECK(write(fd, &ask, 0) == -1 && errno == EINVAL);
  CHECK(write(fd, &ask, sizeof ask - 1) == -1 && errno == EINVAL);
  ask.resp = 0;
  CHECK(refused(fd, ask, EFAULT));
  ask.resp = 8;
  CHECK(refused(fd, ask, EFAULT));
}

struct Counter {
  std::uint32_t number = 0;
  std::uint64_t* page = nullptr;
};

Counter make_counter(int fd, std::uint32_t lni, std::uint64_t* written_back) {
  wire::CtAllocCmd ask{};
  wire::CtAllocResp made{};
  ask.resp = reinterpret_cast<std::uint64_t>(&made);
  ask.lni = lni;
  ask.wb = reinterpret_cast<std::uint64_t>(written_back);
  CHECK(send(fd, ask) == sizeof ask);
  Counter out;
  out.number = made.ctn;
  // Exactly this size and place, once.
  const auto offset = static_cast<off_t>(made.doorbell.offset);
  CHECK(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset + 4096) == MAP_FAILED && errno == EINVAL);
  void* at = mmap(nullptr, made.doorbell.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
  CHECK(at != MAP_FAILED);
  CHECK(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset) == MAP_FAILED && errno == EINVAL);
  out.page = static_cast<std::uint64_t*>(at);
  return out;
}

// Waits for a write-back, as software does: it clears the mark, and looks for it.
std::uint64_t next_write_back(std::uint64_t* word) {
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (seen >> 63 != 0) {
      __atomic_store_n(word, 0, __ATOMIC_RELEASE);
      return seen;
    }
    usleep(1000);
  }
  return 0;
}

void ring(int fd, std::uint32_t lni) {
  alignas(8) static std::uint64_t written_back = 0;
  const Counter counter = make_counter(fd, lni, &written_back);
  if (counter.page == nullptr || counter.page == MAP_FAILED) return;
  wire::CtFreeCmd free_it{};
  free_it.ctn = counter.number;
  CHECK(refused(fd, free_it, EBUSY));

  // Equal stores, one after the other, from many threads: every one counts. The first failure writes both back.
  constexpr int kThreads = 64, kStores = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kStores; ++n) *static_cast<volatile std::uint64_t*>(counter.page) = 10;
    });
  }
  for (std::thread& thread : threads) thread.join();
  static_cast<volatile std::uint64_t*>(counter.page)[64 / 8] = 3;
  std::uint64_t seen = next_write_back(&written_back);
  CHECK((seen & ((std::uint64_t{1} << 48) - 1)) == kThreads * kStores * 10);
  CHECK((seen >> 48 & 0x7f) == 3);
  static_cast<volatile std::uint64_t*>(counter.page)[128 / 8] = 0;  // success := 0, and written back
  seen = next_write_back(&written_back);
  CHECK((seen & ((std::uint64_t{1} << 48) - 1)) == 0 && (seen >> 48 & 0x7f) == 3);

  CHECK(munmap(counter.page, 4096) == 0);
  CHECK(send(fd, free_it) == sizeof free_it);
  CHECK(refused(fd, free_it, EINVAL));
}

// As many threads as a GPU would have, each with as many equal stores: none is lost.
void count_a_million(int fd, std::uint32_t lni) {
  alignas(8) static std::uint64_t written_back = 0;
  const Counter counter = make_counter(fd, lni, &written_back);
  if (counter.page == nullptr || counter.page == MAP_FAILED) return;
  constexpr std::uint64_t kThreads = 1000, kStores = 1000;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kStores; ++n) *static_cast<volatile std::uint64_t*>(counter.page) = 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  static_cast<volatile std::uint64_t*>(counter.page)[64 / 8] = 1;  // the first failure writes both back
  const std::uint64_t seen = next_write_back(&written_back);
  CHECK((seen & ((std::uint64_t{1} << 48) - 1)) == kThreads * kStores);
  CHECK((seen >> 48 & 0x7f) == 1);
  CHECK(munmap(counter.page, 4096) == 0);
  wire::CtFreeCmd free_it{};
  free_it.ctn = counter.number;
  CHECK(send(fd, free_it) == sizeof free_it);
}

void wait_objects(int fd, std::uint32_t lni) {
  wire::WaitAllocCmd ask{};
  wire::WaitAllocResp made{};
  ask.resp = reinterpret_cast<std::uint64_t>(&made);
  ask.lni = lni;
  CHECK(send(fd, ask) == sizeof ask);
  const std::string path = "/sys/class/cxi_user/cxi0/clients/" + std::to_string(made.client_id) + "/wait/" +
                           std::to_string(made.wait) + "/intr";
  CHECK(access(path.c_str(), R_OK) == 0);
  const int intr = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(intr >= 0);
  char byte = 0;
  CHECK(pread(intr, &byte, 1, 0) == 1);
  pollfd entry{intr, POLLPRI | POLLERR, 0};
  CHECK(poll(&entry, 1, 0) == 0);
  close(intr);
  wire::WaitFreeCmd free_it{};
  wire::WaitAllocResp ignored{};
  free_it.resp = reinterpret_cast<std::uint64_t>(&ignored);
  free_it.wait = made.wait;
  CHECK(send(fd, free_it) == sizeof free_it);
  CHECK(access(path.c_str(), R_OK) == -1 && errno == ENOENT);
}

// An event of a queue with a wait object: the file is urgent until it is read, as programs that sleep need it.
void sleeping() {
  Cxi cxi;
  wire::WaitAllocCmd ask_wait{};
  ask_wait.lni = cxi.lni;
  wire::WaitAllocResp made{};
  CHECK(ask(cxi.fd, ask_wait, made));
  const std::string path = "/sys/class/cxi_user/cxi0/clients/" + std::to_string(made.client_id) + "/wait/" +
                           std::to_string(made.wait) + "/intr";
  const int intr = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(intr >= 0);
  char byte = 0;
  CHECK(pread(intr, &byte, 1, 0) == 1);
  std::byte* const buffer = Cxi::pages(8192);
  const std::uint32_t eq = cxi.make_events(buffer, 8192, made.wait);
  pollfd entry{intr, POLLPRI | POLLERR, 0};
  CHECK(poll(&entry, 1, 0) == 0);
  std::thread later([&] { cxi.expose(cxi.md.iova, cxi.md.lac, 4096, eq); });  // its change of state is the event
  CHECK(poll(&entry, 1, 60'000) == 1 && (entry.revents & POLLPRI) != 0);
  later.join();
  wire::EventHead head{};
  memcpy(&head, buffer + 64, sizeof head);
  CHECK(head.event_type() == wire::EventType::state_change);
  CHECK(pread(intr, &byte, 1, 0) == 1);
  CHECK(poll(&entry, 1, 0) == 0);
  close(intr);
}

// A child has no part in its parent's descriptor, and may open one of its own.
void forked(int fd) {
  const pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    wire::LniAllocCmd ask{};
    ask.svc_id = 1;
    CHECK(refused(fd, ask, EIO));
    const int own = open("/dev/cxi0", O_RDWR | O_CLOEXEC);
    CHECK(own >= 0);
    talk(own);
    close(own);
    _exit(wrong);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const bool many_stores = argc > 1 && strcmp(argv[1], "many_stores") == 0;
  look_around();
  const int fd = open("/dev/cxi0", O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  if (fd < 0) return wrong;
  talk(fd);
  const long groups = groups_left();
  wire::LniAllocCmd ask{};
  wire::LniAllocResp lni{};
  ask.resp = reinterpret_cast<std::uint64_t>(&lni);
  ask.svc_id = 4711;
  CHECK(refused(fd, ask, EINVAL));
  ask.svc_id = 1;
  CHECK(send(fd, ask) == sizeof ask);
  CHECK(groups_left() == groups - 1);
  many_stores ? count_a_million(fd, lni.lni) : ring(fd, lni.lni);
  wait_objects(fd, lni.lni);
  sleeping();
  forked(fd);
  wire::LniFreeCmd free_it{};
  free_it.lni = lni.lni;
  CHECK(send(fd, free_it) == sizeof free_it);
  CHECK(groups_left() == groups);

  // What is mapped keeps the client: the last munmap ends it, not the close.
  CHECK(send(fd, ask) == sizeof ask);
  const Counter counter = make_counter(fd, lni.lni, nullptr);
  CHECK(close(fd) == 0);
  CHECK(groups_left() == groups - 1);
  CHECK(munmap(counter.page, 4096) == 0);
  CHECK(groups_left() == groups);
  if (wrong == 0) puts("client: all as it should be");
  return wrong;
}
