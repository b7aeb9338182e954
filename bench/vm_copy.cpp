// SPDX-License-Identifier: Apache-2.0
// The limit of one copy between two processes: process_vm_readv, nothing on top.
//
//   vm_copy bandwidth [workload options]     the initiator reads the owner's memory
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "workload.hpp"

namespace bench {
namespace {

double read_for(const Workload& w, pid_t owner, std::uint64_t base, std::vector<std::uint8_t>& into,
                std::uint64_t& count) {
  const std::uint64_t start = now_ns();
  const auto until = start + static_cast<std::uint64_t>(w.seconds * 1e9);
  std::uint64_t now = start;
  for (count = 0; now < until; ++count) {
    iovec local{into.data(), w.size_bytes};
    iovec far{reinterpret_cast<void*>(base), w.size_bytes};
    if (process_vm_readv(owner, &local, 1, &far, 1, 0) != static_cast<ssize_t>(w.size_bytes))
      give_up(std::string("process_vm_readv: ") + std::strerror(errno));
    now = now_ns();
  }
  return static_cast<double>(now - start);
}

int main_of(int argc, char** argv) {
  const Workload w = parse_workload(argc, argv);
  if (w.test != Test::bandwidth) give_up("only bandwidth is measured here");
  Meeting* meeting = nullptr;
  const int side = split(w, &meeting);
  std::vector<std::uint8_t> bytes(w.size_bytes);
  fill_source(bytes.data(), 0, bytes.size());
  if (side == 1) {
    meeting->base[1][0] = reinterpret_cast<std::uint64_t>(bytes.data());
    meeting->count.store(static_cast<std::uint64_t>(getpid()));
    meet(meeting, side);
    meet(meeting, side);
    return 0;
  }
  std::vector<std::uint8_t> into(w.size_bytes);
  meet(meeting, side);
  const auto owner = static_cast<pid_t>(meeting->count.load());
  std::uint64_t count = 0;
  Workload warm = w;
  warm.seconds = w.seconds / 10;
  (void)read_for(warm, owner, meeting->base[1][0], into, count);
  const double ns = read_for(w, owner, meeting->base[1][0], into, count);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) wrong += bytes[i] != into[i] ? 1u : 0u;
  meet(meeting, side);
  print_result(w, static_cast<double>(count * w.size_bytes) / ns, "GB/s", count, wrong, "process_vm_readv");
  join();
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::main_of(argc, argv);
}
