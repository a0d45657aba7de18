#include "runtime/models/network.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/activation_layer.hpp"
#include "runtime/models/convolution_layer.hpp"
#include "runtime/models/cosine_head.hpp"
#include "runtime/models/depthwise_layer.hpp"
#include "runtime/models/dropout.hpp"
#include "runtime/models/linear_layer.hpp"
#include "runtime/models/normalisation.hpp"
#include "runtime/models/pooling.hpp"
#include "runtime/models/proxy_head.hpp"
#include "runtime/models/sampling_layer.hpp"
#include "runtime/models/shortcut_layers.hpp"
#include <cmath>
namespace mneme {

network::network(std::string identity, std::array<std::int64_t, 3> shape)
    : identity_(std::move(identity)), shapes_{{shape[1], shape[2], shape[0]}}, last_reader_{0} {}

// -- building ---------------------------------------------------------------------------------------------------------

std::int64_t network::add_parameter(parameter entry) {
  entry.size = 1;
  for (const auto extent : entry.shape)
    entry.size *= extent;
  entry.offset = size();
  entry.frozen = frozen_;
  if (in_head_ && !entry.head)
    entry.head = entry.whole = true;
  layout_.push_back(std::move(entry));
  return layout_.back().offset;
}

void network::add_node(node entry, const image_shape& out, bool has_parameters) {
  const auto learns = [&](place value) { return value > 0 && nodes_[value - 1].learns; };
  entry.from = last_;
  entry.first_parameter = nodes_.empty() ? 0 : nodes_.back().last_parameter;
  entry.last_parameter = layout_.size();
  entry.learns = has_parameters || learns(last_) || (entry.other && learns(*entry.other));
  last_reader_[last_] = nodes_.size();
  if (entry.other)
    last_reader_[*entry.other] = nodes_.size();
  nodes_.push_back(std::move(entry));
  shapes_.push_back(out);
  last_reader_.push_back(nodes_.size() - 1); // no node reads it so far
  last_ = nodes_.size();
}

void network::add_convolution(const std::string& name, const convolution& layer) {
  if (last_ == 0)
    add_node({.operation = std::make_unique<channels_last_layer>(shape_here())}, shape_here(), false);
  const auto in = shape_here();
  const auto fan_in = static_cast<double>(layer.kernel * layer.kernel * in.channels);
  const auto fan_out = static_cast<double>(layer.kernel * layer.kernel * layer.filters);
  const std::vector<std::int64_t> filters{layer.filters, in.channels, layer.kernel, layer.kernel};
  convolution_layer::shape shape{.in = in,
                                 .filters = layer.filters,
                                 .kernel = layer.kernel,
                                 .stride = layer.stride,
                                 .padding = layer.padding,
                                 .after = built_in(layer.after)};
  shape.weight_offset = add_parameter({.name = name + ".weight",
                                       .shape = filters,
                                       .bound = layer.he_normal ? 0.0 : 1.0 / std::sqrt(fan_in),
                                       .deviation = layer.he_normal ? std::sqrt(2.0 / fan_out) : 0.0,
                                       .view = filters,
                                       .order = {2, 3, 1, 0}});
  if (layer.bias)
    shape.bias_offset =
        add_parameter({.name = name + ".bias", .shape = {layer.filters}, .bound = 1.0 / std::sqrt(fan_in)});
  auto convolution = std::make_unique<convolution_layer>(shape);
  const auto out = convolution->out_shape();
  add_node({.operation = std::move(convolution)}, out, true);
  add_unless_built_in(layer.after);
}

void network::add_depthwise(const std::string& name, std::int64_t kernel, std::int64_t stride) {
  const auto in = shape_here();
  const std::vector<std::int64_t> filters{in.channels, 1, kernel, kernel};
  const auto offset = add_parameter({.name = name + ".weight",
                                     .shape = filters,
                                     .deviation = std::sqrt(2.0 / static_cast<double>(kernel * kernel)),
                                     .view = filters,
                                     .order = {2, 3, 1, 0}});
  auto layer = std::make_unique<depthwise_layer>(
      depthwise_layer::shape{.in = in, .kernel = kernel, .stride = stride, .weight_offset = offset});
  const auto out = layer->out_shape();
  add_node({.operation = std::move(layer)}, out, true);
}

void network::add_relu6() {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<relu6_layer>(in.floats())}, in, false);
}

void network::add_normalisation(const std::string& name, std::int64_t groups, activation after, double epsilon) {
  const auto in = shape_here();
  normalisation_layer::shape shape{.in = in, .groups = groups, .after = built_in(after), .epsilon = epsilon};
  shape.weight_offset = add_parameter({.name = name + ".weight", .shape = {in.channels}, .constant = 1.0});
  shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {in.channels}});
  auto normalisation = std::make_unique<normalisation_layer>(shape);
  if (groups == 0) {
    mixes_rows_ = true;
    normalisations_.push_back(normalisation.get());
    buffers_.push_back({.name = name + ".running_mean", .shape = {in.channels}, .buffer = true});
    buffers_.push_back({.name = name + ".running_var", .shape = {in.channels}, .buffer = true, .constant = 1.0});
  }
  add_node({.operation = std::move(normalisation), .name = name}, in, true);
  add_unless_built_in(after);
}

void network::add_activation(activation kind, double slope) {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<activation_layer>(in.floats(), kind, slope)}, in, false);
}

void network::add_unless_built_in(activation after) {
  if (!is_built_in(after))
    add_activation(after);
}

void network::add_max_pool(std::int64_t window, std::int64_t stride, std::int64_t padding) {
  auto pool = std::make_unique<max_pool_layer>(
      max_pool_layer::shape{.in = shape_here(), .window = window, .stride = stride, .padding = padding});
  const auto out = pool->out_shape();
  add_node({.operation = std::move(pool)}, out, false);
}

void network::add_mean_pool() {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<mean_pool_layer>(in)}, {1, 1, in.channels}, false);
}

void network::add_dropout(double rate) {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<dropout_layer>(in.floats(), drawing_layers_, rate)}, in, false);
  ++drawing_layers_;
}

void network::add_sampling(double log_deviation_low, double log_deviation_high) {
  const auto width = shape_here().floats() / 2;
  add_node({.operation = std::make_unique<sampling_layer>(
                sampling_layer::shape{width, drawing_layers_, log_deviation_low, log_deviation_high})},
           {1, 1, width}, false);
  ++drawing_layers_;
}

void network::add_subsampling(std::int64_t stride, std::int64_t channels, std::int64_t first) {
  auto subsampling = std::make_unique<subsampling_layer>(shape_here(), stride, channels, first);
  const auto out = subsampling->out_shape();
  add_node({.operation = std::move(subsampling)}, out, false);
}

void network::add_sum(place other, activation after) {
  MNEME_CHECK(shapes_[other].floats() == shape_here().floats(), identity_, shapes_[other].floats());
  add_node({.other = other, .after = built_in(after)}, shape_here(), false);
  add_unless_built_in(after);
}

parameter network::dense_weight(const std::string& name, std::int64_t out) const {
  const auto in = shape_here();
  parameter weight{.name = name + ".weight",
                   .shape = {out, in.floats()},
                   .bound = 1.0 / std::sqrt(static_cast<double>(in.floats()))};
  if (last_ > 0 && in.channels > 1 && in.pixels() > 1) { // files count an image's values channel by channel
    weight.view = {out, in.channels, in.height, in.width};
    weight.order = {0, 2, 3, 1};
  }
  return weight;
}

void network::add_flat_rows() {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<flat_rows_layer>(in, last_ == 0)}, {1, 1, in.floats()}, false);
}

void network::add_linear(const std::string& name, std::int64_t out, activation after, bool biased) {
  const auto in = shape_here();
  const double bound = 1.0 / std::sqrt(static_cast<double>(in.floats()));
  dense_layer shape{.in = in.floats(), .out = out, .bias_offset = -1, .after = built_in(after)};
  shape.weight_offset = add_parameter(dense_weight(name, out));
  if (biased)
    shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {out}, .bound = bound});
  add_node({.operation = std::make_unique<linear_layer>(shape)}, {1, 1, out}, true);
  add_unless_built_in(after);
}

void network::add_normal(const std::string& mean_name, const std::string& log_deviation_name, std::int64_t width) {
  const auto in = shape_here();
  const double bound = 1.0 / std::sqrt(static_cast<double>(in.floats()));
  dense_layer shape{.in = in.floats(), .out = 2 * width}; // one product computes both
  shape.weight_offset = add_parameter(dense_weight(mean_name, width));
  add_parameter(dense_weight(log_deviation_name, width));
  shape.bias_offset = add_parameter({.name = mean_name + ".bias", .shape = {width}, .bound = bound});
  add_parameter({.name = log_deviation_name + ".bias", .shape = {width}, .bound = bound});
  add_node({.operation = std::make_unique<linear_layer>(shape)}, {1, 1, 2 * width}, true);
}

void network::end_headless() {
  mark_features();
  feature_width_ = shapes_[features_].floats();
  place_buffers();
}

void network::add_hidden_of_head(const std::vector<std::int64_t>& widths) {
  identity_ += " head";
  in_head_ = true;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    identity_ += (i == 0 ? " " : "-") + std::to_string(widths[i]);
    add_linear("head" + std::to_string(i + 1), widths[i], activation::relu);
  }
  in_head_ = false;
}

void network::add_head(const std::string& name, std::int64_t classes, const head_shape& head) {
  if (head.kind == head_kind::none) {
    identity_ += " without head";
    return end_headless();
  }
  if (features_ == 0)
    mark_features();
  if (!head.hidden.empty())
    add_hidden_of_head(head.hidden);
  const auto in = shape_here();
  MNEME_CHECK(last_ == 0 || in.channels == 1 || in.pixels() == 1, identity_); // rows of the head lie as in files
  const double bound = 1.0 / std::sqrt(static_cast<double>(in.floats()));
  feature_width_ = shapes_[features_].floats();
  classes_ = classes;
  const bool proxies = head.kind == head_kind::proxies;
  auto rows = proxies ? std::vector<std::int64_t>{classes, head.proxies, in.floats()}
                      : std::vector<std::int64_t>{classes, in.floats()};
  const auto weight_offset =
      add_parameter({.name = name + ".weight", .shape = std::move(rows), .head = true, .bound = bound});
  if (proxies || head.kind == head_kind::cosine) {
    identity_ += proxies ? " proxies " + std::to_string(head.proxies) : " cosine";
    const auto scale_offset =
        add_parameter({.name = name + ".sigma", .shape = {1}, .head = true, .whole = true, .constant = 1.0});
    if (proxies)
      return add_proxies({in.floats(), head.proxies, weight_offset, scale_offset});
    add_node({.operation = std::make_unique<cosine_head>(cosine_head::shape{in.floats(), weight_offset, scale_offset})},
             {1, 1, classes}, true);
  } else {
    dense_layer shape{.in = in.floats(), .out = classes, .weight_offset = weight_offset, .head = true};
    shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {classes}, .head = true, .bound = bound});
    add_node({.operation = std::make_unique<linear_layer>(shape)}, {1, 1, classes}, true);
    list_dense_layers();
  }
  place_buffers();
}

void network::add_proxies(const proxy_head_shape& shape) {
  add_node({.operation = std::make_unique<proxy_head>(shape)}, {1, 1, classes_}, true);
  place_buffers();
}

void network::list_dense_layers() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto* const layer = dynamic_cast<const linear_layer*>(nodes_[i].operation.get());
    if (!layer || nodes_[i].from != i)
      return dense_.clear();
    dense_.push_back(layer->shape());
  }
}

void network::place_buffers() {
  std::vector<std::int64_t> offsets;
  for (auto& parameter : buffers_)
    offsets.push_back(add_parameter(std::move(parameter)));
  buffers_.clear();
  for (std::size_t i = 0; i < normalisations_.size(); ++i)
    normalisations_[i]->place_statistics(offsets[2 * i], offsets[2 * i + 1]);
}

std::int64_t network::width_of(place value, class_range classes) const {
  const bool of_head = classes_ > 0 && value == nodes_.size();
  return of_head ? classes.size() : shapes_[value].floats();
}

std::int64_t network::working_set(std::int64_t rows) const {
  const auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  std::int64_t row_bytes = shapes_[0].floats() * float_bytes;
  for (std::size_t i = 0; i < nodes_.size(); ++i) // an output and its gradient
    row_bytes += 2 * shapes_[i + 1].floats() * float_bytes +
                 (nodes_[i].operation ? nodes_[i].operation->kept_bytes_per_row() : 0);
  return size() * float_bytes + rows * row_bytes;
}

} // namespace mneme
