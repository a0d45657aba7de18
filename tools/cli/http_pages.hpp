/// http_pages: HTTP servers of a process. Interface of the optional part tools/live (CMake switch MNEME_LIVE).
#pragma once
#include "actors/protocol/process_state.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/results/live_view.hpp"
#include <memory>
namespace mneme {

struct http_options {
  std::string host = "127.0.0.1";
  int port = 0;        ///< 0: any free port.
  std::string token{}; ///< Token that requests need. Empty: only this machine is served, and no token is needed.
};

/// A server with its own threads. It ends when `server` is destroyed.
struct http_pages {
  std::shared_ptr<const void> server{};
  int port = 0;
};

/// Serves the report of a run: `/` is the page, which updates itself; `/events` sends the page after every change
/// (server-sent events); `/metrics` is for Prometheus. A token is given as "Authorization: Bearer TOKEN" or
/// "?token=TOKEN". The run never waits for readers. Fails if it cannot listen, and in builds without MNEME_LIVE.
[[nodiscard]] expected<http_pages> serve_report(const http_options& options, std::shared_ptr<live_view> view);

/// Serves the state of a process: `/healthz` answers 200 while the process runs, `/readyz` answers 200 if the process
/// is ready and otherwise 503 with the reason, `/metrics` is for Prometheus. The first two need no token, because
/// probes of Kubernetes send none. Fails if it cannot listen, and in builds without MNEME_LIVE.
[[nodiscard]] expected<http_pages> serve_state(const http_options& options, process_state state);

/// Functions of tools/live that the functions above call. Each returns nullopt if it cannot listen.
struct http_support {
  std::optional<http_pages> (*report)(const http_options&, std::shared_ptr<live_view>) = nullptr;
  std::optional<http_pages> (*state)(const http_options&, process_state) = nullptr;
};

/// `const http_registration line{{.report = ..., .state = ...}};`
struct http_registration {
  explicit http_registration(const http_support& support) noexcept;
};

} // namespace mneme
