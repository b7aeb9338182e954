// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/strict_watch.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "soft/cassini_host/lock_within.hpp"
#include "sys/host.hpp"
#include "sys/report.hpp"

namespace strait::soft::cassini {
namespace {

constexpr std::int64_t kEveryNs = 50'000'000;

// Those that are there when the process ends. Never destroyed: threads may outlive everything else.
struct Watches {
  std::mutex mutex;
  std::vector<StrictWatch*> all;
  bool at_exit = false;
};
Watches& watches() {
  static Watches& one = *new Watches;
  return one;
}

void collect_at_exit() {
  Watches& open = watches();
  // exit() in a signal handler: what it interrupted may hold it.
  const std::unique_lock lock(open.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (StrictWatch* each : open.all) each->collect();
}

}  // namespace

Result<std::unique_ptr<StrictWatch>> StrictWatch::start(Channel& channel, TrialSettings settings, Told told) {
  if (!settings.report.empty()) STRAIT_CHECK(sys::check_report_file(settings.report));
  std::unique_ptr<StrictWatch> made(new StrictWatch(channel, std::move(settings), std::move(told)));
  STRAIT_CHECK(made->thread_.start(
      [self = made.get()] {
        self->collect();
        return kEveryNs;
      },
      kEveryNs));
  Watches& open = watches();
  const std::lock_guard lock(open.mutex);
  if (!std::exchange(open.at_exit, true)) std::atexit(collect_at_exit);
  open.all.push_back(made.get());
  return made;
}

StrictWatch::~StrictWatch() {
  if (mark_.in_child()) return;
  {
    Watches& open = watches();
    const std::lock_guard lock(open.mutex);
    std::erase(open.all, this);
  }
  collect();
}

void StrictWatch::collect() {
  if (mark_.in_child()) return;
  // At the end of a process whoever has it may never let go.
  const std::unique_lock lock = lock_within(mutex_, kEndPatienceNs);
  if (!lock.owns_lock()) return;
  for (;;) {
    const std::vector<Finding> found = channel_.findings();
    if (found.empty()) return;
    for (const Finding& each : found) tell(each);
    const std::uint64_t all = findings_.fetch_add(found.size(), std::memory_order_relaxed) + found.size();
    if (told_) told_(all);
  }
}

void StrictWatch::tell(const Finding& finding) const {
  const RuleText& rule = rule_text(finding.rule);
  const std::string block = finding.block ? fmt::format(", block {}", *finding.block) : "";
  sys::Report report;
  report.text =
      fmt::format("strict: process {}, {}, {} {}{}: {}\n  {}\n  rule {}; remedy: {}\n  seed {} (option strict_seed)\n",
                  sys::process_id(), settings_.nic, thing_name(finding.thing), finding.number, block, rule.text,
                  finding.what, rule.name, rule.remedy, seed_);
  report.json = fmt::format(
      R"({{"process":{},"nic":{},"object":"{}","number":{},"block":{},"rule":"{}","text":{},"what":{},"remedy":{},"seed":{}}})",
      sys::process_id(), sys::json_string(settings_.nic), thing_name(finding.thing), finding.number,
      finding.block ? std::to_string(*finding.block) : "null", rule.name, sys::json_string(rule.text),
      sys::json_string(finding.what), sys::json_string(rule.remedy), seed_);
  report.file = settings_.report;
  report.exit_code = settings_.exit_code;
  report.quiet = settings_.quiet;
  sys::deliver(report);
}

}  // namespace strait::soft::cassini
