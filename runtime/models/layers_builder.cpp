#include "runtime/models/layers_builder.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/image_layers.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

bool fuses_relu(const layer_spec& layer) {
  return layer.kind == "conv" || layer.kind == "linear" || layer.kind == "batch-norm" || layer.kind == "group-norm" ||
         layer.kind == "residual";
}

std::string shape_text(const image_shape& shape, arriving kind) {
  switch (kind) {
  case arriving::images:
    return fmt::format("images of {} x {} x {} (channels, height, width)", shape.channels, shape.height, shape.width);
  case arriving::tokens:
    return fmt::format("{} tokens of {} numbers", shape.pixels(), shape.channels);
  case arriving::indices:
    return fmt::format("rows of {} tokens", shape.width);
  case arriving::numbers:
    break;
  }
  return fmt::format("rows of {} numbers", shape.floats());
}

bool is_same(const image_shape& a, const image_shape& b) {
  return a.height == b.height && a.width == b.width && a.channels == b.channels;
}

} // namespace

std::string layers_builder::add_all(const std::vector<layer_spec>& layers) {
  add_list(layers, true);
  if (errors_.empty() && !ended_)
    refuse(layers.back(),
           fmt::format("the net has no head; expected \"linear classes\" as the last layer, whose input would be {}",
                       arrived()));
  return errors_;
}

const std::map<std::string, layers_builder::known_layer>& layers_builder::known() {
  using self = layers_builder;
  static const std::map<std::string, known_layer> table{
      {"conv",
       {"conv FILTERS KERNEL [stride N] [pad N] [dilation N] [groups N] [no-bias] [he-normal]", &self::convolution}},
      {"linear", {"linear classes, linear UNITS [no-bias]", &self::linear}},
      {"batch-norm", {"batch-norm [EPSILON] [momentum N]", &self::batch_norm}},
      {"group-norm", {"group-norm GROUPS [EPSILON]", &self::group_norm}},
      {"layer-norm", {"layer-norm [EPSILON]", &self::layer_norm}},
      {"relu", {"relu", &self::activation_function}},
      {"leaky-relu", {"leaky-relu [SLOPE]", &self::activation_function}},
      {"sigmoid", {"sigmoid", &self::activation_function}},
      {"tanh", {"tanh", &self::activation_function}},
      {"silu", {"silu", &self::activation_function}},
      {"gelu", {"gelu", &self::activation_function}},
      {"gelu-tanh", {"gelu-tanh", &self::function_of_values}},
      {"relu6", {"relu6", &self::function_of_values}},
      {"hardswish", {"hardswish", &self::function_of_values}},
      {"hardsigmoid", {"hardsigmoid", &self::function_of_values}},
      {"mish", {"mish", &self::function_of_values}},
      {"softplus", {"softplus", &self::function_of_values}},
      {"elu", {"elu [ALPHA]", &self::function_of_values}},
      {"rms-norm", {"rms-norm [EPSILON]", &self::rms_norm}},
      {"max-pool", {"max-pool WINDOW [stride N] [pad N]", &self::max_pool}},
      {"avg-pool", {"avg-pool WINDOW [stride N] [pad N]", &self::average_pool}},
      {"adaptive-avg-pool", {"adaptive-avg-pool SIDE", &self::adaptive_pool}},
      {"global-avg-pool", {"global-avg-pool", &self::global_mean}},
      {"dropout", {"dropout RATE", &self::dropout}},
      {"flatten", {"flatten", &self::flatten}},
      {"subsample", {"subsample STRIDE CHANNELS [first N]", &self::subsample}},
      {"embedding", {"embedding WIDTH [tokens N]", &self::embedding}},
      {"positions", {"positions", &self::positions}},
      {"lstm", {"lstm WIDTH [layers N]", &self::lstm}},
      {"patch-embedding", {"patch-embedding PATCH WIDTH", &self::patch_embedding}},
      {"attention", {"attention HEADS [first-token]", &self::attention}},
      {"first-token", {"first-token", &self::one_token}},
      {"last-token", {"last-token", &self::one_token}},
      {"mean-tokens", {"mean-tokens", &self::mean_of_tokens}},
  };
  return table;
}

void layers_builder::add_list(const std::vector<layer_spec>& layers, bool is_top) {
  for (std::size_t i = 0; i < layers.size() && errors_.empty(); ++i) {
    const auto& layer = layers[i];
    if (ended_)
      return refuse(layer, "follows the head; expected \"linear classes\" as the last layer");
    is_last_ = is_top && i + 1 == layers.size();
    // A layer with parameters computes the ReLU after it if it can, as in mneme's other nets.
    const bool has_relu = i + 1 < layers.size() && layers[i + 1].kind == "relu" && fuses_relu(layer);
    after_ = has_relu ? activation::relu : activation::none;
    add(layer);
    if (!errors_.empty() || !has_relu)
      continue;
    const auto& relu = layers[++i];
    words_ = std::make_unique<layer_spec_reader>(relu, "relu");
    end_words();
  }
}

void layers_builder::add(const layer_spec& layer) {
  if (layer.kind == "residual")
    return residual(layer);
  if (foreign_)
    if (const auto added = foreign_->find(layer.text); added != foreign_->end())
      return foreign(layer, added->second);
  const auto entry = known().find(layer.kind);
  if (entry == known().end()) {
    std::vector<std::string> names{"residual"};
    for (const auto& [name, usage] : known())
      names.push_back(name);
    const auto meant = closest_match(layer.kind, names);
    return refuse(layer, fmt::format("unknown layer '{}'; {}", layer.kind,
                                     meant.empty() ? fmt::format("expected one of {}", fmt::join(names, ", "))
                                                   : fmt::format("did you mean '{}'?", meant)));
  }
  const bool reads_rows = layer.kind == "conv" || layer.kind == "flatten" || layer.kind == "patch-embedding";
  if (!reads_rows)
    make_channels_last();
  if (kind_ == arriving::indices && layer.kind != "embedding")
    return refuse(layer, fmt::format("the input is {}; expected embedding as the first layer", arrived()));
  words_ = std::make_unique<layer_spec_reader>(layer, entry->second.usage);
  (this->*entry->second.add)(layer);
}

void layers_builder::residual(const layer_spec& layer) {
  if (kind_ == arriving::indices)
    return refuse(layer, fmt::format("the input is {}; expected embedding before the first block", arrived()));
  const auto after = after_;
  if (net_.cursor() == 0)
    make_channels_last();
  make_flat();
  const auto start = net_.cursor();
  const auto kind = kind_;
  const auto begin_shape = net_.shape_here();
  add_list(layer.body, false);
  const auto end = net_.cursor();
  const auto end_shape = net_.shape_here();
  const auto end_kind = kind_;
  if (!errors_.empty())
    return;
  if (ended_)
    return refuse(layer, "the head is inside a block; expected it after all blocks");
  net_.set_cursor(start);
  kind_ = kind;
  add_list(layer.shortcut, false);
  if (!errors_.empty())
    return;
  if (kind_ != end_kind || !is_same(net_.shape_here(), end_shape))
    return refuse(layer,
                  fmt::format("the block's layers end with {} and its shortcut with {} (the block's input is "
                              "{}); expected the same, as with \"] shortcut [\", \"conv {} 1x1 stride N\", \"]\"",
                              shape_text(end_shape, end_kind), arrived(), shape_text(begin_shape, kind),
                              end_shape.channels));
  if (layer.shortcut.empty()) {
    net_.set_cursor(end);
    net_.add_sum(start, after);
  } else {
    net_.add_sum(end, after);
  }
}

void layers_builder::foreign(const layer_spec& layer, const foreign_layer& added) {
  foreign_layer::place place{.reads_rows = net_.cursor() == 0};
  make_flat();
  if (net_.shape_here().floats() != added.in_floats)
    return refuse(layer, fmt::format("the input is {}; expected {} numbers", arrived(), added.in_floats));
  for (const auto& entry : added.parameters)
    place.offsets.push_back(net_.add_parameter(entry));
  if (!added.buffers.empty()) {
    const auto offsets = std::make_shared<std::vector<std::int64_t>>();
    net_.add_buffers(added.buffers, [offsets](auto placed) { offsets->assign(placed.begin(), placed.end()); });
    place.buffer_offsets = offsets;
  }
  if (added.draws)
    place.number = net_.add_drawing_layer();
  const auto& out = added.out;
  const image_shape shape = out.size() == 3   ? image_shape{out[1], out[2], out[0]}
                            : out.size() == 2 ? image_shape{out[0], 1, out[1]}
                                              : image_shape{1, 1, out[0]};
  net_.add_node({.operation = added.make(place)}, shape, !added.parameters.empty());
  kind_ = out.size() == 3 ? arriving::images : out.size() == 2 ? arriving::tokens : arriving::numbers;
  if (!is_last_)
    return;
  if (out != std::vector{classes_})
    return refuse(layer, fmt::format("its result is {}; expected the scores of {} classes", arrived(), classes_));
  net_.end_with_scores(classes_);
  ended_ = true;
}

bool layers_builder::end_words() {
  errors_ = words_->finish();
  return errors_.empty();
}

void layers_builder::refuse(const layer_spec& layer, const std::string& text) {
  if (errors_.empty())
    errors_ = fmt::format("{}: {}", layer.place(), text);
}

bool layers_builder::reads(const layer_spec& layer, arriving kind) {
  if (kind_ == kind)
    return true;
  const char* const expected = kind == arriving::images    ? "images"
                               : kind == arriving::numbers ? "rows of numbers"
                               : kind == arriving::tokens  ? "tokens as vectors (after embedding or patch-embedding)"
                                                           : "rows of tokens (as the first layer)";
  refuse(layer, fmt::format("the input is {}; expected {}", arrived(), expected));
  return false;
}

bool layers_builder::not_tokens(const layer_spec& layer) {
  if (kind_ == arriving::tokens)
    refuse(layer, fmt::format("the input is {}; expected layer-norm", arrived()));
  return kind_ != arriving::tokens;
}

void layers_builder::make_channels_last() {
  if (const auto in = net_.shape_here(); net_.cursor() == 0 && kind_ == arriving::images && in.channels > 1)
    add_images(net_, in.channels, in.height, in.width);
}

void layers_builder::make_flat() {
  if (const auto in = net_.shape_here(); kind_ == arriving::numbers && in.pixels() > 1)
    add_flat_rows(net_);
}

std::string layers_builder::arrived() const { return shape_text(net_.shape_here(), kind_); }

} // namespace mneme
