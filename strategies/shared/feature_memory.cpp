#include "strategies/shared/feature_memory.hpp"
#include "strategies/shared/exemplar_selection.hpp"
#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <cmath>
#include <map>
namespace mneme {
namespace {

using places = std::vector<std::int64_t>;

std::map<std::int32_t, places> places_by_class(const embedding_rows& rows) {
  std::map<std::int32_t, places> by_class;
  for (std::int64_t i = 0; i < rows.size(); ++i)
    by_class[rows.labels.const_data_ptr<std::int32_t>()[i]].push_back(i);
  return by_class;
}

embedding_rows loaded(const tensor_map& from, const std::string& name) {
  const auto* const features = from.find(name + ".features");
  return features ? embedding_rows{.features = *features, .labels = from.at(name + ".labels")} : embedding_rows{};
}

void stored(tensor_map& to, const std::string& name, const embedding_rows& rows) {
  if (rows.size() == 0)
    return;
  to.put(name + ".features", rows.features);
  to.put(name + ".labels", rows.labels);
}

} // namespace

places exemplars_of(const embedding_rows& rows, const exemplar_rules& rules) {
  places chosen;
  if (rules.ratio <= 0.0)
    return chosen;
  const bool nearest = rules.how == exemplar_rules::choice::nearest;
  for (const auto& [label, own] : places_by_class(rows)) {
    const auto count = static_cast<std::int64_t>(std::ceil(rules.ratio * static_cast<double>(own.size()) - 1e-9));
    const auto features = rows.at(own).features;
    for (const auto place :
         choose_exemplars(features, std::max<std::int64_t>(count, 1),
                          nearest ? exemplar_choice::rank : exemplar_choice::greedy, /*as_they_are=*/nearest))
      chosen.push_back(own[static_cast<std::size_t>(place)]);
  }
  return chosen;
}

embedding_rows limit_rows(const embedding_rows& rows, std::int64_t rows_max) {
  if (rows_max == 0 || rows.size() <= rows_max)
    return rows;
  const auto by_class = places_by_class(rows);
  const auto each = exemplars_per_class(rows_max, std::ssize(by_class));
  places kept;
  for (const auto& [label, own] : by_class)
    kept.insert(kept.end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(std::min(each, std::ssize(own))));
  return kept.empty() ? embedding_rows{} : rows.at(kept);
}

embedding_rows rows_of_both(const embedding_rows& first, const embedding_rows& second) {
  if (first.size() == 0 || second.size() == 0)
    return first.size() > 0 ? first : second;
  return {.features = at::cat({first.features, second.features}), .labels = at::cat({first.labels, second.labels})};
}

sample_view rows_to_train(std::span<const embedding_rows> parts, std::int64_t features) {
  std::vector<embedding_rows> filled;
  for (const auto& part : parts)
    if (part.size() > 0)
      filled.push_back(part);
  return training_set(filled, {.embedding = features, .normal = false}, /*points=*/true);
}

feature_memory feature_memory::saved_in(const tensor_map& from) {
  feature_memory memory;
  const auto* const task = from.find("task");
  if (!task)
    return memory;
  memory.task_ = task->item<std::int64_t>();
  memory.current_ = loaded(from, "current");
  memory.old_ = loaded(from, "old");
  if (const auto* const chosen = from.find("chosen"))
    memory.chosen_.assign(chosen->const_data_ptr<std::int64_t>(),
                          chosen->const_data_ptr<std::int64_t>() + chosen->numel());
  return memory;
}

void feature_memory::begin(std::uint32_t task, embedding_rows rows, const exemplar_rules& rules) {
  if (!chosen_.empty())
    old_ = rows_of_both(old_, current_.at(chosen_));
  old_ = limit_rows(old_, rules.rows_max);
  task_ = task;
  current_ = std::move(rows);
  chosen_ = exemplars_of(current_, rules);
}

void feature_memory::save(tensor_map& to) const {
  to.put("task", at::scalar_tensor(task_, at::kLong));
  stored(to, "current", current_);
  stored(to, "old", old_);
  if (!chosen_.empty())
    to.put("chosen", at::tensor(chosen_, at::kLong));
}

} // namespace mneme
