#include "actors/scheduler/federation_settings_of.hpp"
#include "actors/protocol/batch_rules_of.hpp"
namespace mneme {
namespace {

/// Memory for results, in bytes: 4 * worker.lookahead_memory, or worker.lookahead_memory if the user set it below its
/// default.
std::int64_t results_bytes_max(const worker_section& worker) {
  const auto stated = worker.lookahead_memory.bytes, usual = worker_section{}.lookahead_memory.bytes;
  return stated < usual ? stated : 4 * stated;
}

} // namespace

federation_settings federation_settings_of(const run_context& run) {
  const auto& scenario = run.scenario;
  federation_settings settings{.seed = static_cast<std::uint64_t>(scenario.seed),
                               .clients = run.population,
                               .rows = run.rows,
                               .rounds = scenario.rounds,
                               .evaluation = scenario.evaluation,
                               .rejoin = scenario.enrolment.rejoin,
                               .memory_bytes_max = scenario.clients.memory_limit.bytes,
                               .transfer_dtype = scenario.devices.transfer_dtype,
                               .classes = run.tasks->classes,
                               .method = scenario.strategy.name,
                               .rounds_are_stated = scenario.key_places.contains("rounds.per_task"),
                               .upload_size_known = run.needs.upload_size_known,
                               .hide_task_from_clients = run.needs.hide_task_from_clients && !scenario.strategy.oracle,
                               .observers_cost_time = scenario.devices.observers_cost_time,
                               .shards = run.shards,
                               .batching = batch_rules_of(run),
                               .ahead_bytes_max = scenario.worker.lookahead_memory.bytes,
                               .results_bytes_max = results_bytes_max(scenario.worker),
                               .results_are_repeatable = run.device == "cpu",
                               .checkpoint = scenario.checkpoint,
                               .stored_results_bytes_max = run.stored_results_max.bytes,
                               .trace = run.trace,
                               .dumped_round = run.dumped_round,
                               .events_max = run.events_max};
  if (run.needs.has_proxy)
    settings.other_parties.push_back(party_id::proxy);
  for (std::uint32_t t = 0; t < run.tasks->tasks.size(); ++t)
    settings.tasks.push_back(
        {.current_classes = run.tasks->tasks[t].classes, .seen_classes = run.tasks->seen_classes({t})});
  return settings;
}

} // namespace mneme
