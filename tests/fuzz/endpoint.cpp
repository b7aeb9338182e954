// SPDX-License-Identifier: Apache-2.0
// Fuzz target: addresses. What is accepted can be written down and read back, and fits a C string.
#include <cstring>
#include <string_view>

#include "require.hpp"
#include "sys/socket.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using strait::fuzz::require;
  const auto parsed = strait::sys::parse_endpoint({reinterpret_cast<const char*>(data), size});
  if (!parsed) {
    require(parsed.error().code == strait::Code::invalid && !parsed.error().text.empty(), "a refusal says why");
    return 0;
  }
  require(!parsed->host.empty(), "an accepted address has a host");
  require(std::strlen(parsed->host.c_str()) == parsed->host.size(), "the resolver sees the whole name");
  const auto again = strait::sys::parse_endpoint(parsed->text());
  require(again && again->host == parsed->host && again->port == parsed->port, "text() is read back the same");
  (void)strait::sys::is_loopback(*parsed);
  return 0;
}
