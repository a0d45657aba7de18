#include "tools/live/http_server.hpp"
#include <arpa/inet.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

/// Returns the complete response of a server on the loopback to a GET request.
std::string response_of(int port, const std::string& path) {
  const int peer = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const auto request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  REQUIRE(::send(peer, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size()));
  std::string response;
  char bytes[4096];
  for (ssize_t count = 0; (count = ::recv(peer, bytes, sizeof bytes, 0)) > 0;)
    response.append(bytes, static_cast<std::size_t>(count));
  ::close(peer);
  return response;
}

http_response fails(const http_request& request) {
  if (request.path == "/piece")
    return {.next_piece = []() -> std::optional<std::string> { throw std::runtime_error("no piece"); }};
  if (request.path == "/page")
    throw std::runtime_error("no page");
  return {.body = "ready\n"};
}

} // namespace

TEST_CASE("an exception of a page is an error of its response only") {
  const auto server = http_server::listening("127.0.0.1", 0, "", &fails);
  REQUIRE(server);
  const auto page = response_of(server->port(), "/page");
  CHECK_THAT(page, StartsWith("HTTP/1.1 500 ") && ContainsSubstring("\r\n\r\nno page\n"));
  CHECK_THAT(response_of(server->port(), "/piece"), StartsWith("HTTP/1.1 200 ") && !ContainsSubstring("no piece"));
  CHECK_THAT(response_of(server->port(), "/"), StartsWith("HTTP/1.1 200 ") && ContainsSubstring("\r\n\r\nready\n"));
}
