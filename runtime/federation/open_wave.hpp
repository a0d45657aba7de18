/// open_wave: state of the wave that the shards are working on.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include <algorithm>
namespace mneme {

/// Accepts reports in any order; the result does not depend on the order.
class open_wave {
public:
  /// A shard was sent rounds to start. `at_once`: it will report the batches that it runs.
  void started(bool at_once) {
    ++reports_missing_;
    lists_missing_ += at_once ? 1 : 0;
  }
  /// A shard was sent batches to run.
  void released() { ++reports_missing_; }
  [[nodiscard]] bool is_out() const noexcept { return reports_missing_ > 0; }
  /// True if the batches of all shards are known.
  [[nodiscard]] bool is_known() const noexcept { return lists_missing_ == 0; }

  /// A shard has reported its batches. Returns the batches of all shards, ascending, after the last of these reports.
  [[nodiscard]] std::vector<shard_batches> listed(shard_batches batches) {
    lists_.push_back(std::move(batches));
    if (--lists_missing_ > 0)
      return {};
    std::sort(lists_.begin(), lists_.end(), [](const auto& a, const auto& b) { return a.shard < b.shard; });
    return std::exchange(lists_, {});
  }
  /// Records a failure. The failure of the lowest job is kept.
  void failed(round_failure why) {
    if (!failure_ || why.last_job < failure_->last_job)
      failure_ = std::move(why);
  }
  [[nodiscard]] const std::optional<round_failure>& failure() const noexcept { return failure_; }
  /// A shard has sent its last report. Returns whether the wave has ended.
  [[nodiscard]] bool ends_with_report() {
    MNEME_CHECK(reports_missing_ > 0);
    return --reports_missing_ == 0;
  }

private:
  std::size_t reports_missing_ = 0; // last reports
  std::size_t lists_missing_ = 0;   // batch lists of shards that run what they start
  std::vector<shard_batches> lists_;
  std::optional<round_failure> failure_;
};

} // namespace mneme
