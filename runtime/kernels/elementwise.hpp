/// elementwise: elementwise kernels of a training step on a CPU, for one contiguous piece of one model at a time.
#pragma once
#include <cstdint>
namespace mneme::kernels {

/// x = max(x, 0); NaN stays NaN.
void relu(float* x, std::int64_t n);
/// Sets d to 0 where the activation y was not positive.
void relu_backward(float* d, const float* y, std::int64_t n);
/// out = a + b, followed by ReLU if `relu`.
void add(float* out, const float* a, const float* b, std::int64_t n, bool relu);
/// x *= factor
void scale(float* x, std::int64_t n, float factor);
/// g += factor * (w - start): adds the gradient of factor / 2 |w - start|^2.
void add_proximal_gradient(float* g, const float* w, const float* start, std::int64_t n, float factor);
/// out[c] = before[c] + scale * sum over rows of in[row, c], summed in row order.
struct row_sums {
  const float* in = nullptr; ///< [rows, columns]
  std::int64_t rows = 0, columns = 0;
  const float* before = nullptr; ///< [columns], may be `out`; null stands for zeros.
  float* out = nullptr;          ///< [columns]
  float scale = 1.0F;
};
void sum_rows(const row_sums& sums);
/// Adds the sum of squares to `total`, with a fixed assignment of elements to lanes.
void add_squares(double& total, const float* x, std::int64_t n);
/// Adds the sum of a[i] b[i] to `total`. Products are in float64 and assigned to lanes in a fixed way.
void add_products(double& total, const float* a, const float* b, std::int64_t n);
/// Adds the sum of (a[i] - b[i])^2 to `total`. Differences are in float64 and assigned to lanes in a fixed way.
void add_square_distance(double& total, const float* a, const float* b, std::int64_t n);
/// Sets `finite` to false if any element is NaN or infinite.
void check_finite(bool& finite, const float* x, std::int64_t n);

/// Factors of one SGD step.
struct sgd_step {
  float learning_rate = 0.0F, momentum = 0.0F, weight_decay = 0.0F;
};
/// In PyTorch's order: g' = g + decay w; v = momentum v + g'; w -= lr v. `v` is null without momentum.
void sgd(float* w, const float* g, float* v, std::int64_t n, const sgd_step& with);

/// One step of Adam (Kingma and Ba 2015, algorithm 1) as in PyTorch. Adam adds `decay` times the weight to the
/// gradient, and its `shrink` is 1. AdamW (Loshchilov and Hutter 2019) multiplies the weight by `shrink` = 1 - lr *
/// decay, and its `decay` is 0.
struct adam_step {
  float first = 0.9F, second = 0.999F, epsilon = 1e-8F;
  float decay = 0.0F, shrink = 1.0F;
  float step_size = 0.0F;       ///< lr / (1 - first^t)
  float root_correction = 1.0F; ///< sqrt(1 - second^t)
};
void adam(float* w, const float* g, float* m, float* v, std::int64_t n, const adam_step& with);

/// out = min(v * brightness, 255) * scale + shift for n pixels of one channel.
struct pixel_scale {
  float brightness = 1.0F, scale = 1.0F, shift = 0.0F;
};
void normalize(float* out, const std::uint8_t* in, std::int64_t n, const pixel_scale& with);
void normalize(float* out, const float* in, std::int64_t n, const pixel_scale& with);
/// Converts bytes to floats.
void convert_to_float(float* out, const std::uint8_t* in, std::int64_t n);

/// Softmax cross-entropy of one model's step, and its gradient.
struct cross_entropy_rows {
  const float* logits = nullptr;        ///< [rows, classes]
  const std::int64_t* labels = nullptr; ///< [rows]; read only for rows whose weight is not 0
  const float* weight = nullptr;        ///< [rows]
  float* d_logits = nullptr;            ///< [rows, classes]; must not share the memory of `logits`
  std::int64_t rows = 0, classes = 0;
  double smoothing = 0.0; ///< Share of the target that is spread evenly over all classes.
};
/// Writes `d_logits` and sets `value` to the sum of weight * loss, in row order.
void cross_entropy_of_rows(double& value, const cross_entropy_rows& in);

} // namespace mneme::kernels
