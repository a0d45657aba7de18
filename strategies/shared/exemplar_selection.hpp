/// exemplar_selection: which rows of a class a client keeps, and how many, when a task is over.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <vector>
namespace mneme {

enum class exemplar_choice : std::uint8_t {
  greedy,     ///< iCaRL's herding (Rebuffi et al. 2017, Algorithm 4): the mean of the chosen stays near the class mean.
  rank,       ///< The rows nearest to the class mean.
  duplicates, ///< Greedy, and a row may be chosen again, as in the released programs of GLFC and LGA.
  repeats,    ///< Greedy as in iCaRL's own program: a row may win again, which moves the sum and adds no exemplar.
  first,      ///< The first rows, as listed: no selection.
};

/// Places of the chosen rows in the order in which they are chosen: the first k do not depend on `count`. With
/// duplicates `count` of them, else at most the class has; with repeats fewer where 1,000 wins have not come to as
/// many. Features are normalised to length 1 unless `as_they_are`, their mean is not. @param features [n, D] of one
/// class @pre n > 0
[[nodiscard]] std::vector<std::int64_t> chosen_exemplars(const at::Tensor& features, std::int64_t count,
                                                         exemplar_choice how, bool as_they_are = false);

/// Rows kept of each class where `memory` rows are shared among `classes`.
[[nodiscard]] constexpr std::int64_t exemplars_per_class(std::int64_t memory, std::int64_t classes) noexcept {
  return classes > 0 ? memory / classes : 0;
}

} // namespace mneme
