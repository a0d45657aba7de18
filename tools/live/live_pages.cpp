#include "tools/cli/http_pages.hpp"
#include "tools/cli/run_metrics.hpp"
#include "tools/live/http_server.hpp"
#include "tools/study/report_page.hpp"
#include <atomic>
#include <mutex>
#include <thread>
namespace mneme {
namespace {

constexpr int followers_max = 8; // largest number of readers of /events
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

/// The report of a run as pages. The destructor ends all event streams.
class report_server {
public:
  explicit report_server(std::shared_ptr<live_view> view) : view_(std::move(view)), state_(state_of_run(view_)) {}
  report_server(const report_server&) = delete;
  report_server& operator=(const report_server&) = delete;
  ~report_server();

  /// Returns the port; nullopt if it cannot listen.
  std::optional<int> listen(const http_options& options);

private:
  http_response answer(const http_request& request);
  http_response follow();
  std::string newest_page();

  const std::shared_ptr<live_view> view_;
  const process_state state_;
  std::atomic<int> followers_{0};

  // The page is rendered once per version, for all requests.
  std::mutex page_mutex_;
  std::uint64_t page_version_ = 0;
  std::string page_;

  std::unique_ptr<http_server> http_; // last member, because its threads read the others
};

report_server::~report_server() {
  view_->close();
  // Stopping the server aborts responses. So this waits, for a limited time, until all followers have received the last
  // page.
  constexpr std::chrono::milliseconds pause{5};
  for (auto waited = pause; followers_ > 0 && waited < goodbye_max; waited += pause)
    std::this_thread::sleep_for(pause);
}

std::optional<int> report_server::listen(const http_options& options) {
  http_ = http_server::listening(options.host, options.port, options.token,
                                 [this](const http_request& request) { return answer(request); });
  return http_ ? std::optional(http_->port()) : std::nullopt;
}

http_response report_server::answer(const http_request& request) {
  if (!request.is_authorized)
    return unauthorized();
  if (request.path == "/")
    return {.type = "text/html; charset=utf-8", .body = newest_page()};
  if (request.path == "/events")
    return follow();
  if (request.path == "/metrics")
    return {.type = prometheus_type, .body = state_.metrics()};
  return not_found();
}

std::string report_server::newest_page() {
  const std::lock_guard hold(page_mutex_);
  const auto version = view_->version();
  if (page_.empty() || version != page_version_) {
    page_ = page_of(view_->now());
    page_version_ = version;
  }
  return page_;
}

/// Sends the page after every change, at most twice a second, and keep-alive comments in between. The server pushes
/// events because clients could not request the last page after the run has ended.
http_response report_server::follow() {
  if (followers_.fetch_add(1) >= followers_max) {
    --followers_;
    return {.status = 503, .body = "too many clients follow this run\n"};
  }
  const std::shared_ptr<void> counted(nullptr, [this](void*) { --followers_; });
  return {.type = "text/event-stream",
          .next_piece = [this, counted, sent_version = std::uint64_t{0}, pauses = false,
                         ended = false]() mutable -> std::optional<std::string> {
            if (ended)
              return std::nullopt;
            if (pauses)
              view_->wait_closed(between_events);
            const auto version = view_->wait_beyond(sent_version, between_signs);
            ended = view_->is_closed();
            pauses = version != sent_version;
            if (!ended && !pauses)
              return ": nothing new\n\n";
            sent_version = version;
            return page_event(newest_page(), version, ended);
          }};
}

/// Answers requests for the state of a process.
http_response answer_state(const process_state& state, const http_request& request) {
  if (request.path == "/healthz")
    return {.body = "alive\n"};
  if (request.path == "/readyz") {
    const auto pending = state.pending();
    return pending.empty() ? http_response{.body = "ready\n"} : http_response{.status = 503, .body = pending + "\n"};
  }
  if (!request.is_authorized)
    return unauthorized();
  return request.path == "/metrics" ? http_response{.type = prometheus_type, .body = state.metrics()} : not_found();
}

std::optional<http_pages> report_pages(const http_options& options, std::shared_ptr<live_view> view) {
  auto server = std::make_shared<report_server>(std::move(view));
  const auto port = server->listen(options);
  return port ? std::optional(http_pages{.server = std::move(server), .port = *port}) : std::nullopt;
}

std::optional<http_pages> state_pages(const http_options& options, process_state state) {
  std::shared_ptr<http_server> server = http_server::listening(
      options.host, options.port, options.token,
      [state = std::move(state)](const http_request& request) { return answer_state(state, request); });
  if (!server)
    return std::nullopt;
  const int port = server->port();
  return http_pages{.server = std::move(server), .port = port};
}

const http_registration line{{.report = &report_pages, .state = &state_pages}};

} // namespace
} // namespace mneme
