// SPDX-License-Identifier: Apache-2.0
// Two processes that meet, the places they write to, and the check afterwards.
#include "workload.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <ctime>
#include <iterator>

namespace bench {

namespace {

pid_t owner_pid = 0;
std::string program = "bench";

constexpr struct {
  const char* name;
  Test test;
} kTests[] = {{"latency", Test::latency},
              {"rate", Test::rate},
              {"bandwidth", Test::bandwidth},
              {"get", Test::get},
              {"fetch_add", Test::fetch_add},
              {"send_latency", Test::send_latency},
              {"send_bandwidth", Test::send_bandwidth},
              {"wake", Test::wake},
              {"share", Test::share},
              {"share_again", Test::share_again},
              {"regions", Test::regions},
              {"peers", Test::peers},
              {"peers_memory", Test::peers_memory},
              {"peers_connect", Test::peers_connect}};

std::uint64_t number(const std::string& text, const std::string& name) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') give_up("--" + name + " takes a whole number, not \"" + text + "\"");
  return value;
}

std::string ending(int status) {
  if (WIFSIGNALED(status)) return ", by signal " + std::to_string(WTERMSIG(status));
  return ", with status " + std::to_string(WEXITSTATUS(status));
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void give_up(const std::string& sentence) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), sentence.c_str());
  std::exit(1);
}

std::string Workload::option(const std::string& name, const std::string& otherwise) const {
  for (const std::string& pair : extra) {
    if (pair.starts_with(name + "=")) return pair.substr(name.size() + 1);
  }
  return otherwise;
}

// PROGRAM TEST [--size N] [--window N] [--regions N] [--region-bytes N] [--one-place 0|1]
//         [--milliseconds N] [--cpu A] [--owner-cpu B] [name=value...]
Workload parse_workload(int argc, char** argv) {
  Workload w;
  program = argv[0];
  if (argc < 2) give_up("say what to measure: latency, rate, bandwidth, ...");
  const std::string test = argv[1];
  const auto known = std::find_if(std::begin(kTests), std::end(kTests), [&](const auto& t) { return test == t.name; });
  if (known == std::end(kTests)) {
    std::string names;
    for (const auto& each : kTests) names += std::string(" ") + each.name;
    give_up("\"" + test + "\" is none of" + names);
  }
  w.test = known->test;
  if (w.test == Test::bandwidth || w.test == Test::send_bandwidth) {
    w.size_bytes = 65536;
    w.window = 8;
  }
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      w.extra.push_back(word);
      continue;
    }
    if (i + 1 == argc) give_up(word + " takes a value");
    const std::string name = word.substr(2);
    const std::uint64_t value = number(argv[++i], name);
    if (name == "size")
      w.size_bytes = value;
    else if (name == "window")
      w.window = static_cast<std::uint32_t>(value);
    else if (name == "regions")
      w.regions = static_cast<std::uint32_t>(value);
    else if (name == "region-bytes")
      w.region_bytes = value;
    else if (name == "one-place")
      w.one_place = value != 0;
    else if (name == "milliseconds")
      w.seconds = static_cast<double>(value) / 1e3;
    else if (name == "cpu")
      w.cpu[0] = static_cast<int>(value);
    else if (name == "owner-cpu")
      w.cpu[1] = static_cast<int>(value);
    else
      give_up("there is no option " + word);
  }
  if (w.regions == 0 || w.regions > Meeting::kMaxRegions) give_up("--regions takes 1 to 16");
  if (w.window == 0 || w.size_bytes == 0 || w.size_bytes % 8 != 0)
    give_up("--window and --size must be over 0, --size a multiple of 8");
  w.window_mask = std::bit_ceil(w.window) - 1;
  w.region_mask = std::bit_floor(w.regions) - 1;
  // Small puts spread over 1 MiB; large ones start anywhere in 64 KiB, so that four regions stay a modest multiple of
  // the one buffer that other programs use.
  if (w.region_bytes == 0) w.region_bytes = w.size_bytes <= 4096 ? 262144 : w.size_bytes + 65536;
  if (w.region_bytes < w.size_bytes) give_up("--region-bytes must hold one put");
  return w;
}

double resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long long total = 0;
  unsigned long long resident = 0;
  if (file == nullptr || std::fscanf(file, "%llu %llu", &total, &resident) != 2)
    give_up("cannot read /proc/self/statm");
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    give_up("cannot run on CPU " + std::to_string(cpu) + ": " + std::strerror(errno));
}

int split(const Workload& workload, Meeting** meeting) {
  void* page = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) give_up("no memory for the page both processes share");
  *meeting = new (page) Meeting{};
  const pid_t parent = getpid();
  owner_pid = fork();
  if (owner_pid < 0) give_up(std::string("cannot fork: ") + std::strerror(errno));
  const int side = owner_pid == 0 ? 1 : 0;
  if (side == 1) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) std::exit(1);
  }
  pin(workload.cpu[side]);
  return side;
}

void meet(Meeting* meeting, int side, double seconds) {
  const std::uint32_t mine = meeting->step[side].fetch_add(1) + 1;
  const std::uint64_t until = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  while (meeting->step[1 - side].load() < mine) {
    if (now_ns() > until)
      give_up("the other process did not come within " + std::to_string(static_cast<int>(seconds)) + " s");
    // Looked at without being collected, which join() does; and it may have come here before it ended.
    siginfo_t ended{};
    if (side == 0 && waitid(P_PID, static_cast<id_t>(owner_pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == owner_pid && meeting->step[1].load() < mine) {
      give_up("the owner's process ended early, with status or signal " + std::to_string(ended.si_status));
    }
    relax();
  }
}

void join() {
  int status = 0;
  if (waitpid(owner_pid, &status, 0) != owner_pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    give_up("the owner's process ended badly" + ending(status));
  }
}

void fill_source(std::uint8_t* bytes, std::uint32_t region, std::uint64_t length_bytes) {
  std::uint64_t x = region + 1;
  for (std::uint64_t i = 0; i + 8 <= length_bytes; i += 8) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const std::uint64_t word = x ^ (x >> 31);
    std::memcpy(bytes + i, &word, 8);
  }
}

Expected::Expected(const Workload& workload) : workload_(workload) {
  for (std::uint32_t r = 0; r < workload.regions; ++r) {
    sources_.emplace_back(workload.region_bytes, std::uint8_t{0});
    targets_.emplace_back(workload.region_bytes, std::uint8_t{0});
    fill_source(sources_.back().data(), r, workload.region_bytes);
  }
}

void Expected::put(std::uint64_t value, Place from, Place to) {
  std::uint8_t* at = targets_[to.region].data() + to.offset;
  if (workload_.size_bytes == 8) {
    std::memcpy(at, &value, 8);
  } else {
    std::uint8_t* source = sources_[from.region].data() + from.offset;
    if (workload_.test == Test::latency) std::memcpy(source + workload_.size_bytes - 8, &value, 8);
    std::memcpy(at, source, workload_.size_bytes);
  }
}

std::uint64_t Expected::differences(std::uint32_t region, const std::uint8_t* found) const {
  const std::vector<std::uint8_t>& target = targets_[region];
  if (std::memcmp(target.data(), found, target.size()) == 0) return 0;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < target.size(); ++i) wrong += target[i] != found[i] ? 1u : 0u;
  return wrong;
}

double median(std::vector<double> values) {
  if (values.empty()) give_up("nothing was measured");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void print_result(const Workload& workload, double value, const char* unit, std::uint64_t iterations,
                  std::uint64_t wrong, const std::string& path, double beside) {
  std::string quoted;
  for (const char c : path) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  std::printf("{\"value\": %.6g, \"unit\": \"%s\", \"size\": %llu, \"iterations\": %llu, \"verified\": %s, ", value,
              unit, static_cast<unsigned long long>(workload.size_bytes), static_cast<unsigned long long>(iterations),
              wrong == 0 ? "true" : "false");
  if (beside > 0) std::printf("\"beside\": %.6g, ", beside);
  std::printf("\"path\": \"%s\"}\n", quoted.c_str());
  std::fflush(stdout);
  if (wrong != 0) give_up(std::to_string(wrong) + " bytes are not what was put");
}

}  // namespace bench
