#include "actors/compute/compute_layout.hpp"
#include "runtime/base/tuning.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Without workers to feed, shards follow from the number of clients alone.
std::int64_t shards_for(std::int64_t clients) {
  if (clients < 1'000)
    return 1;
  return clients < 100'000 ? 2 : 4;
}

/// How many clients are at work at a time.
std::int64_t clients_at_work(const scenario& what) {
  const auto stated = what.rounds.mode == round_mode::async ? what.rounds.concurrency : what.rounds.cohort;
  return stated > 0 ? std::min(stated, what.clients.count) : what.clients.count;
}

/// About how many multiplications a client's training takes.
double multiplications_of_client(const world& run) {
  const auto clients = std::max<std::int64_t>(run.what.clients.count, 1);
  const auto rows = std::ssize(run.tasks->tasks.front().train) / clients * run.what.training.epochs;
  return static_cast<double>(rows) * static_cast<double>(run.net->size());
}

/// Whether a client's training is short and trained client by client, so that narrow batches cost nothing: then the
/// uploads of the first are folded while others run, and threads end together.
bool has_short_jobs(const world& run) {
  const auto size = multiplications_of_client(run);
  return run.needs.upload_size_known && run.what.rounds.mode == round_mode::sync && run.net->dense_layers() &&
         size > tuning::short_job_min && size < tuning::short_job_max;
}

} // namespace

compute_layout layout_of(const world& run, std::int64_t threads) {
  compute_layout layout;
  layout.shards = run.what.worker.shards > 0 ? run.what.worker.shards : shards_for(run.what.clients.count);
  if (run.device != "cpu")
    return layout;

  layout.workers = run.what.worker.count > 0 ? run.what.worker.count : threads;
  const auto at_work = clients_at_work(run.what);
  const auto wave = static_cast<double>(at_work) * multiplications_of_client(run);
  const auto kept_busy = static_cast<std::int64_t>(std::min(wave / tuning::worth_hosting, 1e6));
  layout.hosts = std::clamp<std::int64_t>(std::min(kept_busy, at_work), 1, layout.workers);
  if (run.what.worker.shards == 0)
    layout.shards = std::max(layout.shards, layout.hosts);
  if (layout.hosts > 1 && has_short_jobs(run))
    layout.batches_per_worker = tuning::short_batches_per_worker;
  return layout;
}

bool has_own_thread(const world& run, worker_id which) { return which.value > 0 || run.device != "cpu"; }

} // namespace mneme
