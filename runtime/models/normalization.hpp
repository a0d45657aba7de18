/// normalization_layer: batch or group normalization of channels-last images, then the activation.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Batch normalization (Ioffe and Szegedy 2015) computes mean and variance of a channel over all pixels of a step's
/// rows. Group normalization (Wu and He 2018) computes mean and variance of a group of channels over the pixels of one
/// row. In evaluation mode, batch normalization uses the running statistics. As in PyTorch, the running variance is
/// unbiased. A step with a single value per channel, which PyTorch rejects, does not update the running statistics.
class normalization_layer final : public kernel_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t groups = 0; ///< Number of groups; 0: batch normalization
    std::int64_t weight_offset = 0, bias_offset = 0;
    std::int64_t mean_offset = 0, variance_offset = 0; ///< Offsets of running statistics.
    activation after = activation::none;
    double epsilon = 1e-5, momentum = 0.1; ///< momentum: weight of a step in an update of the running statistics.
  };
  explicit normalization_layer(const shape& sizes);
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.in.floats(); }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;
  /// Group normalization runs as a function on devices.
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu && !batch(); }
  // Batch normalization of all models together, on devices (device_twins.cpp).
  void composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const;
  void composite_backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const;
  /// Sets the offsets of the running statistics, which the builder places after all parameters.
  void place_statistics(std::int64_t mean_offset, std::int64_t variance_offset);

private:
  [[nodiscard]] bool batch() const { return shape_.groups == 0; }
  /// True if the layer normalizes with the statistics of the step's rows.
  [[nodiscard]] bool own_statistics(const layer_pass& pass) const { return !batch() || pass.training; }
  [[nodiscard]] std::int64_t parts(const layer_pass& pass) const { return batch() ? 1 : pass.rows; }
  void measure(const float* x, std::int64_t rows, float* mean, float* scale, double* variance) const;
  void take_running(const float* weights, float* mean, float* scale) const;
  void move_running(const layer_pass& pass, std::int64_t k, const float* mean, const double* variance,
                    std::int64_t rows) const;

  [[nodiscard]] at::Tensor by_channel(const layer_pass& pass, const at::Tensor& images) const;
  [[nodiscard]] at::Tensor parameters(const layer_pass& pass, std::int64_t offset) const;

  shape shape_;
};

} // namespace mneme
