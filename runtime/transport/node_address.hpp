/// node_address: where a node listens.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <filesystem>
#include <netinet/in.h>
#include <sys/socket.h>
namespace mneme {

struct node_address {
  std::string host{};
  std::uint16_t port = 0; ///< 0: any that is free, to listen on.
  auto operator<=>(const node_address&) const = default;
  [[nodiscard]] std::string text() const; ///< "host:port", "[::1]:port"
};

/// "HOST:PORT", with brackets around an address of colons.
[[nodiscard]] expected<node_address> parsed_address(const std::string& text);
/// "A:PORT,B:PORT", or "@FILE" with one in a line (# begins a comment). Each may stand there once.
[[nodiscard]] expected<std::vector<node_address>> parsed_addresses(const std::string& text);

/// An address as the system takes it.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
/// A node by the name under which it is reached, and all its addresses, which are tried in turn.
struct node_place {
  std::string host{};
  std::vector<socket_address> addresses{};
};
/// All addresses of the name; waits for name servers.
[[nodiscard]] expected<std::vector<socket_address>> resolved(const node_address& address);

} // namespace mneme
