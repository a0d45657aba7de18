#include "runtime/models/network_builder.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/activation_layer.hpp"
#include "runtime/models/cosine_head.hpp"
#include "runtime/models/dropout.hpp"
#include "runtime/models/function_layer.hpp"
#include "runtime/models/linear_layer.hpp"
#include "runtime/models/normalization.hpp"
#include "runtime/models/proxy_head.hpp"
#include "runtime/models/sampling_layer.hpp"
#include "runtime/models/token_layers.hpp"
#include <cmath>
#include <iterator>
namespace mneme {
namespace {

/// Selects the scores of the pass's classes.
class class_scores_layer final : public function_layer {
public:
  [[nodiscard]] std::int64_t width(class_range classes) const override { return classes.size(); }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override {
    return in.narrow(2, pass.classes.low, pass.classes.size());
  }
};

/// The weight of a fully connected layer that reads the last value.
parameter dense_weight(const network_builder& to, const std::string& name, std::int64_t out) {
  const auto in = to.shape_here();
  parameter weight{.name = name + ".weight",
                   .shape = {out, in.floats()},
                   .bound = 1.0 / std::sqrt(static_cast<double>(in.floats()))};
  if (to.cursor() > 0 && in.channels > 1 && in.pixels() > 1) { // in files, channels come first
    weight.view = {out, in.channels, in.height, in.width};
    weight.order = {0, 2, 3, 1};
  }
  return weight;
}

} // namespace

network_builder::network_builder(std::string identity, std::array<std::int64_t, 3> shape)
    : net_{.identity = std::move(identity), .shapes = {{shape[1], shape[2], shape[0]}}, .last_reader = {0}} {}

std::shared_ptr<const network> network_builder::build() { return std::make_shared<const network>(std::move(net_)); }

std::int64_t network_builder::weight_count() const {
  return net_.layout.empty() ? 0 : net_.layout.back().offset + net_.layout.back().size;
}

std::int64_t network_builder::add_parameter(parameter entry) {
  entry.size = 1;
  for (const auto extent : entry.shape)
    entry.size *= extent;
  entry.offset = weight_count();
  entry.frozen = frozen_;
  if (in_head_ && !entry.head)
    entry.head = entry.whole = true;
  net_.layout.push_back(std::move(entry));
  return net_.layout.back().offset;
}

void network_builder::add_node(network_node entry, const image_shape& out, bool has_parameters) {
  const auto learns = [&](network_place value) { return value > 0 && net_.nodes[value - 1].learns; };
  entry.from = last_;
  entry.first_parameter = net_.nodes.empty() ? 0 : net_.nodes.back().last_parameter;
  entry.last_parameter = net_.layout.size();
  entry.learns = has_parameters || learns(last_) || (entry.other && learns(*entry.other));
  net_.last_reader[last_] = net_.nodes.size();
  if (entry.other)
    net_.last_reader[*entry.other] = net_.nodes.size();
  net_.nodes.push_back(std::move(entry));
  net_.shapes.push_back(out);
  net_.last_reader.push_back(net_.nodes.size() - 1); // no node reads the value so far
  last_ = net_.nodes.size();
}

void network_builder::add_linear(const std::string& name, std::int64_t out, activation after, bool biased) {
  const auto in = shape_here();
  const double bound = 1.0 / std::sqrt(static_cast<double>(in.floats()));
  dense_layer shape{.in = in.floats(), .out = out, .bias_offset = -1, .after = built_in(after)};
  shape.weight_offset = add_parameter(dense_weight(*this, name, out));
  if (biased)
    shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {out}, .bound = bound});
  add_node({.operation = std::make_unique<linear_layer>(shape)}, {1, 1, out}, true);
  add_unless_built_in(after);
}

void network_builder::add_normal(const std::string& mean_name, const std::string& log_deviation_name,
                                 std::int64_t width) {
  const auto in = shape_here();
  const double bound = 1.0 / std::sqrt(static_cast<double>(in.floats()));
  dense_layer shape{.in = in.floats(), .out = 2 * width}; // one product computes means and log standard deviations
  shape.weight_offset = add_parameter(dense_weight(*this, mean_name, width));
  add_parameter(dense_weight(*this, log_deviation_name, width));
  shape.bias_offset = add_parameter({.name = mean_name + ".bias", .shape = {width}, .bound = bound});
  add_parameter({.name = log_deviation_name + ".bias", .shape = {width}, .bound = bound});
  add_node({.operation = std::make_unique<linear_layer>(shape)}, {1, 1, 2 * width}, true);
}

void network_builder::add_activation(activation kind, double slope) {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<activation_layer>(in.floats(), kind, slope)}, in, false);
}

void network_builder::add_unless_built_in(activation after) {
  if (!is_built_in(after))
    add_activation(after);
}

void network_builder::add_normalization(const std::string& name, std::int64_t groups, activation after,
                                        const norm_constants& constants) {
  const auto in = shape_here();
  normalization_layer::shape shape{.in = in,
                                   .groups = groups,
                                   .after = built_in(after),
                                   .epsilon = constants.epsilon,
                                   .momentum = constants.momentum};
  shape.weight_offset = add_parameter({.name = name + ".weight", .shape = {in.channels}, .constant = 1.0});
  shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {in.channels}});
  auto normalization = std::make_unique<normalization_layer>(shape);
  if (groups == 0) {
    parameter mean{.name = name + ".running_mean", .shape = {in.channels}, .buffer = true};
    parameter variance{.name = name + ".running_var", .shape = {in.channels}, .buffer = true, .constant = 1.0};
    add_buffers({std::move(mean), std::move(variance)},
                [added = normalization.get()](auto offsets) { added->place_statistics(offsets[0], offsets[1]); });
  }
  add_node({.operation = std::move(normalization), .name = name}, in, true);
  add_unless_built_in(after);
}

void network_builder::add_dropout(double rate) {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<dropout_layer>(in.floats(), net_.drawing_layers, rate)}, in, false);
  ++net_.drawing_layers;
}

void network_builder::add_sampling(double log_deviation_low, double log_deviation_high) {
  const auto width = shape_here().floats() / 2;
  add_node({.operation = std::make_unique<sampling_layer>(
                sampling_layer::shape{width, net_.drawing_layers, log_deviation_low, log_deviation_high})},
           {1, 1, width}, false);
  ++net_.drawing_layers;
}

void network_builder::add_sum(network_place other, activation after) {
  MNEME_CHECK(net_.shapes[other].floats() == shape_here().floats(), net_.identity, net_.shapes[other].floats());
  add_node({.other = other, .after = built_in(after)}, shape_here(), false);
  add_unless_built_in(after);
}

void network_builder::end_headless() {
  mark_features();
  net_.feature_width = net_.shapes[net_.features].floats();
  place_buffers();
}

void network_builder::end_with_scores(std::int64_t classes) {
  mark_features();
  net_.feature_width = net_.shapes[net_.features].floats();
  net_.classes = classes;
  MNEME_CHECK(net_.feature_width == classes, net_.identity, net_.feature_width, classes);
  add_node({.operation = std::make_unique<class_scores_layer>()}, {1, 1, classes}, false);
  place_buffers();
}

void network_builder::add_hidden_of_head(const std::vector<std::int64_t>& widths) {
  net_.identity += " head";
  in_head_ = true;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    net_.identity += (i == 0 ? " " : "-") + std::to_string(widths[i]);
    add_linear("head" + std::to_string(i + 1), widths[i], activation::relu);
  }
  in_head_ = false;
}

void network_builder::add_head(const std::string& name, std::int64_t classes, const head_shape& head) {
  if (head.kind == head_kind::none) {
    net_.identity += " without head";
    return end_headless();
  }
  if (net_.features == 0)
    mark_features();
  if (!head.hidden.empty())
    add_hidden_of_head(head.hidden);
  const auto in = shape_here();
  MNEME_CHECK(last_ == 0 || in.channels == 1 || in.pixels() == 1, net_.identity); // the rows of the head are stored as
                                                                                  // in files
  const double bound = 1.0 / std::sqrt(static_cast<double>(in.floats()));
  net_.feature_width = net_.shapes[net_.features].floats();
  net_.classes = classes;
  const bool proxies = head.kind == head_kind::proxies;
  auto rows = proxies ? std::vector<std::int64_t>{classes, head.proxies, in.floats()}
                      : std::vector<std::int64_t>{classes, in.floats()};
  const auto weight_offset =
      add_parameter({.name = name + ".weight", .shape = std::move(rows), .head = true, .bound = bound});
  if (proxies || head.kind == head_kind::cosine) {
    net_.identity += proxies ? " proxies " + std::to_string(head.proxies) : " cosine";
    const auto scale_offset =
        add_parameter({.name = name + ".sigma", .shape = {1}, .head = true, .whole = true, .constant = 1.0});
    std::unique_ptr<layer> cosines;
    if (proxies)
      cosines = std::make_unique<proxy_head>(proxy_head_shape{in.floats(), head.proxies, weight_offset, scale_offset});
    else
      cosines = std::make_unique<cosine_head>(cosine_head::shape{in.floats(), weight_offset, scale_offset});
    add_node({.operation = std::move(cosines)}, {1, 1, classes}, true);
  } else {
    dense_layer shape{.in = in.floats(), .out = classes, .weight_offset = weight_offset, .head = true};
    shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {classes}, .head = true, .bound = bound});
    add_node({.operation = std::make_unique<linear_layer>(shape)}, {1, 1, classes}, true);
    list_dense_layers();
  }
  place_buffers();
}

void network_builder::add_token_head(const std::string& name, std::int64_t classes) {
  if (net_.features == 0)
    mark_features();
  net_.feature_width = net_.shapes[net_.features].floats();
  net_.classes = classes;
  net_.positions = shape_here().pixels();
  in_head_ = true;
  add_tokens_linear(*this, name, {.out = classes, .drawn = draw_kind::uniform});
  in_head_ = false;
  place_buffers();
}

void network_builder::list_dense_layers() {
  for (std::size_t i = 0; i < net_.nodes.size(); ++i) {
    const auto* const layer = dynamic_cast<const linear_layer*>(net_.nodes[i].operation.get());
    if (!layer || net_.nodes[i].from != i)
      return net_.dense.clear();
    net_.dense.push_back(layer->shape());
  }
}

void network_builder::add_buffers(std::vector<parameter> entries,
                                  std::function<void(std::span<const std::int64_t>)> use) {
  net_.couples_batch_rows = true;
  buffer_owners_.push_back({net_.nodes.size(), buffers_.size(), buffers_.size() + entries.size(), std::move(use)});
  std::move(entries.begin(), entries.end(), std::back_inserter(buffers_));
}

void network_builder::place_buffers() {
  const auto placed = net_.layout.size();
  std::vector<std::int64_t> offsets;
  for (auto& parameter : buffers_)
    offsets.push_back(add_parameter(std::move(parameter)));
  buffers_.clear();
  for (const auto& owner : buffer_owners_) {
    auto& node = net_.nodes[owner.node];
    node.first_buffer = placed + owner.first;
    node.last_buffer = placed + owner.last;
    owner.use(std::span(offsets).subspan(owner.first, owner.last - owner.first));
  }
}

} // namespace mneme
