#include "strategies/shared/adam.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <cmath>
namespace mneme {

adam::adam(at::Tensor weights)
    : weights_(std::move(weights)), first_(at::zeros_like(weights_)), second_(at::zeros_like(weights_)) {}

at::Tensor adam::by_row(double (*value)(double, double), double beta) const {
  std::vector<double> values;
  for (const auto steps : steps_)
    values.push_back(value(beta, static_cast<double>(steps)));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(weights_.dim()), 1);
  if (values.size() > 1)
    sizes.front() = std::ssize(values);
  return at::tensor(values, at::kDouble).to(weights_.options()).view(sizes);
}

void adam::step(const at::Tensor& gradient, const adam_rates& rates) {
  for (auto& steps : steps_)
    ++steps;
  const auto slope = rates.decay > 0.0 ? gradient + weights_ * rates.decay : gradient;
  first_ = first_ * rates.beta1 + slope * (1.0 - rates.beta1);
  second_ = second_ * rates.beta2 + slope * slope * (1.0 - rates.beta2);
  const auto corrected_by = [](double beta, double steps) { return 1.0 - std::pow(beta, steps); };
  const auto scale =
      by_row([](double beta, double steps) { return std::sqrt(1.0 - std::pow(beta, steps)); }, rates.beta2);
  const auto corrected = by_row(corrected_by, rates.beta1);
  const auto divisor = second_.sqrt() / scale + rates.epsilon;
  weights_ = weights_ - first_ / divisor * (rates.rate / corrected);
}

std::vector<std::string> moment_names(const std::string& name) {
  return {name + ".first", name + ".second", name + ".steps"};
}

void adam::save(const std::string& name, std::int64_t k, named_tensors& to) const {
  to[name] = weights_[k];
  to[name + ".first"] = first_[k];
  to[name + ".second"] = second_[k];
  to[name + ".steps"] = at::scalar_tensor(steps_[steps_.size() > 1 ? static_cast<std::size_t>(k) : 0], at::kLong);
}

adam adam::loaded(const std::string& name, std::span<const program_call> calls, tensor_map program_call::*from) {
  const auto stacked = [&](const std::string& tensor) {
    std::vector<at::Tensor> rows;
    for (const auto& call : calls)
      rows.push_back((call.*from).at(tensor));
    return at::stack(rows);
  };
  adam state;
  state.weights_ = stacked(name);
  state.first_ = stacked(name + ".first");
  state.second_ = stacked(name + ".second");
  state.steps_.clear();
  for (const auto& call : calls)
    state.steps_.push_back((call.*from).at(name + ".steps").item<std::int64_t>());
  return state;
}

void adam::put_initial_moments(const std::string& name, const at::Tensor& like, tensor_map& to) {
  to.put(name + ".first", at::zeros_like(like));
  to.put(name + ".second", at::zeros_like(like));
  to.put(name + ".steps", at::scalar_tensor(0, at::kLong));
}

} // namespace mneme
