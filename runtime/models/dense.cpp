#include "runtime/models/dense.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/products.hpp"
#include <algorithm>
namespace mneme {

dense_layer dense_layer::rows_for(std::int64_t low, std::int64_t high) const {
  if (!head)
    return *this;
  auto part = *this;
  part.out = high - low;
  part.weight_offset += low * in;
  part.bias_offset += low;
  return part;
}

void dense_forward(const dense_layer& of, const float* weights, const float* x, std::int64_t rows, float* y) {
  kernels::multiply(kernels::dot_product{.a = x,
                                         .a_row = of.in,
                                         .b = weights + of.weight_offset,
                                         .b_row = of.in,
                                         .c = y,
                                         .c_row = of.out,
                                         .m = rows,
                                         .n = of.out,
                                         .k = of.in,
                                         .bias = weights + of.bias_offset});
  if (of.after == activation::relu)
    kernels::relu(y, rows * of.out);
}

void dense_backward(const dense_layer& of, const dense_gradients& in) {
  if (of.after == activation::relu)
    kernels::relu_backward(in.d_y, in.y, in.rows * of.out);
  // Columns of the weights that stay in the second-level cache from their last reading to their change.
  constexpr std::int64_t cache_floats = std::int64_t{1} << 16U, vector_floats = 16;
  const auto panel =
      std::max(cache_floats / std::max<std::int64_t>(of.out, 1), 4 * vector_floats) / vector_floats * vector_floats;
  for (std::int64_t first = 0; first < of.in; first += panel) {
    const auto columns = std::min(panel, of.in - first);
    const auto at = of.weight_offset + first;
    if (in.d_x)
      kernels::multiply(kernels::row_product{.a = in.d_y,
                                             .a_row = of.out,
                                             .a_step = 1,
                                             .b = in.weights + at,
                                             .b_row = of.in,
                                             .c = in.d_x + first,
                                             .c_row = of.in,
                                             .m = in.rows,
                                             .n = columns,
                                             .k = of.out});
    kernels::multiply(kernels::row_product{.a = in.d_y,
                                           .a_row = 1,
                                           .a_step = of.out,
                                           .b = in.x + first,
                                           .b_row = of.in,
                                           .before = in.before ? in.before + at : nullptr,
                                           .c = in.into + at,
                                           .c_row = of.in,
                                           .m = of.out,
                                           .n = columns,
                                           .k = in.rows,
                                           .scale = in.scale});
  }
  kernels::sum_rows({.in = in.d_y,
                     .rows = in.rows,
                     .columns = of.out,
                     .before = in.before ? in.before + of.bias_offset : nullptr,
                     .out = in.into + of.bias_offset,
                     .scale = in.scale});
}

} // namespace mneme
