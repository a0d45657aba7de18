/// layer: one step of a network over K models at once, on flat weights.
#pragma once
#include "runtime/models/dense.hpp"
#include "runtime/models/function.hpp"
namespace mneme {

// Axes: K models, B rows of a step, P weights of a model. Rows of activations are flat: [K, B, width]; an image's
// pixels lie channels last within a row, [height, width, channels].

/// Which models, rows and classes a pass is about.
struct layer_pass {
  const at::Tensor& weights;               ///< [K, P], or [1, P] shared by all K
  std::int64_t models = 0;                 ///< K
  std::int64_t rows = 0;                   ///< B
  class_range classes{};                   ///< Read by the head.
  const training_mode* training = nullptr; ///< Null: evaluation mode.
  kernels::scratch* memory = nullptr;      ///< Never null in a pass.
  const at::Tensor* inputs = nullptr;      ///< What the net reads, [K, B, floats]: layers may hide its padding.

  /// The weights of model k on a CPU: rows may be shared by all models.
  [[nodiscard]] const float* weights_of(std::int64_t k) const;
  /// Row k of `weights`, [P].
  [[nodiscard]] at::Tensor weights_row(std::int64_t k) const;
};

/// Height, width and channels of an image within the net; 1, 1, D of a flat row.
struct image_shape {
  std::int64_t height = 1, width = 1, channels = 1;
  [[nodiscard]] std::int64_t floats() const { return height * width * channels; }
  [[nodiscard]] std::int64_t pixels() const { return height * width; }
};

/// Const, shared by threads. Every layer is a function of LibTorch's operators; a kernel_layer also has forward and
/// backward passes of its own.
class layer {
public:
  virtual ~layer() = default;
  /// True if a network computes the layer by function() and takes its gradients by autograd.
  [[nodiscard]] virtual bool is_function(bool on_cpu) const = 0;
  /// True of a kernel layer that is computed as a function if its neighbours on both sides are.
  [[nodiscard]] virtual bool joins_functions() const { return false; }
  /// Floats of one row that leave the layer, given the classes of the pass.
  [[nodiscard]] virtual std::int64_t width(class_range classes) const = 0;
  /// Bytes besides its output that one row needs until the backward pass.
  [[nodiscard]] virtual std::int64_t kept_bytes_per_row() const { return 0; }
  /// True if, on a CPU and in evaluation mode, products or convolutions of LibTorch compute the layer: bits of a row
  /// may depend on how many rows there are.
  [[nodiscard]] virtual bool depends_on_row_count() const { return false; }

  /// in [K, B, width before] -> [K, B, width], by operators that autograd follows to any order.
  [[nodiscard]] virtual at::Tensor function(const function_pass& pass, const at::Tensor& in) const = 0;
};

/// A layer whose passes are written by hand, since a row of scenarios/bench needs them (runtime/kernels/README.md): on
/// a CPU by our own kernels, model by model. On devices convolutions and batch normalisation are LibTorch's operators
/// with gradients by hand; the other layers with parameters are functions there.
class kernel_layer : public layer {
public:
  [[nodiscard]] bool is_function(bool /*on_cpu*/) const override { return false; }
  /// True if the layer returns its input unchanged in this pass: forward and backward are then not called.
  [[nodiscard]] virtual bool idle(const layer_pass&) const { return false; }

  /// in [K, B, width before] -> out [K, B, width]. `kept` is the layer's own until backward.
  virtual void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const = 0;

  struct backward_data {
    const at::Tensor &in, &out, &kept; ///< Tensors of the forward pass.
    at::Tensor& d_out;                 ///< [K, B, width]; overwritten only by a layer that owns_gradient()
    at::Tensor* d_in = nullptr;        ///< [K, B, width before], written; null: not wanted
    bool add = false;                  ///< Added to d_in instead; asked of layers that can.
    bool fixed = false;                ///< The layer's parameters stay: only d_in is wanted.
  };
  /// True if backward() overwrites d_out.
  [[nodiscard]] virtual bool owns_gradient() const { return false; }
  /// True if backward() can add to d_in.
  [[nodiscard]] virtual bool adds() const { return false; }
  virtual void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const = 0;
};

/// Writes what one parameter of model k, at `offset` within [P], gets from a composite backward pass.
void write_gradient(const gradient_sink& sink, std::int64_t k, std::int64_t offset, const at::Tensor& gradient);
/// write_gradient() for all models at once: gradients [K, ...].
void write_gradients(const gradient_sink& sink, std::int64_t offset, const at::Tensor& gradients);
/// A parameter of all models: [K, rows, columns], expanded where weights are shared.
[[nodiscard]] at::Tensor parameter_view(const layer_pass& pass, std::int64_t offset, std::int64_t rows,
                                        std::int64_t columns);

/// Gives `buffer` the shape `sizes`, keeping its memory where that is large enough and no other's:
/// steps of one training reuse what the first has taken. Contents are undefined.
void reshape_buffer(at::Tensor& buffer, at::IntArrayRef sizes, const at::Tensor& like,
                    at::ScalarType type = at::kFloat);

} // namespace mneme
