/// run_records: messages to the recorder. Messages about evaluations are in runtime/results/metrics.hpp.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/results/run_directory.hpp"
#include "runtime/results/timeline.hpp"
#include <string>
#include <vector>
namespace mneme {

/// Snapshot of the run's progress.
struct progress_snapshot {
  task_id task{};
  round_id round{};
  std::int64_t tasks = 0, rounds = 0; ///< Totals of the run; rounds may grow if the method sets its own number.
  virtual_time at{};
  std::int64_t in_flight = 0, client_rounds = 0;
  std::int64_t clients_enrolled = 0, late_uploads = 0, dropped = 0;     ///< See evaluation_record.
  std::int64_t upload_bytes = 0, download_bytes = 0, staleness_sum = 0; ///< Sums since the start of the run.
  std::int64_t jobs = 0, batches = 0;                                   ///< See run_report.
  std::optional<double> training_loss{};                                ///< Mean training loss of this round; see
                                                                        ///< evaluation_record.
};

/// The model at the end of a task, to be saved under its parameter names.
struct save_task_model {
  task_id task{};
  tensors_ref model{};
};

/// Progress of a long computation within a step.
struct program_progress {
  std::string name{};
  double share = 0.0; ///< Completed fraction, in [0, 1].
};

/// Tensors of the dumped round: one delivery, or the model after the round.
struct kept_values {
  std::int64_t round = 0;            ///< Round number, from 1.
  std::optional<client_id> client{}; ///< The sender; nullopt for the model.
  const char* party = "";            ///< The receiver.
  tensors_ref values{};
};

/// Lines for events.csv, digests.csv and deliveries.csv.
struct recorded_events {
  std::vector<event_record> events{};
  std::vector<step_digests> steps{};
  std::vector<tensor_digest> deliveries{};
  std::vector<kept_values> values{};

  [[nodiscard]] std::size_t size() const noexcept {
    return events.size() + steps.size() + deliveries.size() + values.size();
  }
};

/// A warning to print for the user.
struct run_warning {
  std::string text{};
};

/// A checkpoint to write; the recorder adds its own state.
struct save_checkpoint {
  archive run{};
};

} // namespace mneme
