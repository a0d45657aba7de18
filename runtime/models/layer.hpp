/// layer: one operation of a network on K models together, with weights in flat buffers.
#pragma once
#include "runtime/models/dense.hpp"
#include "runtime/models/function.hpp"
namespace mneme {

// Axes: K models, B rows of a step, P weights of a model. Activations are [K, B, width] with flat rows. An image within
// a row is channels last: [height, width, channels].

/// Weights, sizes and mode of a pass.
struct layer_pass {
  const at::Tensor& weights;               ///< [K, P], or [1, P] shared by all K
  std::int64_t models = 0;                 ///< K
  std::int64_t rows = 0;                   ///< B
  class_range classes{};                   ///< Classes whose logits the head computes.
  const training_mode* training = nullptr; ///< Null: evaluation mode.
  kernels::scratch* memory = nullptr;      ///< Working memory; not null in a pass.
  const at::Tensor* inputs = nullptr;      ///< The net's inputs [K, B, floats], from which layers derive padding masks.

  /// Weights [P] of model k on a CPU; all models may share one row.
  [[nodiscard]] const float* weights_of(std::int64_t k) const;
  /// Row k of `weights`, [P].
  [[nodiscard]] at::Tensor weights_row(std::int64_t k) const;
};

/// Size of an image within the net, in pixels; {1, 1, D} for a flat row of D numbers.
struct image_shape {
  std::int64_t height = 1, width = 1, channels = 1;
  [[nodiscard]] std::int64_t floats() const { return height * width * channels; }
  [[nodiscard]] std::int64_t pixels() const { return height * width; }
};

/// A layer of a network; immutable and shared by threads. Every layer has a differentiable function(); a kernel_layer
/// also has hand-written forward and backward passes.
class layer {
public:
  virtual ~layer() = default;
  /// True if a network computes the layer by function() and its gradients by autograd.
  [[nodiscard]] virtual bool is_function(bool on_cpu) const = 0;
  /// True for a kernel layer that is computed by function() if function() also computes its neighbors.
  [[nodiscard]] virtual bool joins_functions() const { return false; }
  /// Floats of one output row, for a pass over `classes`.
  [[nodiscard]] virtual std::int64_t width(class_range classes) const = 0;
  /// Bytes per row that the layer keeps until the backward pass, without its output.
  [[nodiscard]] virtual std::int64_t kept_bytes_per_row() const { return 0; }
  /// True if LibTorch's products or convolutions compute the layer on a CPU in evaluation mode. In that case, the bits
  /// of a row may depend on the number of rows.
  [[nodiscard]] virtual bool depends_on_row_count() const { return false; }

  /// Computes [K, B, width] from in [K, B, input width], by operators that autograd can differentiate to any order.
  [[nodiscard]] virtual at::Tensor function(const function_pass& pass, const at::Tensor& in) const = 0;
};

/// A layer with hand-written passes, which a benchmark in scenarios/bench justifies (runtime/kernels/README.md). On a
/// CPU mneme's kernels compute it one model at a time. On devices, convolutions and batch normalization use LibTorch's
/// operators with hand-written gradients; other layers with parameters run as functions.
class kernel_layer : public layer {
public:
  [[nodiscard]] bool is_function(bool /*on_cpu*/) const override { return false; }
  /// True if the layer returns its input unchanged in this pass; forward() and backward() are then not called.
  [[nodiscard]] virtual bool is_pass_through(const layer_pass&) const { return false; }

  /// Computes out [K, B, width] from in [K, B, input width]. `kept` holds the layer's data for backward().
  virtual void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const = 0;

  /// Arguments of backward().
  struct backward_data {
    const at::Tensor &in, &out, &kept; ///< Tensors of the forward pass.
    at::Tensor& d_out;                 ///< [K, B, width]; overwritten only if owns_gradient()
    at::Tensor* d_in = nullptr;        ///< [K, B, input width], result; null: not computed
    bool add = false;                  ///< true: add to d_in; only if adds()
    bool fixed = false;                ///< true: the layer's parameters are frozen, so only d_in is computed.
  };
  /// True if backward() overwrites d_out.
  [[nodiscard]] virtual bool owns_gradient() const { return false; }
  /// True if backward() can add to d_in.
  [[nodiscard]] virtual bool adds() const { return false; }
  /// Writes the gradient of the input to data.d_in, and the gradients of the parameters to `sink`.
  virtual void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const = 0;
};

/// Writes, or adds if sink.add, the gradient of one parameter of model k at `offset` within [P].
void write_gradient(const gradient_sink& sink, std::int64_t k, std::int64_t offset, const at::Tensor& gradient);
/// write_gradient() for all models. @param gradients [K, ...]
void write_gradients(const gradient_sink& sink, std::int64_t offset, const at::Tensor& gradients);
/// View [K, rows, columns] of a parameter of all models; expanded if weights are shared.
[[nodiscard]] at::Tensor parameter_view(const layer_pass& pass, std::int64_t offset, std::int64_t rows,
                                        std::int64_t columns);

/// Gives `buffer` the shape `sizes`. Its memory is reused if no other tensor shares it, so that the steps of a training
/// allocate once. Contents are undefined.
void reshape_buffer(at::Tensor& buffer, at::IntArrayRef sizes, const at::Tensor& like,
                    at::ScalarType type = at::kFloat);

} // namespace mneme
