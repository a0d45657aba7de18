#include "runtime/base/node_address.hpp"
#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <unistd.h>
namespace mneme {
namespace {

tl::unexpected<diagnostics> malformed(const std::string& text) {
  return failed(
      "", "'" + text +
              "' is not an address; expected HOST:PORT with a port in [1, 65535], as in 127.0.0.1:7100 or [::1]:7100");
}

} // namespace

std::string node_address::text() const {
  const bool has_colons = host.find(':') != std::string::npos;
  return (has_colons ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

expected<node_address> parse_address(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    return malformed(text);
  node_address address{.host = text.substr(0, colon)};
  const bool has_brackets = address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  if (has_brackets)
    address.host = address.host.substr(1, address.host.size() - 2);
  else if (address.host.find(':') != std::string::npos)
    return malformed(text);
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
  if (error != std::errc{} || stop != end || address.host.find_first_of(" \t,/@[]") != std::string::npos)
    return malformed(text);
  return address;
}

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "unknown";
}

node_address reachable_address(node_address address) {
  if (address.host == "0.0.0.0" || address.host == "::")
    address.host = machine_name();
  return address;
}

bool socket_address::is_loopback() const {
  if (storage.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
  return storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
}

std::string socket_address::text() const {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(get(), size, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) !=
      0)
    return "unknown";
  const bool has_colons = storage.ss_family == AF_INET6;
  return (has_colons ? "[" + std::string(host.data()) + "]" : std::string(host.data())) + ":" + port.data();
}

expected<std::vector<socket_address>> resolved(const node_address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0)
    return failed(address.text(), std::string("unknown host: ") + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, ::freeaddrinfo);
  std::vector<socket_address> addresses;
  for (const auto* entry = list; entry; entry = entry->ai_next) {
    auto& added = addresses.emplace_back();
    std::memcpy(&added.storage, entry->ai_addr, entry->ai_addrlen);
    added.size = entry->ai_addrlen;
  }
  return addresses;
}

std::string all_interfaces(const node_address& name) {
  const auto addresses = resolved(name);
  const bool has_only_v6 = addresses && std::all_of(addresses->begin(), addresses->end(), [](const auto& address) {
                             return address.storage.ss_family == AF_INET6;
                           });
  return has_only_v6 ? "::" : "0.0.0.0";
}

} // namespace mneme
