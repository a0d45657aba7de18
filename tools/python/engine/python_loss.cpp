#include "tools/python/engine/python_loss.hpp"
#include "runtime/base/autograd_on.hpp"
#include "tools/python/engine/torch_tensors.hpp"
#include "tools/python/engine/user_errors.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Returns the tensors of `auxiliary`. n is the number of weights of a part. A tensor of one axis that is longer than n
/// is cut to its n entries from `offset` on.
tensor_map cut_to_part(const tensor_map* auxiliary, std::int64_t offset, std::int64_t n) {
  tensor_map cut;
  if (auxiliary)
    for (const auto& [name, value] : *auxiliary)
      cut.put(name, value.dim() == 1 && value.numel() >= offset + n ? value.narrow(0, offset, n) : value);
  return cut;
}

} // namespace

bool python_function::reads(std::string_view argument) const {
  return std::find(arguments.begin(), arguments.end(), argument) != arguments.end();
}

python_loss::python_loss(python_function function, const std::string& identity)
    : python_loss_function{std::move(function)},
      differentiable_loss({.identity = fmt::format("python {} {}", function_.name, identity),
                           .terms = {function_.name.c_str()},
                           .reads_features = function_.reads("features")},
                          [this](const loss_rows& in) { return row_values(in); }) {}

python_loss::~python_loss() {
  const gil_scope held;
  function_.call.reset();
}

std::vector<at::Tensor> python_loss::row_values(const loss_rows& in) const {
  if (function_.is_penalty())
    return {at::Tensor{}};
  const auto rows = under_gil(function_.name.c_str(), [&] {
    nb::dict given;
    for (const auto& name : function_.arguments)
      given[name.c_str()] = name == "logits"           ? torch_wrapped(in.logits)
                            : name == "features"       ? torch_wrapped(in.features)
                            : name == "labels"         ? torch_object(in.labels)
                            : name == "row_weight"     ? torch_object(in.weight)
                            : name == "teacher_logits" ? torch_object(in.teachers.at(0).logits)
                                                       : nb::object(torch_dict(in.auxiliary));
    const nb::object value = function_.arguments.empty()
                                 ? function_.call(torch_wrapped(in.logits), torch_object(in.labels))
                                 : function_.call(**given);
    return graph_of(value, function_.name);
  });
  if (rows.dim() != 1 || rows.numel() != in.count() || !rows.requires_grad())
    throw std::invalid_argument(fmt::format("the loss '{}' returned a tensor of {} numbers; expected one loss for each "
                                            "of the {} rows, computed from the logits or features",
                                            function_.name, rows.numel(), in.count()));
  return {rows};
}

/// The penalty for a part of the weights, [] with its graph.
at::Tensor python_loss::penalty_of(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                   const tensor_map* auxiliary) const {
  const auto value = under_gil(function_.name.c_str(), [&] {
    nb::dict given;
    for (const auto& name : function_.arguments) {
      if (name == "side") {
        const auto side = cut_to_part(auxiliary, offset, weights.numel());
        given["side"] = torch_dict(&side);
      } else {
        given[name.c_str()] = name == "weights" ? torch_wrapped(weights) : torch_object(start);
      }
    }
    const nb::object returned = function_.call(**given);
    return graph_of(returned, function_.name);
  });
  if (value.numel() != 1)
    throw std::invalid_argument(fmt::format("the penalty '{}' returned a tensor of {} numbers; expected one number, "
                                            "computed from the weights, as (weights - start).square().sum()",
                                            function_.name, value.numel()));
  return value.reshape({});
}

void python_loss::add_penalty(double factor, const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                              const tensor_map* auxiliary, at::Tensor& gradients) const {
  const autograd_on differentiable;
  const auto leaf = weights.detach().clone().requires_grad_(true);
  const auto value = penalty_of(leaf, start, offset, auxiliary);
  if (!value.requires_grad())
    throw std::invalid_argument(fmt::format("the penalty '{}' does not depend on the weights", function_.name));
  value.backward();
  if (leaf.grad().defined())
    gradients.add_(leaf.grad(), factor);
}

std::vector<loss_term> python_loss::penalties(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                              const tensor_map* auxiliary) const {
  if (!function_.is_penalty())
    return {};
  return {{function_.name.c_str(), penalty_of(weights, start, offset, auxiliary).detach().to(at::kDouble)}};
}

} // namespace mneme
