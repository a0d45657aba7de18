#include "runtime/models/frozen_vit.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <algorithm>
#include <cmath>
#include <sstream>
namespace mneme {
namespace {

/// Offsets of a block's parts in the layout, relative to the block's first parameter. Each part has a weight and a
/// bias.
struct vit_part {
  static constexpr std::size_t norm1 = 0, queries_keys_values = 2, projection = 4, norm2 = 6, hidden = 8, out = 10;
};
constexpr double vit_epsilon = 1e-6;

at::Tensor vit_norm(std::span<const at::Tensor> part, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, part[0], part[1], vit_epsilon);
}

at::Tensor vit_linear(std::span<const at::Tensor> part, const at::Tensor& x) { return at::linear(x, part[0], part[1]); }

} // namespace

std::string vit_shape::text() const {
  std::ostringstream text;
  text << "resized " << resized[0] << "x" << resized[1] << " patch " << patch << " width " << width << " depth "
       << depth << " heads " << heads;
  return text.str();
}

frozen_vit::frozen_vit(vit_shape shape, const std::vector<parameter>& body, std::int64_t classes)
    : shape_(shape), classes_(classes) {
  MNEME_CHECK(shape_.width % shape_.heads == 0, shape_.width, shape_.heads);
  for (auto entry : body) {
    entry.frozen = true;
    entry.view = entry.order = {}; // the parameter is stored as in files
    add_parameter(std::move(entry));
  }
  embedding_ = place_of("cls_token");
  for (std::int64_t i = 0; i < shape_.depth; ++i)
    blocks_.push_back(place_of("blocks." + std::to_string(i) + ".norm1.weight"));
  norm_ = place_of("norm.weight");
}

std::size_t frozen_vit::place_of(const std::string& name) const {
  const auto& parameters = layout();
  const auto entry =
      std::find_if(parameters.begin(), parameters.end(), [&](const parameter& each) { return each.name == name; });
  MNEME_CHECK(entry != parameters.end(), name);
  return static_cast<std::size_t>(entry - parameters.begin());
}

std::size_t frozen_vit::attention_weight(std::int64_t block) const {
  return blocks_.at(static_cast<std::size_t>(block)) + vit_part::queries_keys_values;
}

std::int64_t frozen_vit::row_floats_with(std::int64_t further) const {
  const auto block = shape_.tokens() * (16 * shape_.width + 4 * shape_.heads * (shape_.tokens() + further));
  return shape_.input[0] * shape_.resized[0] * shape_.resized[1] + shape_.depth * block;
}

/// Embeddings [B, N, d] of the class token and the patches, with position embeddings added.
at::Tensor frozen_vit::embedded(const model_pass& pass) const {
  const auto part = pass.values.subspan(embedding_); // parts: class token, positions, weight, bias
  const auto p = shape_.patch;
  auto images = pass.images.to(part[2].scalar_type());
  if (shape_.resized != std::array{shape_.input[1], shape_.input[2]})
    images = at::upsample_bilinear2d(images, {shape_.resized[0], shape_.resized[1]}, false);
  const auto cut = images.unflatten(3, {shape_.resized[1] / p, p})
                       .unflatten(2, {shape_.resized[0] / p, p})
                       .permute({0, 2, 4, 1, 3, 5}) // [B, patch rows, patch columns, C, p, p]
                       .flatten(3)
                       .flatten(1, 2);
  const auto patches = at::linear(cut, part[2].flatten(1), part[3]);
  return at::cat({part[0].view({1, 1, -1}).expand({images.size(0), 1, shape_.width}), patches}, 1) +
         part[1].view({1, shape_.tokens(), shape_.width});
}

at::Tensor frozen_vit::class_token(const model_pass& pass, const attention_change& change) const {
  auto x = embedded(pass);
  for (std::int64_t i = 0; i < shape_.depth; ++i) {
    const auto part = pass.values.subspan(blocks_[static_cast<std::size_t>(i)]);
    const auto mixed = attention(pass, i, x, change);
    if (i + 1 == shape_.depth)
      x = x.narrow(1, 0, 1); // only the class token of the last block is read
    x = x + mixed;
    const auto hidden =
        at::gelu(vit_linear(part.subspan(vit_part::hidden), vit_norm(part.subspan(vit_part::norm2), x)));
    x = x + vit_linear(part.subspan(vit_part::out), hidden);
  }
  return vit_norm(pass.values.subspan(norm_), x.select(1, 0));
}

at::Tensor frozen_vit::by_head(const at::Tensor& tokens) const {
  return tokens.unflatten(-1, {shape_.heads, shape_.width / shape_.heads}).transpose(1, 2);
}

/// Output of a block's attention, [B, N, d]. For the last block it is [B, 1, d], the class token only.
at::Tensor frozen_vit::attention(const model_pass& pass, std::int64_t block, const at::Tensor& x,
                                 const attention_change& change) const {
  const auto part = pass.values.subspan(blocks_[static_cast<std::size_t>(block)]);
  const auto normed = vit_norm(part.subspan(vit_part::norm1), x);
  const auto own = vit_linear(part.subspan(vit_part::queries_keys_values), normed).chunk(3, -1);
  attention_heads heads{.queries = by_head(own[0]), .keys = by_head(own[1]), .values = by_head(own[2])};
  if (change)
    change(block, normed, heads);
  if (block + 1 == shape_.depth)
    heads.queries = heads.queries.narrow(2, 0, 1);
  const std::int64_t head_width = shape_.width / shape_.heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_width));
  const auto shares = at::softmax(at::matmul(heads.queries, heads.keys.transpose(-2, -1)) * scale, -1);
  const auto mixed = at::matmul(shares, heads.values).transpose(1, 2).flatten(2);
  return vit_linear(part.subspan(vit_part::projection), mixed);
}

} // namespace mneme
