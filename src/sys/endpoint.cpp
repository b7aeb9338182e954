// SPDX-License-Identifier: Apache-2.0
// Addresses as people write them. No look-ups here: parsing never blocks.
#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "sys/socket.hpp"

namespace strait::sys {
namespace {

// Blanks and control characters, NUL above all: the resolver would see a shorter name than the one that was checked.
bool is_plain(std::string_view host) {
  return std::ranges::all_of(host, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; });
}

}  // namespace

std::string Endpoint::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const auto refuse = [&](const char* why) {
    return fail(Code::invalid, "\"{}\" is not an address: {} (expected host:port, for example 127.0.0.1:7471)", text,
                why);
  };
  if (text.empty()) return refuse("it is empty");
  if (!is_plain(text)) return refuse("it contains blanks or control characters");
  Endpoint endpoint;
  std::string_view rest;  // from the colon before the port
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return refuse("the bracket is not closed");
    endpoint.host = text.substr(1, end - 1);
    if (endpoint.host.find(':') == std::string::npos) return refuse("only an IPv6 address stands in brackets");
    rest = text.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return refuse("something follows the bracket");
  } else {
    const auto colon = text.find(':');
    if (colon != text.rfind(':')) return refuse("an IPv6 address needs brackets");
    endpoint.host = text.substr(0, colon);
    if (colon != std::string_view::npos) rest = text.substr(colon);
  }
  if (endpoint.host.find_first_of("[]") != std::string::npos) return refuse("a bracket is in the wrong place");
  if (!rest.empty()) {
    const char* const last = rest.data() + rest.size();
    const auto [end, error] = std::from_chars(rest.data() + 1, last, endpoint.port);
    if (error != std::errc{} || end != last) return refuse("the port is not a number from 0 to 65535");
  }
  if (endpoint.host.empty()) endpoint.host = "127.0.0.1";
  return endpoint;
}

bool is_loopback(const Endpoint& endpoint) {
  if (endpoint.host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, endpoint.host.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

}  // namespace strait::sys
