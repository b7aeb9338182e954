// SPDX-License-Identifier: Apache-2.0
// The handler runs at any time in any thread: it takes no lock and allocates nothing.
#include "sys/store_fault.hpp"

#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

namespace strait::sys {
namespace {

std::array<std::atomic<StoreFault>, 4> asked{};  // in the order in which they came
std::mutex installing;
// Handlers that were there before ours, the newest last. A program that sets one after us is put behind us again when
// the next page comes; who was first is never lost.
struct sigaction before_us;

#if defined(__x86_64__)
constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

void take_state(const ucontext_t& context, ProcessorState& out) {
  for (int i = 0; i < 16; ++i) out.registers[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[kOrder[i]]);
  if (context.uc_mcontext.fpregs != nullptr) {
    for (int i = 0; i < 16; ++i) std::memcpy(&out.vectors[i], &context.uc_mcontext.fpregs->_xmm[i], 8);
  }
  out.at = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
}
void give_state(ucontext_t& context, const ProcessorState& state) {
  for (int i = 0; i < 16; ++i) context.uc_mcontext.gregs[kOrder[i]] = static_cast<greg_t>(state.registers[i]);
  context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(state.at);
}
#elif defined(__aarch64__)
void take_state(const ucontext_t& context, ProcessorState& out) {
  for (int i = 0; i < 31; ++i) out.registers[i] = context.uc_mcontext.regs[i];
  out.registers[31] = context.uc_mcontext.sp;
  // The vector registers are the first record of those behind the general ones.
  const auto* head = reinterpret_cast<const _aarch64_ctx*>(context.uc_mcontext.__reserved);
  if (head->magic == FPSIMD_MAGIC) {
    const auto* vectors = reinterpret_cast<const fpsimd_context*>(head);
    for (int i = 0; i < 32; ++i) out.vectors[i] = static_cast<std::uint64_t>(vectors->vregs[i]);
  }
  out.at = context.uc_mcontext.pc;
}
void give_state(ucontext_t& context, const ProcessorState& state) {
  for (int i = 0; i < 31; ++i) context.uc_mcontext.regs[i] = state.registers[i];
  context.uc_mcontext.sp = state.registers[31];
  context.uc_mcontext.pc = state.at;
}
#endif

void hand_on(int number, siginfo_t* info, void* context) {
  const bool sent = info->si_code <= 0;
  if ((before_us.sa_flags & SA_SIGINFO) != 0 && before_us.sa_sigaction != nullptr)
    return before_us.sa_sigaction(number, info, context);
  if (before_us.sa_handler == SIG_IGN && sent) return;
  if (before_us.sa_handler != SIG_DFL && before_us.sa_handler != SIG_IGN) return before_us.sa_handler(number);
  // As if we had never been here: the access is made again and ends the process; a signal that was sent is sent again.
  ::signal(number, SIG_DFL);
  if (sent) ::raise(number);
}

void on_store_fault(int number, siginfo_t* info, void* raw) {
  const int saved = errno;
  auto& context = *static_cast<ucontext_t*>(raw);
  if (info->si_code == SEGV_ACCERR) {
    ProcessorState state;
    take_state(context, state);
    for (const std::atomic<StoreFault>& each : asked) {
      const StoreFault call = each.load(std::memory_order_acquire);
      if (call == nullptr || !call(reinterpret_cast<std::uint64_t>(info->si_addr), state)) continue;
      give_state(context, state);
      errno = saved;
      return;
    }
  }
  errno = saved;
  hand_on(number, info, raw);
}

}  // namespace

void catch_store_faults(StoreFault call) {
  const std::scoped_lock lock(installing);
  for (std::atomic<StoreFault>& each : asked) {
    const StoreFault there = each.load(std::memory_order_relaxed);
    if (there == call) break;
    if (there != nullptr) continue;
    each.store(call, std::memory_order_release);
    break;
  }
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_store_fault) return;
  before_us = now;
  struct sigaction action {};
  action.sa_sigaction = on_store_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, nullptr);
}

bool on_alternate_stack() {
  stack_t stack{};
  return ::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

void say_in_handler(const char* text) {
  (void)!::write(STDERR_FILENO, text, std::strlen(text));
}

std::size_t read_instruction(std::uint64_t at, std::uint8_t* into, std::size_t bytes) {
  iovec to{into, bytes};
  // In two parts where it ends a page: the next one may not be there.
  const std::uint64_t page_end = (at | 4095) + 1;
  const std::size_t first = page_end - at < bytes ? static_cast<std::size_t>(page_end - at) : bytes;
  iovec from[2] = {{reinterpret_cast<void*>(at), first}, {reinterpret_cast<void*>(page_end), bytes - first}};
  const ssize_t got = ::process_vm_readv(::getpid(), &to, 1, from, first == bytes ? 1 : 2, 0);
  if (got > 0) return static_cast<std::size_t>(got);
  if (errno != EPERM && errno != ENOSYS) return 0;
  // A sandbox without the call. What the processor has just tried to run can be read, up to the end of its page.
  std::memcpy(into, reinterpret_cast<const void*>(at), first);
  return first;
}

}  // namespace strait::sys
