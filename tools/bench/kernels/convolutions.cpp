#include "runtime/kernels/winograd.hpp"
#include "tools/bench/kernels/kernel_comparison.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <memory>
namespace mneme::bench {
namespace {

using kernels::conv_shape;

// mneme's operands are images [K, rows, height, width, channels] and filters [K, kernel, kernel, channels, filters].
// LibTorch gets the same images as channels last, which is faster, and filters in its own layout.

std::string text_of(const conv_shape& shape) {
  return std::to_string(shape.rows) + " x " + std::to_string(shape.height) + "x" + std::to_string(shape.width) + "x" +
         std::to_string(shape.channels) + ", " + std::to_string(shape.filters) + " of " + std::to_string(shape.kernel) +
         "x" + std::to_string(shape.kernel) + (shape.stride > 1 ? ", stride " + std::to_string(shape.stride) : "");
}

at::Tensor images(std::int64_t models, const conv_shape& shape, std::uint64_t seed) {
  return drawn({models, shape.rows, shape.height, shape.width, shape.channels}, seed);
}
at::Tensor results(std::int64_t models, const conv_shape& shape, std::uint64_t seed) {
  return drawn({models, shape.rows, shape.out_height(), shape.out_width(), shape.filters}, seed);
}

at::Tensor channels_first(const at::Tensor& group, std::int64_t k) { return group[k].permute({0, 3, 1, 2}); }

/// Computes LibTorch's results model by model, because the bits of its grouped convolution depend on K.
at::Tensor for_each_model(const operands& in, const std::function<at::Tensor(std::int64_t)>& result) {
  std::vector<at::Tensor> made;
  for (std::int64_t k = 0; k < in[0].size(0); ++k)
    made.push_back(result(k));
  return made.size() == 1 ? made[0].unsqueeze(0) : at::stack(made);
}

std::array<at::Tensor, 3> gradients(const conv_shape& shape, const at::Tensor& d, const at::Tensor& x,
                                    const at::Tensor& w, std::array<bool, 3> wanted) {
  const auto made =
      at::convolution_backward(d, x, w, at::OptionalIntArrayRef({shape.filters}), {shape.stride, shape.stride},
                               {shape.padding, shape.padding}, {1, 1}, false, {0, 0}, 1, wanted);
  return {std::get<0>(made), std::get<1>(made), std::get<2>(made)};
}

/// Filters in LibTorch's layout, [K, filters, channels, kernel, kernel].
at::Tensor in_files_order(const at::Tensor& filters) { return filters.permute({0, 4, 3, 1, 2}).contiguous(); }

kernel_comparison forward_of(const conv_shape& shape) {
  const auto filters = drawn({1, shape.kernel, shape.kernel, shape.channels, shape.filters}, 2);
  return {.kernel = "winograd_convolve",
          .shape = text_of(shape),
          .in = {images(1, shape, 1), filters, in_files_order(filters), drawn({1, shape.filters}, 3)},
          .out = results(1, shape, 4),
          .ours =
              [shape, memory = std::make_shared<kernels::scratch>()](const operands& in, at::Tensor& out) {
                kernels::winograd_convolve(shape, in[0].const_data_ptr<float>(), in[1].const_data_ptr<float>(),
                                           in[3].const_data_ptr<float>(), false, out.mutable_data_ptr<float>(),
                                           *memory);
              },
          .theirs =
              [shape](const operands& in) {
                return for_each_model(in, [&](std::int64_t k) {
                  return at::convolution(channels_first(in[0], k), in[2][k], in[3][k], {shape.stride, shape.stride},
                                         {shape.padding, shape.padding}, {1, 1}, false, {0, 0}, 1)
                      .permute({0, 2, 3, 1});
                });
              }};
}

kernel_comparison backward_of(const conv_shape& shape) {
  const auto filters = drawn({1, shape.kernel, shape.kernel, shape.channels, shape.filters}, 2);
  return {.kernel = "winograd_convolve_back",
          .shape = text_of(shape),
          .in = {results(1, shape, 1), filters, in_files_order(filters), images(1, shape, 3)},
          .out = images(1, shape, 4),
          .ours =
              [shape, memory = std::make_shared<kernels::scratch>()](const operands& in, at::Tensor& out) {
                kernels::winograd_convolve_back(shape, in[0].const_data_ptr<float>(), in[1].const_data_ptr<float>(),
                                                out.mutable_data_ptr<float>(), false, *memory);
              },
          .theirs =
              [shape](const operands& in) {
                return for_each_model(in, [&](std::int64_t k) {
                  return gradients(shape, channels_first(in[0], k), channels_first(in[3], k), in[2][k],
                                   {true, false, false})[0]
                      .permute({0, 2, 3, 1});
                });
              }};
}

kernel_comparison filters_of(const conv_shape& shape) {
  const auto filters = drawn({1, shape.kernel, shape.kernel, shape.channels, shape.filters}, 2);
  return {.kernel = "winograd_correlate",
          .shape = text_of(shape),
          .in = {results(1, shape, 1), images(1, shape, 3), in_files_order(filters)},
          .out = filters.clone(),
          .ours =
              [shape, memory = std::make_shared<kernels::scratch>()](const operands& in, at::Tensor& out) {
                kernels::winograd_correlate(shape, in[1].const_data_ptr<float>(), in[0].const_data_ptr<float>(),
                                            out.mutable_data_ptr<float>(), 1.0F, false, *memory);
              },
          .theirs =
              [shape](const operands& in) {
                return for_each_model(in, [&](std::int64_t k) {
                  return gradients(shape, channels_first(in[0], k), channels_first(in[1], k), in[2][k],
                                   {false, true, false})[1]
                      .permute({2, 3, 1, 0});
                });
              }};
}

} // namespace

std::vector<kernel_comparison> convolution_contests() {
  const std::vector<conv_shape> shapes{
      // cnn of B1, ten images of 32 x 32 x 3
      {.rows = 10, .height = 30, .width = 30, .channels = 32, .filters = 64, .kernel = 3},
      // resnet8 and resnet32
      {.rows = 32, .height = 32, .width = 32, .channels = 16, .filters = 16, .kernel = 3, .padding = 1},
      {.rows = 32, .height = 8, .width = 8, .channels = 64, .filters = 64, .kernel = 3, .padding = 1},
      // resnet18 on 32 x 32
      {.rows = 16, .height = 32, .width = 32, .channels = 64, .filters = 64, .kernel = 3, .padding = 1},
      {.rows = 16, .height = 16, .width = 16, .channels = 128, .filters = 128, .kernel = 3, .padding = 1},
      {.rows = 16, .height = 4, .width = 4, .channels = 512, .filters = 512, .kernel = 3, .padding = 1}};
  std::vector<kernel_comparison> contests;
  for (const auto& shape : shapes)
    for (const auto& made : {forward_of, backward_of, filters_of})
      contests.push_back(made(shape));
  return contests;
}

} // namespace mneme::bench
