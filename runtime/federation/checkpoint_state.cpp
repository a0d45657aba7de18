#include "runtime/federation/checkpoint_state.hpp"
namespace mneme {

// Every member is named, so that a new one does not compile before it is decided upon.

void persist(archive& file, class_range& classes) {
  auto& [low, high] = classes;
  file(low)(high);
}

void persist(archive& file, round_place& place) {
  auto& [round, task, round_of_task, rounds_of_task, opened, current] = place;
  file(round)(task)(round_of_task)(rounds_of_task)(opened)(current);
}

void persist(archive& file, task_plan& plan) {
  auto& [rounds, everybody, clients_without_rows] = plan;
  file(rounds)(everybody)(clients_without_rows);
}

void persist(archive& file, broadcast& sent) {
  auto& [place, weights, extra, once] = sent;
  file(place)(weights)(extra)(once);
}

void persist(archive& file, client_result& result) {
  auto& [upload, memory, rows] = result;
  file(upload)(memory)(rows);
}

/// What is said at the end of the run only stays out.
void persist(archive& file, run_report& report) {
  auto& [status, error, digest, trace_digest, ended, rounds, client_rounds, late_uploads, dropped, enrolled_max, joined,
         left, transitions, staleness_sum, staleness_max, upload_bytes, download_bytes, batches, jobs, deciles] =
      report;
  file(rounds)(client_rounds)(late_uploads)(dropped)(enrolled_max)(joined)(left)(transitions);
  file(staleness_sum)(staleness_max)(upload_bytes)(download_bytes)(batches)(jobs);
}

} // namespace mneme
