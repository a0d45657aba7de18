/// node_address: host and port at which a run accepts nodes.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>
namespace mneme {

struct node_address {
  std::string host{};
  std::uint16_t port = 0; ///< 0: any free port, for listening.
  auto operator<=>(const node_address&) const = default;
  [[nodiscard]] std::string text() const; ///< "host:port", "[::1]:port"
};

/// Parses "HOST:PORT"; an IPv6 address needs brackets.
[[nodiscard]] expected<node_address> parsed_address(const std::string& text);

/// Socket address of the operating system.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
/// A host's name and all its addresses, to be tried in turn.
struct node_place {
  std::string host{};
  std::vector<socket_address> addresses{};
};
/// Resolves a name. Blocks while name servers respond.
[[nodiscard]] expected<std::vector<socket_address>> resolved(const node_address& address);

} // namespace mneme
