/// feature_memory: what a client of a split net remembers: features of its current rows, and of exemplars of the tasks
/// before.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "strategies/shared/embedding_rows.hpp"
#include <span>
namespace mneme {

// D features of the frozen backbone, n rows.

/// Which exemplars of a task a client keeps. Features do not change, so they are chosen once, when the client first
/// takes part in the task; a client that never does keeps none of it.
struct exemplar_rules {
  enum class choice : std::uint8_t {
    nearest, ///< Those nearest to the mean of their class (FedHAF, eq. 6).
    icarl,   ///< iCaRL's herding, on features of length 1 (Rebuffi et al. 2017, Algorithm 4).
  };
  choice how = choice::nearest;
  double ratio = 0.2;        ///< This share of the client's rows of a class, at least one row; 0: none.
  std::int64_t rows_max = 0; ///< All classes share so many evenly, the first chosen stay; 0: no limit.
};

/// Places of the exemplars among rows, class by class, the first chosen first.
[[nodiscard]] std::vector<std::int64_t> exemplars_of(const embedding_rows& rows, const exemplar_rules& rules);
/// Those of `rows`, which lie class by class, that a memory of `rows_max` rows has room for; 0: all.
[[nodiscard]] embedding_rows trimmed(const embedding_rows& rows, std::int64_t rows_max);
/// One after the other. Parts may be empty.
[[nodiscard]] embedding_rows rows_of_both(const embedding_rows& first, const embedding_rows& second);
/// Parts for training of a net that reads features of this width.
[[nodiscard]] sample_view rows_to_train(std::span<const embedding_rows> parts, std::int64_t features);

class feature_memory {
public:
  [[nodiscard]] static feature_memory saved_in(const tensor_map& from);
  /// True if it holds the features of this task's rows.
  [[nodiscard]] bool knows(std::uint32_t task) const { return task_ == static_cast<std::int64_t>(task); }
  /// The client takes part in a task for the first time: exemplars of the one before become old.
  void begin(std::uint32_t task, embedding_rows rows, const exemplar_rules& rules);
  /// Adds what it holds to a memory.
  void save(tensor_map& to) const;

  [[nodiscard]] const embedding_rows& current() const { return current_; }
  /// Exemplars of the tasks before.
  [[nodiscard]] const embedding_rows& old() const { return old_; }

private:
  std::int64_t task_ = -1;
  embedding_rows current_{}, old_{};
  std::vector<std::int64_t> chosen_{}; // of the current rows
};

} // namespace mneme
