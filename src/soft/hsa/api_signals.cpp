// SPDX-License-Identifier: Apache-2.0
// Entry points: signals. A handle that is no live signal is ignored where there is no answer to say so, and reads as 0.
#include "soft/hsa/api.hpp"

namespace strait::soft::hsa {
namespace {

struct FoundSignal {
  std::shared_ptr<Runtime> runtime = current_runtime();
  SignalRef word;
  explicit FoundSignal(Signal signal) : word(runtime ? runtime->signals().find(signal) : nullptr) {}
  explicit operator bool() const { return word != nullptr; }
};

template <class Change>
SignalValue change_signal(Signal signal, Change change) {
  const FoundSignal found(signal);
  if (!found) return 0;
  const SignalValue before = change(found.word->value);
  found.runtime->signals().changed();
  return before;
}

SignalValue load_signal(Signal signal) {
  const FoundSignal found(signal);
  return found ? found.word->value.load() : 0;
}

SignalValue wait_signal(Signal signal, std::int32_t condition, SignalValue compared, std::uint64_t timeout_ns) {
  const FoundSignal found(signal);
  return found ? found.runtime->signals().wait(found.word, condition, compared, timeout_ns) : 0;
}

}  // namespace

Answer hsa_amd_signal_create(SignalValue initial, std::uint32_t n, const Agent* consumers, std::uint64_t,
                             Signal* signal) {
  STRAIT_HSA_OPEN(runtime);
  if (signal == nullptr || (n > 0 && consumers == nullptr)) return kInvalidArgument;
  std::uint64_t nodes = 0;
  if (!nodes_of(*runtime, n, consumers, nodes)) return kInvalidArgument;
  *signal = runtime->signals().create(initial);
  return kSuccess;
}

Answer hsa_signal_create(SignalValue initial, std::uint32_t n, const Agent* consumers, Signal* signal) {
  return hsa_amd_signal_create(initial, n, consumers, 0, signal);
}

Answer hsa_signal_destroy(Signal signal) {
  STRAIT_HSA_OPEN(runtime);
  if (signal.handle == 0) return kInvalidArgument;
  return runtime->signals().destroy(signal) ? kSuccess : kInvalidSignal;
}

Answer hsa_amd_signal_value_pointer(Signal signal, volatile SignalValue** pointer) {
  STRAIT_HSA_OPEN(runtime);
  if (pointer == nullptr) return kInvalidArgument;
  const SignalRef word = runtime->signals().find(signal);
  if (!word) return kInvalidSignal;
  static_assert(sizeof word->value == sizeof(SignalValue) && std::atomic<SignalValue>::is_always_lock_free);
  *pointer = reinterpret_cast<volatile SignalValue*>(&word->value);
  return kSuccess;
}

Answer hsa_amd_signal_async_handler(Signal signal, std::int32_t condition, SignalValue compared, SignalHandler handler,
                                    void* argument) {
  STRAIT_HSA_OPEN(runtime);
  if (handler == nullptr || condition < kConditionEq || condition > kConditionGte) return kInvalidArgument;
  SignalRef word = runtime->signals().find(signal);
  if (!word) return kInvalidSignal;
  return runtime->signals().call_when(std::move(word), condition, compared, handler, argument) ? kSuccess
                                                                                               : kOutOfResources;
}

Answer hsa_amd_async_function(void (*callback)(void*), void* argument) {
  STRAIT_HSA_OPEN(runtime);
  if (callback == nullptr) return kInvalidArgument;
  const bool started = runtime->signals().run_after({}, nullptr, [callback, argument] {
    callback(argument);
    return true;
  });
  return started ? kSuccess : kOutOfResources;
}

std::uint32_t hsa_amd_signal_wait_any(std::uint32_t n, Signal* list, std::int32_t* conditions, SignalValue* compared,
                                      std::uint64_t timeout_ns, std::int32_t, SignalValue* seen) {
  const auto runtime = current_runtime();
  if (!runtime || list == nullptr || conditions == nullptr || compared == nullptr) return UINT32_MAX;
  std::vector<SignalRef> words;
  for (std::uint32_t i = 0; i < n; ++i) {
    words.push_back(runtime->signals().find(list[i]));
    if (!words.back()) return UINT32_MAX;
  }
  const std::size_t which = runtime->signals().wait_any(words, conditions, compared, timeout_ns, seen);
  return which == words.size() ? UINT32_MAX : static_cast<std::uint32_t>(which);
}

// Stores that "do not wake" are stores here: a wait looks again anyway.
#define STRAIT_STORE(order)                                                  \
  void hsa_signal_##order(Signal signal, SignalValue value) {                \
    change_signal(signal, [&](auto& word) { return word.exchange(value); }); \
  }
STRAIT_STORE(store_relaxed)
STRAIT_STORE(store_screlease)
STRAIT_STORE(store_release)
STRAIT_STORE(silent_store_relaxed)
STRAIT_STORE(silent_store_screlease)

#define STRAIT_LOAD(order)                        \
  SignalValue hsa_signal_##order(Signal signal) { \
    return load_signal(signal);                   \
  }
STRAIT_LOAD(load_relaxed)
STRAIT_LOAD(load_scacquire)
STRAIT_LOAD(load_acquire)

#define STRAIT_WAIT(order)                                                                    \
  SignalValue hsa_signal_##order(Signal signal, std::int32_t condition, SignalValue compared, \
                                 std::uint64_t timeout_ns, std::int32_t) {                    \
    return wait_signal(signal, condition, compared, timeout_ns);                              \
  }
STRAIT_WAIT(wait_relaxed)
STRAIT_WAIT(wait_scacquire)
STRAIT_WAIT(wait_acquire)

// Every order is the strongest one here: who asks for less gets no less.
#define STRAIT_CHANGES(order)                                                                  \
  void hsa_signal_add_##order(Signal signal, SignalValue value) {                              \
    change_signal(signal, [&](auto& word) { return word.fetch_add(value); });                  \
  }                                                                                            \
  void hsa_signal_subtract_##order(Signal signal, SignalValue value) {                         \
    change_signal(signal, [&](auto& word) { return word.fetch_sub(value); });                  \
  }                                                                                            \
  void hsa_signal_and_##order(Signal signal, SignalValue value) {                              \
    change_signal(signal, [&](auto& word) { return word.fetch_and(value); });                  \
  }                                                                                            \
  void hsa_signal_or_##order(Signal signal, SignalValue value) {                               \
    change_signal(signal, [&](auto& word) { return word.fetch_or(value); });                   \
  }                                                                                            \
  void hsa_signal_xor_##order(Signal signal, SignalValue value) {                              \
    change_signal(signal, [&](auto& word) { return word.fetch_xor(value); });                  \
  }                                                                                            \
  SignalValue hsa_signal_exchange_##order(Signal signal, SignalValue value) {                  \
    return change_signal(signal, [&](auto& word) { return word.exchange(value); });            \
  }                                                                                            \
  SignalValue hsa_signal_cas_##order(Signal signal, SignalValue expected, SignalValue value) { \
    return change_signal(signal, [&](auto& word) {                                             \
      SignalValue before = expected;                                                           \
      word.compare_exchange_strong(before, value);                                             \
      return before;                                                                           \
    });                                                                                        \
  }
STRAIT_CHANGES(relaxed)
STRAIT_CHANGES(scacquire)
STRAIT_CHANGES(acquire)
STRAIT_CHANGES(screlease)
STRAIT_CHANGES(release)
STRAIT_CHANGES(scacq_screl)
STRAIT_CHANGES(acq_rel)

}  // namespace strait::soft::hsa
