// How a network is built from the layers of transformers. A place of tokens has the shape {tokens, 1, channels}.
#include "runtime/base/check.hpp"
#include "runtime/models/attention_layer.hpp"
#include "runtime/models/gelu_layer.hpp"
#include "runtime/models/lstm_layer.hpp"
#include "runtime/models/network.hpp"
#include "runtime/models/patch_embedding.hpp"
#include "runtime/models/token_embedding.hpp"
#include "runtime/models/tokens_linear_layer.hpp"
#include "runtime/models/tokens_norm_layer.hpp"
#include <cmath>
namespace mneme {
namespace {

constexpr double deviation = 0.02; // of everything that is drawn from a normal distribution, as timm does

} // namespace

void network::add_resize(std::int64_t height, std::int64_t width) {
  const auto in = shape_here();
  MNEME_CHECK(last_ == 0, identity_, last_);
  if (in.height != height || in.width != width)
    add_node({.operation = std::make_unique<resize_layer>(in, height, width)}, {height, width, in.channels}, false);
}

void network::add_patch_embedding(std::int64_t patch, std::int64_t channels) {
  const auto in = shape_here();
  MNEME_CHECK(in.height % patch == 0 && in.width % patch == 0, identity_, in.height, in.width, patch);
  const auto bound = 1.0 / std::sqrt(static_cast<double>(in.channels * patch * patch));
  patch_embedding_layer::shape shape{.in = in, .patch = patch, .channels = channels};
  const auto tokens = patch_embedding_layer(shape).tokens();
  shape.class_offset = add_parameter({.name = "cls_token", .shape = {1, 1, channels}, .deviation = 1e-6});
  shape.position_offset = add_parameter({.name = "pos_embed", .shape = {1, tokens, channels}, .deviation = deviation});
  shape.weight_offset = add_parameter(
      {.name = "patch_embed.proj.weight", .shape = {channels, in.channels, patch, patch}, .bound = bound});
  shape.bias_offset = add_parameter({.name = "patch_embed.proj.bias", .shape = {channels}, .bound = bound});
  add_node({.operation = std::make_unique<patch_embedding_layer>(shape)}, {tokens, 1, channels}, !frozen_);
}

void network::add_tokens_norm(const std::string& name, double epsilon) {
  const auto in = shape_here();
  tokens_norm_layer::shape shape{
      .tokens = in.pixels(), .channels = in.channels, .epsilon = epsilon, .frozen = frozen_};
  shape.weight_offset = add_parameter({.name = name + ".weight", .shape = {in.channels}, .constant = 1.0});
  shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {in.channels}});
  add_node({.operation = std::make_unique<tokens_norm_layer>(shape)}, in, !frozen_);
}

void network::add_tokens_linear(const std::string& name, const tokens_linear& layer) {
  const auto in = shape_here();
  tokens_linear_layer::shape shape{.tokens = in.pixels(),
                                   .in = in.channels,
                                   .out = layer.out,
                                   .scale = layer.scale,
                                   .after = built_in(layer.after),
                                   .frozen = frozen_};
  parameter weight{.name = name + ".weight", .shape = {layer.out, in.channels}};
  if (layer.drawn == initial::normal)
    weight.deviation = deviation;
  else if (layer.drawn == initial::uniform)
    weight.bound = 1.0 / std::sqrt(static_cast<double>(in.channels));
  shape.weight_offset = add_parameter(std::move(weight));
  shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {layer.out}});
  add_node({.operation = std::make_unique<tokens_linear_layer>(shape)}, {in.height, in.width, layer.out}, !frozen_);
  add_unless_built_in(layer.after);
}

void network::add_attention_inputs(const std::array<std::string, 3>& names, std::int64_t channels) {
  const auto in = shape_here();
  tokens_linear_layer::shape shape{
      .tokens = in.pixels(), .in = in.channels, .out = 3 * channels, .frozen = frozen_}; // one product computes all
  shape.weight_offset = size();
  for (const auto& name : names)
    add_parameter({.name = name + ".weight", .shape = {channels, in.channels}, .deviation = deviation});
  shape.bias_offset = size();
  for (const auto& name : names)
    add_parameter({.name = name + ".bias", .shape = {channels}});
  add_node({.operation = std::make_unique<tokens_linear_layer>(shape)}, {in.height, in.width, 3 * channels}, !frozen_);
}

void network::add_attention(std::int64_t heads, std::int64_t queries, std::int64_t padding) {
  const auto in = shape_here();
  MNEME_CHECK(in.channels % (3 * heads) == 0 && queries <= in.pixels(), identity_, in.channels, heads, queries);
  MNEME_CHECK(padding < 0 || shapes_[0].floats() == in.pixels(), identity_, shapes_[0].floats(), in.pixels());
  const attention_layer::shape shape{.tokens = in.pixels(),
                                     .queries = queries,
                                     .heads = heads,
                                     .channels = in.channels / 3,
                                     .padding = padding};
  add_node({.operation = std::make_unique<attention_layer>(shape)}, {queries, 1, shape.channels}, false);
}

void network::add_gelu() {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<gelu_layer>(in.floats())}, in, false);
}

void network::add_first_token() {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<chosen_token_layer>(in.channels, 0)}, {1, 1, in.channels}, false);
}

void network::add_last_token() {
  const auto in = shape_here();
  add_node({.operation = std::make_unique<chosen_token_layer>(in.channels, in.pixels() - 1)}, {1, 1, in.channels},
           false);
}

void network::add_token_embedding(const std::string& name, std::int64_t vocabulary, std::int64_t channels) {
  const auto in = shape_here();
  MNEME_CHECK(last_ == 0 && in.height == 1 && in.channels == 1, identity_, last_, in.height, in.channels);
  token_embedding_layer::shape shape{.tokens = in.width, .vocabulary = vocabulary, .channels = channels};
  shape.weight_offset =
      add_parameter({.name = name + ".weight", .shape = {vocabulary, channels}, .deviation = 1.0}); // as PyTorch draws
  add_node({.operation = std::make_unique<token_embedding_layer>(shape)}, {in.width, 1, channels}, true);
}

void network::add_text_embedding(const std::string& prefix, const text_embedding& layer) {
  const auto in = shape_here();
  MNEME_CHECK(last_ == 0 && in.height == 1 && in.channels == 1, identity_, last_, in.height, in.channels);
  MNEME_CHECK(layer.positions >= in.width && layer.types > 0, identity_, layer.positions, in.width, layer.types);
  token_embedding_layer::shape shape{.tokens = in.width,
                                     .vocabulary = layer.vocabulary,
                                     .channels = layer.channels,
                                     .padding = layer.padding,
                                     .positions = layer.positions,
                                     .types = layer.types,
                                     .frozen = frozen_};
  const auto table = [&](const char* name, std::int64_t rows) {
    return add_parameter(
        {.name = prefix + name + ".weight", .shape = {rows, layer.channels}, .deviation = deviation});
  };
  shape.weight_offset = table("word_embeddings", layer.vocabulary);
  shape.position_offset = table("position_embeddings", layer.positions);
  shape.type_offset = table("token_type_embeddings", layer.types);
  add_node({.operation = std::make_unique<token_embedding_layer>(shape)}, {in.width, 1, layer.channels}, !frozen_);
}

void network::add_lstm(const std::string& name, std::int64_t number, std::int64_t hidden) {
  const auto in = shape_here();
  const auto bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  const auto suffix = "_l" + std::to_string(number);
  lstm_layer::shape shape{.tokens = in.pixels(), .in = in.channels, .hidden = hidden};
  const auto added = [&](const char* part, std::vector<std::int64_t> sizes) {
    return add_parameter({.name = name + "." + part + suffix, .shape = std::move(sizes), .bound = bound});
  };
  shape.input_weight_offset = added("weight_ih", {4 * hidden, in.channels});
  shape.hidden_weight_offset = added("weight_hh", {4 * hidden, hidden});
  shape.input_bias_offset = added("bias_ih", {4 * hidden});
  shape.hidden_bias_offset = added("bias_hh", {4 * hidden});
  add_node({.operation = std::make_unique<lstm_layer>(shape)}, {in.pixels(), 1, hidden}, true);
}

} // namespace mneme
