/// timeline: course of a run over virtual time, in a limited number of bins.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

class archive;

/// Consecutive rounds, or server steps of an asynchronous run. Counts are totals from the start of the run to the end
/// of the bin.
struct timeline_bin {
  round_id first{}, last{};                      ///< Counted from 0; both are included.
  task_id task{};                                ///< Task of the last round.
  virtual_time at{};                             ///< End of the last round.
  std::int64_t in_flight = 0, in_flight_max = 0; ///< Assignments in flight: at the end of the bin, and maximum in it.
  std::int64_t clients_enrolled = 0, client_rounds = 0, late_uploads = 0, dropped = 0;
  std::int64_t upload_bytes = 0, download_bytes = 0;
  std::int64_t staleness_sum = 0;        ///< Sum over all uploads so far, in server steps.
  std::optional<double> training_loss{}; ///< Mean training loss of the last round; see evaluation_record.
  bool operator==(const timeline_bin&) const = default;
  /// Throws archive_error for loaded counts that no run can have.
  void persist(archive& state);
};

/// A timeline begins with one bin per round. If there are too many bins, neighbors are merged; all bins except the last
/// then have the same number of rounds.
class timeline {
public:
  static constexpr std::size_t bins_max = 1'000;

  /// Adds the next round. Throws std::invalid_argument if the round was already added.
  void add(timeline_bin round);
  [[nodiscard]] const std::vector<timeline_bin>& bins() const noexcept { return bins_; }

  /// Throws archive_error for loaded bins that no run can have.
  void persist(archive& state);

private:
  std::int64_t rounds_per_bin_ = 1;
  std::vector<timeline_bin> bins_;
};

/// A line of timeline.jsonl, without line break. Tasks and rounds count from 1. `staleness_mean` is the mean over all
/// uploads so far, or null before the first.
[[nodiscard]] std::string json_text(const timeline_bin& bin);

} // namespace mneme
