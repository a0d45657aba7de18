/// metrics_server: serves Prometheus metrics over HTTP, to this machine only.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "tools/live/prometheus_text.hpp"
#include <functional>
#include <memory>
namespace mneme {

/// Serves /metrics on 127.0.0.1 with its own threads, until it is destroyed.
class metrics_server {
public:
  /// Starts to listen. Fails with the port if it cannot listen on it.
  /// @param port 0: any free port @param measure called on any thread
  static expected<std::unique_ptr<metrics_server>> listening(int port,
                                                             std::function<std::vector<measurement>()> measure);
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
