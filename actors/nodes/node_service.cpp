#include "actors/nodes/node_service.hpp"
#include "actors/nodes/run_fingerprint.hpp"
#include "actors/run/process.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/random_number.hpp"
#include "runtime/base/tuning.hpp"
#include <algorithm>
#include <thread>
namespace mneme {
namespace {

constexpr std::chrono::milliseconds backoff_min{50}, backoff_max{1000};

std::int64_t workers_of(std::int64_t threads) {
  return threads > 0 ? threads : std::max<std::int64_t>(1, std::thread::hardware_concurrency());
}

} // namespace

expected<node_outcome> serve_run(const node_settings& settings) {
  prepare_process();
  static_cast<void>(program_fingerprint()); // computed now and cached: hashing the program file takes longer than the
                                            // run waits
  auto identity = tls_identity::load(settings.trust);
  if (!identity)
    return tl::unexpected(identity.error());
  auto service = std::make_unique<node_service>(settings, std::move(*identity));
  std::shared_ptr<const void> shown;
  if (settings.serve_state) {
    auto showing = settings.serve_state({.metrics = [node = service.get()] { return node->metrics(); },
                                         .pending = [node = service.get()] { return node->pending(); }});
    if (!showing)
      return tl::unexpected(showing.error());
    shown = std::move(*showing);
  }
  const auto ended = service->serve();
  shown.reset();
  const auto outcome = service->outcome();
  const bool is_loading = service->is_loading();
  if (is_loading) {
    service->remove_files();
    static auto& abandoned = *new std::vector<std::unique_ptr<node_service>>;
    abandoned.push_back(std::move(service)); // threads that load use it until the process ends
  }
  if (!ended)
    return tl::unexpected(ended.error());
  return node_outcome{.end = *ended, .run = outcome, .is_loading = is_loading};
}

node_service::node_service(node_settings settings, tls_identity_ref identity)
    : settings_(std::move(settings)), process_(random_number()), loop_(std::move(identity), {}, *this) {}

expected<node_exit> node_service::serve() {
  while (!ended_) {
    if (auto ended = check_time(); !ended)
      ended_ = tl::unexpected(ended.error());
    else if (*ended)
      ended_ = **ended;
    else if (const auto next = next_event())
      std::visit([this](const auto& in) { handle(in); }, *next);
  }
  end_session(); // the session's actors use the connection, so they end first
  return *ended_;
}

// -- called on the connection's thread --------------------------------------------------------------------------------

void node_service::opened(connection_id id, const std::string& /*peer*/, bool /*accepted*/) {
  was_opened_ = true;
  set_pending("waits for the run's scenario");
  loop_.mark_authenticated(id); // TLS has authenticated the run with its secret or certificate
  loop_.send(id, message_of(node_message::greeting, node_hello{.process = process_,
                                                               .name = machine_name(),
                                                               .program = program_fingerprint(),
                                                               .workers = workers_of(settings_.threads),
                                                               .rank = settings_.rank.value_or(-1),
                                                               .job = settings_.job}));
}

/// Passes work directly to the actors once all earlier messages have been handled.
void node_service::received(connection_id id, archive::buffer message) {
  const auto kind = message->empty() ? node_message::greeting : static_cast<node_message>(message->front());
  const bool is_work = kind == node_message::start || kind == node_message::release || kind == node_message::abandon;
  std::shared_ptr<node_actors> actors;
  {
    const std::lock_guard hold(mutex_);
    if (is_work && id == working_ && direct_)
      actors = actors_;
  }
  if (actors)
    actors->take(std::move(message));
  else
    add(message_received{std::move(message)});
}

void node_service::closed(connection_id id, const std::string& /*peer*/, const std::string& why, bool may_retry) {
  add(connection_closed{id, why, may_retry});
}

void node_service::add(service_event next) {
  {
    const std::lock_guard hold(mutex_);
    events_.push_back(std::move(next));
  }
  changed_.notify_one();
}

// -- called on the service's thread -----------------------------------------------------------------------------------

std::optional<node_service::service_event> node_service::next_event() {
  constexpr std::chrono::milliseconds check_interval{50};
  std::unique_lock hold(mutex_);
  direct_ = direct_ || (actors_ && events_.empty());
  if (!changed_.wait_for(hold, check_interval, [this] { return !events_.empty(); }))
    return std::nullopt;
  auto next = std::move(events_.front());
  events_.pop_front();
  return next;
}

/// Checks timeouts: grace period, idle time, and the next attempt to connect. Starts to leave the run after an
/// interrupt. Returns the reason if the node ends now.
expected<std::optional<node_exit>> node_service::check_time() {
  const auto is_over = [](const recorder_stopwatch& since, std::chrono::duration<double> limit) {
    return since.seconds() >= limit.count();
  };
  if (leaving_ && is_over(*leaving_, settings_.grace))
    return node_exit::overdue;
  if (!leaving_ && settings_.interrupts && settings_.interrupts->load() > 0) {
    if (!actors_)
      return node_exit::left;
    settings_.say("leaves the run: it takes no new work and gives its shards back");
    leaving_.emplace();
    set_pending("leaves the run");
    const auto grace_ms = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.grace).count();
    send(message_of(node_message::leaving, node_leave{.grace_ms = grace_ms}));
  }
  if (connection_ != 0)
    return std::nullopt;
  if (lost_ && is_over(*lost_, lost_limit_))
    return node_exit::lost;
  if (settings_.idle_timeout.count() > 0 && is_over(idle_, settings_.idle_timeout))
    return node_exit::idle;
  if (is_over(waited_, backoff_))
    if (auto done = connect(); !done)
      return tl::unexpected(done.error());
  return std::nullopt;
}

/// Starts a connection. Resolves the host name at each attempt, because it may become resolvable later.
expected<void> node_service::connect() {
  auto addresses = resolved(settings_.join);
  if (!addresses) {
    retry_later(addresses.error().front().text);
    return {};
  }
  auto place = loop_.place_of(settings_.join, std::move(*addresses));
  if (!place)
    return tl::unexpected(place.error());
  connection_ = loop_.connect(std::move(*place));
  return {};
}

void node_service::retry_later(const std::string& why) {
  const auto pending = "waits for the run at " + settings_.join.text() + ": " + why;
  if (std::exchange(last_problem_, why) != why)
    settings_.say(pending);
  set_pending(pending);
  backoff_ = std::clamp(2 * backoff_, backoff_min, backoff_max);
  waited_ = {};
}

void node_service::handle(const connection_closed& in) {
  if (in.connection != connection_)
    return;
  connection_ = 0;
  const bool had_run = session_ != nullptr;
  if (was_opened_.exchange(false) && settings_.rank && !lost_) {
    const auto loaded = session_ ? session_->context : nullptr;
    lost_.emplace();
    lost_limit_ = node_timeouts_of_lost_run * (loaded ? loaded->scenario.worker : worker_section{}).node_timeout;
  }
  end_session();
  if (failure_)
    ended_ = tl::unexpected(*failure_);
  else if (leaving_)
    ended_ = node_exit::left;
  else if (!in.may_retry)
    ended_ = failed("run at " + settings_.join.text(), in.reason);
  else {
    if (had_run) {
      idle_ = {};
      backoff_ = {};
    }
    retry_later(in.reason);
  }
}

void node_service::handle(const message_received& in) {
  const auto error = exception_message_of([&] {
    auto content = reader_of(in.message);
    auto kind = node_message::greeting;
    content(kind);
    handle(kind, content, in.message);
  });
  if (!error.empty())
    loop_.close(connection_, "sends a message that " + error);
}

/// Handles a message of the run. Throws archive_error if it is invalid.
void node_service::handle(node_message kind, archive& content, const archive::buffer& message) {
  if (kind == node_message::refusal) {
    on_rejection(content);
  } else if (kind == node_message::end) {
    on_end(content);
  } else if (kind == node_message::offer && !session_) {
    take_offer(content);
  } else if (!session_) {
    throw archive_error("comes before an offer");
  } else if (kind == node_message::file && !session_->missing.empty()) {
    take_file(content);
  } else if (kind == node_message::begin && session_->context && !actors_) {
    node_layout layout;
    content(layout);
    start_work(layout);
  } else if (kind >= node_message::start && kind <= node_message::abandon && actors_) {
    return actors_->take(message);
  } else if (kind == node_message::interrupt) {
    session_->interrupts = 1;
  } else {
    throw archive_error("is not valid in this state");
  }
  loop_.consumed(connection_, message->size());
}

void node_service::on_rejection(archive& content) {
  node_rejection in;
  content(in);
  content.expect_end();
  diagnostics reasons;
  for (const auto& reason : in.reasons)
    reasons.push_back({"run at " + settings_.join.text(), "rejects this node, because it " + printable_ascii(reason)});
  ended_ = tl::unexpected(std::move(reasons));
}

void node_service::on_end(archive& content) {
  content(run_end_);
  content.expect_end();
  run_end_.reason = printable_ascii(run_end_.reason);
  ended_ = leaving_ ? node_exit::left : node_exit::run_over;
}

void node_service::take_offer(archive& content) {
  session_ = std::make_shared<node_session>();
  content(session_->offer);
  content.expect_end();
  last_problem_.clear();
  lost_.reset();
  settings_.say("has joined the run at " + settings_.join.text());
  set_pending("loads the scenario");
  for (const auto& file : session_->offer.files)
    if (files_.find(file).empty())
      session_->missing.push_back(file.key);
  if (session_->missing.empty())
    load();
  else
    send(message_of(node_message::file_request, file_request{.keys = session_->missing}));
}

void node_service::take_file(archive& content) {
  file_content file;
  content(file);
  content.expect_end();
  if (std::erase(session_->missing, file.key) == 0)
    throw archive_error("has a file that was not requested");
  for (const auto& offered : session_->offer.files)
    if (offered.key == file.key)
      files_.put(offered, file.bytes);
  if (session_->missing.empty())
    load();
}

/// Loads the scenario on another thread. Meanwhile this thread handles messages, and the run may disconnect.
void node_service::load() {
  ++loading_;
  loader_ = std::jthread([this, session = session_, before = std::move(loader_)]() mutable {
    if (before.joinable())
      before.join();
    scenario_loaded done{.session = std::move(session)};
    const auto why = exception_message_of([&] {
      prepare_process();
      done.context = done.session->load(files_, settings_.native_code, settings_.local_rank);
      if (done.context)
        done.facts = run_fingerprint(**done.context); // this computes the digests of all data
    });
    if (!why.empty())
      done.context = failed("", why);
    --loading_;
    add(std::move(done));
  });
}

void node_service::handle(const scenario_loaded& in) {
  if (in.session != session_)
    return;
  auto& session = *session_;
  if (in.context) {
    session.context = *in.context;
    send(message_of(node_message::ready, node_ready{.fingerprint = in.facts}));
    set_pending("");
    return settings_.say("has loaded " + session.offer.name);
  }
  node_rejection refusal;
  for (const auto& problem : in.context.error())
    refusal.reasons.push_back("cannot load the scenario: " + diagnostic_text(problem));
  send(message_of(node_message::refusal, std::move(refusal)));
  loop_.close(connection_, "was rejected"); // closes after the refusal has been sent
  failure_ = in.context.error();
}

void node_service::start_work(const node_layout& layout) {
  session_->lay_out(layout, workers_of(settings_.threads));
  const auto id = connection_;
  session_->context->gate = std::make_shared<backpressure_gate>(
      [this, id] { return loop_.figures(id).waiting_bytes() > tuning::node_results_bytes; });
  auto actors = std::make_shared<node_actors>(
      session_->context,
      node_gateway_hooks{.send = [this, id](archive message) { loop_.send(id, std::move(message)); },
                         .consumed = [this, id](std::size_t bytes) { loop_.consumed(id, bytes); },
                         .fail = [this, id](std::string why) { loop_.close(id, std::move(why)); }},
      settings_.serve_state != nullptr);
  const std::lock_guard hold(mutex_);
  working_ = id;
  actors_ = std::move(actors);
  busy_ns_ = session_->context->busy_ns;
  ++runs_;
}

void node_service::end_session() {
  if (!session_)
    return;
  session_->interrupts = 1;
  std::shared_ptr<node_actors> ended;
  {
    const std::lock_guard hold(mutex_);
    working_ = 0;
    direct_ = false;
    ended.swap(actors_);
  }
  ended.reset(); // this waits for running batches
  session_.reset();
}

void node_service::set_pending(std::string reason) {
  const std::lock_guard hold(mutex_);
  pending_ = std::move(reason);
}

std::string node_service::pending() {
  const std::lock_guard hold(mutex_);
  return pending_;
}

std::string node_service::metrics() {
  constexpr const char* node = "mneme_node";
  const auto bytes = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
  metric_registry to;
  add_process_metrics(to);
  const std::lock_guard hold(mutex_); // the lock keeps the actors alive
  const auto traffic = loop_.figures(working_);
  set_gauge(to, {node, "workers", "Worker threads."}, workers_of(settings_.threads));
  set_gauge(to, {node, "working", "1 while the node computes for a run."}, std::int64_t{actors_ != nullptr});
  set_counter(to, {node, "runs", "Runs that the node has joined."}, runs_);
  set_gauge(to, {node, "busy", "Time that all workers spent in batches, in the latest run.", "seconds"},
            busy_ns_ ? 1e-9 * static_cast<double>(busy_ns_->load()) : 0.0);
  set_gauge(to, {node, "queued_batches", "Batches that wait for a worker."},
            actors_ ? static_cast<std::int64_t>(actors_->queued_batches()) : 0);
  set_gauge(to, {node, "sent", "Bytes sent to the current run.", "bytes"}, bytes(traffic.bytes_sent));
  set_gauge(to, {node, "received", "Bytes received from the current run.", "bytes"}, bytes(traffic.bytes_received));
  set_gauge(to, {node, "waiting", "Results in the send queue.", "bytes"}, bytes(traffic.waiting_bytes()));
  return prometheus_text(to) + (actors_ ? prometheus_text(actors_->metrics()) : std::string());
}

} // namespace mneme
