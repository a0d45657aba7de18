/// live_server: serves the report of a running run over HTTP.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/results/live_view.hpp"
#include <memory>
#include <string>
namespace mneme {

struct live_server_options {
  int port = 0;        ///< 0: any free port.
  std::string token{}; ///< Token that every request needs; empty: only this machine is served, without a token.
};

/// `/` is the report page, which updates itself. `/events` sends it after every change (server-sent events). `/metrics`
/// serves Prometheus. A token is given as "Authorization: Bearer TOKEN" or "?token=TOKEN". The server has its own
/// threads, and the run never waits for them.
class live_server {
public:
  /// Starts to listen. Fails with the port if it cannot listen on it.
  static expected<std::unique_ptr<live_server>> listening(const live_server_options& options,
                                                          std::shared_ptr<live_view> view);
  live_server(const live_server&) = delete;
  live_server& operator=(const live_server&) = delete;
  /// Ends all event streams and stops the server.
  ~live_server();

  [[nodiscard]] int port() const noexcept;
  /// URL of the page, including the token.
  [[nodiscard]] std::string address() const;

private:
  struct parts;
  explicit live_server(std::unique_ptr<parts> own);
  std::unique_ptr<parts> parts_;
};

} // namespace mneme
