#include "tools/cli/serving.hpp"
#include <charconv>
#include <cstdio>
namespace mneme {

expected<serving> serving_option(const std::string& port, const std::string& token) {
  if (port.empty())
    return token.empty() ? expected<serving>()
                         : failed("", "--serve-token without --serve: expected --serve PORT, too");
  int number = -1;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 0 || number > 65535)
    return failed("", "--serve = '" + port + "': expected a port in [0, 65535]; 0 selects a free port");
  auto view = std::make_shared<live_view>();
  auto server = live_server::listening({.port = number, .token = token}, view);
  if (!server)
    return tl::unexpected(server.error());
  std::fprintf(stderr, "live report at %s\n", (*server)->address().c_str());
  return serving{.view = std::move(view), .server = std::move(*server)};
}

} // namespace mneme
