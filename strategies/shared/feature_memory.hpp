/// feature_memory: memory of a client with a split net. It holds the features of the client's current rows and of
/// exemplars of past tasks.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "strategies/shared/embedding_rows.hpp"
#include <span>
namespace mneme {

// Axes: D features of the frozen backbone, n rows.

/// Selection of a task's exemplars. Features of a frozen backbone never change, so exemplars are selected once, when
/// the client first participates in the task. A client that never participates in a task keeps no exemplars of it.
struct exemplar_rules {
  enum class choice : std::uint8_t {
    nearest, ///< The rows nearest to their class mean (FedHAF, eq. 6).
    icarl,   ///< iCaRL's herding on features of length 1 (Rebuffi et al. 2017, Algorithm 4).
  };
  choice how = choice::nearest;
  double ratio = 0.2;        ///< Share of the client's rows of a class, rounded up to at least one row; 0 keeps none.
  std::int64_t rows_max = 0; ///< Capacity in rows, shared evenly by all classes. A class keeps the rows that were
                             ///< selected first. 0: unlimited.
};

/// Returns the exemplars' positions in `rows`, class by class, in order of selection.
[[nodiscard]] std::vector<std::int64_t> exemplars_of(const embedding_rows& rows, const exemplar_rules& rules);
/// Truncates `rows`, which are grouped by class, to a memory of `rows_max` rows. With 0, all rows are kept.
[[nodiscard]] embedding_rows limit_rows(const embedding_rows& rows, std::int64_t rows_max);
/// Concatenates two lists of rows. Either may be empty.
[[nodiscard]] embedding_rows rows_of_both(const embedding_rows& first, const embedding_rows& second);
/// Concatenates the parts into a training set for a net that reads rows of `features` numbers.
[[nodiscard]] sample_view rows_to_train(std::span<const embedding_rows> parts, std::int64_t features);

/// Current and old features of one client.
class feature_memory {
public:
  /// Reads a client's memory. An empty map gives an empty memory.
  [[nodiscard]] static feature_memory saved_in(const tensor_map& from);
  /// True if the memory holds the features of this task's rows.
  [[nodiscard]] bool knows(std::uint32_t task) const { return task_ == static_cast<std::int64_t>(task); }
  /// Called in the client's first round of a task. The exemplars of the previous task become old rows, and `rows`
  /// become the current rows.
  void begin(std::uint32_t task, embedding_rows rows, const exemplar_rules& rules);
  /// Writes this memory into a client's memory.
  void save(tensor_map& to) const;

  [[nodiscard]] const embedding_rows& current() const { return current_; }
  /// Exemplars of past tasks.
  [[nodiscard]] const embedding_rows& old() const { return old_; }

private:
  std::int64_t task_ = -1;
  embedding_rows current_{}, old_{};
  std::vector<std::int64_t> chosen_{}; // positions of the exemplars among the current rows
};

} // namespace mneme
