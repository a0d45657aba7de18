/// timeline: course of a run over virtual time, in a bounded number of bins.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

class archive;

/// Consecutive rounds (asynchronous: server steps). Counts are totals since the start of the run, at the end of the
/// bin.
struct timeline_bin {
  round_id first{}, last{};                      ///< From 0, both included.
  task_id task{};                                ///< Task of the last round.
  virtual_time at{};                             ///< End of the last round.
  std::int64_t in_flight = 0, in_flight_max = 0; ///< Assignments at the end of the last round; maximum in the bin.
  std::int64_t clients_enrolled = 0, client_rounds = 0, late_uploads = 0, dropped = 0;
  std::int64_t upload_bytes = 0, download_bytes = 0;
  std::int64_t staleness_sum = 0;        ///< Over all uploads so far, in server steps.
  std::optional<double> training_loss{}; ///< As in evaluation_record, of the last round.
  bool operator==(const timeline_bin&) const = default;
  void persist(archive& state);
};

/// Starts with one bin per round. If there are too many, neighbors are merged repeatedly, so that all bins but the last
/// have the same number of rounds.
class timeline {
public:
  static constexpr std::size_t bins_max = 1'000;

  /// Adds the next round as a bin of its own. Throws std::invalid_argument for a round that was added before.
  void add(timeline_bin round);
  [[nodiscard]] const std::vector<timeline_bin>& bins() const noexcept { return bins_; }

  void persist(archive& state);

private:
  std::int64_t rounds_per_bin_ = 1;
  std::vector<timeline_bin> bins_;
};

/// Line of timeline.jsonl without its line break. Tasks and rounds count from 1; `staleness_mean` over the uploads so
/// far, null before the first.
[[nodiscard]] std::string json_text(const timeline_bin& bin);

} // namespace mneme
