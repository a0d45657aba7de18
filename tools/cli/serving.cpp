#include "tools/cli/serving.hpp"
#include "tools/live/run_metrics.hpp"
#include <charconv>
#include <cstdio>
namespace mneme {
namespace {

expected<std::unique_ptr<live_server>> serve_report(const std::string& port, const std::string& token,
                                                    const std::shared_ptr<live_view>& view) {
  int number = -1;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 0 || number > 65535)
    return failed("", "--serve = '" + port + "': expected a port in [0, 65535]; 0 selects a free port");
  auto server = live_server::listening({.port = number, .token = token}, view);
  if (server)
    std::fprintf(stderr, "live report at %s\n", (*server)->address().c_str());
  return server;
}

} // namespace

expected<serving> serving_option(const std::string& port, const std::string& token, const metrics_starter& metrics) {
  if (port.empty() && !token.empty())
    return failed("", "--serve-token without --serve: expected --serve PORT, too");
  if (port.empty() && !metrics)
    return serving{};
  serving shown{.view = std::make_shared<live_view>()};
  if (!port.empty()) {
    auto server = serve_report(port, token, shown.view);
    if (!server)
      return tl::unexpected(server.error());
    shown.server = std::move(*server);
  }
  if (metrics) {
    auto server = metrics(state_of_run(shown.view), stderr);
    if (!server)
      return tl::unexpected(server.error());
    shown.metrics = std::move(*server);
  }
  return shown;
}

} // namespace mneme
