#include "runtime/models/chained_model.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/function.hpp"
#include <algorithm>
namespace mneme {

// Axes: K models, P weights of a model (Pf of the front, Pb of the back), B rows, D features of the front.

chained_model::chained_model(model_ref front, model_ref back) : front_(std::move(front)), back_(std::move(back)) {
  for (auto entry : front_->layout()) {
    entry.frozen = true;
    entry.head = entry.whole = false;
    layout_.push_back(std::move(entry));
  }
  for (auto entry : back_->layout()) {
    entry.offset += front_->size();
    layout_.push_back(std::move(entry));
  }
}

/// The part of `trained` that belongs to the back. A choice covers whole layers, so the names of the layers identify
/// that part.
parameter_choice chained_model::of_back(const parameter_choice& trained) const {
  if (trained.whole())
    return {};
  std::vector<std::string> names;
  const auto first = front_->layout().size();
  for (std::size_t i = first; i < layout_.size(); ++i) {
    const auto name = parameter_choice::layer_of(layout_[i]);
    if (trained.changes(*this, i) && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return parameter_choice::layers_of(*back_, names);
}

activations chained_model::forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes, tape* keep,
                                   const training_mode* training) const {
  tape once; // the front has no backward pass, so its tape is not kept
  once.for_backward = false;
  const auto in_front = weights.narrow(1, 0, front_->size());
  activations outputs{.features = front_->forward(in_front, inputs, {}, &once).features};
  if (classes.size() == 0)
    return outputs;
  training_mode told;
  parameter_choice chosen;
  if (training) {
    told = *training;
    if (training->trained) {
      chosen = of_back(*training->trained);
      told.trained = &chosen;
    }
  }
  const auto downstream = weights.narrow(1, front_->size(), back_->size());
  outputs.logits =
      back_->forward(downstream, outputs.features.contiguous(), classes, keep, training ? &told : nullptr).logits;
  return outputs;
}

void chained_model::backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                             const at::Tensor& /*d_features*/, const parameter_choice& trained,
                             const gradient_sink& out) const {
  auto downstream = out.into.narrow(1, front_->size(), back_->size());
  back_->backward(weights.narrow(1, front_->size(), back_->size()), kept, classes, d_logits, {}, of_back(trained),
                  {.into = downstream, .scale = out.scale, .add = out.add});
}

function_results chained_model::differentiable(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                               const function_mode& mode) const {
  const auto parts = weights.split_with_sizes({front_->size(), back_->size()}, 1);
  function_results results{.features = front_->differentiable(parts[0], inputs, {}, {}).features};
  if (classes.size() == 0)
    return results;
  training_mode told;
  parameter_choice chosen;
  auto how = mode;
  if (mode.training) {
    told = *mode.training;
    if (told.trained) {
      chosen = of_back(*told.trained);
      told.trained = &chosen;
    }
    how.training = &told;
  }
  const auto features = results.features.unflatten(2, {1, 1, -1}); // [K, B, 1, 1, D]
  auto downstream = back_->differentiable(parts[1], features, classes, how);
  results.logits = downstream.logits;
  results.statistics = std::move(downstream.statistics);
  return results;
}

} // namespace mneme
