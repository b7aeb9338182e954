// SPDX-License-Identifier: Apache-2.0
#include "soft/cassini_host/start.hpp"

#include <cerrno>
#include <thread>

#include "sys/beside.hpp"
#include "sys/detached.hpp"
#include "sys/socket.hpp"

namespace strait::soft::cassini {
namespace {

constexpr const char* kProgram = "strait/strait-cassini";
constexpr const char* kRemedy = "It is part of the installation: build or install strait again.";

Result<std::string> server_program(const ServerPlace& place) {
  if (!place.program.empty()) return place.program;
  std::string found = sys::beside_library_of(reinterpret_cast<const void*>(&reach_server), kProgram);
  if (found == kProgram)
    return with_remedy(fail(Code::unsupported,
                            "strait-cassini, which has the software Cassinis, is not where "
                            "libstrait-soft.so is"),
                       kRemedy);
  return found;
}

// Nobody listens: the name is free, or its owner has just ended.
bool nobody_there(const Error& error) {
  return error.sys_errno == ECONNREFUSED || error.sys_errno == ENOENT;
}

}  // namespace

Result<sys::Fd> reach_server(const ServerPlace& place, const sys::Deadline& deadline) {
  bool started = false;
  for (;;) {
    auto socket = sys::unix_connect(place.name, deadline);
    if (socket || !nobody_there(socket.error())) return socket;
    if (deadline.passed())
      return with_remedy(fail(Code::timeout, "strait-cassini was started, and does not answer at \"{}\"", place.name),
                         "Run it by hand to see what it says.");
    // Two who start it at once do no harm: the second one finds the name taken and ends.
    if (!started) {
      STRAIT_TRY(const std::string program, server_program(place));
      std::vector<std::string> words = {"--name", place.name};
      if (place.ask_for_memory) words.emplace_back("--ask-for-memory");
      STRAIT_CHECK(sys::start_detached(program, words, {{"LD_PRELOAD", ""}, {"STRAIT_HOST_ROOT", ""}}));
      started = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace strait::soft::cassini
