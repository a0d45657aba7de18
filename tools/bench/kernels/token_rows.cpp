#include "runtime/kernels/token_rows.hpp"
#include "tools/bench/kernels/kernel_comparison.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/softmax.h>
#include <memory>
namespace mneme::bench {
namespace {

/// Size of a matrix with one row per token, or one row of attention scores.
struct row_shape {
  std::int64_t rows = 0, columns = 0;
  [[nodiscard]] std::string text() const { return std::to_string(rows) + " x " + std::to_string(columns); }
  [[nodiscard]] at::Tensor made(std::uint64_t seed) const { return drawn({1, rows, columns}, seed); }
};

constexpr float scale = 0.125F;
constexpr double epsilon = 1e-6;

kernel_comparison gelu_of(const row_shape& shape) {
  return {.kernel = "gelu",
          .shape = shape.text(),
          .in = {shape.made(1)},
          .out = shape.made(2),
          .ours =
              [](const operands& in, at::Tensor& out) {
                kernels::gelu(out.mutable_data_ptr<float>(), in[0].const_data_ptr<float>(), out.numel());
              },
          .theirs = [](const operands& in) { return at::gelu(in[0]); }};
}

kernel_comparison gelu_backward_of(const row_shape& shape) {
  return {.kernel = "gelu_backward",
          .shape = shape.text(),
          .in = {shape.made(1), shape.made(2)},
          .out = shape.made(3),
          .ours =
              [](const operands& in, at::Tensor& out) {
                kernels::gelu_backward(out.mutable_data_ptr<float>(), in[0].const_data_ptr<float>(),
                                       in[1].const_data_ptr<float>(), out.numel());
              },
          .theirs = [](const operands& in) { return at::gelu_backward(in[0], in[1]); }};
}

kernel_comparison softmax_of(const row_shape& shape) {
  return {.kernel = "softmax_rows",
          .shape = shape.text(),
          .in = {shape.made(1)},
          .out = shape.made(2),
          .ours =
              [shape](const operands& in, at::Tensor& out) {
                out.copy_(in[0]); // both sides work in place
                kernels::softmax_rows(out.mutable_data_ptr<float>(), shape.rows, shape.columns, scale);
              },
          .theirs =
              [kept = shape.made(2)](const operands& in) {
                auto p = kept;
                return at::softmax_out(p, kept.copy_(in[0]).mul_(scale), 2);
              }};
}

kernel_comparison norm_of(const row_shape& shape) {
  return {.kernel = "normalise_rows",
          .shape = shape.text(),
          .in = {shape.made(1), drawn({1, shape.columns}, 2), drawn({1, shape.columns}, 3)},
          .out = shape.made(4),
          .ours =
              [shape, statistics = at::empty({shape.rows, 2})](const operands& in, at::Tensor& out) {
                kernels::normalize_rows(out.mutable_data_ptr<float>(), statistics.mutable_data_ptr<float>(),
                                        {.x = in[0].const_data_ptr<float>(),
                                         .weight = in[1].const_data_ptr<float>(),
                                         .bias = in[2].const_data_ptr<float>(),
                                         .rows = shape.rows,
                                         .columns = shape.columns,
                                         .epsilon = epsilon});
              },
          .theirs =
              [shape](const operands& in) {
                return std::get<0>(at::native_layer_norm(in[0], {shape.columns}, in[1][0], in[2][0], epsilon));
              }};
}

kernel_comparison norm_backward_of(const row_shape& shape) {
  const auto x = shape.made(1), weight = drawn({1, shape.columns}, 2), bias = drawn({1, shape.columns}, 3);
  const auto seen = at::native_layer_norm(x, {shape.columns}, weight[0], bias[0], epsilon);
  const auto statistics = at::empty({shape.rows, 2});
  auto normalized = at::empty_like(x);
  kernels::normalize_rows(normalized.mutable_data_ptr<float>(), statistics.mutable_data_ptr<float>(),
                          {.x = x.const_data_ptr<float>(),
                           .weight = weight.const_data_ptr<float>(),
                           .bias = bias.const_data_ptr<float>(),
                           .rows = shape.rows,
                           .columns = shape.columns,
                           .epsilon = epsilon});
  return {.kernel = "normalise_rows_backward",
          .shape = shape.text(),
          .in = {shape.made(4), x, weight},
          .out = shape.made(5),
          .ours =
              [shape, statistics](const operands& in, at::Tensor& out) {
                std::vector<double> sums(static_cast<std::size_t>(2 * shape.columns));
                kernels::normalize_rows_backward(out.mutable_data_ptr<float>(), sums.data(),
                                                 sums.data() + shape.columns, in[0].const_data_ptr<float>(),
                                                 statistics.const_data_ptr<float>(),
                                                 {.x = in[1].const_data_ptr<float>(),
                                                  .weight = in[2].const_data_ptr<float>(),
                                                  .rows = shape.rows,
                                                  .columns = shape.columns,
                                                  .epsilon = epsilon});
              },
          .theirs =
              [shape, seen, bias](const operands& in) {
                return std::get<0>(at::native_layer_norm_backward(in[0], in[1], {shape.columns}, std::get<1>(seen),
                                                                  std::get<2>(seen), in[2][0], bias[0],
                                                                  {true, true, true}));
              }};
}

} // namespace

std::vector<kernel_comparison> token_contests() {
  std::vector<kernel_comparison> contests;
  for (const auto& shape : {row_shape{160, 192}, row_shape{1576, 3072}}) // matrices of hidden layers with 17 and 197
                                                                         // tokens
    contests.insert(contests.end(), {gelu_of(shape), gelu_backward_of(shape)});
  for (const auto& shape : {row_shape{60, 10}, row_shape{640, 17}, row_shape{18912, 197}}) // scores
    contests.push_back(softmax_of(shape));
  for (const auto& shape : {row_shape{160, 48}, row_shape{1576, 768}}) // channels
    contests.insert(contests.end(), {norm_of(shape), norm_backward_of(shape)});
  return contests;
}

} // namespace mneme::bench
