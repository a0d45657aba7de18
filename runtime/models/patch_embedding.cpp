#include "runtime/models/patch_embedding.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/aligned_product.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <algorithm>
#include <cmath>
namespace mneme {

// Axes: K models, B rows of a step, N patches, D channels of a token, V floats of a patch.

// -- resizing ---------------------------------------------------------------------------------------------------------

resize_layer::resize_layer(const image_shape& in, std::int64_t height, std::int64_t width)
    : in_(in), out_{height, width, in.channels}, lines_(mixtures(in.height, height)),
      pixels_(mixtures(in.width, width)) {}

std::vector<resize_layer::mixture> resize_layer::mixtures(std::int64_t from, std::int64_t to) {
  std::vector<mixture> mixtures;
  const double step = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    const double at = std::max((static_cast<double>(i) + 0.5) * step - 0.5, 0.0);
    const auto first = std::min(static_cast<std::int64_t>(at), from - 1);
    mixtures.push_back({first, std::min(first + 1, from - 1), static_cast<float>(at - static_cast<double>(first))});
  }
  return mixtures;
}

void resize_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  std::vector<float> line(static_cast<std::size_t>(in_.width));
  for (std::int64_t i = 0; i < pass.models * pass.rows * in_.channels; ++i)
    resize_channel(in.const_data_ptr<float>() + i * in_.pixels(), out.mutable_data_ptr<float>() + i * out_.pixels(),
                   line.data());
}

/// @param line [width of the input], to work in
void resize_layer::resize_channel(const float* from, float* to, float* line) const {
  for (const auto& vertical : lines_) {
    const float* const above = from + vertical.first * in_.width;
    const float* const below = from + vertical.second * in_.width;
    for (std::int64_t x = 0; x < in_.width; ++x)
      line[x] = above[x] + vertical.share * (below[x] - above[x]);
    for (const auto& mixture : pixels_)
      *to++ = line[mixture.first] + mixture.share * (line[mixture.second] - line[mixture.first]);
  }
}

void resize_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink& /*sink*/) const {
  MNEME_CHECK(!data.d_in, in_.height, in_.width);
}

void resize_layer::composite_forward(const layer_pass&, const at::Tensor& in, at::Tensor& out) const {
  auto images = out.view({-1, out_.channels, out_.height, out_.width});
  at::upsample_bilinear2d_out(images, in.view({-1, in_.channels, in_.height, in_.width}), {out_.height, out_.width},
                              false);
}

// -- patches ----------------------------------------------------------------------------------------------------------

/// images [.., channels * height * width] -> [.., N, V], V as in files: channel, line, pixel.
at::Tensor patch_embedding_layer::patches_of(const at::Tensor& images) const {
  const auto& in = shape_.in;
  const auto p = shape_.patch;
  return images.reshape({-1, in.channels, in.height / p, p, in.width / p, p})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({-1, patches(), patch_floats()});
}

void patch_embedding_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                                    at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  const auto channels = shape_.channels;
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto own = pass.weights_row(k);
    const auto positions = own.narrow(0, shape_.position_offset, tokens() * channels).view({tokens(), channels});
    const auto first = own.narrow(0, shape_.class_offset, channels) + positions[0];                      // [D]
    const auto others = positions.narrow(0, 1, patches()) + own.narrow(0, shape_.bias_offset, channels); // [N, D]
    const auto weight = own.narrow(0, shape_.weight_offset, channels * patch_floats()).view({channels, patch_floats()});
    for (std::int64_t b = 0; b < pass.rows; ++b) {
      const auto row = out.select(0, k).select(0, b).view({tokens(), channels});
      row[0].copy_(first);
      auto patches_of_row = row.narrow(0, 1, patches());
      aligned_product(patches_of_row, others, patches_of(in.select(0, k).select(0, b))[0], weight.t(), 1.0, 1.0,
                      *pass.memory);
    }
  }
}

void patch_embedding_layer::backward(const layer_pass& pass, const backward_data& data,
                                     const gradient_sink& sink) const {
  MNEME_CHECK(!data.d_in, shape_.in.height, shape_.in.width);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto d = data.d_out.select(0, k).view({-1, tokens(), shape_.channels}); // [B, 1 + N, D]
    const auto by_position = d.sum(0);
    const auto of_patches = d.narrow(1, 1, patches()).reshape({-1, shape_.channels}); // [B N, D]
    const auto patches = patches_of(data.in.select(0, k)).flatten(0, 1);              // [B N, V]
    write_gradient(sink, k, shape_.class_offset, by_position[0]);
    write_gradient(sink, k, shape_.position_offset, by_position);
    auto d_weight = at::empty({shape_.channels, patch_floats()}, of_patches.options());
    if (d.is_cpu())
      aligned_product(d_weight, d_weight, of_patches.t(), patches, 0.0, 1.0, *pass.memory);
    else
      at::mm_out(d_weight, of_patches.t(), patches);
    write_gradient(sink, k, shape_.weight_offset, d_weight);
    write_gradient(sink, k, shape_.bias_offset, by_position.narrow(0, 1, this->patches()).sum(0));
  }
}

void patch_embedding_layer::composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const {
  const auto channels = shape_.channels;
  const auto weight = parameter_view(pass, shape_.weight_offset, channels, patch_floats()); // [K, D, V]
  const auto bias = parameter_view(pass, shape_.bias_offset, 1, channels);                  // [K, 1, D]
  const auto first = parameter_view(pass, shape_.class_offset, 1, channels);
  const auto embedded =
      at::baddbmm(bias, patches_of(in).view({pass.models, -1, patch_floats()}), weight.transpose(1, 2));
  auto whole = out.view({pass.models, pass.rows, tokens(), channels});
  whole.narrow(2, 0, 1).copy_(first.unsqueeze(1).expand({pass.models, pass.rows, 1, channels}));
  whole.narrow(2, 1, patches()).copy_(embedded.view({pass.models, pass.rows, patches(), channels}));
  whole.add_(parameter_view(pass, shape_.position_offset, tokens(), channels).unsqueeze(1));
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor resize_layer::function(const function_pass&, const at::Tensor& in) const {
  const auto images = in.reshape({-1, in_.channels, in_.height, in_.width});
  return at::upsample_bilinear2d(images, {out_.height, out_.width}, false).reshape({in.size(0), in.size(1), -1});
}

at::Tensor patch_embedding_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto channels = shape_.channels;
  const auto patches = patches_of(in).reshape({pass.models, -1, patch_floats()});
  const auto embedded = stacked_product(patches, pass.weights_at(shape_.weight_offset, {channels, patch_floats()})) +
                        pass.weights_at(shape_.bias_offset, {1, channels});
  const auto first = pass.weights_at(shape_.class_offset, {1, 1, channels});
  const auto whole = at::cat({first.expand({pass.models, pass.rows, 1, channels}),
                              embedded.view({pass.models, pass.rows, this->patches(), channels})},
                             2);
  return (whole + pass.weights_at(shape_.position_offset, {1, tokens(), channels})).flatten(2);
}

} // namespace mneme
