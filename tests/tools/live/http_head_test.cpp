#include "tools/live/http_head.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

std::string refusal_of(std::string_view arrived, bool this_machine_only = true) {
  const auto head = read_http_head(arrived, this_machine_only);
  CHECK(head.verdict == http_verdict::refused);
  return head.answer;
}

std::string request(const std::string& headers) {
  return "GET / HTTP/1.1\r\nHost: localhost:8080\r\n" + headers + "\r\n";
}

} // namespace

TEST_CASE("a request is complete when its final empty line has arrived") {
  const auto text = request("Accept: */*\r\n");
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes)
    CHECK(read_http_head(text.substr(0, bytes), true).verdict == http_verdict::unfinished);
  const auto head = read_http_head(text + "a body", true);
  CHECK(head.verdict == http_verdict::whole);
  CHECK(head.text == text);
}

TEST_CASE("range, body and Expect headers are removed from a request") {
  std::string ranges = "rAnGe: bytes=0-";
  for (int i = 0; i < 500; ++i)
    ranges += ",0-";
  ranges += "\r\nIf-Range: x\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\nAccept: a\r\n";
  const auto head = read_http_head(request(ranges), true);
  CHECK(head.verdict == http_verdict::whole);
  CHECK(head.text == request("Accept: a\r\n"));
}

TEST_CASE("without a token only requests to names of this machine are served") {
  for (const std::string host : {"localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]", "[::1]:80"})
    CHECK(read_http_head("GET / HTTP/1.1\r\nhost:  " + host + " \r\n\r\n", true).verdict == http_verdict::whole);
  for (const std::string host :
       {"rebound.example", "localhost.rebound.example", "127.0.0.1.rebound.example:80", "", "[", "[::1", "10.0.0.1"}) {
    const auto text = "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
    CHECK_THAT(refusal_of(text), StartsWith("HTTP/1.1 421 "));
    CHECK(read_http_head(text, false).verdict == http_verdict::whole);
  }
  CHECK_THAT(refusal_of("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(refusal_of(request("Host: rebound.example\r\n")), StartsWith("HTTP/1.1 400 "));
}

TEST_CASE("long requests, other methods and headers without a name are refused") {
  CHECK_THAT(refusal_of("GET /" + std::string(http_head_bytes_max, 'a')), StartsWith("HTTP/1.1 431 "));
  CHECK_THAT(refusal_of(request("A: " + std::string(http_head_bytes_max, 'a') + "\r\n")), StartsWith("HTTP/1.1 431 "));
  CHECK_THAT(refusal_of("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  CHECK_THAT(refusal_of("\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  CHECK_THAT(refusal_of(request("no name\r\n")), StartsWith("HTTP/1.1 400 ") && ContainsSubstring("has no name"));
  CHECK_THAT(refusal_of(request("Host : rebound.example\r\n")), StartsWith("HTTP/1.1 400 "));
}
