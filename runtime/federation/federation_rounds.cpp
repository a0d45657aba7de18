// Rounds of the federation: opening tasks, dispatching clients and closing rounds. In an asynchronous run, a round is
// the time between two server steps.
#include "runtime/federation/federation.hpp"
#include <fmt/format.h>
#include <string>
namespace mneme {
namespace {

/// Snapshot of the run's progress. @param tasks number of tasks of the whole run
progress_snapshot progress_of(const round_place& place, const run_report& report, std::int64_t tasks) {
  return {.task = place.task,
          .round = place.round,
          .tasks = tasks,
          .rounds = report.rounds - 1 - place.round_of_task + place.rounds_of_task * (tasks - place.task.value),
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
std::vector<class_range> masks_of_evaluation(const federation_settings& settings, const round_place& place) {
  std::vector<class_range> masks;
  for (std::uint32_t t = 0; t <= place.task.value; ++t)
    switch (settings.evaluation.mask) {
    case evaluation_mask::seen:
      masks.push_back(place.opened);
      break;
    case evaluation_mask::all:
      masks.push_back({0, settings.classes});
      break;
    case evaluation_mask::task:
      masks.push_back(settings.tasks.at(t).current);
      break;
    }
  return masks;
}

/// Error message for a round in which no client can take part any more.
std::string no_client_text(round_id round, virtual_time now) {
  return fmt::format("round {} has no client and waits in vain: at {:.9g} s of virtual time the traces of "
                     "devices.availability_file have ended for everybody who could take part; expected traces that "
                     "last as long as the run, or devices.trace_end = \"repeat\"",
                     round.value + 1, in_seconds(now));
}

} // namespace

// -- opening a task ---------------------------------------------------------------------------------------------------

void federation::begin() {
  guarded([this] {
    dispatch_.open_task({0});
    out_.command(open_task{round_.place});
  });
}

void federation::take(const task_plan& plan) {
  guarded([&] {
    const auto stated = settings_.rounds.per_task;
    if (plan.rounds && *plan.rounds != stated && settings_.rounds_are_stated)
      out_.command(run_warning{settings_.method + " sets its own rounds: " + std::to_string(*plan.rounds) +
                               " in task " + std::to_string(round_.place.task.value + 1) +
                               ", not rounds.per_task = " + std::to_string(stated)});
    round_.place.rounds_of_task = plan.rounds.value_or(stated);
    dispatch_.plan_task(plan);
    checkpoints_.next = next_step::round;
    go_on();
  });
}

// -- opening a round --------------------------------------------------------------------------------------------------

void federation::take(opened_round& opened) {
  guarded([&] {
    round_.open(std::move(opened));
    out_.record("scheduler", "open_round");
    if (!settings_.is_async() && settings_.rounds.deadline.count() > 0) {
      round_.deadline = later_by(clock_.now(), settings_.rounds.deadline);
      clock_.expect_deadline(round_.place.round, round_.deadline);
    }
    give_work();
    advance();
  });
}

/// Dispatches the round's clients; a round without clients is closed empty.
void federation::give_work() {
  if (settings_.is_async())
    dispatch_.fill_places();
  else if (!dispatch_.give_cohort_work())
    close();
}

// -- closing a round --------------------------------------------------------------------------------------------------

void federation::close() {
  if (round_.folded == 0 && dispatch_.waits_in_vain() && settings_.clients->availability_traces_end()) {
    out_.report().reaches_nobody = true; // all later rounds would close empty
    return finish(run_status::failed, no_client_text(round_.place.round, clock_.now()));
  }
  round_.is_open = round_.wants_clients = false;
  dispatch_.free_dropped_out();
  work_.hand_over_deliveries();
  out_.record("scheduler", "close_round");
  ++out_.report().rounds;
  out_.log().closed();
  clock_.made_progress();
  if (round_.folded == 0) // an empty round does not change the model
    return round_closed();
  turn_.begin();
  out_.command(take_step{.where = round_.place});
}

/// After the server's step the other parties receive the model. Their advice is sent with the next broadcasts.
void federation::take(const step_taken& step) {
  guarded([&] {
    const auto who = turn_.who();
    if (who == party_id::server) {
      out_.log().stepped(clock_.now(), step);
      model_ = step.says;
    } else {
      round_.heard[index_of(who)] = {.advice = step.says, .bytes = step.says_bytes};
      out_.log().advised(who, step);
      out_.record(row_of(who).name, "advise", {}, step.says_bytes);
    }
    if (turn_.goes_on())
      return out_.command(take_step{.to = turn_.who(), .where = round_.place, .model = model_});
    model_ = nullptr;
    round_closed();
  });
}

void federation::round_closed() {
  const auto& place = round_.place;
  auto progress = progress_of(place, out_.report(), std::ssize(settings_.tasks));
  progress.at = clock_.now();
  progress.in_flight = static_cast<std::int64_t>(in_flight_.size());
  progress.clients_enrolled = dispatch_.pool().enrolled();
  progress.training_loss = out_.log().step_losses().mean();
  out_.command(std::move(progress));
  const auto every = settings_.evaluation.every;
  if (!round_.is_last_of_task() && (every == 0 || (place.round.value + 1) % every != 0))
    return next_round();
  out_.command(evaluate{.masks = masks_of_evaluation(settings_, place),
                        .end_of_task = round_.is_last_of_task(),
                        .with_model = round_.is_last_of_task() && settings_.evaluation.models == kept_models::tasks});
}

void federation::take(const evaluated& sums) {
  guarded([&] {
    auto line = out_.log().add_evaluation(sums);
    line.task = round_.place.task;
    line.round = round_.place.round;
    line.at = clock_.now();
    line.clients_enrolled = dispatch_.pool().enrolled();
    line.end_of_task = round_.is_last_of_task();
    out_.record("server", "evaluate");
    line.per_class = sums.per_class;
    if (sums.model)
      out_.command(keep_model{.task = line.task, .model = sums.model});
    out_.command(std::move(line));
    next_round();
  });
}

void federation::next_round() {
  auto& place = round_.place;
  ++place.round.value;
  if (++place.round_of_task < place.rounds_of_task) {
    checkpoints_.next = next_step::round;
  } else if (place.task.value + 1 < settings_.tasks.size()) {
    checkpoints_.next = next_step::task;
  } else {
    --place.round.value; // the last events belong to the last round
    return finish(run_status::done);
  }
  if (checkpoints_.is_due_after(out_.report().rounds))
    take_checkpoint();
  else
    go_on();
}

} // namespace mneme
