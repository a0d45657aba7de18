#include "actors/protocol/checkpoint_state.hpp"
namespace mneme {

// Every member is named, so that a new one does not compile before it is decided upon.

void persist(archive& all, class_range& classes) {
  auto& [low, high] = classes;
  all(low)(high);
}

void persist(archive& all, round_place& place) {
  auto& [round, task, round_of_task, rounds_of_task, opened, current] = place;
  all(round)(task)(round_of_task)(rounds_of_task)(opened)(current);
}

void persist(archive& all, task_plan& plan) {
  auto& [rounds, everybody, clients_without_rows] = plan;
  all(rounds)(everybody)(clients_without_rows);
}

void persist(archive& all, broadcast& sent) {
  auto& [place, weights, extra, once] = sent;
  all(place)(weights)(extra)(once);
}

void persist(archive& all, client_result& result) {
  auto& [upload, memory, rows] = result;
  all(upload)(memory)(rows);
}

/// What is said at the end of the run only stays out.
void persist(archive& all, run_report& report) {
  auto& [status, error, digest, trace_digest, ended, rounds, client_rounds, late_uploads, dropped, enrolled_max, joined,
         left, transitions, staleness_sum, staleness_max, upload_bytes, download_bytes, batches, jobs, deciles] =
      report;
  all(rounds)(client_rounds)(late_uploads)(dropped)(enrolled_max)(joined)(left)(transitions);
  all(staleness_sum)(staleness_max)(upload_bytes)(download_bytes)(batches)(jobs);
}

void persist(archive& all, evaluation_record& line) {
  auto& [task, round, at, accuracy, accuracy_per_task, rows_per_task, loss, upload_bytes, download_bytes,
         clients_enrolled, client_rounds, late_uploads, dropped, end_of_task, forgetting] = line;
  all(task)(round)(at)(accuracy)(accuracy_per_task)(rows_per_task)(loss)(upload_bytes)(download_bytes);
  all(clients_enrolled)(client_rounds)(late_uploads)(dropped)(end_of_task)(forgetting);
}

void persist(archive& all, accuracy_matrix& matrix) {
  auto& [rows, pooled] = matrix;
  all(rows)(pooled);
}

void recorded_past::persist(archive& all) {
  all.section("recorder")(device)(rounds)(client_rounds)(events_bytes)(matrix)(evaluations);
  all(wall_seconds)(cpu_seconds)(busy_seconds)(peak_rss_bytes);
}

} // namespace mneme
