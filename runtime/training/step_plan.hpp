/// step_plan: the number of steps in a client's epoch and the padded rows of each step.
#pragma once
#include "runtime/base/ceil_div.hpp"
#include <algorithm>
#include <bit>
#include <cstdint>
namespace mneme {

/// A plan depends only on the client's own rows and the batch size, so a client's arithmetic does not depend on the
/// other clients of its group.
struct step_plan {
  std::int64_t rows = 0;       ///< Rows of the client.
  std::int64_t batch_rows = 0; ///< 0: full batch, one step.
  bool padded = true;          ///< false for nets that couple the rows of a step, which must not be padded.
  bool drop_last = false;      ///< true: a last step of fewer than batch_rows rows is omitted.

  [[nodiscard]] std::int64_t steps() const noexcept {
    if (rows == 0)
      return 0;
    if (batch_rows == 0)
      return 1;
    return drop_last ? rows / batch_rows : ceil_div(rows, batch_rows);
  }
  /// Rows of step s without padding. @pre s < steps()
  [[nodiscard]] std::int64_t rows_of(std::int64_t s) const noexcept {
    return batch_rows == 0 ? rows : std::min(batch_rows, rows - s * batch_rows);
  }
  /// Rows of step s with padding: the next power of two, at most a batch. Without padding, rows_of(s). @pre s < steps()
  [[nodiscard]] std::int64_t padded_rows_of(std::int64_t s) const noexcept {
    if (!padded)
      return rows_of(s);
    const auto whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows_of(s))));
    return batch_rows == 0 ? whole : std::min(whole, batch_rows);
  }
};

} // namespace mneme
