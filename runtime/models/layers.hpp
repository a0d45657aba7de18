/// Layers over K models at once: forward and hand-written backward passes on flat weights.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

// Axes: K models, B rows of a step, P weights of a model; rows of activations are flat: [K, B, width].

/// Which models, rows and classes a pass is about.
struct layer_pass {
  const at::Tensor& weights; ///< [K, P], or [1, P] shared by all K
  std::int64_t models = 0;   ///< K
  std::int64_t rows = 0;     ///< B
  class_range classes{};     ///< Read by the head.
};

/// One step of a network. Const, shared by threads. CPU tensors go through our own kernels, model by
/// model; tensors on other devices through ATen, by the composite_ functions, which also define what
/// the kernels compute.
class layer {
public:
  virtual ~layer() = default;
  /// Floats of one row that leave the layer, given the classes of the pass.
  [[nodiscard]] virtual std::int64_t width(class_range classes) const = 0;
  /// Bytes besides its output that one row needs until the backward pass.
  [[nodiscard]] virtual std::int64_t kept_bytes_per_row() const { return 0; }

  /// in [K, B, width before] -> out [K, B, width]. `kept` is the layer's own until backward.
  virtual void forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const = 0;

  struct backward_data {
    const at::Tensor &in, &out, &kept; ///< Of the forward pass.
    at::Tensor& d_out;                 ///< [K, B, width]; may be overwritten, unless the layer has no activation
    at::Tensor* d_in = nullptr;        ///< [K, B, width before], written; null: not wanted
  };
  virtual void backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const = 0;
};

/// Whether a ReLU follows inside the layer.
enum class activation : std::uint8_t { none, relu };

/// y = x W^T + b, then the activation. A head has a row per class and computes those of the pass only.
class linear_layer final : public layer {
public:
  struct shape {
    std::int64_t in = 0, out = 0;
    std::int64_t weight_offset = 0, bias_offset = 0;
    activation after = activation::none;
    bool head = false;
  };
  explicit linear_layer(const shape& what) : shape_(what) {}
  [[nodiscard]] std::int64_t width(class_range classes) const override {
    return shape_.head ? classes.size() : shape_.out;
  }
  void forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const override;
  void composite_forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out) const;
  void composite_backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const;

private:
  [[nodiscard]] class_range rows_of(class_range classes) const {
    return shape_.head ? classes : class_range{0, shape_.out};
  }
  shape shape_;
};

/// Convolution of stride 1 with zero padding and bias, then the activation.
class conv_layer final : public layer {
public:
  struct shape {
    std::int64_t channels = 0, height = 0, width = 0; ///< Of its input.
    std::int64_t filters = 0, kernel = 0, padding = 0;
    std::int64_t weight_offset = 0, bias_offset = 0;
    activation after = activation::none;
    [[nodiscard]] std::int64_t out_height() const { return height + 2 * padding - kernel + 1; }
    [[nodiscard]] std::int64_t out_width() const { return width + 2 * padding - kernel + 1; }
  };
  explicit conv_layer(const shape& what);
  [[nodiscard]] std::int64_t width(class_range) const override {
    return shape_.filters * shape_.out_height() * shape_.out_width();
  }
  void forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const override;
  void composite_forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out) const;
  void composite_backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const;

private:
  void pad(const float* image, float* padded) const;
  void spread(const float* d_out, float* gradients) const;

  shape shape_;
  std::int64_t padded_width_ = 0, padded_plane_ = 0; ///< Of one channel of the padded input.
  std::int64_t wide_ = 0;                            ///< Output pixels of a filter at padded width, in whole vectors.
  std::int64_t plane_up_ = 0;                        ///< padded_plane_ in whole vectors
  std::int64_t front_ = 0;                           ///< Zeros before a plane of output gradients.
  std::vector<std::int32_t> forward_weight_, forward_input_;    ///< Offsets per (channel, ky, kx).
  std::vector<std::int32_t> backward_weight_, backward_output_; ///< Offsets per (filter, ky, kx).
};

/// Maximum over 2 x 2 windows of stride 2; an odd last row or column is left out, as in PyTorch.
class max_pool_layer final : public layer {
public:
  struct shape {
    std::int64_t channels = 0, height = 0, width = 0; ///< Of its input.
  };
  explicit max_pool_layer(const shape& what) : shape_(what) {}
  [[nodiscard]] std::int64_t width(class_range) const override {
    return shape_.channels * (shape_.height / 2) * (shape_.width / 2);
  }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override { return width({}); }
  void forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const override;
  void composite_forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out) const;
  void composite_backward(const layer_pass& of, const backward_data& data) const;

private:
  shape shape_;
};

/// Writes what one parameter of model k, at `offset` within [P], gets from a composite backward pass.
void write_gradient(const gradient_sink& sink, std::int64_t k, std::int64_t offset, const at::Tensor& gradient);

/// Gives `buffer` the shape `sizes`, keeping its memory where that is large enough: steps of one
/// training reuse what the first has taken. Contents are undefined.
void reshape_buffer(at::Tensor& buffer, at::IntArrayRef sizes, const at::Tensor& like,
                    at::ScalarType type = at::kFloat);

} // namespace mneme
