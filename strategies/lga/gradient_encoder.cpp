#include "strategies/lga/gradient_inversion.hpp"

#include "runtime/base/check.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/products.hpp"
#include "runtime/kernels/sigmoid.hpp"
#include "runtime/models/function.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <cmath>
#include <numeric>
namespace mneme {
namespace {

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
}

at::Tensor transposed(const at::Tensor& values) { return values.transpose(1, 2).contiguous(); }

} // namespace

std::int64_t gradient_encoder::output_extent(std::int64_t extent, const convolution& layer) {
  return (extent + 2 * layer.padding - kernel) / layer.stride + 1;
}

gradient_encoder::gradient_encoder(std::array<std::int64_t, 3> image, std::int64_t classes)
    : image_(image), classes_(classes) {
  const std::int64_t padding = image[1] == 84 ? 1 : 2, first = image[1] >= 64 ? 4 : 2;
  layers_ = {{{image[0], first, padding}, {filters, 2, padding}, {filters, 1, padding}}};
  auto height = image[1], width = image[2];
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    height = output_extent(height, layer);
    width = output_extent(width, layer);
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

/// Backward pass in operators that autograd can differentiate again: a_0 = x, z_i = W_i * a_(i-1) + b_i, a_i =
/// sigmoid(z_i), d_4 = softmax(z_4) - y.
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
    extents.push_back({output_extent(height, layers_[i]), output_extent(width, layers_[i])});
    columns[i] = at::im2col(value, {kernel, kernel}, {1, 1}, {padding, padding}, {stride, stride});
    const auto z = stacked_product(parameters[2 * i], transposed(columns[i])) + parameters[2 * i + 1];
    outputs[i] = by_element(z, at::sigmoid);
    value = outputs[i].view({count, filters, extents.back()[0], extents.back()[1]});
  }
  const auto features = outputs[2].reshape({count, 1, features_});
  const auto logits = (stacked_product(parameters[6], features) + parameters[7]).squeeze(2); // [K, L]
  const auto targets = at::zeros_like(logits).scatter_(1, labels.unsqueeze(1), 1.0);

  auto delta = (at::softmax(logits, 1) - targets).unsqueeze(2); // [K, L, 1]
  std::vector<at::Tensor> d_parameters(8);
  d_parameters[6] = delta * features;
  d_parameters[7] = delta.squeeze(2);
  auto d_output = stacked_product(transposed(parameters[6]), transposed(delta)).view_as(outputs[2]);
  for (std::size_t i = 3; i-- > 0;) {
    delta = d_output * outputs[i] * (1.0 - outputs[i]); // [K, filters, pixels]
    d_parameters[2 * i] =
        stacked_product(delta, columns[i]).view({count, filters, layers_[i].channels, kernel, kernel});
    d_parameters[2 * i + 1] = delta.sum(2);
    if (i == 0)
      break;
    const auto& [channels, stride, padding] = layers_[i];
    const auto d_columns = stacked_product(transposed(parameters[2 * i]), transposed(delta));
    d_output = at::col2im(d_columns, {extents[i][0], extents[i][1]}, {kernel, kernel}, {1, 1}, {padding, padding},
                          {stride, stride})
                   .view_as(outputs[i - 1]);
  }
  return d_parameters;
}

std::int64_t label_of_gradients(const at::Tensor& last_weight) {
  return last_weight.to(at::kDouble).sum(1).argmin().item<std::int64_t>();
}

// -- hand-written gradients for one image on a CPU --------------------------------------------------------------------

namespace {

constexpr std::int64_t kernel = gradient_encoder::kernel, filters = gradient_encoder::filters;

std::size_t floats_of(std::int64_t rows, std::int64_t columns) { return static_cast<std::size_t>(rows * columns); }

const float* values_of(const at::Tensor& tensor) {
  MNEME_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat && tensor.is_cpu(), tensor.numel());
  return tensor.const_data_ptr<float>();
}

/// Joins filters [F, T] and biases [F] to [F, T + 1].
void join_bias(const float* weight, const float* bias, std::int64_t terms, float* to) {
  for (std::int64_t f = 0; f < filters; ++f) {
    to = std::copy_n(weight + f * terms, terms, to);
    *to++ = bias[f];
  }
}

/// Calls `copy` with the length of a row. For the row lengths of the papers' images, 8 and 16, the length is a
/// compile-time constant.
template <class Copy>
void with_length(std::int64_t length, const Copy& copy) {
  if (length == 16)
    copy(std::integral_constant<std::int64_t, 16>{});
  else if (length == 8)
    copy(std::integral_constant<std::int64_t, 8>{});
  else
    copy(length);
}

} // namespace

const float* encoder_distance::layer::filters() const { return factors.data() + mneme::filters * (terms + 1); }
float* encoder_distance::layer::sum_pulls() { return deltas.data() + mneme::filters * pixels; }

sent_gradients sent_by(const std::vector<at::Tensor>& tensors, std::int64_t label) {
  sent_gradients sent{.layers = {}, .last_weight = tensors.at(6), .last_bias = tensors.at(7), .label = label};
  for (std::size_t i = 0; i < sent.layers.size(); ++i) {
    const auto terms = tensors[2 * i].numel() / filters;
    sent.layers[i].resize(floats_of(filters, terms + 1));
    join_bias(values_of(tensors[2 * i]), values_of(tensors[2 * i + 1]), terms, sent.layers[i].data());
  }
  return sent;
}

encoder_distance::layer encoder_distance::layer_for(const gradient_encoder::convolution& shape, std::int64_t height,
                                                    std::int64_t width) {
  layer l{
      .channels = shape.channels, .height = height, .width = width, .stride = shape.stride, .padding = shape.padding};
  l.out_height = gradient_encoder::output_extent(height, shape);
  l.out_width = gradient_encoder::output_extent(width, shape);
  l.terms = shape.channels * kernel * kernel;
  l.pixels = l.out_height * l.out_width;
  l.plane_height = (height + 2 * shape.padding + shape.stride - 1) / shape.stride;
  l.plane_width = (width + 2 * shape.padding + shape.stride - 1) / shape.stride;
  l.factors.resize(floats_of(2 * filters, l.terms + 1));
  l.deltas.resize(floats_of(2 * filters, l.pixels));
  l.columns.resize(floats_of(l.terms + 1, l.pixels), 1.0F);
  for (auto* values : {&l.outputs, &l.d_outputs, &l.pulls, &l.d_pulls})
    values->resize(floats_of(filters, l.pixels));
  return l;
}

encoder_distance::encoder_distance(const gradient_encoder& encoder, const at::Tensor& weights)
    : classes_(encoder.classes()) {
  const auto* from = values_of(weights);
  auto height = encoder.image()[1], width = encoder.image()[2];
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto& l = layers_[i] = layer_for(encoder.convolutions()[i], height, width);
    auto* const to = l.factors.data() + filters * (l.terms + 1);
    join_bias(from, from + filters * l.terms, l.terms, to);
    from += filters * (l.terms + 1);
    height = l.out_height, width = l.out_width;
    const auto planes = l.stride * l.stride * l.plane_height * l.plane_width;
    planes_.resize(std::max(planes_.size(), floats_of(l.channels, planes)));
    spread_.resize(std::max(spread_.size(), floats_of(l.terms, l.pixels)));
    zeros_.resize(std::max(zeros_.size(), floats_of(1, l.terms + 1)));
  }
  features_ = filters * height * width;
  last_weight_.assign(from, from + classes_ * features_);
  from += classes_ * features_;
  last_bias_.assign(from, from + classes_);
  for (auto* values : {&shares_, &d_logits_, &pulls_})
    values->resize(static_cast<std::size_t>(classes_));
  last_difference_.resize(floats_of(classes_, features_));
  zeros_.resize(std::max(zeros_.size(), static_cast<std::size_t>(classes_)));
}

double encoder_distance::value_and_gradient(const float* image, const sent_gradients& sent, float* gradient) {
  forward_pass(image, sent.label);
  backward_pass();
  const double value = compare(sent);
  differentiate_backward(sent);
  differentiate_forward(gradient);
  return value;
}

// -- patches ----------------------------------------------------------------------------------------------------------

// Rows and columns of the padded input are grouped by their index modulo the stride. Then the pixels that one filter
// tap reads are adjacent in memory, row by row.

/// Copies the patches of `input` [C, H, W] to `columns` [T, P].
void encoder_distance::patches_of(const layer& l, const float* input, float* columns) {
  const auto plane = l.plane_height * l.plane_width, planes = l.stride * l.stride * plane;
  std::fill_n(planes_.begin(), l.channels * planes, 0.0F);
  for (std::int64_t c = 0; c < l.channels; ++c)
    for (std::int64_t y = 0; y < l.height; ++y) {
      const auto padded_y = y + l.padding;
      auto* const rows =
          planes_.data() + c * planes + padded_y % l.stride * l.stride * plane + padded_y / l.stride * l.plane_width;
      for (std::int64_t x = 0; x < l.width; ++x)
        rows[(x + l.padding) % l.stride * plane + (x + l.padding) / l.stride] = *input++;
    }
  with_length(l.out_width, [&](auto length) {
    for (std::int64_t c = 0; c < l.channels; ++c)
      for (std::int64_t ky = 0; ky < kernel; ++ky)
        for (std::int64_t kx = 0; kx < kernel; ++kx) {
          const auto* from = planes_.data() + c * planes + (ky % l.stride * l.stride + kx % l.stride) * plane +
                             ky / l.stride * l.plane_width + kx / l.stride;
          for (std::int64_t y = 0; y < l.out_height; ++y, from += l.plane_width)
            columns = std::copy_n(from, static_cast<std::int64_t>(length), columns);
        }
  });
}

/// Adds `columns` [T, P] to the pixels of `input` [C, H, W] that they belong to; the transpose of patches_of().
void encoder_distance::add_patches(const layer& l, const float* columns, float* input) {
  const auto plane = l.plane_height * l.plane_width, planes = l.stride * l.stride * plane;
  std::fill_n(planes_.begin(), l.channels * planes, 0.0F);
  with_length(l.out_width, [&](auto length) {
    for (std::int64_t c = 0; c < l.channels; ++c)
      for (std::int64_t ky = 0; ky < kernel; ++ky)
        for (std::int64_t kx = 0; kx < kernel; ++kx) {
          auto* to = planes_.data() + c * planes + (ky % l.stride * l.stride + kx % l.stride) * plane +
                     ky / l.stride * l.plane_width + kx / l.stride;
          for (std::int64_t y = 0; y < l.out_height; ++y, to += l.plane_width, columns += length)
            for (std::int64_t x = 0; x < length; ++x)
              to[x] += columns[x];
        }
  });
  for (std::int64_t c = 0; c < l.channels; ++c)
    for (std::int64_t y = 0; y < l.height; ++y) {
      const auto padded_y = y + l.padding;
      const auto* const rows =
          planes_.data() + c * planes + padded_y % l.stride * l.stride * plane + padded_y / l.stride * l.plane_width;
      for (std::int64_t x = 0; x < l.width; ++x)
        *input++ += rows[(x + l.padding) % l.stride * plane + (x + l.padding) / l.stride];
    }
}

// -- the last layer ---------------------------------------------------------------------------------------------------

void encoder_distance::vector_by_matrix(const std::vector<float>& vector, const std::vector<float>& matrix,
                                        std::vector<float>& into, const float* before, float scale) const {
  kernels::multiply({.a = vector.data(),
                     .a_row = classes_,
                     .a_step = 1,
                     .b = matrix.data(),
                     .b_row = features_,
                     .before = before,
                     .c = into.data(),
                     .c_row = features_,
                     .m = 1,
                     .n = features_,
                     .k = classes_,
                     .scale = scale});
}

void encoder_distance::matrix_by_vector(const std::vector<float>& matrix, const std::vector<float>& vector,
                                        const std::vector<float>& bias, std::vector<float>& into) const {
  kernels::multiply({.a = vector.data(),
                     .a_row = features_,
                     .b = matrix.data(),
                     .b_row = features_,
                     .c = into.data(),
                     .c_row = classes_,
                     .m = 1,
                     .n = classes_,
                     .k = features_,
                     .bias = bias.data()});
}

// -- the encoder's gradients ------------------------------------------------------------------------------------------

/// z_i = W_i * a_(i-1) + b_i, a_i = sigmoid(z_i), and d_logits = softmax(z_4) - onehot(label).
void encoder_distance::forward_pass(const float* image, std::int64_t label) {
  const auto* input = image;
  for (auto& l : layers_) {
    patches_of(l, input, l.columns.data());
    kernels::multiply({.a = l.filters(),
                       .a_row = l.terms + 1,
                       .a_step = 1,
                       .b = l.columns.data(),
                       .b_row = l.pixels,
                       .c = l.outputs.data(),
                       .c_row = l.pixels,
                       .m = filters,
                       .n = l.pixels,
                       .k = l.terms + 1});
    kernels::sigmoid(l.outputs.data(), l.outputs.data(), filters * l.pixels);
    input = l.outputs.data();
  }
  matrix_by_vector(last_weight_, layers_[2].outputs, last_bias_, shares_);
  const double largest = *std::max_element(shares_.begin(), shares_.end());
  double sum = 0.0;
  for (auto& share : shares_)
    sum += share = static_cast<float>(std::exp(share - largest));
  for (auto& share : shares_)
    share = static_cast<float>(share / sum);
  d_logits_ = shares_;
  d_logits_[static_cast<std::size_t>(label)] -= 1.0F;
}

/// delta_i = (d a_i) a_i (1 - a_i), and the gradients delta_i * a_(i-1), which are written to `factors`.
void encoder_distance::backward_pass() {
  vector_by_matrix(d_logits_, last_weight_, layers_[2].d_outputs);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    auto& l = layers_[i];
    kernels::sigmoid_backward(l.deltas.data(), l.d_outputs.data(), l.outputs.data(), filters * l.pixels);
    kernels::multiply({.a = l.deltas.data(),
                       .a_row = l.pixels,
                       .b = l.columns.data(),
                       .b_row = l.pixels,
                       .c = l.factors.data(),
                       .c_row = l.terms + 1,
                       .m = filters,
                       .n = l.terms + 1,
                       .k = l.pixels,
                       .bias = zeros_.data()});
    if (i == 0)
      break;
    kernels::multiply({.a = l.filters(),
                       .a_row = 1,
                       .a_step = l.terms + 1,
                       .b = l.deltas.data(),
                       .b_row = l.pixels,
                       .c = spread_.data(),
                       .c_row = l.pixels,
                       .m = l.terms,
                       .n = l.pixels,
                       .k = filters});
    auto& before = layers_[i - 1].d_outputs;
    std::fill(before.begin(), before.end(), 0.0F);
    add_patches(l, spread_.data(), before.data());
  }
}

/// Returns the sum of squared differences to `sent`. Replaces each difference in `factors` by twice its value.
double encoder_distance::compare(const sent_gradients& sent) {
  double value = 0.0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto* const factors = layers_[i].factors.data();
    const auto count = std::ssize(sent.layers[i]);
    for (std::int64_t j = 0; j < count; ++j)
      factors[j] -= sent.layers[i][static_cast<std::size_t>(j)];
    kernels::add_squares(value, factors, count);
    for (std::int64_t j = 0; j < count; ++j)
      factors[j] *= 2.0F;
  }
  // last_difference = sent - d_logits features^T
  kernels::multiply({.a = d_logits_.data(),
                     .a_row = 1,
                     .a_step = 1,
                     .b = layers_[2].outputs.data(),
                     .b_row = features_,
                     .before = values_of(sent.last_weight),
                     .c = last_difference_.data(),
                     .c_row = features_,
                     .m = classes_,
                     .n = features_,
                     .k = 1,
                     .scale = -1.0F});
  kernels::add_squares(value, last_difference_.data(), std::ssize(last_difference_));
  const auto* const bias = values_of(sent.last_bias);
  for (std::size_t c = 0; c < d_logits_.size(); ++c)
    value += static_cast<double>(d_logits_[c] - bias[c]) * (d_logits_[c] - bias[c]);
  return value;
}

// -- gradient of the objective ----------------------------------------------------------------------------------------

/// Derivatives of the objective with respect to the results of backward_pass(), in reverse order.
void encoder_distance::differentiate_backward(const sent_gradients& sent) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto& l = layers_[i];
    auto* const pulls = l.sum_pulls(); // derivative with respect to delta_i
    kernels::multiply({.a = l.factors.data(),
                       .a_row = l.terms + 1,
                       .a_step = 1,
                       .b = l.columns.data(),
                       .b_row = l.pixels,
                       .c = pulls,
                       .c_row = l.pixels,
                       .m = filters,
                       .n = l.pixels,
                       .k = l.terms + 1});
    if (i > 0) {
      patches_of(l, layers_[i - 1].d_pulls.data(), spread_.data());
      kernels::multiply({.a = l.filters(),
                         .a_row = l.terms + 1,
                         .a_step = 1,
                         .b = spread_.data(),
                         .b_row = l.pixels,
                         .before = pulls,
                         .c = pulls,
                         .c_row = l.pixels,
                         .m = filters,
                         .n = l.pixels,
                         .k = l.terms});
    }
    for (std::size_t j = 0; j < l.outputs.size(); ++j) {
      const float a = l.outputs[j];
      l.d_pulls[j] = pulls[j] * a * (1.0F - a);
      l.pulls[j] = pulls[j] * l.d_outputs[j] * (1.0F - 2.0F * a);
    }
  }
  // With respect to d_logits: through the last filters, the difference of the bias, and the product with the features.
  const auto& features = layers_[2];
  matrix_by_vector(last_weight_, features.d_pulls, zeros_, pulls_);
  std::vector<float> along(d_logits_.size());
  matrix_by_vector(last_difference_, features.outputs, zeros_, along);
  const auto* const bias = values_of(sent.last_bias);
  for (std::size_t c = 0; c < along.size(); ++c)
    pulls_[c] += 2.0F * (d_logits_[c] - bias[c] - along[c]);
}

/// Derivatives of the objective with respect to the results of forward_pass(), down to the image.
void encoder_distance::differentiate_forward(float* gradient) {
  double mean = 0.0; // mean of the derivative under the softmax, for its Jacobian
  for (std::size_t c = 0; c < shares_.size(); ++c)
    mean += static_cast<double>(shares_[c]) * pulls_[c];
  for (std::size_t c = 0; c < shares_.size(); ++c)
    pulls_[c] = shares_[c] * static_cast<float>(pulls_[c] - mean);
  auto& features = layers_[2].pulls;
  vector_by_matrix(pulls_, last_weight_, features, features.data());
  vector_by_matrix(d_logits_, last_difference_, features, features.data(), -2.0F);
  std::fill_n(gradient, layers_[0].channels * layers_[0].height * layers_[0].width, 0.0F);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    auto& l = layers_[i];
    kernels::sigmoid_backward(l.sum_pulls(), l.pulls.data(), l.outputs.data(), filters * l.pixels);
    kernels::multiply({.a = l.factors.data(),
                       .a_row = 1,
                       .a_step = l.terms + 1,
                       .b = l.deltas.data(),
                       .b_row = l.pixels,
                       .c = spread_.data(),
                       .c_row = l.pixels,
                       .m = l.terms,
                       .n = l.pixels,
                       .k = 2 * filters});
    add_patches(l, spread_.data(), i > 0 ? layers_[i - 1].pulls.data() : gradient);
  }
}

} // namespace mneme
