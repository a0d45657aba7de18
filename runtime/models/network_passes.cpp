#include "runtime/base/check.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/models/network.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>
#include <algorithm>
#include <map>
namespace mneme {
namespace {

/// Copies the tensor if it is shared, so that writing to it changes no other gradient.
void make_own(at::Tensor& tensor) {
  if (tensor.use_count() > 1)
    tensor = tensor.clone();
}

void run_sum(const network_node& entry, const at::Tensor& first, at::Tensor& out, const at::Tensor& second) {
  const bool relu = entry.after == activation::relu;
  if (out.is_cpu()) {
    kernels::add(out.mutable_data_ptr<float>(), first.const_data_ptr<float>(), second.const_data_ptr<float>(),
                 out.numel(), relu);
    return;
  }
  at::add_out(out, first, second);
  if (relu)
    at::relu_(out);
}

} // namespace

at::Tensor acquire_buffer(tape& from, at::IntArrayRef sizes, const at::Tensor& like) {
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(sizes)) * sizeof(float);
  const auto bytes_of = [](const at::Tensor& tensor) { return tensor.storage().nbytes(); };
  auto best = from.spare.end(), largest = from.spare.end();
  for (auto tensor = from.spare.begin(); tensor != from.spare.end(); ++tensor) {
    if (bytes_of(*tensor) >= bytes && (best == from.spare.end() || bytes_of(*tensor) < bytes_of(*best)))
      best = tensor;
    if (largest == from.spare.end() || bytes_of(*tensor) > bytes_of(*largest))
      largest = tensor;
  }
  if (best == from.spare.end()) {
    if (largest != from.spare.end())
      from.spare.erase(largest);
    return at::empty(sizes, like.options());
  }
  auto taken = std::move(*best);
  from.spare.erase(best);
  return taken.resize_(sizes);
}

void release_buffer(tape& to, at::Tensor tensor) {
  const auto buffers_max = 2 * to.values.size(); // every value and its gradient
  if (tensor.defined() && tensor.use_count() == 1 && tensor.storage().use_count() == 1 && to.spare.size() < buffers_max)
    to.spare.push_back(std::move(tensor));
}

// -- forward ----------------------------------------------------------------------------------------------------------

activations network::forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes, tape* keep,
                             const training_mode* training) const {
  return forward_from(0, weights, inputs, classes, keep, training);
}

/// Computes the nodes after value `first`, which is given as `inputs`.
activations network::forward_from(network_place first, const at::Tensor& weights, const at::Tensor& inputs,
                                  class_range classes, tape* keep, const training_mode* training) const {
  MNEME_CHECK(0 <= classes.low && classes.high <= net_.classes, net_.identity, classes.low, classes.high);
  MNEME_CHECK(weights.size(1) == size() && weights.stride(1) == 1, net_.identity, weights.sizes(), weights.strides());
  const auto floats = net_.shapes[first].floats();
  MNEME_CHECK(inputs.is_contiguous() && inputs.numel() == inputs.size(0) * inputs.size(1) * floats, net_.identity,
              inputs.sizes());
  tape once;
  once.for_backward = false;
  auto& with = keep ? *keep : once;
  const auto flat_rows = inputs.view({inputs.size(0), inputs.size(1), floats});
  const layer_pass pass{weights, inputs.size(0), inputs.size(1), classes, training, &with.memory, &flat_rows};
  const layer_pass still{weights, pass.models, pass.rows, classes, nullptr, &with.memory, &flat_rows};
  const auto roles = roles_in(training);
  with.training = training != nullptr;
  with.values.resize(net_.nodes.size() + 1);
  with.kept.resize(net_.nodes.size()); // drops graphs of an earlier forward pass that had no backward pass
  for (auto& tensor : with.values)     // drops the values of such a pass
    release_buffer(with, std::exchange(tensor, {}));
  with.values[0] = with.values[first] = flat_rows;
  const bool features_only = classes.size() == 0;
  activations outputs;
  if (net_.features == first)
    outputs.features = flat_rows;
  const auto end = features_only ? net_.features : net_.nodes.size();
  const auto& all = runs(inputs.is_cpu());
  auto run = std::find_if(all.begin(), all.end(), [&](const function_run& each) { return each.first >= first; });
  for (auto i = first; i < end;) {
    const auto before = i;
    if (run != all.end() && run->first == i) {
      run_functions(*run, pass, roles, with);
      i = run->last;
      ++run;
    } else {
      run_node(i, roles.empty() || roles[i].trained ? pass : still, with);
      ++i;
    }
    if (i == net_.features)
      outputs.features = with.values[i];
    if (i == net_.nodes.size() && !features_only)
      outputs.logits = net_.positions == 1
                           ? with.values[i]
                           : with.values[i].view({pass.models, pass.rows * net_.positions, net_.classes});
    for (std::size_t m = 0; m < with.maps.size(); ++m)
      if (const auto& marked = map_named(with.maps[m]); before < marked.value && marked.value <= i) {
        outputs.maps.resize(with.maps.size());
        outputs.maps[m] = map_of(marked, with.values[marked.value]);
      }
    for (auto done = before; !with.for_backward && done < i; ++done)
      forget(with, done);
  }
  return outputs;
}

bool network::is_wanted_map(network_place value, const tape& with) const {
  return std::any_of(with.maps.begin(), with.maps.end(),
                     [&](const std::string& name) { return map_named(name).value == value; });
}

void network::run_node(std::size_t i, const layer_pass& pass, tape& with) const {
  const auto& node = net_.nodes[i];
  const auto& in = with.values[node.from];
  auto& out = with.values[i + 1];
  const auto* const operation = static_cast<const kernel_layer*>(node.operation.get());
  if (operation && operation->is_pass_through(pass)) {
    out = in;
    return;
  }
  const std::int64_t sizes[] = {pass.models, pass.rows, width_of(i + 1, pass.classes)};
  out = acquire_buffer(with, sizes, in);
  if (operation)
    operation->forward(pass, in, out, with.kept[i]);
  else
    run_sum(node, in, out, with.values[*node.other]);
}

/// Frees the values whose last reader is node `done`.
void network::forget(tape& with, std::size_t done) const {
  for (network_place value = 0; value <= done; ++value)
    if (net_.last_reader[value] == done)
      release_buffer(with, std::exchange(with.values[value], {}));
  if (done + 1 == net_.nodes.size())
    with.values.back().reset();
}

/// Roles of the nodes in a forward pass; empty if all nodes have the same mode.
network::node_roles network::roles_in(const training_mode* training) const {
  if (!training)
    return {};
  const parameter_choice everything;
  const auto& trained = training->trained ? *training->trained : everything;
  return trained.whole() && !net_.has_held ? node_roles{} : roles_for(trained);
}

bool network::trains_parameters_of(const network_node& node, const parameter_choice& trained) const {
  for (auto i = node.first_parameter; i < node.last_parameter; ++i)
    if (trained.changes(*this, i))
      return true;
  return false;
}

/// [running statistics of the node] True for those that a pass updates: their layer has a trained parameter, or all
/// statistics are updated.
std::vector<bool> network::updated_statistics(const network_node& node, const training_mode* training) const {
  std::vector<bool> updated(node.last_buffer - node.first_buffer, false);
  if (!training)
    return updated;
  const parameter_choice everything;
  const auto& trained = training->trained ? *training->trained : everything;
  const auto layer_of = [&](std::size_t entry) { return parameter_choice::layer_of(net_.layout[entry]); };
  for (std::size_t i = 0; i < updated.size(); ++i) {
    const auto buffer = node.first_buffer + i;
    updated[i] = trained.whole() || trained.updates_running_stats();
    for (auto entry = node.first_parameter; entry < node.last_parameter && !updated[i]; ++entry)
      updated[i] = trained.changes(*this, entry) && layer_of(entry) == layer_of(buffer);
    updated[i] = updated[i] && !net_.layout[buffer].held;
  }
  return updated;
}

network::node_roles network::roles_for(const parameter_choice& trained) const {
  node_roles roles;
  roles.reserve(net_.nodes.size());
  for (const auto& node : net_.nodes) {
    if (trained.whole() && !net_.has_held) {
      roles.push_back({.learns = node.learns});
      continue;
    }
    const auto before = [&](network_place value) { return value > 0 ? roles[value - 1] : node_role{.trained = false}; };
    const bool own = trains_parameters_of(node, trained);
    const bool bare = node.first_parameter == node.last_parameter;
    // As in PyTorch, parameters that model.frozen freezes do not change the mode of their layer.
    const bool in_training =
        trained.whole() || trained.updates_running_stats() || (bare ? before(node.from).trained : own);
    roles.push_back({.learns = own || before(node.from).learns || (node.other && before(*node.other).learns),
                     .trained = in_training && !node.statistics_held,
                     .fixed = !own});
  }
  return roles;
}

std::shared_ptr<const model> network::with_frozen(const std::vector<bool>& chosen) const {
  auto parts = net_;
  hold_parameters(parts.layout, chosen);
  std::map<std::string, bool> statistics_held; // keyed by the name of the layer
  for (const auto& entry : parts.layout) {
    parts.has_held = parts.has_held || entry.held;
    if (entry.buffer)
      statistics_held[parameter_choice::layer_of(entry)] = entry.held;
  }
  parts.couples_batch_rows = std::any_of(parts.layout.begin(), parts.layout.end(),
                                         [](const parameter& entry) { return entry.buffer && !entry.held; });
  for (auto& node : parts.nodes)
    if (const auto layer = statistics_held.find(node.name); layer != statistics_held.end())
      node.statistics_held = layer->second;
  return std::make_shared<const network>(std::move(parts));
}

bool network::depends_on_row_count(class_range classes) const noexcept {
  const auto end =
      net_.nodes.begin() + static_cast<std::ptrdiff_t>(classes.size() == 0 ? net_.features : net_.nodes.size());
  return std::any_of(net_.nodes.begin(), end,
                     [](const network_node& n) { return n.operation && n.operation->depends_on_row_count(); });
}

bool network::trains_after_features(const parameter_choice& trained) const {
  if (net_.features == 0 || trained.whole())
    return false;
  const auto roles = roles_for(trained);
  for (std::size_t i = 0; i < net_.nodes.size(); ++i) {
    const auto& node = net_.nodes[i];
    const bool before = i < net_.features;
    if (before && (roles[i].learns || roles[i].trained))
      return false;
    if (!before && (node.from < net_.features || (node.other && *node.other < net_.features)))
      return false;
  }
  return true;
}

std::int64_t network::width_of(network_place value, class_range classes) const {
  const bool of_head = net_.classes > 0 && net_.positions == 1 && value == net_.nodes.size();
  return of_head ? classes.size() : net_.shapes[value].floats();
}

std::int64_t network::working_set(std::int64_t rows) const {
  const auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  std::int64_t row_bytes = net_.shapes[0].floats() * float_bytes;
  for (std::size_t i = 0; i < net_.nodes.size(); ++i) // every output and its gradient
    row_bytes += 2 * net_.shapes[i + 1].floats() * float_bytes +
                 (net_.nodes[i].operation ? net_.nodes[i].operation->kept_bytes_per_row() : 0);
  return size() * float_bytes + rows * row_bytes;
}

// -- backward ---------------------------------------------------------------------------------------------------------

void network::backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_outputs,
                       const at::Tensor& d_features, const parameter_choice& trained, const gradient_sink& out) const {
  MNEME_CHECK(kept.for_backward && kept.values.size() == net_.nodes.size() + 1, net_.identity, kept.values.size());
  const training_mode as_forward;
  const auto inputs = kept.values[0];
  const layer_pass pass{weights,      inputs.size(0), inputs.size(1), classes, kept.training ? &as_forward : nullptr,
                        &kept.memory, &inputs};
  const layer_pass still{weights, pass.models, pass.rows, classes, nullptr, &kept.memory, &inputs};
  const auto roles = roles_for(trained);
  const auto by_row = [&](const at::Tensor& d) {
    return net_.positions == 1 || !d.defined() ? d : d.reshape({pass.models, pass.rows, -1});
  };
  kept.gradients.resize(kept.values.size());
  const auto d_logits = by_row(d_outputs), d_head = by_row(std::exchange(kept.d_head_logits, {}));
  auto passing = d_head.defined() ? gradient_by_features(d_logits, pass, still, kept, roles, out) : at::Tensor{};
  if (classes.size() > 0)
    kept.gradients.back() = !d_head.defined() ? d_logits : d_logits.defined() ? d_logits + d_head : d_head;
  add_map_gradients(kept);
  for (auto end = net_.nodes.size(); end > 0;) {
    auto& d = kept.gradients[end];
    if (end == net_.features && d_head.defined())
      d = std::exchange(passing, {});
    if (end == net_.features && d_features.defined()) {
      if (d.defined())
        make_own(d), d.add_(d_features);
      else
        d = d_features;
    }
    end = backward_from(end, pass, still, kept, roles, &trained, out);
  }
  for (auto& tensor : kept.gradients)
    tensor.reset();
  for (auto& tensor : kept.values) // the first value belongs to the caller, which reuses it in the next step
    release_buffer(kept, std::exchange(tensor, {}));
}

/// Backpropagates through the node, or the run of functions, that computes value `end`.
/// @param trained null: gradients of parameters are not computed, and another backward pass follows
/// @return the last value before that node or run
network_place network::backward_from(network_place end, const layer_pass& pass, const layer_pass& still, tape& with,
                                     const node_roles& roles, const parameter_choice* trained,
                                     const gradient_sink& sink) const {
  auto first = end - 1;
  const auto& all = runs(with.values[0].is_cpu());
  const auto run = std::find_if(all.begin(), all.end(), [&](const function_run& each) { return each.last == end; });
  if (run != all.end()) {
    first = run->first;
    backward_functions(*run, pass, with, roles, trained, sink);
  } else if (roles[first].learns && with.gradients[end].defined()) {
    net_.nodes[first].operation ? backward_node(first, roles[first].trained ? pass : still, with, roles, sink)
                                : backward_sum(first, with, roles);
  }
  for (auto value = end; value > first; --value) {
    release_buffer(with, std::exchange(with.gradients[value], {}));
    if (trained)
      release_buffer(with, std::exchange(with.values[value], {})); // all readers of the value are done
  }
  return first;
}

/// Backpropagates d_logits to the features. Returns an undefined tensor if the features need no gradient. Computes no
/// gradients of the head's parameters.
at::Tensor network::gradient_by_features(const at::Tensor& d_logits, const layer_pass& pass, const layer_pass& still,
                                         tape& with, const node_roles& roles, const gradient_sink& sink) const {
  if (!d_logits.defined() || net_.features == 0 || !roles[net_.features - 1].learns)
    return {};
  auto passed = roles;
  for (auto& role : passed)
    role.fixed = true;
  with.gradients.back() = d_logits;
  for (auto end = net_.nodes.size(); end > net_.features;)
    end = backward_from(end, pass, still, with, passed, nullptr, sink);
  return std::exchange(with.gradients[net_.features], {});
}

/// Adds the gradients with respect to the maps to the gradients of the mapped values.
void network::add_map_gradients(tape& with) const {
  for (std::size_t m = 0; m < with.d_maps.size(); ++m) {
    const auto& d_map = with.d_maps[m]; // [K, B, C, height, width]
    if (!d_map.defined())
      continue;
    auto& slot = with.gradients[map_named(with.maps.at(m)).value];
    auto flat = d_map.permute({0, 1, 3, 4, 2}).clone(at::MemoryFormat::Contiguous).flatten(2);
    slot = slot.defined() ? slot + flat : flat;
  }
  with.d_maps.clear();
}

void network::backward_node(std::size_t i, const layer_pass& pass, tape& with, const node_roles& roles,
                            const gradient_sink& sink) const {
  const auto& node = net_.nodes[i];
  const auto& operation = static_cast<const kernel_layer&>(*node.operation);
  auto &d_out = with.gradients[i + 1], &d_in = with.gradients[node.from];
  const bool passes_on = node.from > 0 && roles[node.from - 1].learns;
  if (operation.is_pass_through(pass)) {
    if (d_in.defined())
      make_own(d_in), d_in.add_(d_out);
    else if (passes_on)
      d_in = d_out;
    return;
  }
  if (operation.owns_gradient())
    make_own(d_out);
  const auto& in = with.values[node.from];
  const bool add = passes_on && d_in.defined();
  at::Tensor fresh;
  if (add && operation.adds())
    make_own(d_in);
  else if (passes_on)
    fresh = acquire_buffer(with, in.sizes(), in);
  operation.backward(pass,
                     {.in = in,
                      .out = with.values[i + 1],
                      .kept = with.kept[i],
                      .d_out = d_out,
                      .d_in = !passes_on        ? nullptr
                              : fresh.defined() ? &fresh
                                                : &d_in,
                      .add = add && !fresh.defined(),
                      .fixed = roles[i].fixed},
                     sink);
  if (!fresh.defined())
    return;
  if (!add) {
    d_in = std::move(fresh);
    return;
  }
  make_own(d_in);
  d_in.add_(fresh);
  release_buffer(with, std::move(fresh));
}

/// Gives both terms of a sum the sum's gradient. They share its memory until one of them is modified.
void network::backward_sum(std::size_t i, tape& with, const node_roles& roles) const {
  const auto& node = net_.nodes[i];
  auto& d_out = with.gradients[i + 1];
  if (node.after == activation::relu) {
    make_own(d_out);
    if (d_out.is_cpu())
      kernels::relu_backward(d_out.mutable_data_ptr<float>(), with.values[i + 1].const_data_ptr<float>(),
                             d_out.numel());
    else
      d_out.masked_fill_(with.values[i + 1] <= 0, 0);
  }
  for (const auto term : {node.from, *node.other}) {
    auto& slot = with.gradients[term];
    if (term == 0 || !roles[term - 1].learns)
      continue;
    if (!slot.defined())
      slot = d_out;
    else
      make_own(slot), slot.add_(d_out);
  }
}

} // namespace mneme
