#include "strategies/lga/gradient_encoder.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/function.hpp"
#include <ATen/ATen.h>
#include <numeric>
namespace mneme {
namespace {

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
}

at::Tensor transposed(const at::Tensor& values) { return values.transpose(1, 2).contiguous(); }

} // namespace

std::int64_t gradient_encoder::extent_behind(std::int64_t extent, const convolution& layer) {
  return (extent + 2 * layer.padding - kernel) / layer.stride + 1;
}

gradient_encoder::gradient_encoder(std::array<std::int64_t, 3> image, std::int64_t classes)
    : image_(image), classes_(classes) {
  const std::int64_t padding = image[1] == 84 ? 1 : 2, first = image[1] >= 64 ? 4 : 2;
  layers_ = {{{image[0], first, padding}, {filters, 2, padding}, {filters, 1, padding}}};
  auto height = image[1], width = image[2];
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    height = extent_behind(height, layer);
    width = extent_behind(width, layer);
    const auto name = std::to_string(i + 1);
    tensors_.push_back({.name = name + ".weight", .shape = {filters, layer.channels, kernel, kernel}});
    tensors_.push_back({.name = name + ".bias", .shape = {filters}});
  }
  features_ = filters * height * width;
  tensors_.push_back({.name = "4.weight", .shape = {classes, features_}});
  tensors_.push_back({.name = "4.bias", .shape = {classes}});
}

std::int64_t gradient_encoder::size() const {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors_)
    sum += elements(tensor.shape);
  return sum;
}

at::Tensor gradient_encoder::drawn(const rng_key& key) const {
  auto weights = at::empty({size()}, at::kFloat);
  rng_stream stream(key);
  for (auto* at = weights.mutable_data_ptr<float>(); auto& value : std::span(at, static_cast<std::size_t>(size())))
    value = static_cast<float>(stream.uniform(-0.5, 0.5));
  return weights;
}

/// The backward pass by hand, in operators that autograd follows: with a_0 = x, z_i = W_i * a_(i-1) + b_i,
/// a_i = sigmoid(z_i), and d_4 = softmax(z_4) - y.
std::vector<at::Tensor> gradient_encoder::gradients(const at::Tensor& weights, const at::Tensor& images,
                                                    const at::Tensor& labels) const {
  const auto count = images.size(0);
  std::vector<at::Tensor> parameters;
  for (std::int64_t offset = 0; const auto& tensor : tensors_) {
    const auto whole = weights.narrow(0, offset, elements(tensor.shape));
    offset += elements(tensor.shape);
    parameters.push_back(tensor.shape.size() == 1 ? whole.view({1, -1, 1}) : whole.view({1, tensor.shape[0], -1}));
  }

  std::array<at::Tensor, 3> columns, outputs; // [K, C 25, pixels], [K, filters, height, width]
  std::vector<std::array<std::int64_t, 2>> extents{{image_[1], image_[2]}};
  auto value = images;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto [channels, stride, padding] = layers_[i];
    const auto [height, width] = extents.back();
    extents.push_back({extent_behind(height, layers_[i]), extent_behind(width, layers_[i])});
    columns[i] = at::im2col(value, {kernel, kernel}, {1, 1}, {padding, padding}, {stride, stride});
    const auto z = stacked_product(parameters[2 * i], transposed(columns[i])) + parameters[2 * i + 1];
    outputs[i] = by_element(z, at::sigmoid);
    value = outputs[i].view({count, filters, extents.back()[0], extents.back()[1]});
  }
  const auto features = outputs[2].reshape({count, 1, features_});
  const auto logits = (stacked_product(parameters[6], features) + parameters[7]).squeeze(2); // [K, L]
  const auto targets = at::zeros_like(logits).scatter_(1, labels.unsqueeze(1), 1.0);

  auto delta = (at::softmax(logits, 1) - targets).unsqueeze(2); // [K, L, 1]
  std::vector<at::Tensor> found(8);
  found[6] = delta * features;
  found[7] = delta.squeeze(2);
  auto d_output = stacked_product(transposed(parameters[6]), transposed(delta)).view_as(outputs[2]);
  for (std::size_t i = 3; i-- > 0;) {
    delta = d_output * outputs[i] * (1.0 - outputs[i]); // [K, filters, pixels]
    found[2 * i] = stacked_product(delta, columns[i]).view({count, filters, layers_[i].channels, kernel, kernel});
    found[2 * i + 1] = delta.sum(2);
    if (i == 0)
      break;
    const auto& [channels, stride, padding] = layers_[i];
    const auto d_columns = stacked_product(transposed(parameters[2 * i]), transposed(delta));
    d_output = at::col2im(d_columns, {extents[i][0], extents[i][1]}, {kernel, kernel}, {1, 1}, {padding, padding},
                          {stride, stride})
                   .view_as(outputs[i - 1]);
  }
  return found;
}

std::int64_t label_of_gradients(const at::Tensor& last_weight) {
  return last_weight.to(at::kDouble).sum(1).argmin().item<std::int64_t>();
}

} // namespace mneme
