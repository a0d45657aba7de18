/// exemplar_memory: rows of past tasks that a client keeps (exemplars), grouped by class, in order of selection.
#pragma once
#include "runtime/method/jobs.hpp"
#include "strategies/shared/exemplar_selection.hpp"
#include <set>
namespace mneme {

/// Row numbers of a data set.
using row_list = std::vector<std::int64_t>;
/// Converts a tensor [n] int64 to a list. Returns an empty list for null.
[[nodiscard]] row_list to_row_list(const at::Tensor* numbers);
/// Returns a view of `rows` of the data set that `like` refers to.
[[nodiscard]] sample_view view_of(const sample_view& like, row_list rows);
/// Returns the labels that occur in `rows`.
[[nodiscard]] std::set<std::int64_t> labels_in(const dataset& source, const row_list& rows);

/// Size and selection rule of an exemplar memory.
struct memory_rules {
  std::int64_t rows_max = 2000; ///< Capacity in rows, shared evenly by all classes of the memory.
  exemplar_choice choice = exemplar_choice::greedy;
};

/// Returns the first `each` rows of every class, in their order.
[[nodiscard]] row_list first_of_classes(const dataset& source, const row_list& rows, std::int64_t each);
/// Selects at most `each` exemplars of every class in `rows`. @param features [n, D] of `rows`
[[nodiscard]] row_list choose_of_classes(const dataset& source, const row_list& rows, const at::Tensor& features,
                                         std::int64_t each, exemplar_choice how);
/// Adds the classes of `fresh` to a memory. Every class of the result has at most floor(rows_max / classes) rows. If a
/// class occurs in `fresh`, its exemplars are selected from `fresh` only. @param features [n, D] of `fresh`
[[nodiscard]] row_list update_exemplars(const dataset& source, const row_list& exemplars, const row_list& fresh,
                                        const at::Tensor& features, const memory_rules& rules);

} // namespace mneme
