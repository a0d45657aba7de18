// Layers of tokens in model.layers.
#include "runtime/models/function_layers.hpp"
#include "runtime/models/image_layers.hpp"
#include "runtime/models/layers_builder.hpp"
#include "runtime/models/token_layers.hpp"
#include <fmt/format.h>
namespace mneme {

void layers_builder::embedding(const layer_spec& layer) {
  const auto width = words_->integer("width", 1, units_max);
  const auto tokens = words_->named("tokens", 1, std::int64_t{1} << 24, known_tokens_);
  if (!end_words() || !reads(layer, arriving::indices))
    return;
  if (tokens < known_tokens_)
    return refuse(layer, fmt::format("the data have {} distinct tokens; expected at least as many", known_tokens_));
  add_token_embedding(net_, layer.name, tokens, width);
  kind_ = arriving::tokens;
}

void layers_builder::positions(const layer_spec& layer) {
  if (end_words() && reads(layer, arriving::tokens))
    add_positions(net_, layer.name);
}

void layers_builder::lstm(const layer_spec& layer) {
  const auto width = words_->integer("width", 1, units_max);
  const auto layers = words_->named("layers", 1, 64, 1);
  if (!end_words() || !reads(layer, arriving::tokens))
    return;
  for (std::int64_t i = 0; i < layers; ++i)
    add_lstm(net_, layer.name, i, width);
}

void layers_builder::mean_of_tokens(const layer_spec& layer) {
  if (!end_words() || !reads(layer, arriving::tokens))
    return;
  add_mean_pool(net_); // treats tokens as the pixels of an image with one column
  kind_ = arriving::numbers;
}

void layers_builder::patch_embedding(const layer_spec& layer) {
  const auto patch = words_->integer("patch", 1, 1024), width = words_->integer("width", 1, units_max);
  if (!end_words() || !reads(layer, arriving::images))
    return;
  const auto in = net_.shape_here();
  if (net_.cursor() != 0 || in.height % patch != 0 || in.width % patch != 0)
    return refuse(
        layer, fmt::format("the input is {}; expected images with sides that the patch divides, and this layer first",
                           arrived()));
  add_patch_embedding(net_, patch, width);
  kind_ = arriving::tokens;
}

void layers_builder::attention(const layer_spec& layer) {
  const bool first_alone = words_->flag("first-token");
  const auto heads = words_->integer("number of heads", 1, 1024);
  if (!end_words() || !reads(layer, arriving::tokens))
    return;
  const auto in = net_.shape_here();
  if (in.channels % heads != 0)
    return refuse(layer, fmt::format("{} numbers of a token do not divide into {} heads", in.channels, heads));
  add_tokens_linear(net_, layer.name + ".qkv", {.out = 3 * in.channels, .drawn = draw_kind::uniform});
  add_attention(net_, heads, first_alone ? 1 : in.pixels());
  add_tokens_linear(net_, layer.name + ".proj", {.out = in.channels, .drawn = draw_kind::uniform});
  if (first_alone)
    kind_ = arriving::numbers;
}

void layers_builder::one_token(const layer_spec& layer) {
  if (!end_words() || !reads(layer, arriving::tokens))
    return;
  layer.kind == "first-token" ? add_first_token(net_) : add_last_token(net_);
  kind_ = arriving::numbers;
}

} // namespace mneme
