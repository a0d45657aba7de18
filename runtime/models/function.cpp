#include "runtime/models/function.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/work_count.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/stack.h>
#include <ATen/record_function.h>
#include <algorithm>
#include <torch/csrc/autograd/custom_function.h>
namespace mneme {
namespace {

constexpr std::int64_t line_values = 16;  // a cache line of 64 bytes; float64 values occupy two lines
constexpr std::int64_t block_values = 64; // a multiple of two vectors of the widest instruction set

std::int64_t rounded_up(std::int64_t count, std::int64_t to) { return ceil_div(count, to) * to; }

/// Returns a copy [K, rows, columns] of `matrix`, padded with zeros.
at::Tensor in_lines(const at::Tensor& matrix, std::int64_t rows, std::int64_t columns) {
  if (matrix.size(1) == rows && matrix.size(2) == columns)
    return matrix.clone(at::MemoryFormat::Contiguous);
  return at::constant_pad_nd(matrix, {0, columns - matrix.size(2), 0, rows - matrix.size(1)});
}

/// Gives `row` [K, 1, k] the strides of a row. A transposed column has the strides of a transposed matrix, although its
/// memory order is the same.
at::Tensor as_row(const at::Tensor& row) {
  const auto models = row.size(0), k = row.size(2);
  if (row.stride(2) == 1 && row.stride(1) >= k)
    return row;
  return at::empty_strided({models, 1, k}, {k, k, 1}, row.options()).copy_(row);
}

/// Product of K pairs of matrices, differentiable to any order. MKL rounds two kinds of products differently for one
/// model than for several: those with a single column, and those with a single row that has the strides of a
/// transposed column. A single row with such strides is therefore copied, and a product with a single column is
/// computed as the transposed product, which has a single row.
struct matrix_product final : torch::autograd::Function<matrix_product> {
  static at::Tensor forward(torch::autograd::AutogradContext* kept, const at::Tensor& a, const at::Tensor& b) {
    kept->save_for_backward({a, b});
    if (a.size(1) == 1)
      return at::bmm(as_row(a), b);
    if (b.size(2) == 1)
      return at::bmm(as_row(b.transpose(1, 2)), a.transpose(1, 2)).transpose(1, 2);
    return at::bmm(a, b);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* kept,
                                                 const torch::autograd::variable_list& d) {
    const auto saved = kept->get_saved_variables();
    at::Tensor d_a, d_b;
    if (kept->needs_input_grad(0))
      d_a = apply(d[0], saved[1].transpose(1, 2));
    if (kept->needs_input_grad(1))
      d_b = apply(saved[0].transpose(1, 2), d[0]);
    return {d_a, d_b};
  }
};

} // namespace

at::Tensor function_pass::weights_at(std::int64_t offset, at::IntArrayRef sizes) const {
  const auto count = c10::multiply_integers(sizes);
  auto i = static_cast<std::size_t>(std::lower_bound(offsets.begin(), offsets.end(), offset) - offsets.begin());
  MNEME_CHECK(i < offsets.size() && offsets[i] == offset, offset);
  auto values = parameters[i];
  while (values.size(1) < count)
    values = at::cat({values, parameters[++i]}, 1);
  MNEME_CHECK(count < 0 || values.size(1) == count, offset, values.size(1), count);
  return values.unflatten(1, sizes);
}

void add_statistics(std::vector<batch_statistics>& to, const std::vector<std::vector<batch_statistics>>& by_model) {
  for (std::size_t layer = 0; layer < by_model[0].size(); ++layer) {
    auto stacked = by_model[0][layer];
    const auto stack = [&](at::Tensor batch_statistics::*member) {
      std::vector<at::Tensor> parts;
      for (const auto& found : by_model)
        parts.push_back(found[layer].*member);
      stacked.*member = at::stack(parts);
    };
    stack(&batch_statistics::mean);
    stack(&batch_statistics::variance);
    stack(&batch_statistics::running_mean);
    stack(&batch_statistics::running_variance);
    to.push_back(std::move(stacked));
  }
}

training_mode of_models(const training_mode& all, std::int64_t first, std::int64_t count) {
  auto some = all;
  if (!all.streams.empty())
    some.streams = all.streams.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  return some;
}

at::Tensor stacked_product(const at::Tensor& a, const at::Tensor& b) {
  RECORD_FUNCTION(stacked_product_name, std::vector<c10::IValue>({a, b}));
  const auto models = std::max(a.size(0), b.size(0)), m = a.size(1), n = b.size(1);
  if (!a.is_cpu())
    return at::bmm(a.expand({models, m, -1}), b.expand({models, n, -1}).transpose(1, 2));
  const auto k = rounded_up(a.size(2), line_values), columns = rounded_up(n, line_values);
  const auto left = in_lines(a, m, k).expand({models, m, k});
  const auto right = in_lines(b, columns, k).expand({models, columns, k});
  return matrix_product::apply(left, right.transpose(1, 2)).narrow(2, 0, n);
}

at::Tensor by_element(const at::Tensor& values, at::Tensor (*apply)(const at::Tensor&)) {
  if (!values.is_cpu())
    return apply(values);
  const auto flat = values.reshape({-1});
  const auto whole = rounded_up(flat.numel(), block_values);
  if (whole == flat.numel() && values.is_contiguous())
    return apply(values);
  return apply(at::constant_pad_nd(flat, {0, whole - flat.numel()})).narrow(0, 0, flat.numel()).view(values.sizes());
}

at::Tensor with_updated_running_stats(const at::Tensor& weights, const std::vector<batch_statistics>& statistics) {
  auto moved = weights.clone();
  for (const auto& layer : statistics) {
    if (!layer.moves || layer.values < 2)
      continue;
    const auto channels = layer.mean.size(1);
    const auto momentum = layer.momentum;
    const auto unbiased = static_cast<double>(layer.values) / static_cast<double>(layer.values - 1);
    moved.narrow(1, layer.mean_offset, channels).mul_(1.0 - momentum).add_(layer.mean, momentum);
    moved.narrow(1, layer.variance_offset, channels).mul_(1.0 - momentum).add_(layer.variance, momentum * unbiased);
  }
  return moved;
}

} // namespace mneme
