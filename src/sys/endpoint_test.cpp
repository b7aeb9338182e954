// SPDX-License-Identifier: Apache-2.0
// Addresses as people write them: what is taken, what is refused and in which words, what counts as loopback.
#include <gtest/gtest.h>

#include "sys/socket.hpp"

namespace strait::sys {
namespace {

TEST(Endpoint, Accepted) {
  struct Case {
    const char* text;
    const char* host;
    std::uint16_t port;
  };
  const Case cases[] = {{"127.0.0.1:7471", "127.0.0.1", 7471},
                        {"localhost:0", "localhost", 0},
                        {"node-7.example.org:65535", "node-7.example.org", 65535},
                        {"node-7", "node-7", 0},
                        {":7471", "127.0.0.1", 7471},
                        {"[::1]:7471", "::1", 7471},
                        {"[::1]", "::1", 0},
                        {"[fe80::1%eth0]:9", "fe80::1%eth0", 9}};
  for (const Case& each : cases) {
    const Result<Endpoint> parsed = parse_endpoint(each.text);
    ASSERT_TRUE(parsed) << each.text << ": " << parsed.error().text;
    EXPECT_EQ(parsed->host, each.host);
    EXPECT_EQ(parsed->port, each.port);
    const Endpoint again = parse_endpoint(parsed->text()).value();
    EXPECT_EQ(again.host, parsed->host);
    EXPECT_EQ(again.port, parsed->port);
  }
}

TEST(Endpoint, Refused) {
  struct Case {
    std::string_view text;
    const char* reason;
  };
  using namespace std::string_view_literals;
  const Case cases[] = {{"", "it is empty"},
                        {":", "the port is not a number"},
                        {"host:", "the port is not a number"},
                        {"host:-1", "the port is not a number"},
                        {"host:+1", "the port is not a number"},
                        {"host:65536", "the port is not a number"},
                        {"host:80x", "the port is not a number"},
                        {"::1", "an IPv6 address needs brackets"},
                        {"a:b:c", "an IPv6 address needs brackets"},
                        {"[::1", "the bracket is not closed"},
                        {"[::1]7471", "something follows the bracket"},
                        {"[::1]:", "the port is not a number"},
                        {"[]:5", "only an IPv6 address stands in brackets"},
                        {"[host]:5", "only an IPv6 address stands in brackets"},
                        {"[[::1]:5", "a bracket is in the wrong place"},
                        {"ho]st:5", "a bracket is in the wrong place"},
                        {"my host:5", "blanks or control characters"},
                        {"127.0.0.1\0.evil:5"sv, "blanks or control characters"}};
  for (const Case& each : cases) {
    const Result<Endpoint> parsed = parse_endpoint(each.text);
    ASSERT_FALSE(parsed) << each.text;
    EXPECT_EQ(parsed.error().code, Code::invalid);
    EXPECT_NE(parsed.error().text.find(each.reason), std::string::npos) << parsed.error().text;
  }
}

TEST(Endpoint, Loopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "0:0:0:0:0:0:0:1"}) {
    EXPECT_TRUE(is_loopback({host, 1})) << host;
  }
  for (const char* host : {"127.example.org", "127.0.0.1.example.org", "0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1",
                           "localhost.example.org", "", "128.0.0.1"}) {
    EXPECT_FALSE(is_loopback({host, 1})) << host;
  }
}

}  // namespace
}  // namespace strait::sys
