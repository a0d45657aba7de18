/// row_sets: rows that jobs of a method in Python read, and the rows that its code may name.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/population/client_rows.hpp"
#include "tools/python/engine/torch_tensors.hpp"
#include <optional>
namespace mneme {

// Axes: n rows of a set.

/// The client or server for which rows are named. All calls hold the GIL.
class row_owner {
public:
  /// The server: it names the rows of a set, no others.
  row_owner() = default;
  /// A client in a round.
  /// @param known nullptr: the client may name the `shown` rows alone @param tasks of the run
  /// @param task as in the broadcast, which hides it from clients that may not know the task
  row_owner(client_id client, const std::shared_ptr<const client_rows>& known, std::int64_t tasks, task_id task,
            sample_view shown);

  [[nodiscard]] bool is_client() const noexcept { return client_.has_value(); }
  /// "client 3" or "the server"
  [[nodiscard]] std::string name() const;
  /// True if both are one party of one run.
  [[nodiscard]] bool is_same(const row_owner& other) const noexcept;
  /// True if the client holds the row now or held it in an earlier task.
  [[nodiscard]] bool has_held(std::int64_t row) const;
  [[nodiscard]] std::int64_t rows_held() const { return static_cast<std::int64_t>(held().size()); }
  [[nodiscard]] std::int64_t rows_shown() const noexcept { return shown_.size(); }
  /// Throws std::invalid_argument once the run is over: a client's rows do not outlive it.
  void expect_alive() const;

private:
  [[nodiscard]] const std::vector<std::int64_t>& held() const;
  [[nodiscard]] std::int64_t newest_task(const client_rows& known) const;

  std::optional<client_id> client_{};
  std::weak_ptr<const client_rows> known_{};
  bool is_of_run_ = false; // known_ was set
  std::int64_t tasks_ = 0;
  task_id task_{};
  sample_view shown_{};
  mutable std::optional<std::vector<std::int64_t>> held_{}; // ascending; made when it is asked for
};

/// Rows of a data set that jobs may read.
struct row_set {
  sample_view samples{};
  std::shared_ptr<const row_owner> owner{}; ///< nullptr: rows that were made (rows_of)

  [[nodiscard]] std::int64_t size() const noexcept { return samples.size(); }
  [[nodiscard]] at::Tensor numbers() const; ///< [n] int64: the same number is the same row for the whole run
  [[nodiscard]] at::Tensor labels() const;  ///< [n] int64
  /// The rows with these numbers [m], in this order: of a client, rows that it holds or held in earlier tasks; else
  /// rows of this set. Throws std::invalid_argument for another number, and unless they are whole numbers.
  [[nodiscard]] row_set pick(nb::handle numbers) const;
  /// The rows at these positions [m] of the set, -n .. n - 1, or those for which a mask [n] of bools is true.
  /// Throws std::invalid_argument for others.
  [[nodiscard]] row_set at(nb::handle positions) const;
};

} // namespace mneme
