/// row_sets: rows that jobs of Python methods read, and checks of the rows that Python code selects.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/population/client_rows.hpp"
#include "tools/python/engine/torch_tensors.hpp"
#include <optional>
namespace mneme {

// Axes: n rows of a set.

/// A client or server that selects rows. All calls require the GIL.
class row_owner {
public:
  /// Makes the owner of the server's rows; the server can only select rows of a given set.
  row_owner() = default;
  /// Makes the owner of a client's rows in a round. @param known nullptr: the client may only select the `shown` rows
  /// @param tasks number of tasks of the run
  /// @param task task of the broadcast, which may be hidden from clients
  row_owner(client_id client, const std::shared_ptr<const client_rows>& known, std::int64_t tasks, task_id task,
            sample_view shown);

  [[nodiscard]] bool is_client() const noexcept { return client_.has_value(); }
  /// Returns "client 3" or "the server".
  [[nodiscard]] std::string name() const;
  /// True if both are the same party of the same run.
  [[nodiscard]] bool is_same(const row_owner& other) const noexcept;
  /// True if the client holds this row or held it in an earlier task.
  [[nodiscard]] bool has_held(std::int64_t row) const;
  [[nodiscard]] std::int64_t rows_held() const { return static_cast<std::int64_t>(held().size()); }
  [[nodiscard]] std::int64_t row_visibility() const noexcept { return shown_.size(); }
  /// Throws std::invalid_argument after the end of the run, because a client's rows are then no longer valid.
  void expect_alive() const;

private:
  [[nodiscard]] const std::vector<std::int64_t>& held() const;
  [[nodiscard]] std::int64_t newest_task(const client_rows& known) const;

  std::optional<client_id> client_{};
  std::weak_ptr<const client_rows> known_{};
  bool is_of_run_ = false; // true: `known_` was set
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
  [[nodiscard]] at::Tensor numbers() const; ///< [n] int64; a row keeps its number for the whole run
  [[nodiscard]] at::Tensor labels() const;  ///< [n] int64
  /// [n, C, H, W] float32: the rows as the net receives them, normalized and without augmentation. C = H = 1 for
  /// numbers and tokens.
  [[nodiscard]] at::Tensor inputs() const;
  /// Returns the rows with these numbers [m], in this order. Clients may select rows that they hold or held in earlier
  /// tasks, others only rows of this set. Throws std::invalid_argument for other numbers and non-integers.
  [[nodiscard]] row_set pick(nb::handle numbers) const;
  /// Returns the rows at these positions [m], from -n to n - 1, or those for which a bool mask [n] is true. Throws
  /// std::invalid_argument for other positions.
  [[nodiscard]] row_set at(nb::handle positions) const;
};

} // namespace mneme
