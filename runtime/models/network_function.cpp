// network::differentiable(): a network as a function of LibTorch's operators.
#include "runtime/base/check.hpp"
#include "runtime/models/network.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/split_with_sizes.h>
#include <algorithm>
namespace mneme {

// Axes: K models, B rows, P weights.

at::Tensor function_of_node(const network_node& node, const function_pass& pass, const at::Tensor& in,
                            const at::Tensor& other) {
  if (node.operation)
    return node.operation->function(pass, in);
  const auto sum = in + other;
  return node.after == activation::relu ? at::relu(sum) : sum;
}

/// Computes node i in the mode of its role.
at::Tensor network::function_of(std::size_t i, const function_pass& pass, const node_roles& roles, const at::Tensor& in,
                                const at::Tensor& other) const {
  auto own = pass;
  if (!roles.empty() && !roles[i].trained)
    own.training = nullptr;
  const auto updated = updated_statistics(net_.nodes[i], own.training);
  own.updated = &updated;
  return function_of_node(net_.nodes[i], own, in, other);
}

function_results network::differentiable(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                         const function_mode& mode) const {
  MNEME_CHECK(0 <= classes.low && classes.high <= net_.classes, net_.identity, classes.low, classes.high);
  MNEME_CHECK(weights.size(1) == size(), net_.identity, weights.sizes());
  MNEME_CHECK(inputs.numel() == inputs.size(0) * inputs.size(1) * net_.shapes[0].floats(), net_.identity,
              inputs.sizes());
  if (inputs.size(0) > 1 && inputs.size(1) == 1)
    return one_by_one(weights, inputs, classes, mode);
  std::vector<std::int64_t> sizes, offsets;
  for (const auto& parameter : net_.layout) {
    sizes.push_back(parameter.size);
    offsets.push_back(parameter.offset);
  }
  // Splits all parameters in one call, because the gradient of each slice would have the size of all weights.
  const auto parameters = sizes.empty() ? std::vector<at::Tensor>{} : at::split_with_sizes(weights, sizes, 1);
  const auto rows = inputs.flatten(2);
  function_results results;
  const function_pass pass{parameters,
                           offsets,
                           inputs.size(0),
                           inputs.size(1),
                           classes,
                           mode.training,
                           mode.statistics ? &results.statistics : nullptr,
                           &rows};
  const auto roles = roles_in(mode.training);

  std::vector<at::Tensor> values(net_.nodes.size() + 1);
  values[0] = rows;
  for (std::size_t i = 0; i < (classes.size() == 0 ? net_.features : net_.nodes.size()); ++i) {
    const auto& node = net_.nodes[i];
    values[i + 1] = function_of(i, pass, roles, values[node.from], node.other ? values[*node.other] : at::Tensor{});
    if (results.statistics.size() > 0 && results.statistics.back().name.empty())
      results.statistics.back().name = node.name;
    for (const auto& marked : net_.maps) // every map precedes the head
      if (marked.value == i + 1) {
        results.maps.push_back({marked.name, map_of(marked, values[i + 1])});
        values[i + 1] = results.maps.back().values.permute({0, 1, 3, 4, 2}).flatten(2); // through these views maps
                                                                                        // receive gradients
      }
  }
  results.features = values[net_.features];
  if (classes.size() > 0)
    results.logits = net_.positions == 1 ? values.back() : values.back().reshape({pass.models, -1, net_.classes});
  return results;
}

/// Computes steps of a single row one model at a time. LibTorch handles a stack of one such model as a smaller tensor
/// and splits its sums and vectors differently.
function_results network::one_by_one(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                     const function_mode& mode) const {
  const auto models = inputs.size(0);
  const auto own_weights = weights.split(1), own_inputs = inputs.split(1);
  std::vector<function_results> parts;
  for (std::size_t k = 0; k < static_cast<std::size_t>(models); ++k) {
    training_mode training;
    auto own = mode;
    if (mode.training) {
      training = of_models(*mode.training, static_cast<std::int64_t>(k), 1);
      own.training = &training;
    }
    parts.push_back(differentiable(own_weights[weights.size(0) == 1 ? 0 : k], own_inputs[k], classes, own));
  }
  const auto joined = [&](const auto& part_of) {
    std::vector<at::Tensor> values;
    for (const auto& part : parts)
      values.push_back(part_of(part));
    return at::cat(values);
  };
  function_results results{.features = joined([](const auto& part) { return part.features; })};
  if (classes.size() > 0)
    results.logits = joined([](const auto& part) { return part.logits; });
  for (std::size_t m = 0; m < net_.maps.size(); ++m)
    results.maps.push_back({net_.maps[m].name, joined([m](const auto& part) { return part.maps[m].values; })});
  for (std::size_t i = 0; i < parts[0].statistics.size(); ++i) {
    auto layer = parts[0].statistics[i];
    layer.mean = joined([i](const auto& part) { return part.statistics[i].mean; });
    layer.variance = joined([i](const auto& part) { return part.statistics[i].variance; });
    if (weights.size(0) > 1) {
      layer.running_mean = joined([i](const auto& part) { return part.statistics[i].running_mean; });
      layer.running_variance = joined([i](const auto& part) { return part.statistics[i].running_variance; });
    }
    results.statistics.push_back(std::move(layer));
  }
  return results;
}

/// Returns the map of a value as [K, B, C, height, width].
at::Tensor network::map_of(const network_map& marked, const at::Tensor& value) const {
  const auto& image = net_.shapes[marked.value];
  return value.unflatten(2, {image.height, image.width, image.channels}).permute({0, 1, 4, 2, 3});
}

const network_map& network::map_named(const std::string& name) const {
  const auto entry =
      std::find_if(net_.maps.begin(), net_.maps.end(), [&](const network_map& marked) { return marked.name == name; });
  MNEME_CHECK(entry != net_.maps.end(), net_.identity, name);
  return *entry;
}

std::vector<std::string> network::maps() const {
  std::vector<std::string> names;
  for (const auto& marked : net_.maps)
    names.push_back(marked.name);
  return names;
}

} // namespace mneme
