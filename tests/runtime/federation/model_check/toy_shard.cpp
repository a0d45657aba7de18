#include "tests/runtime/federation/model_check/toy_shard.hpp"
#include <algorithm>
namespace mneme::test {
namespace {

bool same_round(const issued_job& a, const issued_job& b) { return a.id.assignment == b.id.assignment; }

wave_report in_order(wave_report report) {
  const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(report.issued.begin(), report.issued.end(), by_id);
  std::sort(report.finished.begin(), report.finished.end(), by_id);
  return report;
}

/// Returns null if it has no report.
std::shared_ptr<const training_losses> losses_of(const toy_result& result) {
  if (result.loss == 0.0)
    return nullptr;
  training_losses told;
  told.add(result.rows, result.loss, {{"toy", result.loss}});
  return std::make_shared<const training_losses>(told);
}

} // namespace

void toy_shard::handle(const message& received) {
  if (const auto* wave = std::get_if<start_rounds>(&received)) {
    start(*wave);
  } else if (const auto* wanted = std::get_if<release>(&received)) {
    outcome done;
    run(wanted->batches, done);
    report(std::move(done));
  } else {
    for (const auto id : std::get<abandon>(received).assignments) {
      require(clients_.contains(id), "what is abandoned is at its shard", id.value);
      clients_.erase(id);
    }
  }
}

void toy_shard::start(const start_rounds& wave) {
  outcome done;
  for (std::size_t i = 0; i < wave.assignments.size(); ++i) {
    const auto& given = wave.assignments[i];
    require(shard_of(given.client, static_cast<std::size_t>(toy_->settings.shards)) == which_,
            "a client stays at its shard", given.id.value);
    require(!clients_.contains(given.id), "a round starts once", given.id.value);
    require(given.in->info.task == (toy_->settings.hide_task_from_clients ? task_id{} : given.task),
            "a client is told its task, or nothing", given.id.value);
    auto& client = clients_[given.id];
    client.given = {.client = given.client,
                    .task = given.task,
                    .visit = given.visit,
                    .model = as_number(given.in->weights),
                    .memory = as_number(given.memory),
                    .advice = as_number(given.in->advice),
                    .observes = given.observes};
    client.ready = wave.ready.at(i);
    advance(given.id, client, done);
  }
  if (!wave.at_once)
    return report(std::move(done));

  std::vector<parked_job> parked;
  for (const auto& job : done.issued) {
    const auto& client = clients_.at(job.id.assignment);
    const auto due = client.ready + job.compute_duration +
                     toy_->settings.clients->devices().upload_time({.client = client.given.client, .bytes = job.bytes});
    parked.push_back({.job = job, .due = due, .shard = which_});
  }
  wave_report part{.from = which_, .issued = std::exchange(done.issued, {}), .last = false};
  part.released.emplace();
  for (auto& planned : plan_batches(parked, toy_->settings.batching, toy_->settings.shards))
    part.released = std::move(planned.batches);
  const auto batches = *part.released;
  reports_.push_back(std::move(part));
  run(batches, done);
  report(std::move(done));
}

void toy_shard::look_at(const composition& batch) const {
  require(!batch.empty() && std::is_sorted(batch.begin(), batch.end()), "a batch is named by ascending ids");
  std::optional<fuse_key> key;
  for (const auto& id : batch) {
    const auto client = clients_.find(id.assignment);
    require(client != clients_.end(), "what is released is at its shard", id.assignment.value);
    const auto& [given, ready, stage, jobs, has_run] = client->second;
    require(id.stage == stage && id.step < jobs.size(), "what is released is parked", id.assignment.value);
    require(!has_run[id.step], "a job is released once", id.assignment.value);
    require(!key || *key == jobs[id.step].key, "a batch has one key", id.assignment.value);
    key = jobs[id.step].key;
  }
}

void toy_shard::run(const std::vector<composition>& batches, outcome& so_far) {
  for (const auto& batch : batches) {
    look_at(batch);
    for (const auto& id : batch)
      clients_.at(id.assignment).has_run[id.step] = true;
  }
  for (auto next = clients_.begin(); next != clients_.end();) {
    auto& [id, client] = *next++;
    if (!client.has_run.empty() &&
        std::all_of(client.has_run.begin(), client.has_run.end(), [](bool has) { return has; })) {
      ++client.stage;
      advance(id, client, so_far);
    }
  }
}

/// Advances to the next stage, or to the end.
void toy_shard::advance(assignment_id id, hosted& client, outcome& so_far) {
  const auto stages = toy_->stages_of(client.given);
  if (client.stage == stages.size() && toy_->fails(client.given)) {
    so_far.failed.push_back({.last_job = {id, client.stage - 1, 0}, .client = client.given.client, .reason = "NaN"});
    clients_.erase(id);
    return;
  }
  if (client.stage == stages.size()) {
    const auto result = toy_->result_of(client.given);
    so_far.finished.push_back({.id = id,
                               .result = {.upload = as_tensors(result.upload),
                                          .memory = as_tensors(result.memory.value_or(0)),
                                          .rows = result.rows,
                                          .to_proxy = as_tensors(result.to_proxy),
                                          .counts = {{"toy", result.count}},
                                          .losses = losses_of(result)},
                               .bytes = {result.upload_bytes, result.proxy_bytes}});
    clients_.erase(id);
    return;
  }
  client.jobs = stages[client.stage];
  client.has_run.assign(client.jobs.size(), false);
  for (std::uint32_t step = 0; step < client.jobs.size(); ++step) {
    const auto& job = client.jobs[step];
    so_far.issued.push_back(
        {.id = {id, client.stage, step},
         .key = job.key,
         .rows = job.rows,
         .bytes = job.bytes,
         .width = static_cast<std::int64_t>(1 + 2 * job.key.options),
         .compute_duration = toy_->settings.clients->devices().compute_time(client.given.client, job.rows)});
  }
}

/// Finished and parked rounds may be reported before the others, in any order.
void toy_shard::report(outcome done) {
  wave_report last{.from = which_, .failed = std::move(done.failed)};
  std::vector<wave_report> parts(splits_ ? splits_->below(3) : 0, wave_report{.from = which_, .last = false});
  const auto any_part = [&]() -> wave_report& {
    const auto part = parts.empty() ? 0 : splits_->below(parts.size() + 1);
    return part < parts.size() ? parts[part] : last;
  };
  for (auto& finished : done.finished)
    any_part().finished.push_back(std::move(finished));
  for (std::size_t first = 0, next = 0; first < done.issued.size(); first = next) {
    auto& part = any_part(); // all jobs of a stage are reported together
    for (next = first; next < done.issued.size() && same_round(done.issued[first], done.issued[next]); ++next)
      part.issued.push_back(done.issued[next]);
  }
  for (auto& part : parts)
    reports_.push_back(in_order(std::move(part)));
  reports_.push_back(in_order(std::move(last)));
}

wave_report toy_shard::take_report() {
  auto next = std::move(reports_.front());
  reports_.pop_front();
  return next;
}

} // namespace mneme::test
