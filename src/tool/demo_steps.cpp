// SPDX-License-Identifier: Apache-2.0
// The demo's checks. Before each, the destination holds something else, so that old bytes cannot pass for new ones.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "sys/clock.hpp"
#include "tool/demo.hpp"
#include "tool/pattern.hpp"
#include "tool/samples.hpp"

namespace strait::tool {
namespace {

double seconds_since(std::int64_t start_ns) {
  return static_cast<double>(sys::now_ns() - start_ns) * 1e-9;
}

// The same large operation a few times over: one alone says more about page faults than about the path.
Result<double> median_of_large(int rounds, const std::function<Operation()>& post) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t start_ns = sys::now_ns();
    auto done = post().wait(kDemoPatience);
    if (!done) return done.error();
    seconds.push_back(seconds_since(start_ns));
  }
  return median(seconds);
}

Result<Json> other_fills(Stage& stage, const char* memory, std::uint64_t seed) {
  return stage.other.ask({{"do", "fill"}, {"memory", memory}, {"length", stage.options.length}, {"seed", seed}});
}

// See DemoOptions::damage.
Status damage_if_asked(Stage& stage, std::string_view step, const char* memory, std::uint64_t length) {
  const std::string& wanted = stage.options.damage;
  if (wanted != step && wanted != fmt::format("{} {}", stage.carrier(), step)) return {};
  STRAIT_TRY(const Json done, stage.other.ask({{"do", "damage"}, {"memory", memory}, {"length", length}}));
  return {};
}

Result<Step> checked_by_other(Stage& stage, Step step, const char* memory, std::uint64_t seed, std::string note) {
  STRAIT_CHECK(damage_if_asked(stage, step.name, memory, step.bytes));
  STRAIT_TRY(const Json seen,
             stage.other.ask({{"do", "check"}, {"memory", memory}, {"length", step.bytes}, {"seed", seed}}));
  step.verified = seen.value("verified", false);
  step.note = step.verified ? std::move(note) : seen.value("note", "");
  return step;
}

Result<Step> put_and_check(Stage& stage, std::string name, const Shared& from, const Target& to, const char* to_name,
                           std::uint64_t seed, std::string note) {
  STRAIT_TRY(const Json filled, other_fills(stage, to_name, seed + 1));
  STRAIT_CHECK(fill_memory(stage.node, from.memory.data(), stage.options.length, seed));
  STRAIT_CHECK(start_driving(stage));
  STRAIT_TRY(const double seconds, median_of_large(stage.options.rounds.large, [&] {
               return stage.peer.put(from.region.all(), to.at(0), {.require = zero_copy});
             }));
  STRAIT_CHECK(stop_driving(stage));
  return checked_by_other(stage, {std::move(name), stage.options.length, seconds, false, {}, true}, to_name, seed,
                          std::move(note));
}

}  // namespace

Status start_driving(Stage& stage) {
  STRAIT_CHECK(stage.other.tell({{"do", "drive"}}));
  std::this_thread::sleep_for(std::chrono::microseconds(200));  // until it does: the first operation is timed too
  return {};
}

Status stop_driving(Stage& stage) {
  // A put of no bytes: only its signal matters.
  auto stopped = stage.peer.put(stage.host.region.slice(0, 0), stage.device_target.at(0), {.signal = kStopSignal})
                     .wait(kDemoPatience);
  if (!stopped) return stopped.error();
  STRAIT_TRY(const Json seen, stage.other.answer());
  return {};
}

Result<Step> step_put(Stage& stage) {
  return put_and_check(stage, "put", stage.device, stage.device_target, "device", 0x1001,
                       "by the peer, in its own memory");
}

Result<Step> step_host_put(Stage& stage) {
  return put_and_check(stage, "put host", stage.host, stage.device_target, "device", 0x3001, "host memory, same calls");
}

Result<Step> step_get(Stage& stage) {
  constexpr std::uint64_t kSeed = 0x2001;
  STRAIT_TRY(const Json filled, other_fills(stage, "device", kSeed));
  STRAIT_CHECK(damage_if_asked(stage, "get", "device", stage.options.length));
  STRAIT_CHECK(fill_memory(stage.node, stage.device.memory.data(), stage.options.length, kSeed + 1));
  STRAIT_CHECK(start_driving(stage));
  STRAIT_TRY(const double seconds, median_of_large(stage.options.rounds.large, [&] {
               return stage.peer.get(stage.device.region.all(), stage.device_target.at(0), {.require = zero_copy});
             }));
  Step step{"get", stage.options.length, seconds, false, {}, true};
  STRAIT_CHECK(stop_driving(stage));
  STRAIT_TRY(const auto wrong, check_memory(stage.node, stage.device.memory.data(), stage.options.length, kSeed));
  step.verified = !wrong;
  step.note = wrong ? wrong->text() : "here, after copying it back";
  return step;
}

Result<Step> step_fetch_add(Stage& stage) {
  constexpr std::uint64_t kFirst = 40;
  STRAIT_TRY(const Json set, stage.other.ask({{"do", "set_word"}, {"value", kFirst}}));
  STRAIT_CHECK(start_driving(stage));
  const std::uint64_t rounds = stage.options.rounds.word;
  std::vector<double> seconds;
  bool in_order = true;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::int64_t start_ns = sys::now_ns();
    STRAIT_TRY(const Done done, stage.peer.fetch_add(stage.device_target.at(0), 2).wait(kDemoPatience));
    seconds.push_back(seconds_since(start_ns));
    in_order = in_order && done.value == kFirst + 2 * round;
  }
  STRAIT_CHECK(stop_driving(stage));
  STRAIT_TRY(const Json now, stage.other.ask({{"do", "word"}}));
  const std::uint64_t sum = kFirst + 2 * rounds;
  const std::uint64_t found = now.at("value");
  Step step{"fetch-add", 8, median(seconds), in_order && found == sum, {}, false};
  step.note = found != sum ? fmt::format("the word is {} instead of {}", found, sum)
              : in_order   ? fmt::format("{} times, old values in order", rounds)
                           : "an old value came out of order";
  return step;
}

Result<Step> step_compare_swap(Stage& stage) {
  STRAIT_TRY(const Json set, stage.other.ask({{"do", "set_word"}, {"value", 0}}));
  STRAIT_CHECK(start_driving(stage));
  const std::uint64_t rounds = stage.options.rounds.word;
  std::vector<double> seconds;
  bool right = true;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::int64_t start_ns = sys::now_ns();
    STRAIT_TRY(const Done done,
               stage.peer.compare_swap(stage.device_target.at(0), round, round + 1).wait(kDemoPatience));
    seconds.push_back(seconds_since(start_ns));
    right = right && done.value == round;
  }
  // One that must lose: the word is no longer 7, so it stays as it is and comes back.
  STRAIT_TRY(const Done lost, stage.peer.compare_swap(stage.device_target.at(0), 7, 1).wait(kDemoPatience));
  STRAIT_CHECK(stop_driving(stage));
  STRAIT_TRY(const Json now, stage.other.ask({{"do", "word"}}));
  const std::uint64_t found = now.at("value");
  Step step{"compare-swap", 8, median(seconds), right && lost.value == rounds && found == rounds, {}, false};
  step.note = step.verified ? fmt::format("{} won, 1 lost as it must", rounds)
                            : fmt::format("the word is {} instead of {}", found, rounds);
  return step;
}

Result<Step> step_send(Stage& stage) {
  constexpr std::uint64_t kSeed = 0x4001;
  constexpr std::uint64_t kLength = 4096;
  const std::uint32_t rounds = stage.options.rounds.send;
  constexpr std::uint32_t kImm = 0x5eed'0000;
  STRAIT_CHECK(stage.other.tell({{"do", "receive"}, {"rounds", rounds}, {"length", kLength}, {"seed", kSeed}}));
  Step step{"send", kLength, 0, true, "each with its own immediate", false};
  std::vector<double> seconds;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    STRAIT_CHECK(fill_memory(stage.node, stage.device.memory.data(), kLength, kSeed + round));
    STRAIT_TRY(const Json posted, stage.other.answer());
    const std::int64_t start_ns = sys::now_ns();
    auto done = stage.peer.send(stage.device.region.slice(0, kLength), {.imm = kImm + round}).wait(kDemoPatience);
    if (!done) return done.error();
    seconds.push_back(seconds_since(start_ns));
    STRAIT_TRY(const Json came, stage.other.answer());
    const auto imm = came.value("imm", std::uint64_t{0});
    const auto bytes = came.value("bytes", std::uint64_t{0});
    const bool right = came.value("verified", false) && imm == kImm + round && bytes == kLength;
    if (right || !step.verified) continue;
    step.verified = false;
    step.note = fmt::format("round {}: {} bytes, immediate {:#x} {}", round, bytes, imm, came.value("note", ""));
  }
  step.seconds = median(seconds);
  return step;
}

Result<Step> step_signal(Stage& stage) {
  constexpr std::uint64_t kSeed = 0x5001;
  constexpr std::uint64_t kLength = 64;
  const std::uint64_t rounds = stage.options.rounds.signal;
  STRAIT_CHECK(stage.other.tell({{"do", "watch"}, {"rounds", rounds}, {"length", kLength}, {"seed", kSeed}}));
  Step step{"signal", kLength, 0, true, "seen by the peer after the data", false};
  std::vector<double> seconds;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    STRAIT_CHECK(fill_memory(stage.node, stage.device.memory.data(), kLength, kSeed + round));
    const std::int64_t start_ns = sys::now_ns();
    auto done =
        stage.peer.put(stage.device.region.slice(0, kLength), stage.device_target.at(0), {.signal = kDataSignal})
            .wait(kDemoPatience);
    if (!done) return done.error();
    STRAIT_TRY(const Json seen, stage.other.answer());
    // Both processes read the same clock, so the one-way time needs no round trip.
    seconds.push_back(static_cast<double>(seen.at("seen_ns").get<std::int64_t>() - start_ns) * 1e-9);
    if (!seen.value("verified", false) && step.verified) {
      step.verified = false;
      step.note = fmt::format("round {}: {}", round, seen.value("note", ""));
    }
  }
  step.seconds = median(seconds);
  return step;
}

Result<Step> step_bounds(Stage& stage) {
  Step step{"bounds", stage.options.length, 0, false, {}, false};
  const auto refused = stage.peer.put(stage.device.region.all(), stage.device_target.at(8)).wait(kDemoPatience);
  step.verified = !refused && refused.error().code == Code::invalid;
  step.note = step.verified ? "8 bytes past the end: refused"
              : refused     ? "a put past the end went through"
                            : refused.error().text;
  return step;
}

Result<Step> step_revoke(Stage& stage) {
  Step step{"revoke", 8, 0, false, {}, false};
  STRAIT_TRY(const Json filled, other_fills(stage, "device", 0x6001));
  STRAIT_CHECK(fill_memory(stage.node, stage.device.memory.data(), 8, 0x6002));
  STRAIT_TRY(const Json revoked, stage.other.ask({{"do", "revoke"}}));
  const auto refused = stage.peer.put(stage.device.region.slice(0, 8), stage.device_target.at(0)).wait(kDemoPatience);
  STRAIT_CHECK(damage_if_asked(stage, "revoke", "device", stage.options.length));
  STRAIT_TRY(const Json seen, stage.other.ask({{"do", "check"}, {"length", stage.options.length}, {"seed", 0x6001}}));
  step.verified = !refused && seen.value("verified", false);
  step.note = refused         ? "a put to a revoked region went through"
              : step.verified ? "put refused, memory untouched"
                              : seen.value("note", "");
  return step;
}

}  // namespace strait::tool
