#include "runtime/results/live_view.hpp"
namespace mneme {

template <class Change>
void live_view::change(Change apply) {
  {
    const std::lock_guard hold(mutex_);
    apply();
    ++version_;
  }
  changed_.notify_all();
}

void live_view::prepares(std::string pending) {
  change([&] { run_.pending = std::move(pending); });
}

void live_view::on_run_started(std::filesystem::path folder, std::int64_t workers, const timeline& course,
                               const std::vector<evaluation_record>& evaluations) {
  change([&] {
    run_ = {.folder = std::move(folder), .status = "running", .evaluations = evaluations, .workers = workers};
    run_.rounds_before = course.bins().empty() ? 0 : std::int64_t{course.bins().back().last.value} + 1;
    course_ = course;
  });
}

void live_view::on_round(const timeline_bin& round, std::int64_t jobs, std::int64_t batches, double busy_seconds,
                         const live_pace& pace) {
  change([&] {
    course_.add(round);
    run_.jobs = jobs;
    run_.batches = batches;
    run_.busy_seconds = busy_seconds;
    run_.pace = pace;
  });
}

void live_view::evaluated(const evaluation_record& record) {
  change([&] { run_.evaluations.push_back(record); });
}

void live_view::has_nodes(std::function<std::vector<node_record>()> callback, bool needs_node) {
  change([&] {
    get_nodes_ = std::move(callback);
    run_.needs_node = needs_node;
  });
}

void live_view::has_queues(std::function<std::vector<queue_length>()> callback) {
  change([&] { get_queues_ = std::move(callback); });
}

void live_view::has_actors(std::function<std::string()> callback) {
  change([&] { get_actor_metrics_ = std::move(callback); });
}

void live_view::ended(const std::string& status) {
  auto nodes = now().nodes;
  change([&] {
    run_.status = status;
    run_.nodes = std::move(nodes);
    get_nodes_ = nullptr;
    get_queues_ = nullptr;
    get_actor_metrics_ = nullptr;
  });
}

void live_view::close() {
  change([&] { closed_ = true; });
}

live_run live_view::now() const {
  std::unique_lock hold(mutex_);
  auto run = run_;
  run.course = course_.bins();
  const auto get_nodes = get_nodes_;
  const auto get_queues = get_queues_;
  hold.unlock(); // the sources have locks of their own
  if (get_nodes)
    run.nodes = get_nodes();
  if (get_queues)
    run.queues = get_queues();
  return run;
}

std::string live_view::actor_metrics() const {
  std::unique_lock hold(mutex_);
  const auto callback = get_actor_metrics_;
  hold.unlock();
  return callback ? callback() : std::string();
}

std::uint64_t live_view::version() const {
  const std::lock_guard hold(mutex_);
  return version_;
}

std::uint64_t live_view::wait_beyond(std::uint64_t version, std::chrono::milliseconds limit) const {
  std::unique_lock hold(mutex_);
  changed_.wait_for(hold, limit, [&] { return version_ > version || closed_; });
  return version_;
}

void live_view::wait_closed(std::chrono::milliseconds limit) const {
  std::unique_lock hold(mutex_);
  changed_.wait_for(hold, limit, [&] { return closed_; });
}

bool live_view::is_closed() const {
  const std::lock_guard hold(mutex_);
  return closed_;
}

} // namespace mneme
