#include "runtime/models/composite_convolution.hpp"
#include "runtime/kernels/transpose.hpp"
#include "runtime/models/aligned_product.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
namespace mneme {

namespace {

/// Model k's part of `whole` [K, B, floats of an image] in LibTorch's order: a view [B, channels, height, width].
at::Tensor images_of_model(const at::Tensor& whole, std::int64_t k, const image_shape& image) {
  return whole[k].view({whole.size(1), image.height, image.width, image.channels}).permute({0, 3, 1, 2});
}

// Slots of the pass's memory.
constexpr std::size_t in_slot = 0, d_out_slot = 1, filter_slot = 2;

/// images_of_model() for reading, aligned to a cache line on a CPU. LibTorch computes the convolution of a single small
/// image by an MKL product, whose bits depend on the alignment of its operands.
at::Tensor aligned_images(const layer_pass& pass, const at::Tensor& whole, std::int64_t k, const image_shape& image,
                          std::size_t slot) {
  const auto images = images_of_model(whole, k, image);
  return images.is_cpu() ? at_line(images, slot, *pass.memory) : images;
}

} // namespace

at::Tensor composite_convolution::filters_of(const layer_pass& pass, std::int64_t k) const {
  const auto terms = kernel * kernel * in.channels;
  const auto given = pass.weights_row(k).narrow(0, weight_offset, terms * out.channels);
  if (!given.is_cpu())
    return given.view({kernel, kernel, in.channels, out.channels}).permute({3, 2, 0, 1});
  float* const turned = pass.memory->take(filter_slot, given.numel());
  kernels::transpose(given.const_data_ptr<float>(), terms, out.channels, turned);
  return at::from_blob(turned, {out.channels, kernel, kernel, in.channels}, at::kFloat).permute({0, 3, 1, 2});
}

at::Tensor composite_convolution::in_weight_order(const layer_pass& pass, const at::Tensor& d_filters) {
  if (!d_filters.is_cpu())
    return d_filters.permute({2, 3, 1, 0}).contiguous();
  const auto rows = d_filters.contiguous(at::MemoryFormat::ChannelsLast);
  float* const turned = pass.memory->take(filter_slot, rows.numel());
  kernels::transpose(rows.const_data_ptr<float>(), rows.size(0), rows.numel() / rows.size(0), turned);
  return at::from_blob(turned, {rows.numel()}, at::kFloat);
}

at::Tensor composite_convolution::applied(const at::Tensor& images, const at::Tensor& filters,
                                          const at::Tensor& bias) const {
  return at::convolution(images, filters, bias, {stride, stride}, {padding, padding}, {1, 1}, false, {0, 0}, 1);
}

void composite_convolution::forward(const layer_pass& pass, const at::Tensor& from, at::Tensor& into) const {
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto bias = biased() ? pass.weights_row(k).narrow(0, bias_offset, out.channels) : at::Tensor{};
    images_of_model(into, k, out).copy_(applied(aligned_images(pass, from, k, in, in_slot), filters_of(pass, k), bias));
  }
  if (after == activation::relu)
    at::relu_(into);
}

void composite_convolution::backward(const layer_pass& pass, const kernel_layer::backward_data& data,
                                     const gradient_sink& sink) const {
  if (after == activation::relu)
    data.d_out.masked_fill_(data.out <= 0, 0);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto [d_in, d_filters, d_bias] = at::convolution_backward(
        aligned_images(pass, data.d_out, k, out, d_out_slot), aligned_images(pass, data.in, k, in, in_slot),
        filters_of(pass, k), at::OptionalIntArrayRef({out.channels}), {stride, stride}, {padding, padding}, {1, 1},
        false, {0, 0}, 1, {data.d_in != nullptr, !data.fixed, biased() && !data.fixed});
    if (data.d_in && data.add)
      images_of_model(*data.d_in, k, in).add_(d_in);
    else if (data.d_in)
      images_of_model(*data.d_in, k, in).copy_(d_in);
    if (data.fixed)
      continue;
    write_gradient(sink, k, weight_offset, in_weight_order(pass, d_filters));
    if (biased())
      write_gradient(sink, k, bias_offset, d_bias);
  }
}

at::Tensor composite_convolution::function(const function_pass& pass, const at::Tensor& from) const {
  const auto filters = pass.weights_at(weight_offset, {kernel, kernel, in.channels, out.channels});
  const auto bias = biased() ? pass.weights_at(bias_offset, {out.channels}) : at::Tensor{};
  std::vector<at::Tensor> results;
  for (std::int64_t k = 0; k < pass.models; ++k) { // the copies of each model's operands begin at a cache line
    const auto row = filters.size(0) == 1 ? 0 : k;
    const auto own = filters.select(0, row).permute({3, 2, 0, 1}).clone(at::MemoryFormat::Contiguous);
    const auto images = images_of_model(from.contiguous(), k, in).clone(at::MemoryFormat::Contiguous);
    const auto y = applied(images, own, biased() ? bias.select(0, row).clone() : at::Tensor{});
    results.push_back(y.permute({0, 2, 3, 1}).flatten(1));
  }
  const auto y = at::stack(results);
  return after == activation::relu ? at::relu(y) : y;
}

} // namespace mneme
