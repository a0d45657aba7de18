#include "actors/compute/step_runner.hpp"
#include "actors/compute/run_batch.hpp"
#include "actors/protocol/batch_rules_of.hpp"
#include "runtime/training/executor.hpp"
namespace mneme {

std::string step_runner::step_at(const round_info& info, const std::optional<job_id>& failed) const {
  auto text = std::string(owner_) + " step, round " + std::to_string(info.round.value + 1);
  if (failed)
    text += ", job " + std::to_string(failed->stage) + "." + std::to_string(failed->step);
  return text;
}

/// Largest number of jobs in a batch. A forward pass is a batch of its own, so that all threads have work.
std::int64_t step_runner::width_of(const work& request) const {
  if (!std::holds_alternative<train_job>(request) && !std::holds_alternative<program_job>(request))
    return 1;
  const auto fixed = run_.scenario.worker.fused_clients_max;
  return fixed > 0 ? fixed : choose_width(request, run_.device);
}

/// Groups jobs and cuts them into batches by the rules for clients' jobs. Any worker may run them.
std::vector<composition> step_runner::compositions_of(const plan& jobs, std::uint64_t number) const {
  std::vector<parked_job> parked;
  for (std::uint32_t i = 0; i < jobs.size(); ++i)
    parked.push_back({.job = {.id = {.assignment = {number}, .step = i},
                              .key = key_of(jobs[i]),
                              .rows = std::max<std::int64_t>(rows_of(jobs[i]), 1),
                              .bytes = outcome_bytes(jobs[i]),
                              .width = width_of(jobs[i])}});
  auto rules = batch_rules_of(run_);
  rules.workers = run_.workers;
  std::vector<composition> compositions;
  for (auto& planned : plan_batches(parked, rules))
    for (auto& ids : planned.batches)
      compositions.push_back(std::move(ids));
  return compositions;
}

void step_runner::run_all(plan jobs, std::function<void(outcomes)> then) {
  const auto number = next_plan_++;
  plans_[number] = {.known = outcomes(jobs.size()), .missing = jobs.size(), .then = std::move(then)};
  std::vector<ready_batch> batches;
  for (auto& ids : compositions_of(jobs, number)) {
    auto& batch = batches.emplace_back();
    for (const auto& id : ids) {
      auto& request = jobs[id.step];
      batch.multiplications += multiplications_of(request);
      batch.jobs.push_back({.id = id, .request = std::move(request)});
    }
    batch.ids = std::move(ids);
  }
  hooks_.put(std::move(batches));
}

void step_runner::handle(batch_done& in) {
  for (std::size_t i = 0; i < in.ids.size(); ++i) {
    const auto waiting = plans_.find(in.ids[i].assignment.value);
    MNEME_CHECK(waiting != plans_.end(), in.ids[i].assignment.value);
    waiting->second.known.at(in.ids[i].step) = std::move(in.done.at(i));
    if (--waiting->second.missing > 0)
      continue;
    auto plan = std::move(waiting->second);
    plans_.erase(waiting);
    plan.then(std::move(plan.known));
  }
}

} // namespace mneme
