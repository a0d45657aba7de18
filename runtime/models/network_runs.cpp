// Runs of function layers in a network's forward and backward passes.
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/graph_gradients.hpp"
#include "runtime/models/network.hpp"
#include <ATen/TensorOperators.h>
#include <algorithm>
#include <optional>
namespace mneme {

// Axes: K models, computed together or one by one; B rows, P weights.

namespace {

bool holds(const std::vector<network_place>& values, network_place value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Fills in the run's inputs and outputs.
void list_values(function_run& run, const network_parts& net) {
  for (auto i = run.first; i < run.last; ++i)
    for (const auto value : {net.nodes[i].from, net.nodes[i].other.value_or(net.nodes[i].from)})
      if (value <= run.first && !holds(run.reads, value))
        run.reads.push_back(value);
  for (auto value = run.first + 1; value <= run.last; ++value)
    if (net.last_reader[value] >= run.last || value == net.features || value == net.nodes.size())
      run.shows.push_back(value);
  for (const auto& marked : net.maps)
    if (run.first < marked.value && marked.value <= run.last && !holds(run.shows, marked.value))
      run.maps.push_back(marked.value);
}

/// A leaf of a graph that shares the memory of `values`, which may be overwritten once the graph has been used.
at::Tensor leaf_of(const at::Tensor& values, bool wanted) { return values.variable_data().set_requires_grad(wanted); }

/// Number of models that are computed together. It is one if, on a CPU, the step has a single row. LibTorch handles a
/// stack of one such model as a smaller tensor and splits its sums and vectors differently.
std::int64_t models_together(const layer_pass& pass) {
  return pass.weights.is_cpu() && pass.rows == 1 ? 1 : pass.models;
}

/// Selects the columns of a parameter; for a head, only those of `classes`.
/// @param rows [K, P], or [K, size of the parameter] if `own`
at::Tensor columns_of(const parameter& entry, const at::Tensor& rows, class_range classes, bool own) {
  const auto offset = own ? 0 : entry.offset;
  if (!entry.head || entry.whole)
    return rows.narrow(1, offset, entry.size);
  const auto of_class = entry.size / entry.shape[0];
  return rows.narrow(1, offset + classes.low * of_class, classes.size() * of_class);
}

} // namespace

std::vector<function_run> function_runs(const network_parts& net, bool on_cpu) {
  const auto is_function = [&](std::size_t i) {
    return net.nodes[i].operation && net.nodes[i].operation->is_function(on_cpu);
  };
  const auto joins = [&](std::size_t i) {
    return !net.nodes[i].operation || net.nodes[i].operation->joins_functions();
  };
  std::vector<function_run> runs;
  std::size_t slot = 0;
  for (std::size_t i = 0; i < net.nodes.size(); ++i) {
    if (!is_function(i))
      continue;
    function_run run{.first = i, .last = i + 1, .slot = slot};
    for (auto j = i + 1; j < net.nodes.size() && j != net.features && (is_function(j) || joins(j)); ++j)
      if (is_function(j))
        run.last = j + 1;
    run.first_parameter = net.nodes[run.first].first_parameter;
    run.last_parameter = net.nodes[run.last - 1].last_parameter;
    for (auto entry = run.first_parameter; entry < run.last_parameter; ++entry)
      run.offsets.push_back(net.layout[entry].offset);
    for (auto node = run.first; node < run.last; ++node)
      for (auto entry = net.nodes[node].first_buffer; entry < net.nodes[node].last_buffer; ++entry) {
        run.buffers.push_back(entry);
        run.offsets.push_back(net.layout[entry].offset);
      }
    list_values(run, net);
    slot += run.tensors();
    i = run.last - 1;
    runs.push_back(std::move(run));
  }
  return runs;
}

/// Leaves and results of autograd's graph for one part of the models.
struct network::run_graph {
  std::span<at::Tensor> parameters, inputs, results; // results: outputs of the run, then maps
};

/// Finds a part's tensors in tape::kept, after those that layers keep. @param part index of the part of the models
network::run_graph network::graph_of(const function_run& run, std::int64_t part, tape& with) const {
  const auto& last = runs(with.values[0].is_cpu()).back();
  const auto of_part = last.slot + last.tensors();
  const auto first = net_.nodes.size() + static_cast<std::size_t>(part) * of_part + run.slot;
  if (with.kept.size() < first + run.tensors())
    with.kept.resize(first + run.tensors());
  const auto all = std::span(with.kept).subspan(first, run.tensors());
  const auto parameters = run.last_parameter - run.first_parameter, reads = run.reads.size();
  return {all.first(parameters), all.subspan(parameters, reads), all.subspan(parameters + reads)};
}

// -- forward ----------------------------------------------------------------------------------------------------------

/// Computes the run's outputs and requested maps for a part of the models.
std::vector<at::Tensor> network::run_part(const function_run& run, const function_pass& pass, const node_roles& roles,
                                          std::span<const at::Tensor> inputs, const tape& with) const {
  std::optional<autograd_on> tracking;
  if (with.for_backward)
    tracking.emplace();
  std::vector<at::Tensor> made(run.last - run.first);
  const auto value = [&](network_place place) -> at::Tensor {
    if (place > run.first)
      return made[place - run.first - 1];
    return inputs[static_cast<std::size_t>(std::find(run.reads.begin(), run.reads.end(), place) - run.reads.begin())];
  };
  const auto is_shown = [&](network_place place) { return holds(run.shows, place) || holds(run.maps, place); };
  for (auto i = run.first; i < run.last; ++i) {
    const auto& node = net_.nodes[i];
    made[i - run.first] = function_of(i, pass, roles, value(node.from), node.other ? value(*node.other) : at::Tensor{});
    for (const auto read : {node.from, node.other.value_or(node.from)})
      if (read > run.first && net_.last_reader[read] == i && !is_shown(read))
        made[read - run.first - 1].reset(); // an autograd graph keeps the values that it needs
  }
  std::vector<at::Tensor> shown;
  for (const auto place : run.shows)
    shown.push_back(made[place - run.first - 1]);
  for (const auto place : run.maps)
    shown.push_back(is_wanted_map(place, with) ? made[place - run.first - 1] : at::Tensor{});
  return shown;
}

void network::run_functions(const function_run& run, const layer_pass& pass, const node_roles& roles,
                            tape& with) const {
  const bool follow = with.for_backward;
  const auto together = models_together(pass);
  const auto learns = [&](network_place value) {
    return value > 0 && (roles.empty() ? net_.nodes[value - 1].learns : roles[value - 1].learns);
  };
  const auto is_trained = [&](std::size_t i) {
    return !net_.layout[i].frozen &&
           (!pass.training || !pass.training->trained || pass.training->trained->changes(*this, i));
  };
  const auto own = run.last_parameter - run.first_parameter;
  std::vector<at::Tensor> parameters(run.offsets.size()), inputs(run.reads.size()); // parameters, then buffers
  for (std::int64_t k = 0; k < pass.models; k += together) {
    auto rows = pass.weights.size(0) == 1 ? pass.weights : pass.weights.narrow(0, k, together);
    if (follow)
      rows = rows.expand({together, -1}); // expanded to one gradient per model
    for (std::size_t i = 0; i < run.buffers.size(); ++i) {
      const auto& entry = net_.layout[run.buffers[i]];
      parameters[own + i] = rows.narrow(1, entry.offset, entry.size);
    }
    for (std::size_t i = 0; i < own; ++i) {
      const auto& entry = net_.layout[run.first_parameter + i];
      const auto values = rows.narrow(1, entry.offset, entry.size);
      parameters[i] = follow ? leaf_of(values, is_trained(run.first_parameter + i)) : values;
    }
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      const auto values = with.values[run.reads[j]].narrow(0, k, together);
      inputs[j] = follow ? leaf_of(values, learns(run.reads[j])) : values;
    }
    const auto mode = pass.training ? of_models(*pass.training, k, together) : training_mode{};
    const auto read = pass.inputs->narrow(0, k, together);
    const function_pass of_part{.parameters = parameters,
                                .offsets = run.offsets,
                                .models = together,
                                .rows = pass.rows,
                                .classes = pass.classes,
                                .training = pass.training ? &mode : nullptr,
                                .inputs = &read,
                                .first_order = true};
    auto shown = run_part(run, of_part, roles, inputs, with);
    show(run, k, shown, pass, with);
    if (!follow)
      continue;
    const auto graph = graph_of(run, k / together, with);
    std::copy_n(parameters.begin(), own, graph.parameters.begin());
    std::copy(inputs.begin(), inputs.end(), graph.inputs.begin());
    std::move(shown.begin(), shown.end(), graph.results.begin());
  }
}

/// Copies the outputs of a part of the models into the pass's values. @param k first model of the part
void network::show(const function_run& run, std::int64_t k, std::span<const at::Tensor> shown, const layer_pass& pass,
                   tape& with) const {
  for (std::size_t j = 0; j < shown.size(); ++j) {
    if (!shown[j].defined())
      continue;
    const auto place = j < run.shows.size() ? run.shows[j] : run.maps[j - run.shows.size()];
    auto& value = with.values[place];
    if (k == 0)
      value = acquire_buffer(with, {pass.models, pass.rows, width_of(place, pass.classes)}, shown[j]);
    value.narrow(0, k, shown[j].size(0)).copy_(shown[j].detach());
  }
}

// -- backward ---------------------------------------------------------------------------------------------------------

/// Backpropagates through a run. @param trained null: computes only gradients of the run's inputs, and retains the
/// graph
void network::backward_functions(const function_run& run, const layer_pass& pass, tape& with, const node_roles& roles,
                                 const parameter_choice* trained, const gradient_sink& sink) const {
  const auto together = models_together(pass);
  std::vector<at::Tensor> d_inputs(run.reads.size()); // [K, B, width]
  for (std::int64_t k = 0; k < pass.models; k += together) {
    const auto graph = graph_of(run, k / together, with);
    std::vector<graph_result> results;
    for (std::size_t j = 0; j < graph.results.size(); ++j) {
      const auto place = j < run.shows.size() ? run.shows[j] : run.maps[j - run.shows.size()];
      const auto& d = with.gradients[place];
      if (d.defined() && graph.results[j].defined())
        results.push_back({graph.results[j], d.narrow(0, k, together)});
    }
    std::vector<at::Tensor> leaves;
    std::vector<std::size_t> inputs, parameters;
    for (std::size_t j = 0; j < run.reads.size(); ++j)
      if (graph.inputs[j].requires_grad() && roles[run.reads[j] - 1].learns)
        inputs.push_back(j), leaves.push_back(graph.inputs[j]);
    for (auto i = run.first_parameter; trained && i < run.last_parameter; ++i)
      if (trained->changes(*this, i))
        parameters.push_back(i), leaves.push_back(graph.parameters[i - run.first_parameter]);
    const auto gradients = gradients_by(leaves, results, trained == nullptr);
    const auto into = sink.into.narrow(0, k, together);
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      const auto& entry = net_.layout[parameters[j]];
      const auto& gradient = gradients[inputs.size() + j];
      deliver(gradient.defined() ? columns_of(entry, gradient, pass.classes, true) : gradient,
              columns_of(entry, into, pass.classes, false), sink);
    }
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      auto& d = d_inputs[inputs[j]];
      if (!gradients[j].defined())
        continue;
      if (k == 0)
        d = acquire_buffer(with, with.values[run.reads[inputs[j]]].sizes(), gradients[j]);
      d.narrow(0, k, together).copy_(gradients[j]);
    }
    if (trained)
      for (const auto part : {graph.parameters, graph.inputs, graph.results})
        std::fill(part.begin(), part.end(), at::Tensor{});
  }
  for (std::size_t j = 0; j < d_inputs.size(); ++j) {
    auto& d = with.gradients[run.reads[j]];
    if (!d_inputs[j].defined())
      continue;
    if (d.defined()) // `d` may be the gradient of the loss, which must not change
      d_inputs[j].add_(d), release_buffer(with, std::move(d));
    d = std::move(d_inputs[j]);
  }
}

} // namespace mneme
