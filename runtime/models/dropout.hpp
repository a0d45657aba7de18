/// dropout_layer: in training, sets random values to zero and scales up the others.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Dropout (Srivastava et al. 2014), as in PyTorch: each value is dropped with probability `rate`, the others are
/// divided by 1 - rate. A value's mask is keyed by the model's random stream of the step and the layer's number. It
/// depends neither on the other models of a group nor on padded rows.
class dropout_layer final : public kernel_layer {
public:
  /// @param number unique among the dropout layers of a net @param rate in [0, 1)
  dropout_layer(std::int64_t width, std::uint64_t number, double rate);
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override { return width_; }
  [[nodiscard]] bool joins_functions() const override { return true; }
  [[nodiscard]] bool is_pass_through(const layer_pass& pass) const override { return !pass.training; }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  void draw(const training_mode& training, at::Tensor& masks) const;

  std::int64_t width_;
  std::uint64_t number_;
  double rate_;
};

} // namespace mneme
