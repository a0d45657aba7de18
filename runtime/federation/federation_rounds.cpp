// Rounds of the federation: opening tasks, dispatching clients and closing rounds. In an asynchronous run, a round is
// the time between two server steps.
#include "runtime/federation/federation.hpp"
#include <fmt/format.h>
#include <string>
namespace mneme {
namespace {

/// Snapshot of the run's progress. @param tasks number of tasks of the whole run
progress_snapshot progress_of(const round_info& info, const run_report& report, std::int64_t tasks) {
  return {.task = info.task,
          .round = info.round,
          .tasks = tasks,
          .rounds = report.rounds - 1 - info.round_of_task + info.rounds_of_task * (tasks - info.task.value),
          .client_rounds = report.client_rounds,
          .late_uploads = report.late_uploads,
          .dropped = report.dropped,
          .upload_bytes = report.upload_bytes,
          .download_bytes = report.download_bytes,
          .staleness_sum = report.staleness_sum,
          .jobs = report.jobs,
          .batches = report.batches};
}

/// Classes that predictions may choose from, for each opened task.
std::vector<class_range> masks_of_evaluation(const federation_settings& settings, const round_info& info) {
  std::vector<class_range> masks;
  for (std::uint32_t t = 0; t <= info.task.value; ++t)
    switch (settings.evaluation.mask) {
    case evaluation_mask::seen:
      masks.push_back(info.seen_classes);
      break;
    case evaluation_mask::all:
      masks.push_back({0, settings.classes});
      break;
    case evaluation_mask::task:
      masks.push_back(settings.tasks.at(t).current_classes);
      break;
    }
  return masks;
}

/// Error message for a round in which no client can take part any more.
std::string no_client_text(round_id round, virtual_time now) {
  return fmt::format("round {} has no client and cannot end: at {:.9g} s of virtual time the traces of "
                     "devices.availability_file have ended for every enrolled client; expected traces that last as "
                     "long as the run, or devices.trace_end = \"repeat\"",
                     round.value + 1, in_seconds(now));
}

} // namespace

// -- opening a task ---------------------------------------------------------------------------------------------------

void federation::begin() {
  guarded([this] {
    dispatch_.open_task({0});
    out_.command(open_task{round_.info});
  });
}

void federation::handle(const task_plan& plan) {
  guarded([&] {
    const auto stated = settings_.rounds.per_task;
    if (plan.rounds && *plan.rounds != stated && settings_.rounds_are_stated)
      out_.command(run_warning{settings_.method + " sets its own rounds: " + std::to_string(*plan.rounds) +
                               " in task " + std::to_string(round_.info.task.value + 1) +
                               ", not rounds.per_task = " + std::to_string(stated)});
    round_.info.rounds_of_task = plan.rounds.value_or(stated);
    dispatch_.plan_task(plan);
    checkpoints_.next = next_step::round;
    continue_run();
  });
}

// -- opening a round --------------------------------------------------------------------------------------------------

void federation::handle(opened_round& opened) {
  guarded([&] {
    round_.open(std::move(opened));
    out_.record("scheduler", "open_round");
    if (!settings_.is_async() && settings_.rounds.deadline.count() > 0) {
      round_.deadline = add_saturating(clock_.now(), settings_.rounds.deadline);
      clock_.schedule_deadline(round_.info.round, round_.deadline);
    }
    dispatch_work();
    advance();
  });
}

/// Dispatches the round's clients; a round without clients is closed empty.
void federation::dispatch_work() {
  if (settings_.is_async())
    dispatch_.dispatch_idle();
  else if (!dispatch_.dispatch_cohort())
    close();
}

// -- closing a round --------------------------------------------------------------------------------------------------

void federation::close() {
  if (round_.folded == 0 && dispatch_.cannot_progress() && settings_.clients->availability_traces_end()) {
    out_.report().no_reachable_clients = true; // all later rounds would close empty
    return finish(run_status::failed, no_client_text(round_.info.round, clock_.now()));
  }
  round_.is_open = round_.wants_clients = false;
  dispatch_.free_dropped_out();
  work_.flush_deliveries();
  out_.record("scheduler", "close_round");
  ++out_.report().rounds;
  out_.log().closed();
  clock_.record_progress();
  if (round_.folded == 0) // an empty round does not change the model
    return round_closed();
  turn_.begin();
  out_.command(take_step{.where = round_.info});
}

/// After the server's step the other parties receive the model. Their advice is sent with the next broadcasts.
void federation::handle(const step_taken& step) {
  guarded([&] {
    const auto who = turn_.current();
    if (who == party_id::server) {
      out_.log().stepped(clock_.now(), step);
      model_ = step.advice;
    } else {
      round_.last_advice[index_of(who)] = {.advice = step.advice, .bytes = step.advice_bytes};
      out_.log().advised(who, step);
      out_.record(row_of(who).name, "advise", {}, step.advice_bytes);
    }
    if (turn_.advance_party())
      return out_.command(take_step{.to = turn_.current(), .where = round_.info, .model = model_});
    model_ = nullptr;
    round_closed();
  });
}

void federation::round_closed() {
  const auto& info = round_.info;
  auto progress = progress_of(info, out_.report(), std::ssize(settings_.tasks));
  progress.at = clock_.now();
  progress.in_flight = static_cast<std::int64_t>(in_flight_.size());
  progress.clients_enrolled = dispatch_.pool().enrolled();
  progress.training_loss = out_.log().step_losses().mean();
  out_.command(progress);
  const auto every = settings_.evaluation.every;
  if (!round_.is_last_of_task() && (every == 0 || (info.round.value + 1) % every != 0))
    return next_round();
  out_.command(evaluate{.masks = masks_of_evaluation(settings_, info),
                        .end_of_task = round_.is_last_of_task(),
                        .with_model = round_.is_last_of_task() && settings_.evaluation.models == kept_models::tasks,
                        .where = info});
}

void federation::handle(const evaluated& sums) {
  guarded([&] {
    auto line = out_.log().add_evaluation(sums);
    line.task = round_.info.task;
    line.round = round_.info.round;
    line.at = clock_.now();
    line.clients_enrolled = dispatch_.pool().enrolled();
    line.end_of_task = round_.is_last_of_task();
    out_.record("server", "evaluate");
    line.per_class = sums.per_class;
    if (sums.model)
      out_.command(save_task_model{.task = line.task, .model = sums.model});
    out_.command(std::move(line));
    next_round();
  });
}

void federation::next_round() {
  auto& info = round_.info;
  ++info.round.value;
  if (++info.round_of_task < info.rounds_of_task) {
    checkpoints_.next = next_step::round;
  } else if (info.task.value + 1 < settings_.tasks.size()) {
    checkpoints_.next = next_step::task;
  } else {
    --info.round.value; // the last events belong to the last round
    return finish(run_status::done);
  }
  if (checkpoints_.is_due_after(out_.report().rounds))
    take_checkpoint();
  else
    continue_run();
}

} // namespace mneme
