// SPDX-License-Identifier: Apache-2.0
#include "sys/relay.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <thread>

#include "sys/fd.hpp"
#include "sys/mapping.hpp"
#include "sys/quiet_thread.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Not swapcontext: it makes two system calls to keep signal masks that are the same here.
extern "C" {
// Keeps the registers that a function keeps on this stack, notes it in *from, and goes on where `to` was noted.
void strait_sys_switch_stack(void** from, void* to);
// Where a new stack begins: calls the function in one kept register with what is in another.
void strait_sys_begin_stack();
}
#if defined(__x86_64__)
asm(R"(
  .pushsection .text
  .type strait_sys_switch_stack, @function
  .hidden strait_sys_switch_stack
  .globl strait_sys_switch_stack
strait_sys_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size strait_sys_switch_stack, . - strait_sys_switch_stack
  .type strait_sys_begin_stack, @function
  .hidden strait_sys_begin_stack
  .globl strait_sys_begin_stack
strait_sys_begin_stack:
  movq %r12, %rdi
  call *%r13
  ud2
  .size strait_sys_begin_stack, . - strait_sys_begin_stack
  .popsection
)");
constexpr std::size_t kKeptWords = 9;  // two for alignment
constexpr std::size_t kArgument = 3, kFunction = 2, kReturn = 6;
#elif defined(__aarch64__)
asm(R"(
  .pushsection .text
  .type strait_sys_switch_stack, %function
  .hidden strait_sys_switch_stack
  .globl strait_sys_switch_stack
strait_sys_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .size strait_sys_switch_stack, . - strait_sys_switch_stack
  .type strait_sys_begin_stack, %function
  .hidden strait_sys_begin_stack
  .globl strait_sys_begin_stack
strait_sys_begin_stack:
  mov x0, x19
  blr x20
  brk #0
  .size strait_sys_begin_stack, . - strait_sys_begin_stack
  .popsection
)");
constexpr std::size_t kKeptWords = 20;
constexpr std::size_t kArgument = 0, kFunction = 1, kReturn = 11;
#else
#error "strait_sys_switch_stack is written for x86-64 and arm64"
#endif

namespace strait::sys {
namespace {

constexpr std::size_t kStackBytes = 8 << 20;
// While no call is made, somebody looks less often.
constexpr std::int64_t kIdleTickNs = 10 * Relay::kTickNs;

// It waits in the kernel, and not for a CPU. Without an answer: yes.
bool waits(int thread) {
  std::array<char, 64> path{};
  (void)std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", thread);
  const Fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  const ssize_t bytes = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  if (bytes <= 0) return true;
  // "12 (a name that may hold anything) S 1 ..."
  const std::string_view line(text.data(), static_cast<std::size_t>(bytes));
  const std::size_t name_ends = line.rfind(')');
  return name_ends == std::string_view::npos || name_ends + 2 >= line.size() || line[name_ends + 2] != 'R';
}

}  // namespace

// What the carrier and the body tell each other lies here, written by one and then read by the other: `turn` and the
// start of a thread order it where another thread takes over.
struct Relay::Core {
  std::function<void()> what;
  Mapping stack;
  void* body = nullptr;     // its stack, while it is aside
  void* carrier = nullptr;  // the stack of its carrier, while the body runs
  const Errand* errand = nullptr;
  End end = End::no;
  bool inside = false;  // the body runs
  bool ended = false;
  // Odd: a call is under way. Who makes it even goes on with the body.
  std::atomic<std::uint64_t> turn{0};
  std::atomic<std::uint64_t> owner{0};
  std::atomic<int> thread{0};
  std::atomic<std::uint64_t> left_behind{0};
  std::mutex mutex;
  std::condition_variable over_now;
  bool over = false;
#if defined(__SANITIZE_ADDRESS__)
  void* body_fake = nullptr;
  const void* carrier_bottom = nullptr;
  std::size_t carrier_bytes = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* body_fiber = __tsan_create_fiber(0);
  void* carrier_fiber = nullptr;
  ~Core() { __tsan_destroy_fiber(body_fiber); }
#endif

  void prepare() {
    auto* const top = reinterpret_cast<std::uint64_t*>(stack.data() + stack.size()) - kKeptWords;
    top[kArgument] = reinterpret_cast<std::uint64_t>(this);
    top[kFunction] = reinterpret_cast<std::uint64_t>(&Core::begin);
    top[kReturn] = reinterpret_cast<std::uint64_t>(&strait_sys_begin_stack);
    body = top;
  }
  static void begin(Core* core) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &core->carrier_bottom, &core->carrier_bytes);
#endif
    core->inside = true;
    core->what();
    core->inside = false;
    core->ended = true;
    core->step_out();
  }
  // From the carrier into the body, until that steps out.
  void step_in() {
#if defined(__SANITIZE_THREAD__)
    carrier_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(body_fiber, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack.data(), stack.size());
#endif
    strait_sys_switch_stack(&carrier, body);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }
  void step_out() {
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(carrier_fiber, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(ended ? nullptr : &body_fake, carrier_bottom, carrier_bytes);
#endif
    strait_sys_switch_stack(&body, carrier);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(body_fake, &carrier_bottom, &carrier_bytes);
#endif
  }
  void carry() {
    thread.store(static_cast<int>(::syscall(SYS_gettid)), std::memory_order_relaxed);
    for (;;) {
      step_in();
      if (ended) {
        const std::lock_guard lock(mutex);
        over = true;
        over_now.notify_all();
        return;
      }
      const Errand mine = *errand;  // the body's stack may go on without us
      std::uint64_t now = turn.load(std::memory_order_relaxed) + 1;
      turn.store(now, std::memory_order_release);
      const bool yes = mine.go(mine.bytes);
      if (!turn.compare_exchange_strong(now, now + 1, std::memory_order_acq_rel)) return;
      end = yes ? End::yes : End::no;
    }
  }
  void take_over(std::uint64_t from) {
    if (!turn.compare_exchange_strong(from, from + 1, std::memory_order_acq_rel)) return;  // it has come back
    left_behind.fetch_add(1, std::memory_order_relaxed);
    end = End::left_behind;
    carry();
  }
};

Relay::Relay(Enough enough) : enough_(std::move(enough)), core_(std::make_shared<Core>()) {}
Relay::~Relay() = default;

std::uint64_t Relay::left_behind() const {
  return core_->left_behind.load(std::memory_order_relaxed);
}

Relay::End Relay::step_aside(std::uint64_t owner, const Errand& errand) {
  Core& core = *core_;
  if (!core.inside) return errand.go(errand.bytes) ? End::yes : End::no;
  core.errand = &errand;
  core.owner.store(owner, std::memory_order_relaxed);
  core.step_out();
  return core.end;
}

Status Relay::run(std::function<void()> body) {
  Core& core = *core_;
  core.what = std::move(body);
  STRAIT_TRY(core.stack, map_anonymous(kStackBytes, Protect::read_write));
  (void)::mprotect(core.stack.data(), page_bytes(), PROT_NONE);  // who goes too deep is told
  core.prepare();
  STRAIT_TRY(std::thread first, start_quiet_thread([core = core_] { core->carry(); }));
  first.detach();
  std::uint64_t seen = 0;
  std::unique_lock lock(core.mutex);
  for (std::int64_t tick_ns = kTickNs; !core.over;) {
    core.over_now.wait_for(lock, std::chrono::nanoseconds(tick_ns));
    const std::uint64_t turn = core.turn.load(std::memory_order_acquire);
    tick_ns = turn == seen && turn % 2 == 0 ? kIdleTickNs : kTickNs;
    const bool lasts = turn % 2 != 0 && waits(core.thread.load(std::memory_order_relaxed));
    const std::uint64_t owner = core.owner.load(std::memory_order_relaxed);
    seen = turn;
    // Still the same call: it is the one that waits, and the owner is its.
    if (!lasts || core.turn.load(std::memory_order_acquire) != turn || !enough_(owner)) continue;
    // Where the system has no thread left it is tried again.
    if (auto next = start_quiet_thread([core = core_, turn] { core->take_over(turn); })) next->detach();
  }
  core.what = nullptr;
  return {};
}

}  // namespace strait::sys
