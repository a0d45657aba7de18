/// node_address: host and port at which a run accepts nodes.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>
namespace mneme {

struct node_address {
  std::string host{};
  std::uint16_t port = 0; ///< For listening, 0 selects any free port.
  auto operator<=>(const node_address&) const = default;
  [[nodiscard]] std::string text() const; ///< Formats "host:port" or "[::1]:port".
};

/// Parses "HOST:PORT". An IPv6 address must be in brackets.
[[nodiscard]] expected<node_address> parse_address(const std::string& text);

/// Name of this machine; "unknown" if it has none.
[[nodiscard]] std::string machine_name();
/// Returns an address that other machines can use: replaces the host of all interfaces (0.0.0.0, ::) with this
/// machine's name.
[[nodiscard]] node_address reachable_address(node_address address);

/// A socket address as the operating system represents it.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
/// A host's name and all its addresses, which are tried in order.
struct resolved_node {
  std::string host{};
  std::vector<socket_address> addresses{};
};
/// Resolves a host name. Blocks until the name servers reply.
[[nodiscard]] expected<std::vector<socket_address>> resolved(const node_address& address);
/// The address of all interfaces. It is "::", which includes IPv4, if the name has IPv6 addresses only. Otherwise it is
/// "0.0.0.0", because a machine may have no IPv6.
[[nodiscard]] std::string all_interfaces(const node_address& name);

} // namespace mneme
