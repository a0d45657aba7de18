#include "tools/live/metrics_server.hpp"
#include "tools/live/http_limits.hpp"
namespace mneme {

struct metrics_server::parts {
  parts(std::string wanted_token, process_state shown)
      : token(std::move(wanted_token)), state(std::move(shown)),
        http({.threads = 4, .this_machine_only = token.empty()}) {}

  const std::string token;
  const process_state state;
  int port = 0;
  bounded_http_server http; // last member, because its threads read the others

  void answer_requests();
};

void metrics_server::parts::answer_requests() {
  constexpr const char* text = "text/plain; charset=utf-8";
  http.Get("/healthz", [](const httplib::Request&, httplib::Response& out) { out.set_content("alive\n", text); });
  http.Get("/readyz", [this](const httplib::Request&, httplib::Response& out) {
    const auto pending = state.pending();
    out.status = pending.empty() ? 200 : 503;
    out.set_content(pending.empty() ? "ready\n" : pending + "\n", text);
  });
  http.Get("/metrics", [this](const httplib::Request& in, httplib::Response& out) {
    if (!is_authorized(in, token))
      return refuse_unauthorized(out);
    out.set_content(state.metrics(), prometheus_type);
  });
}

metrics_server::metrics_server(std::unique_ptr<parts> own) : parts_(std::move(own)) {}

expected<std::unique_ptr<metrics_server>> metrics_server::listening(const metrics_server_options& options,
                                                                    process_state state) {
  auto own = std::make_unique<parts>(options.token, std::move(state));
  own->answer_requests();
  const auto port = own->http.start(options.host, options.port, "metrics");
  if (!port)
    return failed("--metrics", "cannot listen on port " + std::to_string(options.port) + " of " + options.host +
                                   "; expected an address of this machine with a free port, or port 0 for any");
  own->port = *port;
  return std::unique_ptr<metrics_server>(new metrics_server(std::move(own)));
}

metrics_server::~metrics_server() { parts_->http.end(); }

int metrics_server::port() const noexcept { return parts_->port; }

} // namespace mneme
