/// live_server: serves the report of a running run over HTTP.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/results/live_view.hpp"
#include <memory>
#include <string>
namespace mneme {

struct live_server_options {
  int port = 0;        ///< 0: any free port.
  std::string token{}; ///< Empty: serve this machine only. Otherwise every request needs the token.
};

/// `/` is the report page, which updates itself; `/events` sends it after every change (server-sent events); `/metrics`
/// is for Prometheus. A token is given as "Authorization: Bearer TOKEN" or "?token=TOKEN". Separate threads read the
/// view; the run never waits for them.
class live_server {
public:
  /// Starts to listen. Fails with the port if that is not possible.
  static expected<std::unique_ptr<live_server>> listening(const live_server_options& options,
                                                          std::shared_ptr<live_view> view);
  live_server(const live_server&) = delete;
  live_server& operator=(const live_server&) = delete;
  /// Ends all event streams and stops.
  ~live_server();

  [[nodiscard]] int port() const noexcept;
  /// URL of the page, with the token.
  [[nodiscard]] std::string address() const;

private:
  struct parts;
  explicit live_server(std::unique_ptr<parts> own);
  std::unique_ptr<parts> parts_;
};

} // namespace mneme
