// SPDX-License-Identifier: Apache-2.0
#include "sys/quiet_thread.hpp"

#include <signal.h>

#include <system_error>

namespace strait::sys {

Result<std::thread> start_quiet_thread(std::function<void()> body) {
  // A new thread inherits the mask of its maker: blocking first leaves no moment in which it could take a signal.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // What the thread's own instructions raise is nobody else's: blocked it would end the process without asking anybody.
  for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) ::sigdelset(&all, own);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int why = 0;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    why = error.code().value();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (why != 0) {
    Error error = fail_errno(why, "cannot start a thread");
    error.code = Code::limit;
    return error;
  }
  return thread;
}

}  // namespace strait::sys
