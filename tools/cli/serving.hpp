/// serving: implements the option --serve of commands that run scenarios.
#pragma once
#include "tools/live/live_server.hpp"
namespace mneme {

/// Live view and its server; both are null without --serve. The destructor stops the server.
struct serving {
  std::shared_ptr<live_view> view{};
  std::unique_ptr<live_server> server{};
};

/// Starts the server and prints its address on stderr. @param port "" for no server. Fails if the port is invalid or in
/// use.
[[nodiscard]] expected<serving> serving_option(const std::string& port, const std::string& token);

} // namespace mneme
