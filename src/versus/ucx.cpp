// SPDX-License-Identifier: Apache-2.0
#include "versus/ucx.hpp"

#include <chrono>
#include <thread>

#include "sys/captured.hpp"
#include "sys/socket.hpp"

namespace strait::versus {
namespace {

// One that was free a moment ago: the program takes a number and does not tell which it got.
Result<std::uint16_t> free_port() {
  sys::Endpoint bound;
  STRAIT_TRY(const auto listener, sys::tcp_listen({"127.0.0.1", 0}, &bound));
  return bound.port;
}

struct Attempt {
  sys::Ran ran;
  bool again = false;  // the port was taken in between, or the server was not there yet in all that time
};

Attempt attempt(const UcxRun& run, const std::string& port, const sys::Deadline& deadline) {
  sys::EnvironmentChanges environment = {{"UCX_WARN_UNUSED_ENV_VARS", "n"}};
  if (!run.transports.empty()) environment.emplace_back("UCX_TLS", run.transports);
  if (!run.allocation.empty()) environment.emplace_back("UCX_CMA_ALLOC", run.allocation);
  Attempt made;
  auto server = sys::Captured::start({run.program, "-p", port, "-c", std::to_string(run.cpus.owner)}, environment);
  if (!server) {
    made.ran.problem = server.error().text;
    return made;
  }
  std::vector<std::string> client = {run.program, "127.0.0.1",
                                     "-p",        port,
                                     "-c",        std::to_string(run.cpus.initiator),
                                     "-f",        "-v",
                                     "-s",        std::to_string(run.bytes),
                                     "-n",        std::to_string(run.count),
                                     "-w",        std::to_string(run.count / 10 + 1)};
  client.insert(client.end(), run.test.begin(), run.test.end());
  // The server takes a moment to listen, and does not say when it does.
  while (!deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (server->ended()) {
      made.ran = server->finish(deadline);
      made.again = (made.ran.problem + made.ran.out).find("ind() failed") != std::string::npos;
      made.ran.ok = false;
      return made;
    }
    made.ran = sys::run_captured(client, deadline, environment);
    const std::string said = made.ran.problem + made.ran.out;
    if (made.ran.ok || said.find("onnect() failed") == std::string::npos) return made;
  }
  return made;
}

}  // namespace

Result<UcxLine> run_ucx(const UcxRun& run) {
  const auto deadline = sys::Deadline::after_ns(run.deadline_ns);
  Attempt made;
  for (int i = 0; i < 5; ++i) {
    STRAIT_TRY(const std::uint16_t port, free_port());
    made = attempt(run, std::to_string(port), deadline);
    if (made.ran.ok) {
      if (const auto line = read_ucx_line(made.ran.out)) return *line;
      return fail(Code::system, "ucx_perftest printed \"{}\"", made.ran.out);
    }
    if (!made.again || deadline.passed()) break;
  }
  return fail(Code::system, "ucx_perftest failed: {}", made.ran.problem + made.ran.out);
}

}  // namespace strait::versus
