#include "strategies/shared/adam.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <cmath>
namespace mneme {

adam::adam(at::Tensor weights)
    : weights_(std::move(weights)), first_(at::zeros_like(weights_)), second_(at::zeros_like(weights_)) {}

void adam::step(const at::Tensor& gradient, const adam_rates& with) {
  ++steps_;
  const auto count = static_cast<double>(steps_);
  first_ = first_ * with.beta1 + gradient * (1.0 - with.beta1);
  second_ = second_ * with.beta2 + gradient * gradient * (1.0 - with.beta2);
  const double scale = std::sqrt(1.0 - std::pow(with.beta2, count));
  const auto divisor = second_.sqrt() / scale + with.epsilon;
  weights_ = weights_ - first_ / divisor * (with.rate / (1.0 - std::pow(with.beta1, count)));
}

void adam::save(const std::string& name, std::int64_t k, named_tensors& to) const {
  to[name] = weights_[k];
  to[name + ".first"] = first_[k];
  to[name + ".second"] = second_[k];
  to[name + ".steps"] = at::scalar_tensor(steps_, at::kLong);
}

adam adam::loaded(const std::string& name, std::span<const program_call> calls) {
  const auto stacked = [&](const std::string& tensor) {
    std::vector<at::Tensor> rows;
    for (const auto& call : calls)
      rows.push_back(call.state.at(tensor));
    return at::stack(rows);
  };
  adam state;
  state.weights_ = stacked(name);
  state.first_ = stacked(name + ".first");
  state.second_ = stacked(name + ".second");
  state.steps_ = calls.front().state.at(name + ".steps").item<std::int64_t>();
  return state;
}

} // namespace mneme
