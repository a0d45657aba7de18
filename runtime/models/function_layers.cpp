#include "runtime/models/function_layers.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/function_layer.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <cmath>
namespace mneme {
namespace {

// Axes: K models, B rows of a step, T tokens, W width of a token; an image [height, width, channels].

/// Model k's images in LibTorch's order, [B, channels, height, width], as a copy that is aligned to a cache line.
at::Tensor images_of(const at::Tensor& whole, std::int64_t k, const image_shape& image) {
  return whole[k]
      .view({whole.size(1), image.height, image.width, image.channels})
      .permute({0, 3, 1, 2})
      .clone(at::MemoryFormat::Contiguous);
}

class grouped_convolution_layer final : public function_layer {
public:
  struct shape {
    image_shape in{};
    grouped_convolution_options how{};
    std::int64_t weight_offset = 0, bias_offset = -1; ///< Offsets within [P]; bias -1: none.
  };
  explicit grouped_convolution_layer(const shape& chosen) : shape_(chosen) {}
  [[nodiscard]] image_shape out_shape() const {
    const auto windows = [&](std::int64_t pixels) {
      return (pixels + 2 * shape_.how.padding - shape_.how.dilation * (shape_.how.kernel - 1) - 1) / shape_.how.stride +
             1;
    };
    return {windows(shape_.in.height), windows(shape_.in.width), shape_.how.filters};
  }
  [[nodiscard]] std::int64_t width(class_range) const override { return out_shape().floats(); }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }

  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override {
    const auto& how = shape_.how;
    const auto filters =
        pass.weights_at(shape_.weight_offset, {how.filters, shape_.in.channels / how.groups, how.kernel, how.kernel});
    const auto biases = how.bias ? pass.weights_at(shape_.bias_offset, {how.filters}) : at::Tensor{};
    const auto whole = in.contiguous();
    std::vector<at::Tensor> results;
    for (std::int64_t k = 0; k < pass.models; ++k) {
      const auto own = filters.size(0) == 1 ? 0 : k;
      const auto bias = how.bias ? biases.select(0, own) : at::Tensor{};
      results.push_back(at::convolution(images_of(whole, k, shape_.in),
                                        filters.select(0, own).clone(at::MemoryFormat::Contiguous), bias,
                                        {how.stride, how.stride}, {how.padding, how.padding},
                                        {how.dilation, how.dilation}, false, {0, 0}, how.groups)
                            .permute({0, 2, 3, 1})
                            .flatten(1));
    }
    return at::stack(results);
  }

private:
  shape shape_;
};

class average_pool_layer final : public function_layer {
public:
  average_pool_layer(const image_shape& in, std::int64_t window, std::int64_t stride, std::int64_t padding)
      : in_(in), window_(window), stride_(stride), padding_(padding) {}
  [[nodiscard]] image_shape out_shape() const {
    const auto windows = [&](std::int64_t pixels) { return (pixels + 2 * padding_ - window_) / stride_ + 1; };
    return {windows(in_.height), windows(in_.width), in_.channels};
  }
  [[nodiscard]] std::int64_t width(class_range) const override { return out_shape().floats(); }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override {
    const auto images = in.reshape({pass.models * pass.rows, in_.height, in_.width, in_.channels})
                            .permute({0, 3, 1, 2})
                            .contiguous(); // gives one order of additions for any number of channels
    return at::avg_pool2d(images, {window_, window_}, {stride_, stride_}, {padding_, padding_})
        .permute({0, 2, 3, 1})
        .reshape({pass.models, pass.rows, -1});
  }

private:
  image_shape in_;
  std::int64_t window_, stride_, padding_;
};

class value_function_layer final : public function_layer {
public:
  value_function_layer(std::int64_t width, value_function kind, double alpha)
      : width_(width), kind_(kind), alpha_(alpha) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  [[nodiscard]] at::Tensor function(const function_pass&, const at::Tensor& in) const override {
    switch (kind_) {
    case value_function::relu6:
      return in.clamp(0.0, 6.0);
    case value_function::hardswish:
      return by_element(in, [](const at::Tensor& values) { return at::hardswish(values); });
    case value_function::hardsigmoid:
      return by_element(in, [](const at::Tensor& values) { return at::hardsigmoid(values); });
    case value_function::mish:
      return by_element(in, [](const at::Tensor& values) { return at::mish(values); });
    case value_function::softplus:
      return by_element(in, [](const at::Tensor& values) { return at::softplus(values); });
    case value_function::gelu_tanh:
      return by_element(in, [](const at::Tensor& values) { return at::gelu(values, "tanh"); });
    case value_function::elu:
      break;
    }
    const auto negative =
        by_element(in.clamp_max(0.0), [](const at::Tensor& values) { return at::expm1(values); }) * alpha_;
    return at::where(in > 0.0, in, negative);
  }

private:
  std::int64_t width_;
  value_function kind_;
  double alpha_;
};

class positions_layer final : public function_layer {
public:
  positions_layer(std::int64_t width, std::int64_t offset) : width_(width), offset_(offset) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return width_; }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override {
    return in + pass.weights_at(offset_, {1, width_}); // [K, B, T * W] + [K or 1, 1, T * W]
  }

private:
  std::int64_t width_, offset_;
};

class rms_norm_layer final : public function_layer {
public:
  struct shape {
    std::int64_t tokens = 1, channels = 1, weight_offset = 0;
    double epsilon = 0.0;
  };
  explicit rms_norm_layer(const shape& chosen) : shape_(chosen) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.tokens * shape_.channels; }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override {
    const auto x = in.reshape({pass.models, -1, shape_.channels}); // [K, B * T, W]
    const auto scale =
        by_element((x * x).mean(2, true) + shape_.epsilon, [](const at::Tensor& values) { return at::rsqrt(values); });
    return (x * scale * pass.weights_at(shape_.weight_offset, {1, shape_.channels})).reshape(in.sizes());
  }

private:
  shape shape_;
};

} // namespace

void add_grouped_convolution(network_builder& to, const std::string& name, const grouped_convolution_options& layer) {
  const auto in = to.shape_here();
  MNEME_CHECK(to.cursor() > 0 && in.channels % layer.groups == 0 && layer.filters % layer.groups == 0, to.identity(),
              in.channels, layer.filters, layer.groups);
  const auto channels = in.channels / layer.groups; // number of input channels that a filter reads
  const double bound = 1.0 / std::sqrt(static_cast<double>(layer.kernel * layer.kernel * channels));
  grouped_convolution_layer::shape shape{.in = in, .how = layer};
  shape.weight_offset = to.add_parameter(
      {.name = name + ".weight", .shape = {layer.filters, channels, layer.kernel, layer.kernel}, .bound = bound});
  if (layer.bias)
    shape.bias_offset = to.add_parameter({.name = name + ".bias", .shape = {layer.filters}, .bound = bound});
  auto made = std::make_unique<grouped_convolution_layer>(shape);
  const auto out = made->out_shape();
  to.add_node({.operation = std::move(made)}, out, true);
}

void add_average_pool(network_builder& to, std::int64_t window, std::int64_t stride, std::int64_t padding) {
  auto made = std::make_unique<average_pool_layer>(to.shape_here(), window, stride, padding);
  const auto out = made->out_shape();
  to.add_node({.operation = std::move(made)}, out, false);
}

void add_value_function(network_builder& to, value_function kind, double alpha) {
  const auto in = to.shape_here();
  to.add_node({.operation = std::make_unique<value_function_layer>(in.floats(), kind, alpha)}, in, false);
}

void add_positions(network_builder& to, const std::string& name) {
  constexpr double deviation = 0.02; // the deviation with which timm draws position embeddings
  const auto in = to.shape_here();
  const auto offset = to.add_parameter({.name = name, .shape = {1, in.pixels(), in.channels}, .deviation = deviation});
  to.add_node({.operation = std::make_unique<positions_layer>(in.floats(), offset)}, in, true);
}

void add_rms_norm(network_builder& to, const std::string& name, double epsilon) {
  const auto in = to.shape_here();
  const auto offset = to.add_parameter({.name = name + ".weight", .shape = {in.channels}, .constant = 1.0});
  to.add_node({.operation = std::make_unique<rms_norm_layer>(rms_norm_layer::shape{
                   .tokens = in.pixels(), .channels = in.channels, .weight_offset = offset, .epsilon = epsilon})},
              in, true);
}

} // namespace mneme
