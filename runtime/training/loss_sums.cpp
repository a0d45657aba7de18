#include "runtime/training/loss_sums.hpp"
#include <ATen/ops/zeros.h>
#include <algorithm>
namespace mneme {

loss_sums::loss_sums(const loss& objective, std::size_t clients, const c10::Device& device)
    : objective_(objective), device_(device), last_epoch_(clients) {}

void loss_sums::add(model_run run, const loss_output& step) {
  const auto add_term = [&](const char* name, const at::Tensor& values) {
    auto& sums = sums_of(name);
    std::fill_n(sums.is_part.begin() + run.first, run.count, true);
    if (!values.is_cpu()) {
      sums.values.narrow(0, run.first, run.count).add_(values);
      return;
    }
    auto* const to = sums.values.mutable_data_ptr<double>() + run.first;
    for (std::int64_t i = 0; i < run.count; ++i)
      to[i] += values.const_data_ptr<double>()[i];
  };
  if (step.terms.empty())
    add_term(objective_.main_term(), step.values);
  for (const auto& [name, values] : step.terms)
    add_term(name, values);
  if (!step.values.is_cpu()) {
    if (!losses_.defined())
      losses_ = at::zeros({std::ssize(last_epoch_)}, step.values.options());
    losses_.narrow(0, run.first, run.count).add_(step.values);
    return;
  }
  const auto* const values = step.values.const_data_ptr<double>();
  for (std::int64_t i = 0; i < run.count; ++i)
    last_epoch_[static_cast<std::size_t>(run.first + i)] += values[i];
}

void loss_sums::add(std::int64_t k, const loss_term& penalty) {
  auto& sums = sums_of(penalty.name);
  sums.is_part[static_cast<std::size_t>(k)] = true;
  if (!penalty.value.is_cpu()) {
    sums.values.select(0, k).add_(penalty.value);
    losses_.select(0, k).add_(penalty.value);
    return;
  }
  const auto value = *penalty.value.const_data_ptr<double>();
  sums.values.mutable_data_ptr<double>()[k] += value;
  last_epoch_[static_cast<std::size_t>(k)] += value;
}

/// Returns the sums of a term; a new term starts with zeros.
loss_sums::term_sums& loss_sums::sums_of(const char* name) {
  const auto known =
      std::find_if(terms_.begin(), terms_.end(), [&](const term_sums& term) { return term.name == name; });
  if (known != terms_.end())
    return *known;
  const auto options = at::TensorOptions(at::kDouble).device(device_);
  return terms_.emplace_back(term_sums{.name = name,
                                       .values = at::zeros({std::ssize(last_epoch_)}, options),
                                       .is_part = std::vector<bool>(last_epoch_.size())});
}

void loss_sums::copy_to_host() {
  for (auto& term : terms_)
    term.values = term.values.cpu();
  const auto values = losses_.cpu();
  std::copy_n(values.const_data_ptr<double>(), last_epoch_.size(), last_epoch_.begin());
}

std::shared_ptr<const std::map<std::string, double>> loss_sums::term_means(std::size_t k, std::int64_t steps) const {
  if (terms_.empty() || (terms_.size() == 1 && terms_[0].name == objective_.main_term()))
    return nullptr;
  std::map<std::string, double> means;
  for (const auto& term : terms_)
    if (term.is_part[k])
      means[term.name] = term.values.const_data_ptr<double>()[k] / static_cast<double>(steps);
  return std::make_shared<const std::map<std::string, double>>(std::move(means));
}

} // namespace mneme
