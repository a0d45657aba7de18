#include "tools/live/live_server.hpp"
#include "tools/live/http_limits.hpp"
#include "tools/live/run_metrics.hpp"
#include "tools/study/report_page.hpp"
#include <atomic>
#include <thread>
namespace mneme {
namespace {

constexpr std::size_t threads = 12;
constexpr int followers_max = 8; // limit, because each follower blocks a thread and some threads must stay available
constexpr std::chrono::milliseconds between_events{500}, between_signs{2000}, goodbye_max{3000};

run_progress progress_of(const live_run& run) {
  run_progress now{
      .status = run.status, .tasks = run.pace.tasks, .rounds = run.pace.rounds, .elapsed_s = run.pace.elapsed_s};
  if (!run.evaluations.empty())
    now.accuracy = run.evaluations.back().accuracy;
  if (run.course.empty())
    return now;
  const auto& last = run.course.back();
  now.task = last.task.value + 1;
  now.round = last.last.value + 1;
  now.virtual_s = in_seconds(last.at);
  const auto local_rounds = now.round - run.rounds_before; // the rate counts only rounds of this process
  if (local_rounds > 0 && now.rounds > 0)
    now.left_s = now.elapsed_s / static_cast<double>(local_rounds) * static_cast<double>(now.rounds - now.round);
  return now;
}

/// Formats the page as a server-sent event. @param ends true for the last event
std::string page_event(const std::string& page, std::uint64_t version, bool ends) {
  auto event = "id: " + std::to_string(version) + (ends ? "\nevent: end\n" : "\n");
  for (std::size_t from = 0; from < page.size();) {
    const auto end = std::min(page.find('\n', from), page.size());
    event += "data: " + page.substr(from, end - from) + "\n";
    from = end + 1;
  }
  return event + "\n";
}

/// Renders the report page of the current state.
std::string page_of(const live_run& run) {
  std::vector<std::string> warnings;
  std::vector<run_group> groups;
  if (run.folder.empty()) {
    warnings.emplace_back("No run has begun yet.");
  } else if (auto stored = read_stored_run(run.folder)) {
    if (run.status == "running")
      stored->status = run.status;
    auto classes = read_class_accuracies(run.folder);
    groups = group_runs({{.run = std::move(*stored),
                          .evaluations = run.evaluations,
                          .course = run.course,
                          .classes = classes ? std::move(*classes) : std::vector<class_accuracy>{}}});
    if (run.evaluations.empty())
      warnings.emplace_back("Nothing has been evaluated yet.");
  } else {
    for (const auto& problem : stored.error())
      warnings.push_back(diagnostic_text(problem));
  }
  return report_page(groups, figures_of(groups), warnings, progress_of(run));
}

} // namespace

struct live_server::parts {
  parts(std::shared_ptr<live_view> shown, std::string wanted_token)
      : view(std::move(shown)), token(std::move(wanted_token)),
        http({.threads = threads, .this_machine_only = token.empty()}) {}

  std::shared_ptr<live_view> view;
  const std::string token;
  int port = 0;
  std::atomic<int> followers{0};
  std::atomic<bool> stopping{false};

  void answer_requests();
  std::string newest_page();
  void follow(httplib::Response& out);

  // The page is rendered once per version, for all requests.
  std::mutex made_mutex;
  std::uint64_t made_version = 0;
  std::string made_page;

  bounded_http_server http; // last member, because its threads read the others
};

std::string live_server::parts::newest_page() {
  const std::lock_guard hold(made_mutex);
  const auto version = view->version();
  if (made_page.empty() || version != made_version) {
    made_page = page_of(view->now());
    made_version = version;
  }
  return made_page;
}

/// Sends the page after every change, at most twice a second, and keep-alive comments in between. The server pushes
/// events because clients could not request the last page after the run has ended.
void live_server::parts::follow(httplib::Response& out) {
  if (followers.fetch_add(1) >= followers_max) {
    --followers;
    out.status = 503;
    return out.set_content("too many clients follow this run\n", "text/plain");
  }
  out.set_header("Cache-Control", "no-store");
  auto sent_version = std::make_shared<std::uint64_t>(0);
  out.set_chunked_content_provider(
      "text/event-stream",
      [this, sent_version](std::size_t, httplib::DataSink& sink) {
        const auto version = view->wait_beyond(*sent_version, between_signs);
        const bool ends = view->is_closed() || stopping;
        const auto line = ends || version != *sent_version ? page_event(newest_page(), version, ends)
                                                           : std::string(": nothing new\n\n");
        if (!sink.write(line.data(), line.size()))
          return false;
        if (ends) {
          sink.done();
          return true;
        }
        if (version != *sent_version)
          view->wait_closed(between_events);
        *sent_version = version;
        return true;
      },
      [this](bool) { --followers; });
}

void live_server::parts::answer_requests() {
  http.set_pre_routing_handler([this](const httplib::Request& in, httplib::Response& out) {
    if (is_authorized(in, token))
      return httplib::Server::HandlerResponse::Unhandled;
    refuse_unauthorized(out);
    return httplib::Server::HandlerResponse::Handled;
  });
  http.Get("/", [this](const httplib::Request&, httplib::Response& out) {
    out.set_content(newest_page(), "text/html; charset=utf-8");
  });
  http.Get("/events", [this](const httplib::Request&, httplib::Response& out) { follow(out); });
  http.Get("/metrics", [state = state_of_run(view)](const httplib::Request&, httplib::Response& out) {
    out.set_content(state.metrics(), prometheus_type);
  });
}

live_server::live_server(std::unique_ptr<parts> own) : parts_(std::move(own)) {}

expected<std::unique_ptr<live_server>> live_server::listening(const live_server_options& options,
                                                              std::shared_ptr<live_view> view) {
  auto own = std::make_unique<parts>(std::move(view), options.token);
  own->answer_requests();
  const char* const host = options.token.empty() ? "127.0.0.1" : "0.0.0.0";
  const auto port = own->http.start(host, options.port, "serve");
  if (!port)
    return failed("", "--serve = " + std::to_string(options.port) +
                          ": cannot listen on this port; expected a free port, or 0 for any");
  own->port = *port;
  return std::unique_ptr<live_server>(new live_server(std::move(own)));
}

live_server::~live_server() {
  parts_->stopping = true;
  parts_->view->close();
  // Ending the server aborts responses. So it waits, for a limited time, until all followers have received the last
  // page.
  constexpr std::chrono::milliseconds pause{5};
  for (auto waited = pause; parts_->followers > 0 && waited < goodbye_max; waited += pause)
    std::this_thread::sleep_for(pause);
  parts_->http.end();
}

int live_server::port() const noexcept { return parts_->port; }

std::string live_server::address() const {
  const auto page = "http://127.0.0.1:" + std::to_string(parts_->port) + "/";
  return parts_->token.empty() ? page : page + "?token=" + httplib::detail::encode_query_param(parts_->token);
}

} // namespace mneme
