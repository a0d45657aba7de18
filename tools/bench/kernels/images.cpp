#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/normalization.hpp"
#include "runtime/kernels/pooling.hpp"
#include "tools/bench/kernels/kernel_comparison.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <cmath>
#include <memory>
namespace mneme::bench {
namespace {

at::Tensor channels_first(const at::Tensor& images) { return images[0].permute({0, 3, 1, 2}); }
at::Tensor channels_last(const at::Tensor& images) { return images.permute({0, 2, 3, 1}).unsqueeze(0); }

// -- pooling ----------------------------------------------------------------------------------------------------------

kernel_comparison mean_pool_of(std::int64_t rows, std::int64_t pixels, std::int64_t channels) {
  return {.kernel = "mean_pool",
          .shape = std::to_string(rows) + " x " + std::to_string(pixels) + " x " + std::to_string(channels),
          .in = {drawn({1, rows, pixels, channels}, 1)},
          .out = at::empty({1, rows, channels}),
          .ours =
              [=](const operands& in, at::Tensor& out) {
                kernels::mean_pool(rows, pixels, channels, in[0].const_data_ptr<float>(),
                                   out.mutable_data_ptr<float>());
              },
          .theirs = [](const operands& in) { return at::mean(in[0], {2}); }};
}

// -- batch normalization ----------------------------------------------------------------------------------------------

constexpr double epsilon = 1e-5;

struct norm_shape {
  std::int64_t rows = 0, side = 0, channels = 0;
  [[nodiscard]] std::int64_t pixels() const { return rows * side * side; }
  [[nodiscard]] std::string text() const {
    return std::to_string(rows) + " x " + std::to_string(side) + "x" + std::to_string(side) + "x" +
           std::to_string(channels);
  }
  [[nodiscard]] at::Tensor drawn_images(std::uint64_t seed) const {
    return drawn({1, rows, side, side, channels}, seed);
  }
};

/// Mean and 1 / standard deviation of every channel, as normalization_layer expects them.
void measure(const float* x, const norm_shape& shape, float* mean, float* scale) {
  std::vector<double> sums(static_cast<std::size_t>(shape.channels)), squares(sums.size());
  kernels::shifted_moments(x, shape.pixels(), shape.channels, sums.data(), squares.data());
  const auto n = static_cast<double>(shape.pixels());
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    const auto i = static_cast<std::size_t>(c);
    const double center = sums[i] / n;
    mean[c] = static_cast<float>(x[c] + center);
    scale[c] = static_cast<float>(1.0 / std::sqrt(std::max(squares[i] / n - center * center, 0.0) + epsilon));
  }
}

kernel_comparison norm_of(const norm_shape& shape) {
  return {.kernel = "sum_from_pivot, scale_columns (batch norm)",
          .shape = shape.text(),
          .in = {shape.drawn_images(1), drawn({1, shape.channels}, 2), drawn({1, shape.channels}, 3)},
          .out = shape.drawn_images(4),
          .ours =
              [shape](const operands& in, at::Tensor& out) {
                const auto count = static_cast<std::size_t>(shape.channels);
                std::vector<float> mean(count), scale(count), factor(count), shift(count);
                measure(in[0].const_data_ptr<float>(), shape, mean.data(), scale.data());
                for (std::size_t c = 0; c < count; ++c) {
                  factor[c] = scale[c] * in[1].const_data_ptr<float>()[c];
                  shift[c] = in[2].const_data_ptr<float>()[c] - mean[c] * factor[c];
                }
                kernels::scale_columns(in[0].const_data_ptr<float>(), shape.pixels(), shape.channels, factor.data(),
                                       shift.data(), false, out.mutable_data_ptr<float>());
              },
          .theirs =
              [](const operands& in) {
                return channels_last(std::get<0>(
                    at::native_batch_norm(channels_first(in[0]), in[1][0], in[2][0], {}, {}, true, 0.1, epsilon)));
              }};
}

kernel_comparison norm_backward_of(const norm_shape& shape) {
  const auto x = shape.drawn_images(1), weight = drawn({1, shape.channels}, 2);
  const auto mean = at::empty({1, shape.channels}), scale = at::empty({1, shape.channels});
  measure(x.const_data_ptr<float>(), shape, mean.mutable_data_ptr<float>(), scale.mutable_data_ptr<float>());
  return {
      .kernel = "sum_gradients, scale_gradients (batch norm)",
      .shape = shape.text(),
      .in = {shape.drawn_images(3), x, weight},
      .out = shape.drawn_images(4),
      .ours =
          [shape, mean, scale](const operands& in, at::Tensor& out) {
            const auto count = static_cast<std::size_t>(shape.channels);
            const auto n = static_cast<double>(shape.pixels());
            std::vector<double> sums(count), products(count);
            std::vector<float> factor(count), slope(count), shift(count);
            const kernels::normalized seen{.d = in[0].const_data_ptr<float>(),
                                           .x = in[1].const_data_ptr<float>(),
                                           .mean = mean.const_data_ptr<float>(),
                                           .rows = shape.pixels(),
                                           .columns = shape.channels};
            kernels::sum_gradients(seen, sums.data(), products.data());
            for (std::size_t c = 0; c < count; ++c) {
              const double s = scale.const_data_ptr<float>()[c], g = in[2].const_data_ptr<float>()[c];
              factor[c] = static_cast<float>(s * g);
              slope[c] = static_cast<float>(-g * products[c] / n * s * s * s);
              shift[c] = static_cast<float>(-g * sums[c] / n * s);
            }
            kernels::scale_gradients(seen, factor.data(), slope.data(), shift.data(), out.mutable_data_ptr<float>());
          },
      .theirs =
          [mean, scale](const operands& in) {
            return channels_last(
                std::get<0>(at::native_batch_norm_backward(channels_first(in[0]), channels_first(in[1]), in[2][0], {},
                                                           {}, mean[0], scale[0], true, epsilon, {true, true, true})));
          }};
}

// -- pixels -----------------------------------------------------------------------------------------------------------

kernel_comparison pixels_of(std::int64_t count) {
  return {.kernel = "normalize (bytes)",
          .shape = std::to_string(count),
          .in = {(drawn({1, count}, 1) * 40 + 128).clamp(0, 255).to(at::kByte)},
          .out = at::empty({1, count}),
          .ours =
              [count](const operands& in, at::Tensor& out) {
                kernels::normalize(out.mutable_data_ptr<float>(), in[0].const_data_ptr<std::uint8_t>(), count,
                                   {.brightness = 1.0F, .scale = 0.5F, .shift = 0.25F});
              },
          .theirs = [](const operands& in) { return in[0].to(at::kFloat).mul_(0.5).add_(0.25); }};
}

kernel_comparison widened(std::int64_t count) {
  return {.kernel = "widen",
          .shape = std::to_string(count),
          .in = {(drawn({1, count}, 1) * 40 + 128).clamp(0, 255).to(at::kByte)},
          .out = at::empty({1, count}),
          .ours =
              [count](const operands& in, at::Tensor& out) {
                kernels::convert_to_float(out.mutable_data_ptr<float>(), in[0].const_data_ptr<std::uint8_t>(), count);
              },
          .theirs = [](const operands& in) { return in[0].to(at::kFloat); }};
}

kernel_comparison summed(std::int64_t rows, std::int64_t columns) {
  return {.kernel = "sum_columns",
          .shape = std::to_string(rows) + " x " + std::to_string(columns),
          .in = {drawn({1, rows, columns}, 1)},
          .out = at::empty({1, columns}),
          .ours =
              [=](const operands& in, at::Tensor& out) {
                kernels::sum_columns(out.mutable_data_ptr<float>(), in[0].const_data_ptr<float>(), rows, columns, 1.0F,
                                     false);
              },
          .theirs = [](const operands& in) { return in[0].sum(1); }};
}

} // namespace

std::vector<kernel_comparison> image_contests() {
  std::vector<kernel_comparison> contests;
  contests.push_back(mean_pool_of(32, 64, 64));  // resnet8
  contests.push_back(mean_pool_of(16, 16, 512)); // resnet18
  for (const auto& shape :
       {norm_shape{32, 32, 16}, norm_shape{32, 8, 64}, norm_shape{16, 32, 64}, norm_shape{16, 4, 512}}) {
    contests.push_back(norm_of(shape));
    contests.push_back(norm_backward_of(shape));
  }
  for (const std::int64_t count : {784, 3072, 150528}) { // sizes of single images
    contests.push_back(pixels_of(count));
    contests.push_back(widened(count));
  }
  contests.push_back(summed(7840, 64)); // bias of the second convolution of cnn
  contests.push_back(summed(25088, 6)); // bias of the first convolution of lenet
  return contests;
}

} // namespace mneme::bench
