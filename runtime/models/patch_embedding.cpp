#include "runtime/models/patch_embedding.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bilinear2d.h>
namespace mneme {

// Axes: K models, B rows of a step, N patches, D channels of a token, V floats of a patch.

at::Tensor resize_layer::function(const function_pass&, const at::Tensor& in) const {
  const auto images = in.reshape({-1, in_.channels, in_.height, in_.width});
  return at::upsample_bilinear2d(images, {out_.height, out_.width}, false).reshape({in.size(0), in.size(1), -1});
}

at::Tensor patch_embedding_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto channels = shape_.channels;
  const auto& image = shape_.in;
  const auto p = shape_.patch, floats = image.channels * p * p;
  const auto patches = in.reshape({-1, image.channels, image.height / p, p, image.width / p, p})
                           .permute({0, 2, 4, 1, 3, 5}) // V is ordered as in files: channel, row, column
                           .reshape({pass.models, -1, floats});
  auto embedded = stacked_product(patches, pass.weights_at(shape_.weight_offset, {channels, floats}));
  if (shape_.bias_offset >= 0)
    embedded = embedded + pass.weights_at(shape_.bias_offset, {1, channels});
  const auto first = pass.weights_at(shape_.class_offset, {1, 1, channels});
  const auto whole = at::cat({first.expand({pass.models, pass.rows, 1, channels}),
                              embedded.view({pass.models, pass.rows, this->patches(), channels})},
                             2);
  return (whole + pass.weights_at(shape_.position_offset, {1, tokens(), channels})).flatten(2);
}

} // namespace mneme
