#include "tools/cli/serving.hpp"
#include "tools/cli/http_pages.hpp"
#include "tools/cli/run_metrics.hpp"
#include <cctype>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Encodes all bytes that are not letters, digits or one of "-._~" as %XX.
std::string query_text(std::string_view text) {
  std::string encoded;
  for (const char c : text)
    encoded +=
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~").find(c) != std::string_view::npos
            ? std::string(1, c)
            : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return encoded;
}

/// Starts the report, and prints its URL with the token. With a token, all machines are served.
expected<std::shared_ptr<const void>> start_report(const std::string& port, const std::string& token,
                                                   const std::shared_ptr<live_view>& view) {
  int number = -1;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 0 || number > 65535)
    return failed("", "--serve = '" + port + "': expected a port in [0, 65535]; 0 selects a free port");
  auto pages = serve_report({.host = token.empty() ? "127.0.0.1" : "0.0.0.0", .port = number, .token = token}, view);
  if (!pages)
    return tl::unexpected(pages.error());
  std::fprintf(stderr, "live report at http://127.0.0.1:%d/%s%s\n", pages->port,
               token.empty() ? "" : "?token=", query_text(token).c_str());
  return std::move(pages->server);
}

} // namespace

expected<serving> serving_option(const std::string& port, const std::string& token, const metrics_starter& metrics) {
  if (port.empty() && !token.empty())
    return failed("", "--serve-token without --serve: expected --serve PORT, too");
  if (port.empty() && !metrics)
    return serving{};
  serving shown{.view = std::make_shared<live_view>()};
  if (!port.empty()) {
    auto server = start_report(port, token, shown.view);
    if (!server)
      return tl::unexpected(server.error());
    shown.report = std::move(*server);
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
