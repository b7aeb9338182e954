// SPDX-License-Identifier: Apache-2.0
// strait-cassini: the process behind /dev/cxiN of this user. Started by the first program that opens a device.
#include <cstdio>
#include <cstring>

#include "soft/cassini_host/server.hpp"

namespace {

constexpr const char* kUsage =
    "strait-cassini: serves software Cassinis to the programs of this user. It is started by the first program that\n"
    "opens one, and ends by itself when none is left.\n"
    "usage: strait-cassini [--name NAME] [--ask-for-memory]\n";

}  // namespace

int main(int count, char** words) {
  namespace cassini = strait::soft::cassini;
  cassini::ServerSettings settings;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--ask-for-memory") == 0) {
      settings.ask_for_memory = true;
    } else if (std::strcmp(words[i], "--name") == 0 && i + 1 < count) {
      settings.name = words[++i];
    } else {
      std::fputs(kUsage, std::strcmp(words[i], "--help") == 0 ? stdout : stderr);
      return std::strcmp(words[i], "--help") == 0 ? 0 : 2;
    }
  }
  auto server = cassini::Server::create(settings);
  if (!server) {
    std::fprintf(stderr, "strait-cassini: %s\n", server.error().explain().c_str());
    // Somebody else was quicker: that is what was wanted.
    return server.error().code == strait::Code::again ? 0 : 1;
  }
  const strait::Status ran = (*server)->run();
  if (!ran) std::fprintf(stderr, "strait-cassini: %s\n", ran.error().explain().c_str());
  return ran ? 0 : 1;
}
