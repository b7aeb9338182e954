// SPDX-License-Identifier: Apache-2.0
#include "soft/hsa/signals.hpp"

#include <algorithm>
#include <chrono>

#include "sys/clock.hpp"
#include "sys/quiet_thread.hpp"

namespace strait::soft::hsa {
namespace {

constexpr std::chrono::milliseconds kLookAgain{1};

// Counted before the word is looked at, so that who changes it afterwards knows to wake somebody.
class Sleeper {
 public:
  explicit Sleeper(std::atomic<int>& count) : count_(count) { count_.fetch_add(1); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { count_.fetch_sub(1); }

 private:
  std::atomic<int>& count_;
};

bool all_zero(const std::vector<SignalRef>& signals) {
  return std::all_of(signals.begin(), signals.end(), [](const SignalRef& each) { return each->value.load() == 0; });
}

}  // namespace

bool satisfies(std::int32_t condition, SignalValue value, SignalValue compared) {
  switch (condition) {
    case kConditionEq: return value == compared;
    case kConditionNe: return value != compared;
    case kConditionLt: return value < compared;
    default: return value >= compared;
  }
}

Signals::~Signals() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (engine_.joinable()) engine_.join();
}

Signal Signals::create(SignalValue initial) {
  auto word = std::make_shared<SignalWord>();
  word->value = initial;
  const std::uint64_t handle = reinterpret_cast<std::uint64_t>(word.get());
  const std::unique_lock lock(table_mutex_);
  table_.emplace(handle, std::move(word));
  return Signal{handle};
}

bool Signals::destroy(Signal signal) {
  SignalRef last;
  const std::unique_lock lock(table_mutex_);
  const auto found = table_.find(signal.handle);
  if (found == table_.end()) return false;
  last = std::move(found->second);
  table_.erase(found);
  return true;
}

SignalRef Signals::find(Signal signal) const {
  const std::shared_lock lock(table_mutex_);
  const auto found = table_.find(signal.handle);
  return found == table_.end() ? nullptr : found->second;
}

std::size_t Signals::live() const {
  const std::shared_lock lock(table_mutex_);
  return table_.size();
}

void Signals::changed() {
  if (sleepers_.load() == 0) return;
  { const std::lock_guard lock(mutex_); }  // a sleeper between its look and its sleep is waited for
  wake_.notify_all();
}

std::size_t Signals::wait_any(const std::vector<SignalRef>& signals, const std::int32_t* conditions,
                              const SignalValue* compared, std::uint64_t timeout_ns, SignalValue* seen) {
  // Some programs wait for UINT64_MAX; a deadline that far would wrap around.
  constexpr std::uint64_t kForever = std::uint64_t{1} << 60;
  const sys::Deadline deadline = sys::Deadline::after_ns(static_cast<std::int64_t>(std::min(timeout_ns, kForever)));
  const Sleeper counted(sleepers_);
  std::unique_lock lock(mutex_);
  while (true) {
    for (std::size_t i = 0; i < signals.size(); ++i) {
      const SignalValue value = signals[i]->value.load();
      if (seen != nullptr) *seen = value;
      if (satisfies(conditions[i], value, compared[i])) return i;
    }
    if (deadline.passed()) return signals.size();
    wake_.wait_for(lock, kLookAgain);
  }
}

SignalValue Signals::wait(const SignalRef& signal, std::int32_t condition, SignalValue compared,
                          std::uint64_t timeout_ns) {
  SignalValue seen = signal->value.load();
  if (satisfies(condition, seen, compared)) return seen;
  (void)wait_any({signal}, &condition, &compared, timeout_ns, &seen);
  return seen;
}

bool Signals::start_locked() {
  if (engine_.joinable()) return true;
  auto started = sys::start_quiet_thread([this] { run_engine_thread(); });
  if (started) engine_ = std::move(*started);
  return engine_.joinable();
}

bool Signals::run_after(std::vector<SignalRef> after, SignalRef done, std::function<bool()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (!start_locked()) return false;
    jobs_.push_back(Job{std::move(after), std::move(done), std::move(work)});
  }
  wake_.notify_all();
  return true;
}

bool Signals::call_when(SignalRef signal, std::int32_t condition, SignalValue compared, SignalHandler handler,
                        void* argument) {
  {
    const std::lock_guard lock(mutex_);
    if (!start_locked()) return false;
    watches_.push_back(Watch{std::move(signal), condition, compared, handler, argument});
  }
  wake_.notify_all();
  return true;
}

bool Signals::run_one_job(std::unique_lock<std::mutex>& lock) {
  const auto ready = std::find_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return all_zero(job.after); });
  if (ready == jobs_.end()) return false;
  Job job = std::move(*ready);
  jobs_.erase(ready);
  lock.unlock();
  const bool good = job.work();
  job.work = nullptr;  // memory that it held is given back before anybody hears that it is over
  if (job.done) {
    if (good)
      job.done->value.fetch_sub(1);
    else
      job.done->value.store(-1);
    changed();
  }
  job = {};  // what it held goes before the lock is taken again
  lock.lock();
  return true;
}

bool Signals::call_one_watch(std::unique_lock<std::mutex>& lock) {
  for (auto each = watches_.begin(); each != watches_.end(); ++each) {
    const SignalValue value = each->signal->value.load();
    if (!satisfies(each->condition, value, each->compared)) continue;
    Watch watch = std::move(*each);
    watches_.erase(each);
    lock.unlock();
    const bool again = watch.handler(value, watch.argument);
    lock.lock();
    if (again) watches_.push_back(std::move(watch));
    return true;
  }
  return false;
}

void Signals::run_engine_thread() {
  const Sleeper counted(sleepers_);
  std::unique_lock lock(mutex_);
  while (true) {
    if (run_one_job(lock) || (!stop_ && call_one_watch(lock))) continue;
    if (stop_) return;
    if (jobs_.empty() && watches_.empty())
      wake_.wait(lock);
    else
      wake_.wait_for(lock, kLookAgain);
  }
}

}  // namespace strait::soft::hsa
