#include "runtime/transport/node_address.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What is wrong with it, a line each.
std::string refusal(const std::string& text) {
  const auto found = parsed_addresses(text);
  std::string lines;
  for (const auto& wrong : found ? diagnostics{} : found.error())
    lines += diagnostic_text(wrong) + "\n";
  return lines;
}

} // namespace

TEST_CASE("addresses are hosts with ports, between commas or on the lines of a file") {
  const auto found = parsed_addresses("127.0.0.1:7100, host.example:80,[::1]:65535");
  REQUIRE(found);
  REQUIRE(found->size() == 3);
  CHECK((found->at(0) == node_address{.host = "127.0.0.1", .port = 7100}));
  CHECK(found->at(1).text() == "host.example:80");
  CHECK((found->at(2) == node_address{.host = "::1", .port = 65535}));
  CHECK(found->at(2).text() == "[::1]:65535");

  const test::scratch_folder folder;
  test::write_file(folder.path() / "nodes", "# the two in the basement\n127.0.0.1:1\n\n127.0.0.1:2 # the slow one\n");
  const auto listed = parsed_addresses("@" + (folder.path() / "nodes").string());
  REQUIRE(listed);
  CHECK(listed->size() == 2);
}

TEST_CASE("malformed and repeated addresses are all named") {
  const auto text = refusal("a:1,b,a:1,:5,c:70000,::1:7,d:0");
  for (const char* part : {"'b' is no address", "'a:1' stands there twice", "':5' is no address", "'c:70000' is no",
                           "'::1:7' is no address", "'d:0' is no address"})
    CHECK_THAT(text, ContainsSubstring(part));
  CHECK_THAT(refusal(""), ContainsSubstring("'' is no address of a node; expected HOST:PORT"));
  CHECK_THAT(refusal("@/there/is/none"), ContainsSubstring("'/there/is/none' cannot be read"));
}

TEST_CASE("the loopback is 127/8 and ::1") {
  const auto is_local = [](const char* host) {
    return resolved({.host = host, .port = 1}).value().front().is_loopback();
  };
  CHECK(is_local("127.0.0.1"));
  CHECK(is_local("127.9.9.9"));
  CHECK(is_local("::1"));
  CHECK_FALSE(is_local("0.0.0.0"));
  CHECK_FALSE(is_local("128.0.0.1"));
}
