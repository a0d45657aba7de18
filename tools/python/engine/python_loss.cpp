#include "tools/python/engine/python_loss.hpp"
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/rng.hpp"
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

/// `count` rows from `first` on: the tensors that a Python function may read.
loss_rows part_of(const loss_rows& in, std::int64_t first, std::int64_t count) {
  const auto part = [&](const at::Tensor& whole) { return whole.defined() ? whole.narrow(0, first, count) : whole; };
  loss_rows rows{.logits = part(in.logits),
                 .features = part(in.features),
                 .labels = part(in.labels),
                 .weight = part(in.weight),
                 .auxiliary = in.auxiliary};
  for (const auto& teacher : in.teachers)
    rows.teachers.push_back({.logits = part(teacher.logits)});
  return rows;
}

} // namespace

bool python_function::reads(std::string_view argument) const {
  return std::find(arguments.begin(), arguments.end(), argument) != arguments.end();
}

python_loss::python_loss(python_function function, const std::string& identity)
    : function_(std::move(function)), by_model_({.identity = fmt::format("python {} {}", function_.name, identity),
                                                 .terms = {function_.name.c_str()},
                                                 .reads_features = function_.reads_features()},
                                                [this](const loss_rows& in) { return row_values(in); }) {}

python_loss::~python_loss() {
  const gil_scope held;
  function_.call.reset();
  function_.batched.reset();
}

// -- one model at a time ----------------------------------------------------------------------------------------------

/// The values of the rows; for a loss of two views, the value of the step.
std::vector<at::Tensor> python_loss::row_values(const loss_rows& in) const {
  if (function_.is_penalty())
    return {at::Tensor{}};
  if (!function_.reads_views())
    return {values_of(in, {})};
  const auto count = in.count() / 2;
  auto first = part_of(in, 0, count);
  const auto second = part_of(in, count, count);
  first.weight = first.weight + second.weight;
  return {weighted_sum(values_of(first, second), first.weight)};
}

/// Calls a function of the user. The first calls are made twice, and their values must have equal bits. Several calls
/// are checked, since a first step may hide random numbers: then logits can be zero, and weights those of the start.
at::Tensor python_loss::checked(const std::function<at::Tensor()>& call) const {
  auto value = call();
  if (unchecked_calls_.load() > 0) {
    if (!equal_bits(value.detach(), call().detach()))
      throw std::invalid_argument(fmt::format("the loss '{}' returned different values for equal arguments; expected a "
                                              "pure function, which gets random numbers by side=, from ctx.random()",
                                              function_.name));
    --unchecked_calls_;
  }
  return value;
}

at::Tensor python_loss::values_of(const loss_rows& in, const loss_rows& second_view) const {
  const auto rows = checked([&] { return called_with(in, second_view); });
  if (rows.dim() != 1 || rows.numel() != in.count() || !rows.requires_grad())
    throw std::invalid_argument(fmt::format("the loss '{}' returned a tensor of {} numbers; expected one loss for each "
                                            "of the {} rows, computed from the logits or features",
                                            function_.name, rows.numel(), in.count()));
  return rows;
}

at::Tensor python_loss::called_with(const loss_rows& in, const loss_rows& second_view) const {
  return under_gil(function_.name.c_str(), [&] {
    nb::dict given;
    for (const auto& name : function_.arguments)
      given[name.c_str()] = name == "logits"           ? torch_wrapped(in.logits)
                            : name == "features"       ? torch_wrapped(in.features)
                            : name == "view_logits"    ? torch_wrapped(second_view.logits)
                            : name == "view_features"  ? torch_wrapped(second_view.features)
                            : name == "labels"         ? torch_object(in.labels)
                            : name == "row_weight"     ? torch_object(in.weight)
                            : name == "teacher_logits" ? torch_object(in.teachers.at(0).logits)
                                                       : nb::object(torch_dict(in.auxiliary));
    const nb::object value = function_.arguments.empty()
                                 ? function_.call(torch_wrapped(in.logits), torch_object(in.labels))
                                 : function_.call(**given);
    return graph_of(value, function_.name);
  });
}

// -- all models of a step in one call ---------------------------------------------------------------------------------

loss_output python_loss::operator()(const loss_input& in) const {
  return is_batched(in) ? batched_step(in, /*is_trial=*/false) : by_model_(in);
}

python_loss::step_shape python_loss::shape_of(const loss_input& in) const {
  const bool reads_teacher = function_.reads("teacher_logits") && !in.teachers.empty();
  return {in.labels.size(0),
          in.labels.size(1),
          in.replayed,
          in.logits.defined() ? in.logits.size(2) : 0,
          function_.reads_features() ? in.features.size(2) : 0,
          reads_teacher ? in.teachers[0].logits.size(2) : 0};
}

bool python_loss::is_batched(const loss_input& in) const {
  constexpr std::int64_t models_min = 4; // fewer calls take less time than one call of vmap
  if (in.is_padded || in.labels.size(0) < models_min || !in.labels.is_cpu() || !in.logits.defined() ||
      function_.batched.is_none())
    return false;
  const auto shape = shape_of(in);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = batches_.find(shape); known != batches_.end())
      return known->second;
  }
  const bool same = has_bits_of_models(shape); // without the lock: a second thread computes the same value
  const std::scoped_lock lock(mutex_);
  return batches_[shape] = same;
}

/// Compares both ways for a step of this shape. The inputs are random, since those of a run may hide a difference: at
/// the first step of a head of zeros all logits are equal.
bool python_loss::has_bits_of_models(const step_shape& shape) const {
  const auto [models, rows, replayed, classes, features, teacher_classes] = shape;
  rng_stream draw(key_for({.seed = 1}, purpose::shuffle));
  const auto normal = [&, models = models, rows = rows](std::int64_t width) {
    auto made = at::empty({models, rows, width}, at::kFloat);
    for (std::int64_t i = 0; i < made.numel(); ++i)
      made.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
    return made;
  };
  auto labels = at::empty({models, rows}, at::kLong), weight = at::empty({models, rows}, at::kFloat);
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    labels.mutable_data_ptr<std::int64_t>()[i] =
        static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(classes)));
    weight.mutable_data_ptr<float>()[i] = static_cast<float>(draw.uniform(0.5, 1.5) / static_cast<double>(rows));
  }
  const auto logits = normal(classes),
             seen = features > 0 ? normal(features) : at::empty({models, rows, 0}, at::kFloat);
  loss_input in{.logits = logits, .features = seen, .labels = labels, .row_weight = weight, .auxiliaries = {}};
  if (teacher_classes > 0)
    in.teachers.push_back({.logits = normal(teacher_classes)});
  in.replayed = replayed;
  in.is_padded = false;
  try {
    const auto together = batched_step(in, /*is_trial=*/true);
    const auto alone = by_model_(in);
    return equal_bits(together.values, alone.values) && equal_bits(together.d_logits, alone.d_logits) &&
           equal_bits(together.d_features, alone.d_features);
  } catch (const std::exception&) { // vmap rejects the function, as for control flow that depends on values
    return false;
  }
}

/// The values of all rows, [K, R] with their graph. @param is_trial true: exceptions of Python are not errors of the
/// run
at::Tensor python_loss::batched_rows(const loss_input& in, bool is_trial) const {
  const auto count = function_.reads_views() ? in.replayed : in.labels.size(1);
  const auto first = [&](const at::Tensor& whole) { return whole.narrow(1, 0, count); };
  const auto second = [&](const at::Tensor& whole) { return whole.narrow(1, count, count); };
  const std::vector<std::string> by_position{"logits", "labels"};
  const gil_scope held;
  try {
    nb::list given;
    for (const auto& name : function_.arguments.empty() ? by_position : function_.arguments)
      given.append(name == "logits"          ? torch_wrapped(first(in.logits))
                   : name == "features"      ? torch_wrapped(first(in.features))
                   : name == "view_logits"   ? torch_wrapped(second(in.logits))
                   : name == "view_features" ? torch_wrapped(second(in.features))
                   : name == "labels"        ? torch_object(first(in.labels))
                   : name == "row_weight"    ? torch_object(weight_of(in))
                                             : torch_object(first(in.teachers.at(0).logits)));
    auto rows = graph_of(function_.batched(*given), function_.name);
    if (rows.dim() == 2 && rows.size(1) == count && rows.requires_grad())
      return rows;
  } catch (nb::python_error& thrown) {
    if (!is_trial)
      throw user_error(thrown, function_.name.c_str());
  }
  throw std::invalid_argument(fmt::format("the loss '{}' does not return one value for each row", function_.name));
}

/// [K, R]: the weight of each row, summed over its views if the function reads both.
at::Tensor python_loss::weight_of(const loss_input& in) const {
  if (!function_.reads_views())
    return in.row_weight;
  return in.row_weight.narrow(1, 0, in.replayed) + in.row_weight.narrow(1, in.replayed, in.replayed);
}

loss_output python_loss::batched_step(const loss_input& in, bool is_trial) const {
  const autograd_on gradients;
  const auto leaf = [](const at::Tensor& whole) {
    return whole.detach().clone(at::MemoryFormat::Contiguous).requires_grad_(true);
  };
  const auto logits = leaf(in.logits), features = function_.reads_features() ? leaf(in.features) : in.features;
  loss_input leaves{.logits = logits,
                    .features = features,
                    .labels = in.labels,
                    .row_weight = in.row_weight,
                    .auxiliaries = {},
                    .teachers = in.teachers,
                    .replayed = in.replayed};
  const auto values = (batched_rows(leaves, is_trial) * weight_of(in)).sum(1, /*keepdim=*/false, at::kDouble);
  values.sum().backward();
  const auto gradient = [](const at::Tensor& of) {
    return of.grad().defined() ? of.grad() : at::zeros_like(of.detach());
  };
  return {.values = values.detach(),
          .d_logits = gradient(logits),
          .d_features = function_.reads_features() ? gradient(features) : at::Tensor{}};
}

// -- penalties --------------------------------------------------------------------------------------------------------

/// The penalty for a part of the weights, [] with its graph.
at::Tensor python_loss::penalty_of(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                   const tensor_map* auxiliary) const {
  const auto value = checked([&] { return called_with(weights, start, offset, auxiliary); });
  if (value.numel() != 1)
    throw std::invalid_argument(fmt::format("the penalty '{}' returned a tensor of {} numbers; expected one number, "
                                            "computed from the weights, as (weights - start).square().sum()",
                                            function_.name, value.numel()));
  return value.reshape({});
}

at::Tensor python_loss::called_with(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                    const tensor_map* auxiliary) const {
  return under_gil(function_.name.c_str(), [&] {
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
