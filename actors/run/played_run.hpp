/// played_run: a dry run. The federation goes through its virtual time with the sizes of jobs and messages; no job of a
/// client or of the server is computed, and the server half takes no step.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/federation/run_report.hpp"
#include <array>
namespace mneme {

/// What jobs of a run have in common, as far as their work goes.
struct job_kind {
  class_range classes{}; ///< Logits of these are computed; empty: the net ends at its features.
  class_range taught{};  ///< A frozen net of the same kind shows its logits of these; empty: none.
  bool trains = false;   ///< Else rows pass forward once.
  trainable_part part = trainable_part::all;
  [[nodiscard]] bool operator<(const job_kind& other) const noexcept { return order() < other.order(); }
  [[nodiscard]] std::array<std::int64_t, 6> order() const noexcept {
    return {classes.low, classes.high, taught.low, taught.high, trains ? 1 : 0, static_cast<std::int64_t>(part)};
  }
};

struct played_run {
  run_report report{}; ///< As that of the run, but for digests, and for times that follow from results.
  std::map<job_kind, double> client_rows{}; ///< Rows that clients' jobs of a kind pass, epochs included.
  std::map<job_kind, double> evaluated_rows{};
  std::int64_t evaluations = 0;
  std::int64_t in_flight_max = 0;          ///< Clients at work at a time.
  std::int64_t upload_bytes_of_client = 0; ///< The largest.
  /// Every job and message of clients is the method's own: a client's round is one job, after which it sends as much as
  /// it was sent (method_needs::upload_size_known), and no task's plan follows from a job of the server. Else each
  /// client-round is taken to be one training of the run's net.
  bool exact = true;
};

/// @param run is loaded; weights may be zeros. Fails where the run would.
[[nodiscard]] expected<played_run> play_run(const run_context& run);

/// Where the run would come to wait for ever for a client whose trace in devices.link_file has ended, or be left
/// without clients when all of devices.availability_file have: the line at which it ends. Where the method's messages
/// are not known (played_run::exact), what is certain is told: up to the first round in which somebody delivers, with
/// the least time that clients' work may take. Else nothing, and where traces repeat at no cost.
[[nodiscard]] diagnostics ended_traces(const run_context& run);

} // namespace mneme
