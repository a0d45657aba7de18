#include "runtime/models/intermediate_model.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/function.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
namespace mneme {

// Axes: K models, B rows, C channels of the map.

intermediate_model::intermediate_model(model_ref net, std::string map, std::array<std::int64_t, 3> shape)
    : net_(std::move(net)), map_(std::move(map)) {
  tape once; // the size of the map is found by a pass with one row of zeros
  once.for_backward = false;
  once.maps = {map_};
  const auto outputs = net_->forward(at::zeros({1, net_->size()}, at::kFloat),
                                     at::zeros({1, 1, shape[0], shape[1], shape[2]}, at::kFloat), {}, &once);
  channels_ = outputs.maps.at(0).size(2);
  height_ = outputs.maps.at(0).size(3);
  width_ = outputs.maps.at(0).size(4);
}

activations intermediate_model::forward(const at::Tensor& weights, const at::Tensor& inputs, class_range, tape* keep,
                                        const training_mode* training) const {
  tape once;
  once.for_backward = false;
  auto& with = keep ? *keep : once;
  with.maps = {map_};
  const auto outputs = net_->forward(weights, inputs, {}, &with, training);
  return {.features = outputs.maps.at(0).mean({3, 4})}; // [K, B, C]
}

void intermediate_model::backward(const at::Tensor& weights, tape& kept, class_range, const at::Tensor&,
                                  const at::Tensor& d_features, const parameter_choice& trained,
                                  const gradient_sink& out) const {
  const auto of_pixel = d_features / static_cast<double>(height_ * width_); // [K, B, C]
  kept.d_maps = {
      of_pixel.unsqueeze(3).unsqueeze(4).expand({of_pixel.size(0), of_pixel.size(1), channels_, height_, width_})};
  net_->backward(weights, kept, {}, {}, {}, trained, out);
}

function_results intermediate_model::differentiable(const at::Tensor& weights, const at::Tensor& inputs, class_range,
                                                    const function_mode& mode) const {
  auto results = net_->differentiable(weights, inputs, {}, mode);
  const auto map = std::find_if(results.maps.begin(), results.maps.end(),
                                [&](const named_map& shown) { return shown.name == map_; });
  MNEME_CHECK(map != results.maps.end(), identity());
  function_results of_layer;
  of_layer.features = map->values.mean({3, 4});
  of_layer.statistics = std::move(results.statistics);
  return of_layer;
}

} // namespace mneme
