#include "runtime/models/dense.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/products.hpp"
#include <algorithm>
#include <vector>
namespace mneme {

dense_layer dense_layer::rows_for(std::int64_t low, std::int64_t high) const {
  if (!head)
    return *this;
  auto part = *this;
  part.out = high - low;
  part.weight_offset += low * in;
  if (biased())
    part.bias_offset += low;
  return part;
}

void dense_forward(const dense_layer& layer, const float* weights, const float* x, std::int64_t rows, float* y) {
  const std::vector<float> zeros(static_cast<std::size_t>(layer.biased() ? 0 : layer.out)); // the kernel requires a
                                                                                            // bias
  kernels::multiply(kernels::dot_product{.a = x,
                                         .a_row = layer.in,
                                         .b = weights + layer.weight_offset,
                                         .b_row = layer.in,
                                         .c = y,
                                         .c_row = layer.out,
                                         .m = rows,
                                         .n = layer.out,
                                         .k = layer.in,
                                         .bias = layer.biased() ? weights + layer.bias_offset : zeros.data()});
  if (layer.after == activation::relu)
    kernels::relu(y, rows * layer.out);
}

void dense_backward(const dense_layer& layer, const dense_gradients& in) {
  if (layer.after == activation::relu)
    kernels::relu_backward(in.d_y, in.y, in.rows * layer.out);
  // Width of a panel of weights. A panel stays in the second-level cache from its last read to its update.
  constexpr std::int64_t cache_floats = std::int64_t{1} << 16U, vector_floats = 16;
  const auto panel =
      std::max(cache_floats / std::max<std::int64_t>(layer.out, 1), 4 * vector_floats) / vector_floats * vector_floats;
  for (std::int64_t first = 0; first < layer.in; first += panel) {
    const auto columns = std::min(panel, layer.in - first);
    const auto at = layer.weight_offset + first;
    if (in.d_x)
      kernels::multiply(kernels::row_product{.a = in.d_y,
                                             .a_row = layer.out,
                                             .a_step = 1,
                                             .b = in.weights + at,
                                             .b_row = layer.in,
                                             .c = in.d_x + first,
                                             .c_row = layer.in,
                                             .m = in.rows,
                                             .n = columns,
                                             .k = layer.out});
    if (!in.into)
      continue;
    kernels::multiply(kernels::row_product{.a = in.d_y,
                                           .a_row = 1,
                                           .a_step = layer.out,
                                           .b = in.x + first,
                                           .b_row = layer.in,
                                           .before = in.before ? in.before + at : nullptr,
                                           .c = in.into + at,
                                           .c_row = layer.in,
                                           .m = layer.out,
                                           .n = columns,
                                           .k = in.rows,
                                           .scale = in.scale});
  }
  if (!in.into || !layer.biased())
    return;
  kernels::sum_rows({.in = in.d_y,
                     .rows = in.rows,
                     .columns = layer.out,
                     .before = in.before ? in.before + layer.bias_offset : nullptr,
                     .out = in.into + layer.bias_offset,
                     .scale = in.scale});
}

} // namespace mneme
