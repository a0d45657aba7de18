#include "runtime/kernels/products.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/transpose.hpp"
#include "tools/bench/kernels/kernel_comparison.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
namespace mneme::bench {
namespace {

/// Fully connected layer of K models.
struct linear_shape {
  std::int64_t models = 1, rows = 10, in = 0, out = 0;
  [[nodiscard]] std::string text() const {
    return std::to_string(rows) + " x " + std::to_string(in) + " -> " + std::to_string(out);
  }
};

const float* part(const at::Tensor& group, std::int64_t k) {
  return group.const_data_ptr<float>() + k * group.stride(0);
}
float* part(at::Tensor& group, std::int64_t k) { return group.mutable_data_ptr<float>() + k * group.stride(0); }

/// Forward pass: y = x W^T + b.
kernel_comparison forward_of(const linear_shape& shape) {
  return {.kernel = "dot_product",
          .shape = shape.text(),
          .in = {drawn({shape.models, shape.rows, shape.in}, 1), drawn({shape.models, shape.out, shape.in}, 2),
                 drawn({shape.models, shape.out}, 3)},
          .out = at::empty({shape.models, shape.rows, shape.out}),
          .ours =
              [shape](const operands& in, at::Tensor& out) {
                for (std::int64_t k = 0; k < out.size(0); ++k)
                  kernels::multiply(kernels::dot_product{.a = part(in[0], k),
                                                         .a_row = shape.in,
                                                         .b = part(in[1], k),
                                                         .b_row = shape.in,
                                                         .c = part(out, k),
                                                         .c_row = shape.out,
                                                         .m = shape.rows,
                                                         .n = shape.out,
                                                         .k = shape.in,
                                                         .bias = part(in[2], k)});
              },
          .theirs =
              [](const operands& in) {
                if (in[0].size(0) == 1)
                  return at::addmm(in[2][0], in[0][0], in[1][0].t()).unsqueeze(0);
                return at::baddbmm(in[2].unsqueeze(1), in[0], in[1].transpose(1, 2));
              }};
}

/// Input gradient: dx = dy W.
kernel_comparison input_gradient_of(const linear_shape& shape) {
  return {.kernel = "row_product, dx",
          .shape = shape.text(),
          .in = {drawn({shape.models, shape.rows, shape.out}, 1), drawn({shape.models, shape.out, shape.in}, 2)},
          .out = at::empty({shape.models, shape.rows, shape.in}),
          .ours =
              [shape](const operands& in, at::Tensor& out) {
                for (std::int64_t k = 0; k < out.size(0); ++k)
                  kernels::multiply(kernels::row_product{.a = part(in[0], k),
                                                         .a_row = shape.out,
                                                         .a_step = 1,
                                                         .b = part(in[1], k),
                                                         .b_row = shape.in,
                                                         .c = part(out, k),
                                                         .c_row = shape.in,
                                                         .m = shape.rows,
                                                         .n = shape.in,
                                                         .k = shape.out});
              },
          .theirs =
              [](const operands& in) {
                return in[0].size(0) == 1 ? at::mm(in[0][0], in[1][0]).unsqueeze(0) : at::bmm(in[0], in[1]);
              }};
}

/// One step of plain SGD: W' = W - rate dy^T x.
kernel_comparison step_of(const linear_shape& shape) {
  constexpr float rate = 0.1F;
  return {.kernel = "row_product, W - r dy^T x",
          .shape = shape.text(),
          .in = {drawn({shape.models, shape.rows, shape.out}, 1), drawn({shape.models, shape.rows, shape.in}, 2),
                 drawn({shape.models, shape.out, shape.in}, 3)},
          .out = at::empty({shape.models, shape.out, shape.in}),
          .ours =
              [shape](const operands& in, at::Tensor& out) {
                for (std::int64_t k = 0; k < out.size(0); ++k)
                  kernels::multiply(kernels::row_product{.a = part(in[0], k),
                                                         .a_row = 1,
                                                         .a_step = shape.out,
                                                         .b = part(in[1], k),
                                                         .b_row = shape.in,
                                                         .before = part(in[2], k),
                                                         .c = part(out, k),
                                                         .c_row = shape.in,
                                                         .m = shape.out,
                                                         .n = shape.in,
                                                         .k = shape.rows,
                                                         .scale = -rate});
              },
          .theirs =
              [](const operands& in) {
                if (in[0].size(0) == 1)
                  return at::addmm(in[2][0], in[0][0].t(), in[1][0], 1.0, -rate).unsqueeze(0);
                return at::baddbmm(in[2], in[0].transpose(1, 2), in[1], 1.0, -rate);
              }};
}

/// One step of plain SGD for the bias: b' = b - rate * (sum of dy over rows).
kernel_comparison bias_step_of(const linear_shape& shape) {
  constexpr float rate = 0.1F;
  return {.kernel = "sum_rows",
          .shape = std::to_string(shape.rows) + " x " + std::to_string(shape.out),
          .in = {drawn({shape.models, shape.rows, shape.out}, 1), drawn({shape.models, shape.out}, 2)},
          .out = at::empty({shape.models, shape.out}),
          .ours =
              [shape](const operands& in, at::Tensor& out) {
                for (std::int64_t k = 0; k < out.size(0); ++k)
                  kernels::sum_rows({.in = part(in[0], k),
                                     .rows = shape.rows,
                                     .columns = shape.out,
                                     .before = part(in[1], k),
                                     .out = part(out, k),
                                     .scale = -rate});
              },
          .theirs = [](const operands& in) { return at::sub(in[1], in[0].sum(1), rate); }};
}

kernel_comparison transposed(std::int64_t rows, std::int64_t columns) {
  return {.kernel = "transpose",
          .shape = std::to_string(rows) + " x " + std::to_string(columns),
          .in = {drawn({1, rows, columns}, 1)},
          .out = at::empty({1, columns, rows}),
          .ours = [=](const operands& in,
                      at::Tensor& out) { kernels::transpose(part(in[0], 0), rows, columns, part(out, 0)); },
          .theirs = [](const operands& in) { return in[0].transpose(1, 2).contiguous(); }};
}

} // namespace

std::vector<kernel_comparison> product_contests() {
  std::vector<kernel_comparison> contests;
  for (const auto& shape :
       {linear_shape{.in = 64, .out = 32}, // mlp of B2
        linear_shape{.models = 64, .in = 64, .out = 32}, linear_shape{.in = 32, .out = 10},
        linear_shape{.models = 64, .in = 32, .out = 10}, linear_shape{.in = 784, .out = 100}, // mlp of B2c
        linear_shape{.models = 8, .in = 784, .out = 100},
        linear_shape{.rows = 64, .in = 784, .out = 200},   // mlp with default keys
        linear_shape{.in = 12544, .out = 128},             // cnn
        linear_shape{.rows = 64, .in = 400, .out = 120},   // lenet
        linear_shape{.rows = 64, .in = 1000, .out = 1000}, // vee
        linear_shape{.rows = 64, .in = 512, .out = 512},   // FedHAF's module
        linear_shape{.rows = 64, .in = 512, .out = 100}})  // resnet18
    for (const auto& made : {forward_of, input_gradient_of, step_of})
      contests.push_back(made(shape));
  for (const auto& shape :
       {linear_shape{.out = 32}, linear_shape{.models = 64, .out = 32}, linear_shape{.rows = 64, .out = 1000}})
    contests.push_back(bias_step_of(shape));
  contests.push_back(transposed(288, 64)); // filters of a convolution
  contests.push_back(transposed(576, 512));
  return contests;
}

} // namespace mneme::bench
