#include "actors/protocol/checkpoint_state.hpp"
namespace mneme {

// Structured bindings name every member, so that this file fails to compile until it handles a new one.

void persist(archive& state, class_tally& tally) {
  auto& [rows, correct] = tally;
  state(rows)(correct);
}

void persist(archive& state, personal_accuracies& over) {
  auto& [clients, before, mean, deciles] = over;
  state(clients)(before)(mean)(deciles);
}

void persist(archive& state, evaluation_record& line) {
  auto& [task, round, at, accuracy, accuracy_per_task, rows_per_task, loss, upload_bytes, download_bytes,
         clients_enrolled, client_rounds, late_uploads, dropped, perplexity, end_of_task, forgetting, training_loss,
         training_loss_terms, epsilon, per_class, personal, clients] = line;
  state(task)(round)(at)(accuracy)(accuracy_per_task)(rows_per_task)(loss)(upload_bytes)(download_bytes);
  state(clients_enrolled)(client_rounds)(late_uploads)(dropped)(perplexity)(end_of_task)(forgetting);
  state(training_loss)(training_loss_terms)(epsilon)(per_class)(personal);
  if (state.loading())
    clients.clear(); // client_accuracy.csv holds them already
}

void persist(archive& state, accuracy_matrix& matrix) {
  auto& [rows, pooled] = matrix;
  state(rows)(pooled);
}

void recorder_snapshot::persist(archive& state) {
  state.section("recorder")(device)(rounds)(client_rounds)(lines.events)(lines.digests)(lines.deliveries)(
      lines.clients)(matrix)(evaluations)(course);
  state(wall_seconds)(cpu_seconds)(busy_seconds)(peak_rss_bytes);
}

} // namespace mneme
