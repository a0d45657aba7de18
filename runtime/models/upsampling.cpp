#include "runtime/models/upsampling.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
namespace mneme {

// Axes: K models, B rows, C channels.

upsampling_layer::upsampling_layer(const image_shape& in, std::int64_t height, std::int64_t width, upsampling kind)
    : in_(in), out_{height, width, in.channels}, lines_(mixtures(in.height, height, kind)),
      pixels_(mixtures(in.width, width, kind)) {}

std::vector<upsampling_layer::mixture> upsampling_layer::mixtures(std::int64_t from, std::int64_t to, upsampling kind) {
  std::vector<mixture> mixtures;
  const double step = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    if (kind == upsampling::nearest) {
      const auto nearest = i * from / to;
      mixtures.push_back({nearest, nearest, 0.0F});
      continue;
    }
    const double at = std::max((static_cast<double>(i) + 0.5) * step - 0.5, 0.0);
    const auto first = std::min(static_cast<std::int64_t>(at), from - 1);
    mixtures.push_back({first, std::min(first + 1, from - 1), static_cast<float>(at - static_cast<double>(first))});
  }
  return mixtures;
}

/// Returns the matrix [to, from] of each source's share in each result.
at::Tensor upsampling_layer::matrix_of(const std::vector<mixture>& mixtures, std::int64_t from,
                                       const at::Tensor& like) {
  auto matrix = at::zeros({std::ssize(mixtures), from}, at::kFloat);
  for (std::size_t i = 0; i < mixtures.size(); ++i) {
    float* const row = matrix.mutable_data_ptr<float>() + static_cast<std::int64_t>(i) * from;
    row[mixtures[i].first] += 1.0F - mixtures[i].share;
    row[mixtures[i].second] += mixtures[i].share;
  }
  return matrix.to(like.options());
}

namespace {

/// Applies matrices [to, from] to the rows and columns of images [n, height, width, C].
at::Tensor mixed(const at::Tensor& images, const at::Tensor& lines, const at::Tensor& pixels) {
  const auto tall = stacked_product(images.permute({0, 2, 3, 1}).flatten(1, 2), lines.unsqueeze(0)); // [n, width C, H]
  const auto wide = tall.unflatten(1, {images.size(2), images.size(3)}).permute({0, 3, 2, 1});       // [n, H, C, width]
  return stacked_product(wide.flatten(1, 2), pixels.unsqueeze(0)).unflatten(1, {lines.size(0), -1}).transpose(2, 3);
}

} // namespace

at::Tensor upsampling_layer::function(const function_pass&, const at::Tensor& in) const {
  const auto images = in.reshape({-1, in_.height, in_.width, in_.channels});
  return mixed(images, matrix_of(lines_, in_.height, in), matrix_of(pixels_, in_.width, in))
      .reshape({in.size(0), in.size(1), -1});
}

} // namespace mneme
