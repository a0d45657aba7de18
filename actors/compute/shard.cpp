#include "actors/compute/shard.hpp"
#include "actors/compute/run_batch.hpp"
#include "actors/protocol/batch_rules_of.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/method/transfer_encoding.hpp"
#include "runtime/method/upload_size.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/job_validation.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>
namespace mneme {
namespace {

/// True if same_kind() compares all parts of this job that determine its kind.
bool is_simple(const train_job& job) { return !job.replay.samples.source && !job.annotations.targets.defined(); }
/// True if key_of() and choose_width() return the same values for both jobs.
bool same_kind(const train_job& a, const train_job& b) {
  return a.net == b.net && a.objective == b.objective && a.samples.source == b.samples.source && a.options == b.options;
}

/// Replaces a job that was moved into a batch with a job that computes nothing.
void set_released(work& job) { job.emplace<compute_job>(); }
bool is_released(const work& job) {
  const auto* const computing = std::get_if<compute_job>(&job);
  return computing && !computing->run;
}

template <class Item, class Id>
void sort_unless_sorted(std::vector<Item>& items, Id id) {
  auto earlier = [&](const Item& a, const Item& b) { return id(a) < id(b); };
  if (!std::is_sorted(items.begin(), items.end(), earlier))
    std::sort(items.begin(), items.end(), earlier);
}

} // namespace

shard::shard(shard_id id, const run_context& run, client_host& clients) : run_(run), clients_(clients) {
  report_.from = id;
}

// -- rounds -----------------------------------------------------------------------------------------------------------

void shard::start(start_rounds wave) {
  at_once_ = wave.at_once;
  answers_missing_ += wave.assignments.size();
  report_.issued.reserve(wave.assignments.size());
  for (std::size_t i = 0; i < wave.assignments.size(); ++i) {
    auto& assigned = wave.assignments[i];
    if (rounds_.find(assigned.id))
      throw std::invalid_argument(fmt::format("assignment {} was started a second time", assigned.id.value));
    assigned.samples = run_.rows->view(assigned.client, assigned.task);
    auto& round =
        rounds_.insert(assigned.id, {.client = assigned.client, .visit = assigned.visit, .ready = wave.ready.at(i)});
    round.turns = clients_.start(std::move(assigned));
  }
  clients_.run_turns();
}

void shard::on_round_progress(assignment_id id, round_step&& step) {
  auto* const round = rounds_.find(id);
  if (!round) // the round may have been discarded after its client was resumed
    return;
  --answers_missing_;
  if (auto* jobs = std::get_if<plan>(&step)) {
    park(id, *round, std::move(*jobs));
  } else {
    if (auto* result = std::get_if<client_result>(&step))
      finish(id, std::move(*result));
    else
      report_.failed.push_back(std::get<round_failure>(std::move(step)));
    rounds_.erase(id);
  }

  if (answers_missing_ == 0 && at_once_)
    start_at_once();
  if (run_.gate && answers_missing_ == 0 && batches_missing_ > 0 && !report_.finished.empty())
    report_finished(); // the network sends the report while the next batch is computed
  report_if_idle();
}

void shard::on_batch_done(const composition& ids, outcomes done) {
  --batches_missing_;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto* const round = rounds_.find(ids[i].assignment);
    if (!round) // the round may have been discarded while the batch ran
      continue;
    round->known.at(ids[i].step) = std::move(done.at(i));
    if (--round->outcomes_missing > 0)
      continue;
    if (is_interrupted(round->known)) {
      interrupt(ids[i], *round);
      continue;
    }
    ++round->stage;
    ++answers_missing_;
    round->turns->resume(std::exchange(round->known, {}));
  }

  if (answers_missing_ == 0) // otherwise all rounds were discarded, or other results are still missing
    report_if_idle();
  else
    clients_.run_turns();
}

void shard::forget(const std::vector<assignment_id>& rounds) {
  for (const auto& id : rounds)
    if (auto* const round = rounds_.find(id)) {
      round->turns->abandon();
      rounds_.erase(id);
    }
  clients_.run_turns();
}

/// Discards the round without a report. A resumed run reruns it from its assignment.
void shard::interrupt(job_id last, active_round& round) {
  report_.failed.push_back({.last_job = last, .client = round.client, .reason = interrupted_text});
  round.turns->abandon();
  rounds_.erase(last.assignment);
}

void shard::finish(assignment_id id, client_result&& result) {
  const auto format = run_.scenario.devices.transfer_dtype;
  party_bytes bytes{};
  for (std::size_t p = 0; p < parties.size(); ++p) {
    auto& part = result.*parties[p].part;
    if (format != wire_format::fp32) // fp32 values arrive unchanged
      part = convert_for_transfer(part, format, run_.method->wire_layout(*run_.net));
    bytes[p] = party_id(p) == party_id::server ? upload_bytes(part.get(), run_.scenario, *run_.net)
                                               : wire_bytes(part.get(), format);
  }
  report_.finished.emplace_back(id, std::move(result), bytes);
  finished_bytes_ += sum_of(bytes);
  if (finished_bytes_ >= (run_.gate ? tuning::node_reported_bytes_max : tuning::reported_bytes_max))
    report_finished();
}

void shard::park(assignment_id id, active_round& round, plan jobs) {
  round.known = outcomes(jobs.size());
  round.outcomes_missing = jobs.size();
  for (std::uint32_t step = 0; step < jobs.size(); ++step) {
    const auto& job = jobs[step];
    if (run_.gate) // set on a node only, where broadcasts and memories come from the run's process
      if (const auto error_text = validate_weights(job); !error_text.empty())
        throw std::invalid_argument(fmt::format("job {}.{}.{}: {}", id.value, round.stage, step, error_text));
    const auto& kind = kind_of(job);
    const auto rows = rows_of(job);
    auto& issued = report_.issued.emplace_back(issued_job{.id = {id, round.stage, step},
                                                          .key = kind.key,
                                                          .rows = rows,
                                                          .bytes = outcome_bytes(job),
                                                          .width = kind.width});
    issued.compute_duration = run_.population->devices().compute_time(round.client, device_work_of(issued));
  }
  round.parked = std::move(jobs);
}

const shard::job_kind& shard::kind_of(const work& job) {
  const auto* training = std::get_if<train_job>(&job);
  if (training && !is_simple(*training))
    training = nullptr;
  if (training && last_training_.net && same_kind(*training, last_training_))
    return last_kind_;
  const auto fixed = run_.scenario.worker.fused_clients_max;
  last_kind_ = {.key = key_of(job), .width = fixed > 0 ? fixed : choose_width(job, run_.device)};
  last_training_ = {};
  const auto* const source = training ? training->samples.source.get() : nullptr;
  if (source && !source->is_temporary) { // a cached view must not keep generated rows alive
    last_training_.net = training->net;
    last_training_.objective = training->objective;
    last_training_.samples.source = training->samples.source;
    last_training_.options = training->options;
  }
  return last_kind_;
}

// -- batches ----------------------------------------------------------------------------------------------------------

void shard::release(std::vector<composition> batches) {
  batches_missing_ += batches.size();
  for (auto& ids : batches)
    ready_.push_back(make_ready_batch(std::move(ids)));
}

/// Releases the first jobs of the started rounds. Assumes that every shard has the same number of jobs, because the
/// jobs of other shards are not visible to a shard.
void shard::start_at_once() {
  at_once_ = false;
  wave_report part{.from = report_.from, .issued = std::exchange(report_.issued, {}), .last = false};
  std::int64_t bytes = 0;
  for (const auto& issued : part.issued)
    bytes += issued.bytes;
  const auto rules = batch_rules_of(run_);
  const bool by_due = reads_due(bytes, rules); // due times matter only in this case
  std::vector<parked_job> parked;
  parked.reserve(part.issued.size());
  for (const auto& issued : part.issued)
    parked.push_back({.job = issued, .due = by_due ? due_of(issued) : virtual_time{}, .shard = report_.from});
  part.released.emplace();
  for (auto& planned : plan_batches(parked, rules, run_.shards))
    part.released = std::move(planned.batches);
  auto batches = *part.released;
  reports_.push_back(std::move(part));
  release(std::move(batches));
}

virtual_time shard::due_of(const issued_job& issued) {
  const auto& round = rounds_.at(issued.id.assignment);
  const auto sent = add_saturating(round.ready, issued.compute_duration);
  return add_saturating(sent,
                        run_.population->devices().upload_time(
                            {.client = round.client, .bytes = issued.bytes, .begins = sent, .visit = round.visit}));
}

ready_batch shard::make_ready_batch(composition ids) {
  ready_batch batch{.ids = std::move(ids)};
  batch.jobs.reserve(batch.ids.size());
  for (const auto& id : batch.ids) {
    auto& waiting = waiting_job(id);
    batch.multiplications += multiplications_of(waiting);
    batch.jobs.emplace_back(id, std::move(waiting)); // a job is large, so it is moved only once
    set_released(waiting);
  }
  return batch;
}

/// Finds a job that waits for its release. Throws std::invalid_argument if it does not exist: on a node the release
/// comes from another process.
work& shard::waiting_job(const job_id& id) {
  auto* const round = rounds_.find(id.assignment);
  if (!round || id.stage != round->stage || id.step >= round->parked.size() || is_released(round->parked[id.step]))
    throw std::invalid_argument(
        fmt::format("job {}.{}.{} was released, but is not waiting", id.assignment.value, id.stage, id.step));
  return round->parked[id.step];
}

// -- reports ----------------------------------------------------------------------------------------------------------

/// Reports finished rounds while others are still running, so that their uploads leave memory early.
void shard::report_finished() {
  wave_report part{.from = report_.from, .finished = std::exchange(report_.finished, {}), .last = false};
  sort_unless_sorted(part.finished, [](const finished_round& round) { return round.id; });
  finished_bytes_ = 0;
  reports_.push_back(std::move(part));
}

/// Barrier: queues the last report of a wave, with entries in id order, once all clients have answered and all batches
/// have results.
void shard::report_if_idle() {
  if (answers_missing_ + batches_missing_ > 0)
    return;
  sort_unless_sorted(report_.issued, [](const issued_job& issued) { return issued.id; });
  sort_unless_sorted(report_.finished, [](const finished_round& round) { return round.id; });
  sort_unless_sorted(report_.failed, [](const round_failure& failure) { return failure.last_job; });
  finished_bytes_ = 0;
  reports_.push_back(std::exchange(report_, {.from = report_.from}));
}

} // namespace mneme
