#include "runtime/federation/persisted_values.hpp"
namespace mneme {

// Structured bindings name every member, so that adding one fails to compile until this file handles it.

void persist(archive& state, class_range& classes) {
  auto& [low, high] = classes;
  state(low)(high);
}

void persist(archive& state, round_info& info) {
  auto& [round, task, round_of_task, rounds_of_task, seen_classes, current_classes] = info;
  state(round)(task)(round_of_task)(rounds_of_task)(seen_classes)(current_classes);
}

void persist(archive& state, task_plan& plan) {
  auto& [rounds, all_enrolled, clients_without_rows, first_enrolled_only, observers] = plan;
  state(rounds)(all_enrolled)(clients_without_rows)(first_enrolled_only)(observers);
}

void persist(archive& state, broadcast& sent) {
  auto& [info, weights, extra, once, advice] = sent;
  state(info)(weights)(extra)(once)(advice);
}

void persist(archive& state, client_result& result) {
  auto& [upload, memory, rows, to_proxy, counts, losses] = result;
  state(upload)(memory)(rows)(to_proxy)(counts)(losses);
}

/// Omits counters that are set only at the end of the run.
void persist(archive& state, run_report& report) {
  auto& [status, error, waits_for, no_reachable_clients, digest, trace_digest, ended, rounds, client_rounds,
         late_uploads, dropped, enrolled_max, joined, left, transitions, staleness_sum, staleness_max, upload_bytes,
         download_bytes, proxy_bytes, observations, counts, batches, jobs, deciles] = report;
  state(rounds)(client_rounds)(late_uploads)(dropped)(enrolled_max)(joined)(left)(transitions);
  state(staleness_sum)(staleness_max)(upload_bytes)(download_bytes)(proxy_bytes)(observations)(counts)(batches)(jobs);
  constexpr std::int64_t count_max = std::int64_t{1} << 62; // adding later counts to such a sum cannot overflow
  for (const auto count :
       {rounds, client_rounds, late_uploads, dropped, enrolled_max, joined, left, transitions, staleness_sum,
        staleness_max, upload_bytes, download_bytes, proxy_bytes, observations, batches, jobs})
    if (state.loading() && (count < 0 || count > count_max))
      throw archive_error("has a total that no run can have");
}

} // namespace mneme
