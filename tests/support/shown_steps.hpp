/// shown_steps: inspects the jobs of a step before they run, or instead of running them.
#pragma once
#include "tests/support/method_driver.hpp"
namespace mneme::test {

/// Runs a step of the server half to its end. Passes the jobs of each stage to `look` first.
template <class T>
T run_shown_step(task<T> step, job_channel& channel, executor& device, const std::function<void(const plan&)>& look) {
  step.start();
  while (!step.done()) {
    auto wanted = channel.take_plan();
    look(wanted);
    channel.answer(run_plan(device, std::move(wanted)));
  }
  return step.take();
}

/// Runs a client's round to its end. Returns its jobs, stage by stage.
inline plan jobs_of_round(const strategy& method, executor& device, const assignment& assigned) {
  generated_row_store made({.scale = assigned.samples.source->scale, .shift = assigned.samples.source->shift});
  client_round_runner run(method, assigned, &made);
  plan seen;
  auto step = run.start();
  while (auto* wanted = std::get_if<plan>(&step)) {
    seen.insert(seen.end(), wanted->begin(), wanted->end());
    step = run.resume(run_plan(device, std::move(*wanted)));
  }
  REQUIRE(std::holds_alternative<client_result>(step));
  return seen;
}

/// The jobs of type `Job`.
template <class Job>
std::vector<Job> jobs_of_kind(const plan& jobs) {
  std::vector<Job> found;
  for (const auto& wanted : jobs)
    if (const auto* const job = std::get_if<Job>(&wanted))
      found.push_back(*job);
  return found;
}

} // namespace mneme::test
