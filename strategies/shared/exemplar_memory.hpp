/// exemplar_memory: the rows of tasks that are over which a client remembers, class by class, the first chosen first.
#pragma once
#include "runtime/method/jobs.hpp"
#include "strategies/shared/exemplar_selection.hpp"
#include <set>
namespace mneme {

/// Row numbers of a data set.
using row_list = std::vector<std::int64_t>;
/// What a tensor [n] int64 lists; null: nothing.
[[nodiscard]] row_list listed(const at::Tensor* numbers);
/// These rows of the data set that `like` shows rows of.
[[nodiscard]] sample_view view_of(const sample_view& like, row_list rows);
[[nodiscard]] std::set<std::int64_t> labels_in(const dataset& source, const row_list& rows);

/// How a memory is filled.
struct memory_rules {
  std::int64_t rows_max = 2000; ///< All its classes share so many evenly.
  exemplar_choice choice = exemplar_choice::greedy;
};

/// The first `each` of every class, in their order.
[[nodiscard]] row_list first_of_classes(const dataset& source, const row_list& rows, std::int64_t each);
/// Exemplars of each class of `rows`, at most `each`. @param features [n, D] of them
[[nodiscard]] row_list chosen_of_classes(const dataset& source, const row_list& rows, const at::Tensor& features,
                                         std::int64_t each, exemplar_choice how);
/// `exemplars` with those of `fresh`, whose classes are chosen anew: floor(rows_max / classes) of each.
[[nodiscard]] row_list memorised(const dataset& source, const row_list& exemplars, const row_list& fresh,
                                 const at::Tensor& features, const memory_rules& rules);

} // namespace mneme
