/// What the federation tells the recorder, besides evaluations (runtime/results/metrics.hpp).
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/results/run_directory.hpp"
#include "runtime/results/timeline.hpp"
#include <string>
#include <vector>
namespace mneme {

/// Where the run stands.
struct progress_snapshot {
  task_id task{};
  round_id round{};
  std::int64_t tasks = 0, rounds = 0; ///< The whole run has so many; rounds may grow when a method sets its own.
  virtual_time at{};
  std::int64_t in_flight = 0, client_rounds = 0;
  std::int64_t clients_enrolled = 0, late_uploads = 0, dropped = 0;     ///< As in evaluation_record.
  std::int64_t upload_bytes = 0, download_bytes = 0, staleness_sum = 0; ///< Since the run began.
  std::int64_t jobs = 0, batches = 0;                                   ///< As in run_report.
  std::optional<double> training_loss{};                                ///< As in evaluation_record, of this round.
};

/// The model at the end of a task, under the names of its parameters, for a file of its own.
struct keep_model {
  task_id task{};
  tensors_ref model{};
};

/// How far a long program has come.
struct program_progress {
  std::string name{};
  double share = 0.0; ///< In [0, 1].
};

/// What was delivered in the round whose values are kept, and the model after it.
struct kept_values {
  std::int64_t round = 0;            ///< Counted from 1.
  std::optional<client_id> client{}; ///< None: this is the model.
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

/// Shown to the user.
struct run_warning {
  std::string text{};
};

/// A checkpoint without the recorder's part.
struct keep_state {
  archive run{};
};

} // namespace mneme
