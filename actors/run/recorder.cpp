#include "actors/run/recorder.hpp"
#include "actors/run/machine_info.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/method/privacy.hpp"
#include "runtime/models/row_wise_model.hpp"
#include "runtime/results/png.hpp"
#include "runtime/storage/parameters.hpp"
#include <algorithm>
#include <atomic>
#include <caf/typed_event_based_actor.hpp>
#include <cmath>
#include <fmt/format.h>
#include <sys/resource.h>
namespace mneme {
namespace {

double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// CPU seconds of this process that belong to earlier runs. A run's time starts at the end of the previous run, so that
/// the time includes loading.
std::atomic<double> counted_cpu_seconds{0.0};

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024; // Linux reports KiB
}

timeline_bin bin_of(const progress_snapshot& now) {
  return {.first = now.round,
          .last = now.round,
          .task = now.task,
          .at = now.at,
          .in_flight = now.in_flight,
          .clients_enrolled = now.clients_enrolled,
          .client_rounds = now.client_rounds,
          .late_uploads = now.late_uploads,
          .dropped = now.dropped,
          .upload_bytes = now.upload_bytes,
          .download_bytes = now.download_bytes,
          .staleness_sum = now.staleness_sum,
          .training_loss = now.training_loss};
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

recorder_state::recorder_state(recorder_actor::pointer self, run_context_ref context, recorder_setup setup)
    : self_(self), context_(std::move(context)), setup_(std::move(setup)), past_(std::move(setup_.past)),
      cpu_before_(counted_cpu_seconds.load()) {
  past_.device = context_->device;
  if (setup_.live)
    setup_.live->on_run_started(setup_.files->path(), context_->workers, past_.course, past_.evaluations);
  if (setup_.live && setup_.nodes)
    setup_.live->has_nodes(setup_.nodes,
                           context_->local_workers == 0 && context_->scenario.worker.no_nodes == no_nodes_policy::wait);
}

template <class Act>
auto recorder_state::guarded(Act act) -> caf::result<decltype(act())> {
  if (!failure_.empty())
    return caf::make_error(run_errc::recorder_failed, failure_);
  using value = decltype(act());
  std::optional<caf::result<value>> result;
  failure_ = exception_message_of([&] {
    if constexpr (std::is_void_v<value>) {
      act();
      result.emplace();
    } else {
      result.emplace(act());
    }
  });
  return failure_.empty() ? std::move(*result)
                          : caf::result<value>(caf::make_error(run_errc::recorder_failed, failure_));
}

recorder_actor::behavior_type recorder_state::make_behavior() {
  return {
      [this](const evaluation_record& line) { return guarded([&] { add(line); }); },
      [this](const recorded_events& events) { return guarded([&] { write(events); }); },
      [this](const run_warning& warning) { setup_.view->warned(warning.text); },
      [this](const progress_snapshot& now) {
        past_.rounds = now.round.value + 1;
        past_.client_rounds = now.client_rounds;
        static_cast<void>(guarded([&] { past_.course.add(bin_of(now)); }));
        setup_.view->tick(now);
        if (setup_.live)
          setup_.live->on_round(bin_of(now), now.jobs, now.batches, busy_seconds(),
                                {.rounds = now.rounds, .tasks = now.tasks, .elapsed_s = wall_.seconds()});
      },
      [this](const program_progress& now) { setup_.view->tick(now); },
      [this](const save_task_model& in) {
        return guarded([&] { save(run_directory::model_file(in.task), *in.model); });
      },
      [this](const final_model& in) {
        summary_metrics_ = in.summary_metrics;
        return guarded([&] {
          save("model.safetensors", *in.model);
          for (const auto& [name, image] : in.sample_images)
            setup_.files->write(name + ".png", png_bytes(image));
        });
      },
      [this](finish_run& in) {
        // Some messages to the recorder have no reply. A failed write is therefore reported in the summary at the
        // latest.
        if (const auto reason = std::exchange(failure_, {});
            !reason.empty() && in.report.status != run_status::failed) {
          in.report.status = run_status::failed;
          in.report.error = reason;
        }
        return guarded([&] { return finish(in.report); });
      },
      [this](save_checkpoint& others) { return keep(others); },
  };
}

void recorder_state::write(const recorded_events& lines) {
  if (!lines.events.empty())
    setup_.files->add(std::span(lines.events));
  if (!lines.steps.empty())
    setup_.files->add(std::span(lines.steps));
  if (!lines.deliveries.empty())
    setup_.files->add(std::span(lines.deliveries));
  for (const auto& kept : lines.values)
    keep(kept);
}

/// Rewrites the file of the dumped round after each model, so that the file is complete if the run ends early.
void recorder_state::keep(const kept_values& kept) {
  const auto lead = kept.client ? fmt::format("{}.{:05}.client_{}.", kept.party, ++values_count_, kept.client->value)
                                : std::string("model.");
  for (const auto& [name, value] : *kept.values) {
    if (name == flat_weights && kept.client && value.scalar_type() == at::kFloat &&
        value.numel() == context_->net->size()) {
      for (const auto& [parameter, part] : named_parameters(*context_->net, value))
        values_.put(lead + parameter, part.contiguous());
      continue;
    }
    values_.put(lead + name, value);
  }
  if (!kept.client)
    save(run_directory::values_file(kept.round), std::exchange(values_, {}));
}

void recorder_state::save(const std::string& file, const tensor_map& model) {
  const auto bytes = safetensors_bytes(model);
  setup_.files->write(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void recorder_state::add(evaluation_record line) {
  line.forgetting = forgetting_at(past_.matrix, line);
  if (positions_of(*context_->net) > 1)
    line.perplexity = std::exp(line.loss);
  line.epsilon = privacy_accountant(context_->scenario).epsilon(std::int64_t{line.round.value} + 1);
  setup_.files->add(line);
  if (line.personal)
    setup_.files->add_clients(line);
  line.clients.clear();
  if (line.end_of_task) {
    past_.matrix.add(line);
    setup_.files->write_matrix(past_.matrix, std::ssize(context_->tasks->tasks));
  }
  past_.evaluations.push_back(line);
  if (line.end_of_task)
    setup_.files->write_classes(past_.evaluations, context_->tasks->class_names);
  setup_.view->evaluated(line);
  if (setup_.live)
    setup_.live->evaluated(line);
}

run_summary recorder_state::finish(const run_report& report) {
  auto summary = summary_of(report);
  counted_cpu_seconds = process_cpu_seconds();
  if (setup_.draw_accuracy && !past_.evaluations.empty())
    setup_.files->write("accuracy.svg", setup_.draw_accuracy(context_->scenario.title, past_.evaluations));
  std::string course;
  for (const auto& bin : past_.course.bins())
    course += json_text(bin) + "\n";
  if (!course.empty())
    setup_.files->write("timeline.jsonl", course);
  setup_.files->write("summary.json", json_text(summary));
  setup_.view->finished(summary, past_.matrix);
  if (setup_.live)
    setup_.live->ended(summary.status);
  return summary;
}

caf::result<void> recorder_state::keep(save_checkpoint& others) {
  if (!failure_.empty()) // otherwise the checkpoint would refer to lines that the files do not have
    return caf::make_error(run_errc::recorder_failed, failure_);
  auto now = past_;
  static_cast<void>(guarded([&] { now.lines = setup_.files->sync_lines(); }));
  if (!failure_.empty())
    return caf::make_error(run_errc::recorder_failed, failure_);
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
  const auto& settings = context_->scenario;
  run_summary summary;
  summary.scenario = settings.name;
  summary.scenario_digest = setup_.digest;
  summary.run_digest = hex_text(report.digest);
  summary.strategy = settings.strategy.name;
  summary.dataset = settings.data.name;
  summary.status = words(report.status);
  summary.error = report.error;
  summary.seed = settings.seed;
  summary.tasks = std::ssize(context_->tasks->tasks);
  summary.rounds = report.rounds;
  summary.clients = settings.clients.count;
  summary.client_rounds = report.client_rounds;
  summary.late_uploads = report.late_uploads;
  summary.dropped = report.dropped;
  summary.enrolled_max = report.enrolled_max;
  summary.joined = report.joined;
  summary.left = report.left;
  summary.task_transitions = report.transitions;
  if (settings.rounds.mode == round_mode::async && report.client_rounds > 0) {
    summary.staleness_mean = static_cast<double>(report.staleness_sum) / static_cast<double>(report.client_rounds);
    summary.staleness_max = report.staleness_max;
  }
  summary.metrics = metrics_of(past_.matrix);
  summary.time_to_accuracy = times_to(settings.evaluation.targets, past_.evaluations);
  summary.client_accuracy_deciles = report.client_accuracy_deciles;
  if (!past_.evaluations.empty())
    summary.personal = past_.evaluations.back().personal;
  summary.upload_bytes = report.upload_bytes;
  summary.download_bytes = report.download_bytes;
  summary.virtual_seconds = in_seconds(report.ended);
  summary.wall_seconds = past_.wall_seconds + wall_.seconds();
  summary.cpu_seconds = past_.cpu_seconds + process_cpu_seconds() - cpu_before_;
  summary.client_rounds_per_second =
      summary.wall_seconds > 0.0 ? static_cast<double>(report.client_rounds) / summary.wall_seconds : 0.0;
  summary.fused_width_mean =
      report.batches > 0 ? static_cast<double>(report.jobs) / static_cast<double>(report.batches) : 0.0;
  summary.worker_busy_share = (past_.busy_seconds + busy_seconds()) /
                              (summary.wall_seconds * static_cast<double>(context_->workers + context_->node_workers));
  summary.peak_rss_bytes = std::max(past_.peak_rss_bytes, peak_rss_bytes());
  summary.device = context_->device;
  if (setup_.nodes)
    summary.nodes = setup_.nodes();
  summary.figures = summary_metrics_;
  for (const auto& [key, count] : report.counts)
    summary.figures[key] += count;
  if (context_->needs.has_proxy)
    summary.figures["proxy_bytes"] = static_cast<double>(report.proxy_bytes);
  if (report.observations > 0)
    summary.figures["looks"] = static_cast<double>(report.observations);
  if (const auto epsilon = privacy_accountant(settings).epsilon(report.rounds); epsilon && report.rounds > 0)
    summary.figures.merge(std::map<std::string, double>{{"epsilon", *epsilon}, {"delta", settings.uploads.delta}});
  if (!past_.evaluations.empty() && past_.evaluations.back().perplexity)
    summary.figures["perplexity"] = *past_.evaluations.back().perplexity;
  summary.server_trains_on_rows = context_->needs.server_trains_on_rows;
  summary.arithmetic = settings.worker.arithmetic == arithmetic_kind::portable ? "portable" : "machine";
  summary.machine = processor_info();
  for (auto& fact : library_info())
    summary.machine.push_back(std::move(fact));
  if (context_->trace)
    summary.trace_digest = hex_text(report.trace_digest);
  return summary;
}

} // namespace mneme
