#include "actors/checkpoint_state.hpp"
namespace mneme {

void persist(archive& all, class_range& classes) { all(classes.low)(classes.high); }

void persist(archive& all, round_place& place) {
  all(place.round)(place.task)(place.round_of_task)(place.rounds_of_task)(place.opened)(place.current);
}

void persist(archive& all, task_plan& plan) { all(plan.rounds)(plan.everybody)(plan.clients_without_rows); }

void persist(archive& all, broadcast& sent) { all(sent.place)(sent.weights)(sent.extra)(sent.once); }

void persist(archive& all, client_result& result) { all(result.upload)(result.memory)(result.rows); }

void persist(archive& all, run_report& report) {
  all(report.rounds)(report.client_rounds)(report.late_uploads)(report.dropped)(report.enrolled_max);
  all(report.joined)(report.left)(report.transitions)(report.staleness_sum)(report.staleness_max);
  all(report.upload_bytes)(report.download_bytes)(report.batches)(report.jobs);
}

void persist(archive& all, evaluation_record& line) {
  all(line.task)(line.round)(line.at)(line.accuracy)(line.accuracy_per_task)(line.rows_per_task)(line.loss);
  all(line.upload_bytes)(line.download_bytes)(line.clients_enrolled)(line.client_rounds)(line.late_uploads);
  all(line.dropped)(line.end_of_task);
}

void persist(archive& all, accuracy_matrix& matrix) { all(matrix.rows)(matrix.pooled); }

void recorded_past::persist(archive& all) {
  all.section("recorder")(device)(rounds)(client_rounds)(events_bytes)(matrix)(evaluations);
  all(wall_seconds)(cpu_seconds)(busy_seconds)(peak_rss_bytes);
}

} // namespace mneme
