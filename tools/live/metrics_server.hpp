/// metrics_server: serves metrics and health of a process over HTTP.
#pragma once
#include "actors/protocol/process_state.hpp"
#include "runtime/base/diagnostic.hpp"
#include <memory>
namespace mneme {

struct metrics_server_options {
  std::string host = "127.0.0.1";
  int port = 0;        ///< 0: any free port.
  std::string token{}; ///< Token that /metrics requires. Empty: only requests of this machine are answered.
};

/// Serves three pages with its own threads, until it is destroyed: `/healthz` answers 200 while the process runs,
/// `/readyz` answers 200 if the process is ready and otherwise 503 with the reason, `/metrics` is for Prometheus. The
/// first two need no token, because probes of Kubernetes send none.
class metrics_server {
public:
  /// Starts to listen. Fails with the port if it cannot listen on it.
  static expected<std::unique_ptr<metrics_server>> listening(const metrics_server_options& options,
                                                             process_state state);
  metrics_server(const metrics_server&) = delete;
  metrics_server& operator=(const metrics_server&) = delete;
  ~metrics_server();
  [[nodiscard]] int port() const noexcept;

private:
  struct parts;
  explicit metrics_server(std::unique_ptr<parts> own);
  std::unique_ptr<parts> parts_;
};

} // namespace mneme
