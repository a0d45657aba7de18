#include "actors/run/recorder.hpp"
#include "runtime/results/plot.hpp"
#include "runtime/storage/safetensors.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
#include <sys/resource.h>
namespace mneme {
namespace {

double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024; // Linux counts in KiB
}

const char* words(run_status status) {
  switch (status) {
  case run_status::done:
    return "done";
  case run_status::failed:
    return "failed";
  case run_status::interrupted:
    return "interrupted";
  }
  return "";
}

} // namespace

recorder_state::recorder_state(recorder_actor::pointer self, world_ref world, recorder_setup setup)
    : self_(self), world_(std::move(world)), setup_(std::move(setup)), past_(std::move(setup_.past)),
      cpu_before_(process_cpu_seconds()) {
  past_.device = world_->device;
}

template <class Act>
auto recorder_state::guarded(Act act) -> caf::result<decltype(act())> {
  if (!failure_.empty())
    return caf::make_error(run_errc::recorder_failed, failure_);
  try {
    if constexpr (std::is_void_v<decltype(act())>) {
      act();
      return {};
    } else {
      return act();
    }
  } catch (const std::exception& e) {
    failure_ = e.what();
    return caf::make_error(run_errc::recorder_failed, failure_);
  }
}

recorder_actor::behavior_type recorder_state::make_behavior() {
  return {
      [this](const evaluation_record& line) { return guarded([&] { add(line); }); },
      [this](const recorded_events& events) {
        return guarded([&] { setup_.files->add(std::span<const event_record>(events.all)); });
      },
      [this](const run_warning& warning) { setup_.view->warned(warning.text); },
      [this](const progress_snapshot& now) {
        past_.rounds = now.round.value + 1;
        past_.client_rounds = now.client_rounds;
        setup_.view->tick(now);
      },
      [this](const learnt& in) {
        figures_ = in.figures;
        return guarded([&] { save(*in.model); });
      },
      [this](finish_run& in) {
        // Whoever wrote last may not have waited for the answer: a run is done only if all of it is written.
        if (const auto why = std::exchange(failure_, {}); !why.empty() && in.report.status != run_status::failed) {
          in.report.status = run_status::failed;
          in.report.error = why;
        }
        return guarded([&] { return finish(in.report); });
      },
      [this](keep_state& others) { return keep(others); },
  };
}

void recorder_state::save(const tensor_map& model) {
  const auto bytes = safetensors_bytes(model);
  setup_.files->write("model.safetensors", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void recorder_state::add(evaluation_record line) {
  line.forgetting = forgetting_at(past_.matrix, line);
  setup_.files->add(line);
  if (line.end_of_task) {
    past_.matrix.add(line);
    setup_.files->write_matrix(past_.matrix, std::ssize(world_->tasks->tasks));
  }
  setup_.view->evaluated(line);
  past_.evaluations.push_back(std::move(line));
}

run_summary recorder_state::finish(const run_report& report) {
  auto summary = summary_of(report);
  if (!past_.evaluations.empty())
    setup_.files->write("accuracy.svg", accuracy_svg(world_->what.title, past_.evaluations));
  setup_.files->write("summary.json", json_text(summary));
  setup_.view->finished(summary, past_.matrix);
  return summary;
}

caf::result<void> recorder_state::keep(keep_state& others) {
  if (!failure_.empty()) // what would be kept lacks what could not be written
    return caf::make_error(run_errc::recorder_failed, failure_);
  auto now = past_;
  now.events_bytes = setup_.files->settled_events();
  now.wall_seconds += wall_.seconds();
  now.cpu_seconds += process_cpu_seconds() - cpu_before_;
  now.busy_seconds += busy_seconds();
  now.peak_rss_bytes = std::max(now.peak_rss_bytes, peak_rss_bytes());
  archive mine;
  mine(now);
  write_checkpoint whole;
  whole.parts.push_back(std::move(mine));
  whole.parts.push_back(std::move(others.run));
  return self_->delegate(setup_.writer, std::move(whole));
}

run_summary recorder_state::summary_of(const run_report& report) const {
  const auto& what = world_->what;
  run_summary all;
  all.scenario = what.name;
  all.scenario_digest = setup_.digest;
  all.run_digest = shown(report.digest);
  all.strategy = what.strategy.name;
  all.dataset = what.data.name;
  all.status = words(report.status);
  all.error = report.error;
  all.seed = what.seed;
  all.tasks = std::ssize(world_->tasks->tasks);
  all.rounds = report.rounds;
  all.clients = what.clients.count;
  all.client_rounds = report.client_rounds;
  all.late_uploads = report.late_uploads;
  all.dropped = report.dropped;
  all.enrolled_max = report.enrolled_max;
  all.joined = report.joined;
  all.left = report.left;
  all.task_transitions = report.transitions;
  if (what.rounds.mode == round_mode::async && report.client_rounds > 0) {
    all.staleness_mean = static_cast<double>(report.staleness_sum) / static_cast<double>(report.client_rounds);
    all.staleness_max = report.staleness_max;
  }
  all.metrics = metrics_of(past_.matrix);
  all.time_to_accuracy = times_to(what.evaluation.targets, past_.evaluations);
  all.client_accuracy_deciles = report.client_accuracy_deciles;
  all.upload_bytes = report.upload_bytes;
  all.download_bytes = report.download_bytes;
  all.virtual_seconds = in_seconds(report.ended);
  all.wall_seconds = past_.wall_seconds + wall_.seconds();
  all.cpu_seconds = past_.cpu_seconds + process_cpu_seconds() - cpu_before_;
  all.client_rounds_per_second =
      all.wall_seconds > 0.0 ? static_cast<double>(report.client_rounds) / all.wall_seconds : 0.0;
  all.fused_width_mean =
      report.batches > 0 ? static_cast<double>(report.jobs) / static_cast<double>(report.batches) : 0.0;
  all.worker_busy_share =
      (past_.busy_seconds + busy_seconds()) / (all.wall_seconds * static_cast<double>(world_->workers));
  all.peak_rss_bytes = std::max(past_.peak_rss_bytes, peak_rss_bytes());
  all.device = world_->device;
  all.figures = figures_;
  all.central_data = world_->needs.central_data;
  if (world_->trace)
    all.trace_digest = shown(report.trace_digest);
  return all;
}

} // namespace mneme
