#include "runtime/base/node_address.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("an address consists of a host and a port") {
  CHECK((parse_address("127.0.0.1:7100").value() == node_address{.host = "127.0.0.1", .port = 7100}));
  CHECK(parse_address("host.example:80").value().text() == "host.example:80");
  CHECK((parse_address("[::1]:65535").value() == node_address{.host = "::1", .port = 65535}));
  CHECK(parse_address("[::1]:65535").value().text() == "[::1]:65535");
}

TEST_CASE("a malformed address is refused and named") {
  for (const char* text : {"", "b", ":5", "c:70000", "::1:7", "d:", "e f:1", "@list:1"}) {
    const auto found = parse_address(text);
    REQUIRE_FALSE(found);
    CHECK_THAT(found.error().front().text, ContainsSubstring("'" + std::string(text) + "' is not an address"));
  }
}

TEST_CASE("loopback addresses are 127/8 and ::1") {
  const auto is_local = [](const char* host) {
    return resolved({.host = host, .port = 1}).value().front().is_loopback();
  };
  CHECK(is_local("127.0.0.1"));
  CHECK(is_local("127.9.9.9"));
  CHECK(is_local("::1"));
  CHECK_FALSE(is_local("0.0.0.0"));
  CHECK_FALSE(is_local("128.0.0.1"));
}

TEST_CASE("reachable_address() replaces all interfaces by the name of this machine") {
  const auto name = machine_name();
  REQUIRE_FALSE(name.empty());
  CHECK(reachable_address({.host = "0.0.0.0", .port = 7100}).text() == name + ":7100");
  CHECK(reachable_address({.host = "::", .port = 7100}).text() == name + ":7100");
  CHECK(reachable_address({.host = "192.0.2.1", .port = 7100}).text() == "192.0.2.1:7100");
}

TEST_CASE("all_interfaces() are those of IPv6 for a name that has IPv6 addresses only") {
  CHECK(all_interfaces({.host = "::1", .port = 1}) == "::");
  CHECK(all_interfaces({.host = "2001:db8::1", .port = 1}) == "::");
  CHECK(all_interfaces({.host = "192.0.2.1", .port = 1}) == "0.0.0.0");
}
