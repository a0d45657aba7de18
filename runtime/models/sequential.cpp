#include "runtime/models/sequential.hpp"
#include "runtime/check.hpp"
#include <cmath>
namespace mneme {
namespace {

/// Where things lie in tape::saved of a net of `layers` layers.
struct places {
  std::size_t layers;
  [[nodiscard]] std::size_t size() const { return 1 + 3 * layers; }
  /// What layer i reads; output(i - 1).
  [[nodiscard]] std::size_t input(std::size_t i) const { return i; }
  [[nodiscard]] std::size_t output(std::size_t i) const { return i + 1; }
  [[nodiscard]] std::size_t kept(std::size_t i) const { return 1 + layers + i; }
  [[nodiscard]] std::size_t d_input(std::size_t i) const { return 1 + 2 * layers + i; }
};

} // namespace

sequential::sequential(std::string identity, std::array<std::int64_t, 3> shape)
    : identity_(std::move(identity)), shape_(shape), input_width_(shape[0] * shape[1] * shape[2]) {}

std::pair<std::int64_t, std::int64_t> sequential::add_parameters(const std::string& name,
                                                                 std::vector<std::int64_t> shape, bool head) {
  std::int64_t fan_in = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis)
    fan_in *= shape[axis];
  const auto out = shape[0], weight_offset = size(), bias_offset = weight_offset + out * fan_in;
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  layout_.push_back({name + ".weight", std::move(shape), weight_offset, out * fan_in, bound, head});
  layout_.push_back({name + ".bias", {out}, bias_offset, out, bound, head});
  return {weight_offset, bias_offset};
}

void sequential::add_linear(const std::string& name, std::int64_t out, activation after) {
  const auto in = row_floats();
  const auto [weight, bias] = add_parameters(name, {out, in}, false);
  layers_.push_back(std::make_unique<linear_layer>(
      linear_layer::shape{.in = in, .out = out, .weight_offset = weight, .bias_offset = bias, .after = after}));
  shape_ = {1, 1, out};
}

void sequential::add_convolution(const std::string& name, std::int64_t filters, std::int64_t kernel,
                                 std::int64_t padding, activation after) {
  const auto [weight, bias] = add_parameters(name, {filters, shape_[0], kernel, kernel}, false);
  const conv_layer::shape what{.channels = shape_[0],
                               .height = shape_[1],
                               .width = shape_[2],
                               .filters = filters,
                               .kernel = kernel,
                               .padding = padding,
                               .weight_offset = weight,
                               .bias_offset = bias,
                               .after = after};
  layers_.push_back(std::make_unique<conv_layer>(what));
  shape_ = {filters, what.out_height(), what.out_width()};
}

void sequential::add_max_pool() {
  layers_.push_back(std::make_unique<max_pool_layer>(
      max_pool_layer::shape{.channels = shape_[0], .height = shape_[1], .width = shape_[2]}));
  shape_ = {shape_[0], shape_[1] / 2, shape_[2] / 2};
}

void sequential::add_head(const std::string& name, std::int64_t classes) {
  feature_width_ = row_floats();
  classes_ = classes;
  const auto [weight, bias] = add_parameters(name, {classes, feature_width_}, true);
  layers_.push_back(std::make_unique<linear_layer>(linear_layer::shape{
      .in = feature_width_, .out = classes, .weight_offset = weight, .bias_offset = bias, .head = true}));
  shape_ = {1, 1, classes};
}

std::int64_t sequential::working_set(std::int64_t rows) const {
  std::int64_t row_bytes = input_width_ * static_cast<std::int64_t>(sizeof(float));
  for (const auto& one : layers_) // an output and its gradient
    row_bytes += 2 * one->width({0, classes_}) * static_cast<std::int64_t>(sizeof(float)) + one->kept_bytes_per_row();
  return size() * static_cast<std::int64_t>(sizeof(float)) + rows * row_bytes;
}

activations sequential::forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                tape* keep) const {
  MNEME_CHECK(classes_ > 0 && 0 <= classes.low && classes.high <= classes_, identity_, classes.low, classes.high);
  MNEME_CHECK(weights.size(1) == size() && weights.stride(1) == 1, identity_, weights.sizes(), weights.strides());
  MNEME_CHECK(inputs.is_contiguous() && inputs.numel() == inputs.size(0) * inputs.size(1) * input_width_, identity_,
              inputs.sizes());
  const places at{layers_.size()};
  tape once;
  auto& saved = (keep ? *keep : once).saved;
  saved.resize(at.size());
  saved[at.input(0)] = inputs;
  const layer_pass of{weights, inputs.size(0), inputs.size(1), classes};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto& out = saved[at.output(i)];
    reshape_buffer(out, {of.models, of.rows, layers_[i]->width(classes)}, inputs);
    layers_[i]->forward(of, saved[at.input(i)], out, saved[at.kept(i)]);
  }
  const auto head = layers_.size() - 1;
  auto features = saved[at.input(head)];
  return {head == 0 ? features.view({of.models, of.rows, feature_width_}) : features, saved[at.output(head)]};
}

void sequential::backward(const at::Tensor& weights, tape& kept, class_range classes, const at::Tensor& d_logits,
                          const at::Tensor& d_features, bool head_only, const gradient_sink& out) const {
  const places at{layers_.size()};
  auto& saved = kept.saved;
  MNEME_CHECK(saved.size() == at.size(), identity_, saved.size());
  const auto& inputs = saved[at.input(0)];
  const layer_pass of{weights, inputs.size(0), inputs.size(1), classes};
  at::Tensor d_out = d_logits;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const bool head = i + 1 == layers_.size(), ends_here = i == 0 || (head && head_only);
    auto& d_in = saved[at.d_input(i)];
    if (!ends_here)
      reshape_buffer(d_in, {of.models, of.rows, layers_[i - 1]->width(classes)}, inputs);
    layers_[i]->backward(
        of, {saved[at.input(i)], saved[at.output(i)], saved[at.kept(i)], d_out, ends_here ? nullptr : &d_in}, out);
    if (ends_here)
      return;
    if (head && d_features.defined())
      d_in.add_(d_features);
    d_out = d_in;
  }
}

} // namespace mneme
