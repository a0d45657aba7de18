/// metrics_server: measurements for Prometheus over HTTP, to this machine alone.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "tools/live/prometheus_text.hpp"
#include <functional>
#include <memory>
namespace mneme {

/// Answers /metrics on 127.0.0.1, on threads of its own, until it goes.
class metrics_server {
public:
  /// @param port 0: any that is free @param measure is called by any thread. Fails, naming the port, where nothing can
  /// listen there.
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
