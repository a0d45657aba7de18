/// client_rows: the training rows that a client's round shows, by the method's choice of rows_shown.
#pragma once
#include "runtime/data/partition.hpp"
#include "runtime/method/method_needs.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

/// Const and shared by all shards. A client that is not enrolled in a task holds none of its rows:
/// the shares of absent clients are unused.
class client_rows {
public:
  client_rows(std::shared_ptr<const task_stream> tasks, std::shared_ptr<const partition> split,
              std::shared_ptr<const population> people, rows_shown shown);

  /// Number of rows that the client's context shows in the task.
  [[nodiscard]] std::int64_t size(client_id client, task_id during) const;
  /// Those rows: task after task, ascending within each.
  [[nodiscard]] sample_view view(client_id client, task_id during) const;
  /// The rows that `who` itself holds of one task, whatever the method shows.
  [[nodiscard]] std::vector<std::int64_t> held(client_id client, task_id task) const;
  [[nodiscard]] rows_shown shown() const noexcept { return shown_; }
  /// True if client 0 alone sees rows.
  [[nodiscard]] bool central() const noexcept {
    return shown_ == rows_shown::centralised || shown_ == rows_shown::offline;
  }

private:
  [[nodiscard]] bool holds(client_id client, task_id task) const;
  [[nodiscard]] std::uint32_t last_shown(task_id during) const; // whose rows a central view ends with
  [[nodiscard]] std::int64_t all_clients(task_id task) const;

  std::shared_ptr<const task_stream> tasks_;
  std::shared_ptr<const partition> split_;
  std::shared_ptr<const population> population_;
  rows_shown shown_;
  std::vector<std::int64_t> central_sizes_; ///< centralised: rows of all enrolled clients, per task
};

} // namespace mneme
