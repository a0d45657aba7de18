/// What --serve asks for.
#pragma once
#include "tools/live/live_server.hpp"
namespace mneme {

/// Both null without --serve. The server stops when this goes.
struct serving {
  std::shared_ptr<live_view> view{};
  std::unique_ptr<live_server> server{};
};

/// Listens, and says on stderr where. @param port "" for none. Fails for a port that is none, or that is taken.
[[nodiscard]] expected<serving> serving_option(const std::string& port, const std::string& token);

} // namespace mneme
