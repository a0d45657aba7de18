/// dry_run: simulates the virtual time of a run from the sizes of its jobs and messages. No job is computed, and the
/// server half takes no step.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/federation/run_report.hpp"
#include <array>
namespace mneme {

/// Key for grouping jobs with equal cost per row.
struct job_kind {
  class_range classes{};         ///< Classes whose logits are computed; empty: none, only features.
  class_range teacher_classes{}; ///< Classes whose logits a frozen teacher of the same net computes; empty: no teacher.
  bool trains = false;           ///< false: one forward pass.
  trainable_part part = trainable_part::all;
  [[nodiscard]] bool operator<(const job_kind& other) const noexcept { return order() < other.order(); }
  [[nodiscard]] std::array<std::int64_t, 6> order() const noexcept {
    return {classes.low,          classes.high,   teacher_classes.low,
            teacher_classes.high, trains ? 1 : 0, static_cast<std::int64_t>(part)};
  }
};

struct dry_run_result {
  run_report report{}; ///< Report of the run, without digests and without times that depend on results.
  std::map<job_kind, double> client_rows{}; ///< Number of rows that clients' jobs process, over all epochs, by kind of
                                            ///< job.
  std::map<job_kind, double> evaluated_rows{};
  std::int64_t evaluations = 0;
  std::int64_t in_flight_max = 0;          ///< Largest number of clients with a running round.
  std::int64_t upload_bytes_of_client = 0; ///< Size of the largest upload.
  /// true: all jobs and messages of clients are those of the method. This is possible if each round has one job whose
  /// upload has the size of the broadcast (method_needs::upload_size_known), and if no task plan depends on a job of
  /// the server. false: each client round counts as one training of the run's net.
  bool exact = true;
};

/// Runs the simulation. Fails if the run would fail. @param run loaded context; its weights may be zeros
[[nodiscard]] expected<dry_run_result> dry_run(const run_context& run);

/// Returns an error at the last span of a trace if the run cannot end because of it. Either a client's trace in
/// devices.link_file ends during its round, or all traces in devices.availability_file end before the run. If the
/// method's messages are unknown (dry_run_result::exact), only the rounds before the first delivery are checked.
[[nodiscard]] diagnostics check_trace_ends(const run_context& run);

} // namespace mneme
