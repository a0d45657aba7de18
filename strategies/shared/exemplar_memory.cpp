#include "strategies/shared/exemplar_memory.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <map>
namespace mneme {

row_list to_row_list(const at::Tensor* numbers) {
  if (!numbers)
    return {};
  const auto* const first = numbers->const_data_ptr<std::int64_t>();
  return {first, first + numbers->numel()};
}

sample_view view_of(const sample_view& like, row_list rows) {
  return {.source = like.source, .rows = std::make_shared<const row_list>(std::move(rows))};
}

std::set<std::int64_t> labels_in(const dataset& source, const row_list& rows) {
  std::set<std::int64_t> labels;
  for (const auto row : rows)
    labels.insert(source.label(row));
  return labels;
}

row_list first_of_classes(const dataset& source, const row_list& rows, std::int64_t each) {
  std::map<std::int64_t, std::int64_t> kept;
  row_list first;
  for (const auto row : rows)
    if (++kept[source.label(row)] <= each)
      first.push_back(row);
  return first;
}

row_list choose_of_classes(const dataset& source, const row_list& rows, const at::Tensor& features, std::int64_t each,
                           exemplar_choice how) {
  std::map<std::int64_t, row_list> places; // row positions per class
  for (std::size_t i = 0; i < rows.size(); ++i)
    places[source.label(rows[i])].push_back(static_cast<std::int64_t>(i));
  const auto host = features.cpu();
  row_list chosen;
  for (const auto& [label, own] : places)
    for (const auto place : choose_exemplars(host.index_select(0, at::tensor(own, at::kLong)), each, how))
      chosen.push_back(rows[static_cast<std::size_t>(own[static_cast<std::size_t>(place)])]);
  return chosen;
}

row_list update_exemplars(const dataset& source, const row_list& exemplars, const row_list& fresh,
                          const at::Tensor& features, const memory_rules& rules) {
  auto classes = labels_in(source, exemplars);
  const auto newly_chosen = labels_in(source, fresh);
  classes.insert(newly_chosen.begin(), newly_chosen.end());
  const auto each = exemplars_per_class(rules.rows_max, std::ssize(classes));
  auto kept = first_of_classes(source, exemplars, each);
  std::erase_if(kept, [&](std::int64_t row) { return newly_chosen.contains(source.label(row)); });
  const auto more = choose_of_classes(source, fresh, features, each, rules.choice);
  kept.insert(kept.end(), more.begin(), more.end());
  return kept;
}

} // namespace mneme
