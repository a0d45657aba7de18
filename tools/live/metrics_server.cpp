#include "tools/live/metrics_server.hpp"
#include "tools/live/http_limits.hpp"
#include <thread>
namespace mneme {

struct metrics_server::parts {
  std::function<std::vector<measurement>()> measure{};
  int port = 0;
  bounded_http_server http{{.threads = 4}};
  std::thread listener{};
};

metrics_server::metrics_server(std::unique_ptr<parts> own) : parts_(std::move(own)) {}

expected<std::unique_ptr<metrics_server>> metrics_server::listening(int port,
                                                                    std::function<std::vector<measurement>()> measure) {
  auto own = std::make_unique<parts>();
  auto& http = own->http;
  own->measure = std::move(measure);
  http.Get("/metrics", [from = own.get()](const httplib::Request&, httplib::Response& out) {
    out.set_content(prometheus_text(from->measure()), "text/plain; version=0.0.4; charset=utf-8");
  });
  const char* const host = "127.0.0.1";
  own->port = port == 0 ? http.bind_to_any_port(host) : http.bind_to_port(host, port) ? port : -1;
  if (own->port <= 0)
    return failed("--metrics-port",
                  "nothing can listen on " + std::to_string(port) + "; expected a port that is free, or 0 for any");
  own->listener = std::thread([server = own.get()] { server->http.listen_after_bind(); });
  while (!http.is_running()) // stop() has no effect before the server runs
    std::this_thread::yield();
  return std::unique_ptr<metrics_server>(new metrics_server(std::move(own)));
}

metrics_server::~metrics_server() {
  parts_->http.stop();
  parts_->listener.join();
}

int metrics_server::port() const noexcept { return parts_->port; }

} // namespace mneme
