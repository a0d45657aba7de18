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

template <class Visit>
void upsampling_layer::visit_sources(const Visit& visit) const {
  std::int64_t to = 0;
  for (const auto& line : lines_)
    for (const auto& pixel : pixels_) {
      const auto above = line.first * in_.width, below = line.second * in_.width;
      visit(above + pixel.first, to, (1.0F - line.share) * (1.0F - pixel.share));
      if (pixel.share > 0.0F)
        visit(above + pixel.second, to, (1.0F - line.share) * pixel.share);
      if (line.share > 0.0F)
        visit(below + pixel.first, to, line.share * (1.0F - pixel.share));
      if (line.share > 0.0F && pixel.share > 0.0F)
        visit(below + pixel.second, to, line.share * pixel.share);
      ++to;
    }
}

void upsampling_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                               at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  const auto channels = in_.channels;
  out.zero_();
  for (std::int64_t image = 0; image < pass.models * pass.rows; ++image) {
    const float* const x = in.const_data_ptr<float>() + image * in_.floats();
    float* const y = out.mutable_data_ptr<float>() + image * out_.floats();
    visit_sources([&](std::int64_t from, std::int64_t to, float weight) {
      for (std::int64_t c = 0; c < channels; ++c)
        y[to * channels + c] += weight * x[from * channels + c];
    });
  }
}

void upsampling_layer::backward(const layer_pass& pass, const backward_data& data,
                                const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  if (!data.in.is_cpu())
    return composite_backward(pass, data);
  const auto channels = in_.channels;
  data.d_in->zero_();
  for (std::int64_t image = 0; image < pass.models * pass.rows; ++image) {
    const float* const d = data.d_out.const_data_ptr<float>() + image * out_.floats();
    float* const dx = data.d_in->mutable_data_ptr<float>() + image * in_.floats();
    visit_sources([&](std::int64_t from, std::int64_t to, float weight) {
      for (std::int64_t c = 0; c < channels; ++c)
        dx[from * channels + c] += weight * d[to * channels + c];
    });
  }
}

// -- with LibTorch's operators: products, whose sums have an order on every device ------------------------------------

/// [to, from]: what each of the results has of each source.
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

/// images [n, height, width, C] with lines and pixels mixed by matrices [to, from].
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

void upsampling_layer::composite_forward(const layer_pass&, const at::Tensor& in, at::Tensor& out) const {
  out.view({-1, out_.height, out_.width, out_.channels})
      .copy_(mixed(in.view({-1, in_.height, in_.width, in_.channels}), matrix_of(lines_, in_.height, in),
                   matrix_of(pixels_, in_.width, in)));
}

void upsampling_layer::composite_backward(const layer_pass&, const backward_data& data) const {
  data.d_in->view({-1, in_.height, in_.width, in_.channels})
      .copy_(mixed(data.d_out.view({-1, out_.height, out_.width, out_.channels}),
                   matrix_of(lines_, in_.height, data.in).t(), matrix_of(pixels_, in_.width, data.in).t()));
}

} // namespace mneme
