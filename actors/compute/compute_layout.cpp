#include "actors/compute/compute_layout.hpp"
#include "runtime/base/tuning.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Number of shards, which depends only on the number of clients.
std::int64_t shards_for(std::int64_t clients) {
  if (clients < 1'000)
    return 1;
  return clients < 100'000 ? 2 : 4;
}

/// Largest number of clients with a running round.
std::int64_t clients_at_work(const scenario& settings) {
  const auto stated = settings.rounds.mode == round_mode::async ? settings.rounds.concurrency : settings.rounds.cohort;
  return stated > 0 ? std::min(stated, settings.clients.count) : settings.clients.count;
}

/// Estimated number of multiplications of one client's training in one round.
double multiplications_of_client(const run_context& run) {
  const auto clients = std::max<std::int64_t>(run.scenario.clients.count, 1);
  const auto rows = std::ssize(run.tasks->tasks.front().train) / clients * run.scenario.training.epochs;
  return static_cast<double>(rows) * static_cast<double>(run.net->size());
}

/// True if clients do nothing but train, and each trains for a short time only.
bool has_short_jobs(const run_context& run) {
  return run.needs.upload_size_known && multiplications_of_client(run) < tuning::short_job_max;
}

/// True if each short job is trained in a batch of its own. Narrow batches then cost nothing: early uploads are folded
/// while other batches run, and all threads finish at nearly the same time.
bool gains_by_narrow_batches(const run_context& run) {
  return has_short_jobs(run) && multiplications_of_client(run) > tuning::short_job_min &&
         run.scenario.rounds.mode == round_mode::sync && run.net->dense_layers();
}

} // namespace

compute_layout layout_of(const run_context& run, std::int64_t threads) {
  compute_layout layout;
  layout.shards = run.scenario.worker.shards > 0 ? run.scenario.worker.shards : shards_for(run.scenario.clients.count);
  if (run.device != "cpu")
    return layout;

  layout.workers = run.scenario.worker.count > 0 ? run.scenario.worker.count : threads;
  const auto at_work = clients_at_work(run.scenario);
  const auto wave = static_cast<double>(at_work) * multiplications_of_client(run);
  const auto kept_busy = static_cast<std::int64_t>(std::min(wave / tuning::host_multiplications_min, 1e6));
  layout.hosts = std::clamp<std::int64_t>(std::min(kept_busy, at_work), 1, layout.workers);
  if (run.scenario.worker.shards == 0)
    layout.shards = std::max(layout.shards, layout.hosts);
  if (layout.hosts > 1 && gains_by_narrow_batches(run))
    layout.batches_per_worker = tuning::short_batches_per_worker;
  layout.control_computes = has_short_jobs(run);
  return layout;
}

compute_layout layout_of_nodes(const run_context& run, std::int64_t workers) {
  auto layout = layout_of(run, workers);
  if (run.device == "cpu" && gains_by_narrow_batches(run))
    layout.batches_per_worker = tuning::short_batches_per_worker;
  return layout;
}

bool has_own_thread(const run_context& run, worker_id worker) { return worker.value > 0 || !run.control_computes; }

} // namespace mneme
