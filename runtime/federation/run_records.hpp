/// Messages to the recorder, apart from evaluations (runtime/results/metrics.hpp).
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/results/run_directory.hpp"
#include "runtime/results/timeline.hpp"
#include <string>
#include <vector>
namespace mneme {

/// Progress of the run.
struct progress_snapshot {
  task_id task{};
  round_id round{};
  std::int64_t tasks = 0, rounds = 0; ///< Of the whole run; rounds can grow if a method sets its own number.
  virtual_time at{};
  std::int64_t in_flight = 0, client_rounds = 0;
  std::int64_t clients_enrolled = 0, late_uploads = 0, dropped = 0;     ///< As in evaluation_record.
  std::int64_t upload_bytes = 0, download_bytes = 0, staleness_sum = 0; ///< Since the start of the run.
  std::int64_t jobs = 0, batches = 0;                                   ///< As in run_report.
  std::optional<double> training_loss{};                                ///< As in evaluation_record, of this round.
};

/// Model at the end of a task, under its parameter names, for a separate file.
struct keep_model {
  task_id task{};
  tensors_ref model{};
};

/// Progress of a long program.
struct program_progress {
  std::string name{};
  double share = 0.0; ///< In [0, 1].
};

/// Deliveries of the dumped round, and the model after it.
struct kept_values {
  std::int64_t round = 0;            ///< From 1.
  std::optional<client_id> client{}; ///< nullopt: the model.
  const char* party = "";            ///< That has received it.
  tensors_ref values{};
};

/// Lines of events.csv, digests.csv and deliveries.csv.
struct recorded_events {
  std::vector<event_record> events{};
  std::vector<step_digests> steps{};
  std::vector<tensor_digest> deliveries{};
  std::vector<kept_values> values{};

  [[nodiscard]] std::size_t size() const noexcept {
    return events.size() + steps.size() + deliveries.size() + values.size();
  }
};

/// Printed for the user.
struct run_warning {
  std::string text{};
};

/// A checkpoint without the recorder's part.
struct keep_state {
  archive run{};
};

} // namespace mneme
