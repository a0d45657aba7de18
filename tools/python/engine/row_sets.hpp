/// row_sets: rows read by jobs of Python methods, and the rows that Python code may name.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/population/client_rows.hpp"
#include "tools/python/engine/torch_tensors.hpp"
#include <optional>
namespace mneme {

// Axes: n rows of a set.

/// The client or server for which rows are named. All calls require the GIL.
class row_owner {
public:
  /// The server, which can only name rows of a given set.
  row_owner() = default;
  /// A client in a round.
  /// @param known nullptr: the client may only name the `shown` rows @param tasks of the run
  /// @param task as in the broadcast, where it is hidden from clients that must not know it
  row_owner(client_id client, const std::shared_ptr<const client_rows>& known, std::int64_t tasks, task_id task,
            sample_view shown);

  [[nodiscard]] bool is_client() const noexcept { return client_.has_value(); }
  /// "client 3" or "the server"
  [[nodiscard]] std::string name() const;
  /// True if both are the same party of the same run.
  [[nodiscard]] bool is_same(const row_owner& other) const noexcept;
  /// True if the client holds the row or held it in an earlier task.
  [[nodiscard]] bool has_held(std::int64_t row) const;
  [[nodiscard]] std::int64_t rows_held() const { return static_cast<std::int64_t>(held().size()); }
  [[nodiscard]] std::int64_t rows_shown() const noexcept { return shown_.size(); }
  /// Throws std::invalid_argument after the end of the run, when a client's rows are no longer valid.
  void expect_alive() const;

private:
  [[nodiscard]] const std::vector<std::int64_t>& held() const;
  [[nodiscard]] std::int64_t newest_task(const client_rows& known) const;

  std::optional<client_id> client_{};
  std::weak_ptr<const client_rows> known_{};
  bool is_of_run_ = false; // `known_` was set
  std::int64_t tasks_ = 0;
  task_id task_{};
  sample_view shown_{};
  mutable std::optional<std::vector<std::int64_t>> held_{}; // ascending; computed on first use
};

/// Rows of a data set that jobs may read.
struct row_set {
  sample_view samples{};
  std::shared_ptr<const row_owner> owner{}; ///< nullptr: generated rows (rows_of)

  [[nodiscard]] std::int64_t size() const noexcept { return samples.size(); }
  [[nodiscard]] at::Tensor numbers() const; ///< [n] int64; a row has the same number for the whole run
  [[nodiscard]] at::Tensor labels() const;  ///< [n] int64
  /// The rows with these numbers [m], in this order. Clients may name rows that they hold or held in earlier tasks,
  /// others only rows of this set. Throws std::invalid_argument for other numbers and non-integers.
  [[nodiscard]] row_set pick(nb::handle numbers) const;
  /// The rows at these positions [m], -n .. n - 1, or those for which a bool mask [n] is true. Throws
  /// std::invalid_argument for other positions.
  [[nodiscard]] row_set at(nb::handle positions) const;
};

} // namespace mneme
