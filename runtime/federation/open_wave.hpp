/// open_wave: progress of the wave that the shards are working on.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include <algorithm>
namespace mneme {

/// Accepts reports in any order; the outcome does not depend on their order.
class open_wave {
public:
  /// Records that a shard was sent rounds to start. @param at_once true if the shard runs their jobs immediately and
  /// reports its batches
  void started(bool at_once) {
    ++reports_missing_;
    lists_missing_ += at_once ? 1 : 0;
  }
  /// Records that a shard was sent batches to run.
  void released() { ++reports_missing_; }
  [[nodiscard]] bool is_out() const noexcept { return reports_missing_ > 0; }
  /// True if the batches of all shards are known.
  [[nodiscard]] bool is_known() const noexcept { return lists_missing_ == 0; }

  /// Records the batches that a shard has reported. After the last shard, returns the batches of all shards, ascending;
  /// before that, returns an empty list.
  [[nodiscard]] std::vector<shard_batches> listed(shard_batches batches) {
    lists_.push_back(std::move(batches));
    if (--lists_missing_ > 0)
      return {};
    std::sort(lists_.begin(), lists_.end(), [](const auto& a, const auto& b) { return a.shard < b.shard; });
    return std::exchange(lists_, {});
  }
  /// Records a failure. If there are several, keeps the failure with the lowest job id.
  void failed(round_failure reason) {
    if (!failure_ || reason.last_job < failure_->last_job)
      failure_ = std::move(reason);
  }
  [[nodiscard]] const std::optional<round_failure>& failure() const noexcept { return failure_; }
  /// Records the last report of a shard. Returns whether the wave has ended.
  [[nodiscard]] bool ends_with_report() {
    MNEME_CHECK(reports_missing_ > 0);
    return --reports_missing_ == 0;
  }

private:
  std::size_t reports_missing_ = 0; // number of shards with a missing last report
  std::size_t lists_missing_ = 0;   // number of shards with a missing batch list
  std::vector<shard_batches> lists_;
  std::optional<round_failure> failure_;
};

} // namespace mneme
