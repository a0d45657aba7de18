/// exemplar_selection: selects the rows of a class that a client keeps after a task.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <vector>
namespace mneme {

/// Selection rule of exemplars.
enum class exemplar_choice : std::uint8_t {
  greedy, ///< Herding (iCaRL; Rebuffi et al. 2017, Algorithm 4): keeps the mean of the selection near the class mean.
  rank,   ///< The rows nearest to the class mean.
  duplicates, ///< Herding in which a row may be selected twice, as in the official GLFC and LGA programs.
  repeats, ///< Herding as in the official iCaRL program: a row that wins again changes the sum, but adds no exemplar.
  first,   ///< The first rows in list order.
};

/// Returns the positions of the selected rows in order of selection. The first k positions do not depend on `count`.
/// `duplicates` returns exactly `count` positions; the other rules return at most n. `repeats` stops after 1,000
/// selections and may return fewer. Unless `as_they_are` is set, features are normalized to length 1, but their mean is
/// not.
/// @param features [n, D] of one class
/// @pre n > 0
[[nodiscard]] std::vector<std::int64_t> choose_exemplars(const at::Tensor& features, std::int64_t count,
                                                         exemplar_choice how, bool as_they_are = false);

/// Rows per class of a memory of `memory` rows that `classes` classes share evenly, rounded down.
[[nodiscard]] constexpr std::int64_t exemplars_per_class(std::int64_t memory, std::int64_t classes) noexcept {
  return classes > 0 ? memory / classes : 0;
}

} // namespace mneme
