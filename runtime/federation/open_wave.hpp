/// open_wave: real work that is out at the shards, and what their reports have said so far.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include <algorithm>
namespace mneme {

/// Reports come in any order, and what is made of them does not depend on it.
class open_wave {
public:
  /// A shard has been given rounds to start. `at_once`: it will tell which batches it runs.
  void started(bool at_once) {
    ++reports_missing_;
    lists_missing_ += at_once ? 1 : 0;
  }
  /// A shard has been given batches to run.
  void released() { ++reports_missing_; }
  [[nodiscard]] bool is_out() const noexcept { return reports_missing_ > 0; }
  /// It is known which batches run.
  [[nodiscard]] bool is_known() const noexcept { return lists_missing_ == 0; }

  /// A shard tells which batches it runs. Returns those of all shards, ascending, once the last one has told.
  [[nodiscard]] std::vector<shard_batches> listed(shard_batches batches) {
    lists_.push_back(std::move(batches));
    if (--lists_missing_ > 0)
      return {};
    std::sort(lists_.begin(), lists_.end(), [](const auto& a, const auto& b) { return a.shard < b.shard; });
    return std::exchange(lists_, {});
  }
  /// Something went wrong in it; the failure of the lowest job is the one that is told.
  void failed(round_failure why) {
    if (!failure_ || why.last_job < failure_->last_job)
      failure_ = std::move(why);
  }
  [[nodiscard]] const std::optional<round_failure>& failure() const noexcept { return failure_; }
  /// A shard has sent its last report. Returns whether the wave is over.
  [[nodiscard]] bool ends_with_report() {
    MNEME_CHECK(reports_missing_ > 0);
    return --reports_missing_ == 0;
  }

private:
  std::size_t reports_missing_ = 0; // last ones of shards
  std::size_t lists_missing_ = 0;   // of shards that run what they start and have not told which batches
  std::vector<shard_batches> lists_;
  std::optional<round_failure> failure_;
};

} // namespace mneme
