/// training_rows: the training rows of a run, for methods whose server trains on rows.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/method/server_half.hpp"
namespace mneme {

/// Training rows by task, from the run's task stream, partition and population.
class training_rows final : public central_rows {
public:
  /// @param run must outlive this object
  explicit training_rows(const run_context& run) : run_(run) {}
  [[nodiscard]] sample_view of_task(task_id task) const override;
  [[nodiscard]] sample_view of_enrolled(task_id task) const override;
  [[nodiscard]] sample_view of_public(task_id task) const override;

private:
  [[nodiscard]] sample_view view_of(std::vector<std::int64_t> rows) const;

  const run_context& run_;
};

} // namespace mneme
