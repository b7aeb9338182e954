// SPDX-License-Identifier: Apache-2.0
// The demo's two processes: what the first tells the second to do, and what both agree on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strait/strait.hpp"
#include "sys/child.hpp"
#include "tool/json.hpp"
#include "tool/tool.hpp"

namespace strait::tool {

// How often each operation is done; the median is shown.
struct DemoRounds {
  int large = 5;
  std::uint64_t word = 1000;
  std::uint32_t send = 50;
  std::uint64_t signal = 100;
};

struct DemoOptions {
  std::uint64_t length = 16u << 20;  // of each buffer
  std::string device = "soft:0";
  bool json = false;
  bool counters = false;
  DemoRounds rounds;
  Settings settings;

  // The part over packets.
  bool packets = true;
  bool require_packets = false;
  std::string faults;        // empty: what the environment says, or a plan of the demo's own
  std::string capture;       // of the first process
  std::string packets_from;  // for tests: an address
  // For tests: "put", or "roce put" for that part only. One byte of the second process' memory is changed before it is
  // compared, so that a demo that cannot see a wrong byte is found out.
  std::string damage;
};

inline constexpr std::int64_t kDemoPatienceNs = 60'000'000'000;  // for any answer of the other process
inline constexpr Duration kDemoPatience{kDemoPatienceNs};
inline constexpr std::uint32_t kDataSignal = 0;
inline constexpr std::uint32_t kStopSignal = 1;  // ends the command "drive"

// One buffer, shared with everybody who knows the secret.
struct Shared {
  Memory memory;
  Region region;
};
[[nodiscard]] Result<Shared> share_buffer(Node& node, std::uint64_t length, const std::string& near);

// Each side polls on a CPU of its own, where there are two. After the Node opened: its thread stays free.
void pin_side(int side);

// The second process. Owns a buffer in accelerator memory ("demo/device") and one in host memory ("demo/host"), obeys
// one JSON command a line, and looks at its own memory when asked.
int run_demo_peer(const DemoOptions& options);

// The first process' view of it.
class OtherProcess {
 public:
  [[nodiscard]] static Result<OtherProcess> start(const DemoOptions& options);
  // Waits until its Node is open and its memory is shared.
  [[nodiscard]] Status await_hello();
  // Sends a command, waits for the answer; a failure over there comes back as the error it was.
  [[nodiscard]] Result<Json> ask(const Json& command);
  [[nodiscard]] Status tell(const Json& command);
  [[nodiscard]] Result<Json> answer();
  [[nodiscard]] Status finish();
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] int pid() const { return child_.pid(); }
  // The reason it is no longer there, if so: an operation that failed because of it should say that, not its symptom.
  [[nodiscard]] std::optional<Error> ended();

 private:
  explicit OtherProcess(sys::Child child) : child_(std::move(child)) {}
  sys::Child child_;
  std::string address_;
};

// One check: what was done, how long one operation took, and whether every byte was right.
struct Step {
  std::string name;
  std::uint64_t bytes = 0;
  double seconds = 0;
  bool verified = false;
  std::string note;   // what was verified, or what was wrong
  bool rate = false;  // print a bandwidth instead of a time
};

// Everything the first process holds.
struct Stage {
  DemoOptions options;
  OtherProcess other;
  Node node;
  Shared device;
  Shared host;
  Peer peer;
  Target device_target;
  Target host_target;

  [[nodiscard]] const char* carrier() const { return carrier_of(peer.path()); }
};

[[nodiscard]] Result<Step> step_put(Stage& stage);
[[nodiscard]] Result<Step> step_get(Stage& stage);
[[nodiscard]] Result<Step> step_host_put(Stage& stage);
[[nodiscard]] Result<Step> step_fetch_add(Stage& stage);
[[nodiscard]] Result<Step> step_compare_swap(Stage& stage);
[[nodiscard]] Result<Step> step_send(Stage& stage);
[[nodiscard]] Result<Step> step_signal(Stage& stage);
[[nodiscard]] Result<Step> step_bounds(Stage& stage);
[[nodiscard]] Result<Step> step_revoke(Stage& stage);

// The demo once more, over packets.
inline constexpr const char* kDemoFaults = "drop=1%,dup=0.5%,reorder=0.5%,seed=7";
[[nodiscard]] DemoOptions packet_options(const DemoOptions& options, const std::optional<std::string>& given_faults);
// Of both processes.
struct PacketTotals {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t resent = 0;
  std::uint64_t faults = 0;  // the lost ones, and everything else that was done on purpose
};
[[nodiscard]] Result<PacketTotals> count_packets(Stage& stage);

// While this runs the other process polls, as a receiver in a hurry would.
[[nodiscard]] Status start_driving(Stage& stage);
[[nodiscard]] Status stop_driving(Stage& stage);

struct SpeedRow {
  std::string operation;
  std::uint64_t bytes = 0;
  bool rate = true;   // bytes per second, otherwise seconds
  double host = 0;    // host memory to host memory
  double device = 0;  // accelerator memory to accelerator memory
  double memcpy = 0;  // the CPU alone, one process
  double engine = 0;  // the accelerator's own copy; 0: not measured
};
[[nodiscard]] Result<std::vector<SpeedRow>> measure_speed(Stage& stage);

}  // namespace strait::tool
