/// tokens_norm_layer: layer normalization of every token.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Normalizes by mean and variance of a token's channels (Ba et al. 2016, "Layer Normalization"), then scales and
/// shifts each channel.
class tokens_norm_layer final : public kernel_layer {
public:
  struct shape {
    std::int64_t tokens = 1, channels = 0;
    std::int64_t weight_offset = 0, bias_offset = 0;
    double epsilon = 1e-6; ///< The value of vision transformers; PyTorch's default is 1e-5.
    bool frozen = false;   ///< true: parameters get no gradients.
  };
  explicit tokens_norm_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.tokens * shape_.channels; }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override;
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  shape shape_;
};

} // namespace mneme
