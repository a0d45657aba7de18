#include "runtime/federation/persisted_values.hpp"
namespace mneme {

// Every member is named, so that a new one does not compile before it is decided upon.

void persist(archive& state, class_range& classes) {
  auto& [low, high] = classes;
  state(low)(high);
}

void persist(archive& state, round_place& place) {
  auto& [round, task, round_of_task, rounds_of_task, opened, current] = place;
  state(round)(task)(round_of_task)(rounds_of_task)(opened)(current);
}

void persist(archive& state, task_plan& plan) {
  auto& [rounds, everybody, clients_without_rows, first_enrolled_only, observers] = plan;
  state(rounds)(everybody)(clients_without_rows)(first_enrolled_only)(observers);
}

void persist(archive& state, broadcast& sent) {
  auto& [place, weights, extra, once, advice] = sent;
  state(place)(weights)(extra)(once)(advice);
}

void persist(archive& state, client_result& result) {
  auto& [upload, memory, rows, to_proxy, counts, losses] = result;
  state(upload)(memory)(rows)(to_proxy)(counts)(losses);
}

/// What is said at the end of the run only stays out.
void persist(archive& state, run_report& report) {
  auto& [status, error, waits_for, reaches_nobody, digest, trace_digest, ended, rounds, client_rounds, late_uploads,
         dropped, enrolled_max, joined, left, transitions, staleness_sum, staleness_max, upload_bytes, download_bytes,
         proxy_bytes, looks, counts, batches, jobs, deciles] = report;
  state(rounds)(client_rounds)(late_uploads)(dropped)(enrolled_max)(joined)(left)(transitions);
  state(staleness_sum)(staleness_max)(upload_bytes)(download_bytes)(proxy_bytes)(looks)(counts)(batches)(jobs);
}

} // namespace mneme
