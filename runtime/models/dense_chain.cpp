#include "runtime/models/dense_chain.hpp"
#include "runtime/kernels/elementwise.hpp"
namespace mneme {

dense_chain::dense_chain(const std::vector<dense_layer>& layers, std::int64_t low, std::int64_t high,
                         std::int64_t rows_max)
    : moves_all_(layers.back().out == high - low) {
  for (const auto& layer : layers) {
    layers_.push_back(layer.rows_for(low, high));
    const auto floats = static_cast<std::size_t>(rows_max * layers_.back().out);
    values_.emplace_back(floats);
    gradients_.emplace_back(floats);
  }
}

double dense_chain::run_step(const step& now) {
  const float* in = now.inputs;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    dense_forward(layers_[i], now.weights, in, now.rows, values_[i].data());
    in = values_[i].data();
  }
  double loss = 0.0;
  kernels::cross_entropy_of_rows(loss, {.logits = in,
                                        .labels = now.labels,
                                        .weight = now.row_weight,
                                        .d_logits = gradients_.back().data(),
                                        .rows = now.rows,
                                        .classes = layers_.back().out,
                                        .smoothing = now.label_smoothing});
  for (std::size_t i = layers_.size(); i-- > 0;)
    dense_backward(layers_[i], {.weights = now.weights,
                                .x = i > 0 ? values_[i - 1].data() : now.inputs,
                                .y = values_[i].data(),
                                .d_y = gradients_[i].data(),
                                .d_x = i > 0 ? gradients_[i - 1].data() : nullptr,
                                .rows = now.rows,
                                .before = now.weights,
                                .into = now.moved,
                                .scale = -now.learning_rate});
  return loss;
}

} // namespace mneme
