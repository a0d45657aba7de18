/// timeline: how a run went on in virtual time, in a number of bins that does not grow with the run.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
namespace mneme {

class archive;

/// Some rounds (asynchronous: server steps) that follow each other. Counts are since the run began, at the end of them.
struct timeline_bin {
  round_id first{}, last{};                      ///< From 0, both within the bin.
  task_id task{};                                ///< Task of the last round.
  virtual_time at{};                             ///< End of the last round.
  std::int64_t in_flight = 0, in_flight_max = 0; ///< Assignments under way at the end of the last, and at most of any.
  std::int64_t clients_enrolled = 0, client_rounds = 0, late_uploads = 0, dropped = 0;
  std::int64_t upload_bytes = 0, download_bytes = 0;
  std::int64_t staleness_sum = 0; ///< Over all uploads so far, in server steps.
  std::optional<double> training_loss{}; ///< As in evaluation_record, of the last round.
  bool operator==(const timeline_bin&) const = default;
  void persist(archive& state);
};

/// Each round is a bin until there are too many; then neighbours become one, as often as need be, so that all bins but
/// the last hold equally many rounds.
class timeline {
public:
  static constexpr std::size_t bins_max = 1'000;

  /// Rounds are added in their order, each as a bin of its own. Throws std::invalid_argument for one that is there.
  void add(timeline_bin round);
  [[nodiscard]] const std::vector<timeline_bin>& bins() const noexcept { return bins_; }

  void persist(archive& state);

private:
  std::int64_t rounds_per_bin_ = 1;
  std::vector<timeline_bin> bins_;
};

/// The line of timeline.jsonl, without its line break. Tasks and rounds from 1; `staleness_mean` over the uploads so
/// far, null before the first.
[[nodiscard]] std::string json_text(const timeline_bin& bin);

} // namespace mneme
