// Layers of images and of rows of numbers in model.layers.
#include "runtime/models/function_layers.hpp"
#include "runtime/models/image_layers.hpp"
#include "runtime/models/layers_builder.hpp"
#include "runtime/models/token_layers.hpp"
#include <fmt/format.h>
#include <limits>
namespace mneme {

void layers_builder::convolution(const layer_spec& layer) {
  convolution_options how{.filters = words_->integer("number of filters", 1, units_max),
                          .kernel = words_->square("kernel", kernel_max),
                          .stride = words_->named("stride", 1, 64, 1),
                          .padding = words_->named("pad", 0, kernel_max, 0),
                          .bias = !words_->flag("no-bias"),
                          .after = after_,
                          .he_normal = words_->flag("he-normal")};
  const auto dilation = words_->named("dilation", 1, 64, 1), groups = words_->named("groups", 1, units_max, 1);
  if (!end_words() || !reads(layer, arriving::images))
    return;
  const auto in = net_.shape_here();
  if (std::min(in.height, in.width) + 2 * how.padding < dilation * (how.kernel - 1) + 1)
    return refuse(layer, fmt::format("a window of {0} x {0} does not fit into {1} with a border of {2}; expected a "
                                     "smaller kernel, or more pad",
                                     how.kernel, arrived(), how.padding));
  if (in.channels % groups != 0 || how.filters % groups != 0)
    return refuse(layer, fmt::format("{} channels and {} filters do not divide into {} groups", in.channels,
                                     how.filters, groups));
  if (groups == 1 && dilation == 1)
    return add_convolution(net_, layer.name, how);
  if (how.he_normal)
    return refuse(layer, "he-normal is for convolutions without groups and dilation");
  make_channels_last();
  if (net_.cursor() == 0) // with one channel, or one pixel, both orders are equal
    add_images(net_, in.channels, in.height, in.width);
  add_grouped_convolution(net_, layer.name,
                          {.filters = how.filters,
                           .kernel = how.kernel,
                           .stride = how.stride,
                           .padding = how.padding,
                           .dilation = dilation,
                           .groups = groups,
                           .bias = how.bias});
  if (after_ == activation::relu)
    net_.add_activation(activation::leaky, 0.0);
}

void layers_builder::linear(const layer_spec& layer) {
  const bool is_head = words_->flag("classes");
  const auto units = is_head ? classes_ : words_->integer("number of units", 1, units_max);
  const bool biased = !words_->flag("no-bias");
  if (!end_words())
    return;
  if (kind_ == arriving::images)
    return refuse(layer, fmt::format("the input is {}; expected flatten or global-avg-pool before it", arrived()));
  if (is_last_ || is_head) {
    if (!is_last_)
      return refuse(layer, "\"linear classes\" is the head; expected it as the last layer");
    if (units != classes_)
      return refuse(layer,
                    fmt::format("the last layer has {} rows, but the run has {} classes; expected \"linear classes\"",
                                units, classes_));
    if (!biased)
      return refuse(layer, "heads have a bias; expected no \"no-bias\"");
    if (kind_ == arriving::tokens)
      return refuse(layer,
                    fmt::format("the input is {}; expected first-token or last-token before the head", arrived()));
    if (head_.hidden.empty() && net_.cursor() > 0)
      make_flat(); // the rows of a head are stored as in files
    net_.add_head(layer.name, classes_, head_);
    ended_ = true;
    return;
  }
  if (kind_ == arriving::numbers)
    return net_.add_linear(layer.name, units, after_, biased);
  if (!biased)
    return refuse(layer, "layers of tokens have a bias; expected no \"no-bias\"");
  add_tokens_linear(net_, layer.name, {.out = units, .after = after_, .drawn = draw_kind::uniform});
}

void layers_builder::batch_norm(const layer_spec& layer) {
  norm_constants constants{.momentum = words_->named_number("momentum", 0.0, 1.0, norm_constants{}.momentum)};
  constants.epsilon = words_->number("epsilon", 1e-12, 1.0, norm_epsilon);
  if (!end_words() || !not_tokens(layer))
    return;
  make_flat();
  net_.add_normalization(layer.name, 0, after_, constants);
}

void layers_builder::group_norm(const layer_spec& layer) {
  const auto groups = words_->integer("number of groups", 1, units_max);
  const auto epsilon = words_->number("epsilon", 1e-12, 1.0, norm_epsilon);
  if (!end_words() || !not_tokens(layer))
    return;
  make_flat();
  if (net_.shape_here().channels % groups != 0)
    return refuse(layer, fmt::format("{} channels do not divide into {} groups", net_.shape_here().channels, groups));
  net_.add_normalization(layer.name, groups, after_, {.epsilon = epsilon});
}

void layers_builder::layer_norm(const layer_spec& layer) {
  const auto epsilon = words_->number("epsilon", 1e-12, 1.0, norm_epsilon);
  if (!end_words())
    return;
  if (kind_ == arriving::images)
    return refuse(layer,
                  fmt::format("the input is {}, but layer-norm reads rows of numbers or tokens; expected batch-norm or "
                              "group-norm",
                              arrived()));
  make_flat();
  add_tokens_norm(net_, layer.name, epsilon);
}

void layers_builder::rms_norm(const layer_spec& layer) {
  const auto epsilon = words_->number("epsilon", 1e-12, 1.0, std::numeric_limits<float>::epsilon());
  if (!end_words())
    return;
  if (kind_ == arriving::images)
    return refuse(layer, fmt::format("the input is {}, but rms-norm reads rows of numbers or tokens", arrived()));
  make_flat();
  add_rms_norm(net_, layer.name, epsilon);
}

void layers_builder::function_of_values(const layer_spec& layer) {
  static const std::map<std::string, value_function> kinds{
      {"relu6", value_function::relu6},         {"hardswish", value_function::hardswish},
      {"mish", value_function::mish},           {"hardsigmoid", value_function::hardsigmoid},
      {"softplus", value_function::softplus},   {"elu", value_function::elu},
      {"gelu-tanh", value_function::gelu_tanh},
  };
  const auto alpha = layer.kind == "elu" ? words_->number("alpha", 0.0, 100.0, 1.0) : 1.0;
  if (end_words())
    add_value_function(net_, kinds.at(layer.kind), alpha);
}

void layers_builder::activation_function(const layer_spec& layer) {
  const auto slope = layer.kind == "leaky-relu" ? words_->number("slope", 0.0, 1.0, 0.01) : 0.0;
  if (!end_words())
    return;
  if (layer.kind == "gelu")
    return add_gelu(net_);
  // If the layer before a ReLU cannot compute it, the ReLU becomes a leaky ReLU with slope 0.
  net_.add_activation(layer.kind == "sigmoid" ? activation::sigmoid
                      : layer.kind == "tanh"  ? activation::tanh
                      : layer.kind == "silu"  ? activation::silu
                                              : activation::leaky,
                      slope);
}

void layers_builder::max_pool(const layer_spec& layer) {
  const auto window = words_->square("window", 1024);
  const auto stride = words_->named("stride", 1, 1024, window), padding = words_->named("pad", 0, window / 2, 0);
  if (!end_words() || !reads(layer, arriving::images))
    return;
  const auto in = net_.shape_here();
  if (std::min(in.height, in.width) + 2 * padding < window)
    return refuse(layer, fmt::format("a window of {0} x {0} does not fit into {1}", window, arrived()));
  add_max_pool(net_, window, stride, padding);
}

void layers_builder::average_pool(const layer_spec& layer) {
  const auto window = words_->square("window", 1024);
  const auto stride = words_->named("stride", 1, 1024, window), padding = words_->named("pad", 0, window / 2, 0);
  if (!end_words() || !reads(layer, arriving::images))
    return;
  const auto in = net_.shape_here();
  if (std::min(in.height, in.width) + 2 * padding < window)
    return refuse(layer, fmt::format("a window of {0} x {0} does not fit into {1}", window, arrived()));
  add_average_pool(net_, window, stride, padding);
}

void layers_builder::adaptive_pool(const layer_spec& layer) {
  const auto side = words_->integer("side of the result", 1, 1024);
  if (!end_words() || !reads(layer, arriving::images))
    return;
  const auto in = net_.shape_here();
  const auto window = in.height / side;
  if (in.height != window * side || in.width != window * side)
    return refuse(
        layer, fmt::format("the input is {}; expected square images whose side is a multiple of {}", arrived(), side));
  add_average_pool(net_, window, window, 0);
}

void layers_builder::global_mean(const layer_spec& layer) {
  if (!end_words() || !reads(layer, arriving::images))
    return;
  add_mean_pool(net_);
  kind_ = arriving::numbers;
}

void layers_builder::dropout(const layer_spec&) {
  const auto rate = words_->number("rate", 0.0, 0.999);
  if (end_words())
    net_.add_dropout(rate);
}

void layers_builder::flatten(const layer_spec& layer) {
  if (!end_words())
    return;
  if (kind_ == arriving::tokens)
    return refuse(layer, fmt::format("the input is {}; expected first-token or last-token", arrived()));
  kind_ = arriving::numbers; // weights of the next layer are in channels-first order, as in PyTorch
}

void layers_builder::subsample(const layer_spec& layer) {
  const auto stride = words_->integer("stride", 1, 64), channels = words_->integer("number of channels", 1, units_max);
  const auto first = words_->named("first", 0, units_max, 0);
  if (!end_words() || !reads(layer, arriving::images))
    return;
  if (first + net_.shape_here().channels > channels)
    return refuse(
        layer, fmt::format("{} channels from {} on do not fit into {}", net_.shape_here().channels, first, channels));
  add_subsampling(net_, stride, channels, first);
}

} // namespace mneme
