/// client_rows: training rows that a client's round can read, depending on the method's row_visibility.
#pragma once
#include "runtime/data/partition.hpp"
#include "runtime/method/method_needs.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

/// Immutable and shared by all shards. The run does not use a client's rows of tasks in which the client is not
/// enrolled.
class client_rows {
public:
  client_rows(std::shared_ptr<const task_stream> tasks, std::shared_ptr<const partition> split,
              std::shared_ptr<const population> people, row_visibility visibility);

  /// Number of rows that the client can read in the task.
  [[nodiscard]] std::int64_t size(client_id client, task_id during) const;
  /// The rows that the client can read: task by task, ascending within each task.
  [[nodiscard]] sample_view view(client_id client, task_id during) const;
  /// The client's own rows of one task, whether or not it can read them now.
  [[nodiscard]] std::vector<std::int64_t> held(client_id client, task_id task) const;
  [[nodiscard]] row_visibility visibility() const noexcept { return visibility_; }
  /// True if only client 0 has rows.
  [[nodiscard]] bool central() const noexcept {
    return visibility_ == row_visibility::centralized || visibility_ == row_visibility::offline;
  }

private:
  [[nodiscard]] bool holds(client_id client, task_id task) const;
  [[nodiscard]] std::uint32_t last_shown(task_id during) const; // last task that a central view contains
  [[nodiscard]] std::int64_t all_clients(task_id task) const;

  std::shared_ptr<const task_stream> tasks_;
  std::shared_ptr<const partition> split_;
  std::shared_ptr<const population> population_;
  row_visibility visibility_;
  std::vector<std::int64_t> central_sizes_; ///< centralized runs: for each task, the number of rows of all enrolled
                                            ///< clients
};

} // namespace mneme
