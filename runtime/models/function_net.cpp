#include "runtime/models/function_net.hpp"
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/graph_gradients.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/stack.h>
namespace mneme {
namespace {

constexpr std::int64_t rows_of_call = 16; // number of rows per call without gradients; the last call is padded with
                                          // zeros

/// The part of a parameter in `weights` [P] that a pass over `classes` reads.
at::Tensor read_part(const parameter& entry, const at::Tensor& weights, class_range classes) {
  const auto value = as_in_files(weights, entry);
  return entry.head && !entry.whole ? value.narrow(0, classes.low, classes.size()) : value;
}

/// Returns a copy that begins at a cache line, because the bits of products may depend on alignment. The multiplication
/// by 1.0 also aligns gradients of any order, which may be slices of the gradients of all models.
at::Tensor aligned_copy(const at::Tensor& values) { return values.contiguous() * 1.0; }

at::Tensor joined_rows(std::vector<at::Tensor> parts) {
  return parts.size() == 1 ? std::move(parts[0]) : at::cat(parts);
}

at::Tensor stacked_models(const std::vector<at::Tensor>& parts) {
  return parts.empty() ? at::Tensor{} : at::stack(parts);
}

} // namespace

/// Leaves and results of one model's autograd graph, in the tape's order: values, then results.
struct function_net::followed_pass {
  std::span<const at::Tensor> values{};  // one per parameter of the layout
  std::span<const at::Tensor> results{}; // features, logits, maps
};

std::size_t function_net::add_parameter(parameter entry) {
  entry.offset = size();
  entry.size = c10::multiply_integers(entry.shape);
  layout_.push_back(std::move(entry));
  return layout_.size() - 1;
}

std::int64_t function_net::working_set(std::int64_t rows) const {
  const auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  return (size() + rows * row_floats()) * float_bytes;
}

std::vector<at::Tensor> function_net::values_of(const at::Tensor& weights, class_range classes) const {
  std::vector<at::Tensor> values;
  values.reserve(layout_.size());
  for (const auto& entry : layout_)
    values.push_back(aligned_copy(read_part(entry, weights, classes)));
  return values;
}

rng_key function_net::stream_of(const training_mode* training, std::int64_t k) const {
  return training && uses_random_numbers() ? training->streams[static_cast<std::size_t>(k)] : rng_key{};
}

// -- forward ----------------------------------------------------------------------------------------------------------

/// Computes apply() in calls of rows_of_call rows.
function_net::model_results function_net::in_calls(const model_pass& pass) const {
  std::vector<at::Tensor> features, logits;
  std::vector<std::vector<at::Tensor>> maps(pass.maps.size());
  for (std::int64_t first = 0; first < pass.images.size(0); first += rows_of_call) {
    const auto rows = std::min(rows_of_call, pass.images.size(0) - first);
    auto shown = pass.images.narrow(0, first, rows);
    shown = rows < rows_of_call ? at::constant_pad_nd(shown, {0, 0, 0, 0, 0, 0, 0, rows_of_call - rows})
                                : shown.clone(at::MemoryFormat::Contiguous);
    const auto part = apply({pass.values, shown, pass.classes, nullptr, {}, pass.maps});
    features.push_back(part.features.narrow(0, 0, rows));
    if (part.logits.defined())
      logits.push_back(part.logits.narrow(0, 0, rows));
    for (std::size_t m = 0; m < maps.size(); ++m)
      maps[m].push_back(part.maps[m].narrow(0, 0, rows));
  }
  model_results results{.features = joined_rows(std::move(features))};
  if (!logits.empty())
    results.logits = joined_rows(std::move(logits));
  for (auto& parts : maps)
    results.maps.push_back(joined_rows(std::move(parts)));
  return results;
}

activations function_net::forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes, tape* keep,
                                  const training_mode* training) const {
  MNEME_CHECK(0 <= classes.low && classes.high <= this->classes(), identity(), classes.low, classes.high);
  MNEME_CHECK(weights.size(1) == size(), identity(), weights.sizes());
  const bool follow = keep && keep->for_backward;
  const auto [channels, height, width] = input();
  const auto models = inputs.size(0);
  const auto images = inputs.view({models, inputs.size(1), channels, height, width});
  const auto maps = keep ? std::span<const std::string>(keep->maps) : std::span<const std::string>{};
  std::vector<at::Tensor> features, logits; // [K]
  std::vector<std::vector<at::Tensor>> shown(maps.size());
  if (keep) {
    keep->values.clear();
    keep->training = training != nullptr;
  }
  const autograd_on tracking;
  const at::AutoGradMode followed(follow);
  for (std::int64_t k = 0; k < models; ++k) {
    auto values = values_of(weights.select(0, weights.size(0) == 1 ? 0 : k), classes);
    for (std::size_t i = 0; follow && i < values.size(); ++i)
      values[i].requires_grad_(!layout_[i].frozen &&
                               (!training || !training->trained || training->trained->changes(*this, i)));
    const auto rows = follow ? images.select(0, k).clone(at::MemoryFormat::Contiguous) : images.select(0, k);
    const model_pass pass{values, rows, classes, training, stream_of(training, k), maps};
    auto results = follow ? apply(pass) : in_calls(pass);
    features.push_back(results.features.detach());
    if (results.logits.defined())
      logits.push_back(results.logits.detach());
    for (std::size_t m = 0; m < maps.size(); ++m)
      shown[m].push_back(results.maps[m].detach());
    if (!follow)
      continue;
    auto& kept = keep->values;
    kept.insert(kept.end(), values.begin(), values.end());
    kept.push_back(std::move(results.features));
    kept.push_back(std::move(results.logits));
    kept.insert(kept.end(), results.maps.begin(), results.maps.end());
  }
  activations outputs{.features = stacked_models(features), .logits = stacked_models(logits)};
  for (const auto& of_models : shown)
    outputs.maps.push_back(stacked_models(of_models));
  return outputs;
}

// -- as a differentiable function -------------------------------------------------------------------------------------

function_results function_net::differentiable(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                              const function_mode& mode) const {
  const auto [channels, height, width] = input();
  const auto images = inputs.view({inputs.size(0), inputs.size(1), channels, height, width});
  const auto names = maps();
  std::vector<at::Tensor> features, logits; // [K]
  std::vector<std::vector<at::Tensor>> shown(names.size());
  for (std::int64_t k = 0; k < inputs.size(0); ++k) {
    const auto values = values_of(weights.select(0, weights.size(0) == 1 ? 0 : k), classes);
    const auto rows = aligned_copy(images.select(0, k));
    const auto results = apply({values, rows, classes, mode.training, stream_of(mode.training, k), names});
    features.push_back(aligned_copy(results.features));
    if (results.logits.defined())
      logits.push_back(aligned_copy(results.logits));
    for (std::size_t m = 0; m < names.size(); ++m)
      shown[m].push_back(aligned_copy(results.maps[m]));
  }
  function_results results{.features = stacked_models(features), .logits = stacked_models(logits)};
  for (std::size_t m = 0; m < names.size(); ++m)
    results.maps.push_back({names[m], stacked_models(shown[m])});
  return results;
}

// -- backward ---------------------------------------------------------------------------------------------------------

void function_net::backward(const at::Tensor& /*weights*/, tape& kept, class_range classes, const at::Tensor& d_logits,
                            const at::Tensor& d_features, const parameter_choice& trained,
                            const gradient_sink& out) const {
  const auto models = out.into.size(0);
  MNEME_CHECK(kept.for_backward && !kept.values.empty(), identity());
  MNEME_CHECK(!kept.d_head_logits.defined(), identity());
  const auto own = kept.values.size() / static_cast<std::size_t>(models);
  for (std::int64_t k = 0; k < models; ++k) {
    const auto of_model = std::span<const at::Tensor>(kept.values).subspan(static_cast<std::size_t>(k) * own, own);
    const auto gradient = [&](const at::Tensor& d) {
      return d.defined() ? d.select(0, k).clone(at::MemoryFormat::Contiguous) : at::Tensor{};
    };
    std::vector<at::Tensor> gradients{gradient(d_features), classes.size() > 0 ? gradient(d_logits) : at::Tensor{}};
    for (const auto& d : kept.d_maps)
      gradients.push_back(gradient(d));
    backward_model({of_model.first(layout_.size()), of_model.subspan(layout_.size())}, classes, gradients, trained,
                   out.into.select(0, k), out);
  }
  kept.values.clear();
  kept.d_maps.clear();
}

/// Writes the gradients of one model.
/// @param gradients gradients of the loss with respect to each result, in order; undefined: none
/// @param into [P], the model's row of the sink
void function_net::backward_model(const followed_pass& passed, class_range classes,
                                  const std::vector<at::Tensor>& gradients, const parameter_choice& trained,
                                  const at::Tensor& into, const gradient_sink& out) const {
  std::vector<graph_parameter> parameters;
  for (std::size_t i = 0; i < layout_.size(); ++i)
    if (!layout_[i].frozen && trained.changes(*this, i))
      parameters.push_back({.value = passed.values[i], .place = read_part(layout_[i], into, classes)});
  std::vector<graph_result> results;
  for (std::size_t j = 0; j < gradients.size(); ++j)
    results.push_back({.value = passed.results[j], .gradient = gradients[j]});
  graph_gradients(parameters, results, out);
}

} // namespace mneme
