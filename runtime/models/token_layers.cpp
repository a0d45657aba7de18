#include "runtime/models/token_layers.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/attention_layer.hpp"
#include "runtime/models/gelu_layer.hpp"
#include "runtime/models/low_rank_layer.hpp"
#include "runtime/models/lstm_layer.hpp"
#include "runtime/models/patch_embedding.hpp"
#include "runtime/models/token_embedding.hpp"
#include "runtime/models/tokens_linear_layer.hpp"
#include "runtime/models/tokens_norm_layer.hpp"
#include <cmath>
namespace mneme {
namespace {

constexpr double deviation = 0.02; // standard deviation of initial values, as in timm

} // namespace

void add_resize(network_builder& to, std::int64_t height, std::int64_t width) {
  const auto in = to.shape_here();
  MNEME_CHECK(to.cursor() == 0, to.identity(), to.cursor());
  if (in.height != height || in.width != width)
    to.add_node({.operation = std::make_unique<resize_layer>(in, height, width)}, {height, width, in.channels}, false);
}

void add_patch_embedding(network_builder& to, std::int64_t patch, std::int64_t channels, bool biased) {
  const auto in = to.shape_here();
  MNEME_CHECK(in.height % patch == 0 && in.width % patch == 0, to.identity(), in.height, in.width, patch);
  const auto bound = 1.0 / std::sqrt(static_cast<double>(in.channels * patch * patch));
  patch_embedding_layer::shape shape{.in = in, .patch = patch, .channels = channels};
  const auto tokens = patch_embedding_layer(shape).tokens();
  shape.class_offset = to.add_parameter({.name = "cls_token", .shape = {1, 1, channels}, .deviation = 1e-6});
  shape.position_offset =
      to.add_parameter({.name = "pos_embed", .shape = {1, tokens, channels}, .deviation = deviation});
  shape.weight_offset = to.add_parameter(
      {.name = "patch_embed.proj.weight", .shape = {channels, in.channels, patch, patch}, .bound = bound});
  if (biased)
    shape.bias_offset = to.add_parameter({.name = "patch_embed.proj.bias", .shape = {channels}, .bound = bound});
  to.add_node({.operation = std::make_unique<patch_embedding_layer>(shape)}, {tokens, 1, channels}, !to.frozen());
}

void add_tokens_norm(network_builder& to, const std::string& name, double epsilon) {
  const auto in = to.shape_here();
  tokens_norm_layer::shape shape{
      .tokens = in.pixels(), .channels = in.channels, .epsilon = epsilon, .frozen = to.frozen()};
  shape.weight_offset = to.add_parameter({.name = name + ".weight", .shape = {in.channels}, .constant = 1.0});
  shape.bias_offset = to.add_parameter({.name = name + ".bias", .shape = {in.channels}});
  to.add_node({.operation = std::make_unique<tokens_norm_layer>(shape)}, in, !to.frozen());
}

void add_tokens_linear(network_builder& to, const std::string& name, const tokens_linear_options& layer) {
  const auto in = to.shape_here();
  tokens_linear_layer::shape shape{.tokens = in.pixels(),
                                   .in = in.channels,
                                   .out = layer.out,
                                   .scale = layer.scale,
                                   .after = built_in(layer.after),
                                   .frozen = to.frozen()};
  parameter weight{.name = name + ".weight", .shape = {layer.out, in.channels}};
  if (layer.drawn == draw_kind::normal)
    weight.deviation = deviation;
  else if (layer.drawn == draw_kind::uniform)
    weight.bound = 1.0 / std::sqrt(static_cast<double>(in.channels));
  shape.weight_offset = to.add_parameter(std::move(weight));
  shape.bias_offset = to.add_parameter({.name = name + ".bias", .shape = {layer.out}});
  to.add_node({.operation = std::make_unique<tokens_linear_layer>(shape)}, {in.height, in.width, layer.out},
              !to.frozen());
  to.add_unless_built_in(layer.after);
}

void add_attention_inputs(network_builder& to, const std::array<std::string, 3>& names, std::int64_t channels) {
  const auto in = to.shape_here();
  tokens_linear_layer::shape shape{
      .tokens = in.pixels(), .in = in.channels, .out = 3 * channels, .frozen = to.frozen()}; // one product computes all
                                                                                             // three
  shape.weight_offset = to.weight_count();
  for (const auto& name : names)
    to.add_parameter({.name = name + ".weight", .shape = {channels, in.channels}, .deviation = deviation});
  shape.bias_offset = to.weight_count();
  for (const auto& name : names)
    to.add_parameter({.name = name + ".bias", .shape = {channels}});
  to.add_node({.operation = std::make_unique<tokens_linear_layer>(shape)}, {in.height, in.width, 3 * channels},
              !to.frozen());
}

void add_attention(network_builder& to, std::int64_t heads, std::int64_t queries, std::int64_t padding, bool causal) {
  const auto in = to.shape_here();
  MNEME_CHECK(in.channels % (3 * heads) == 0 && queries <= in.pixels(), to.identity(), in.channels, heads, queries);
  MNEME_CHECK(padding < 0 || to.shape_of(0).floats() == in.pixels(), to.identity(), to.shape_of(0).floats(),
              in.pixels());
  MNEME_CHECK(!causal || padding < 0, to.identity(), padding);
  const attention_layer::shape shape{.tokens = in.pixels(),
                                     .queries = queries,
                                     .heads = heads,
                                     .channels = in.channels / 3,
                                     .padding = padding,
                                     .causal = causal};
  to.add_node({.operation = std::make_unique<attention_layer>(shape)}, {queries, 1, shape.channels}, false);
}

void add_low_rank(network_builder& to, network_place x, const low_rank_options& options,
                  const std::vector<low_rank_part>& parts) {
  if (parts.empty())
    return;
  const auto frozen = to.frozen();
  const auto body = to.cursor();
  const auto out = to.shape_here();
  to.freeze(false);
  to.set_cursor(x);
  if (options.dropout() > 0.0)
    to.add_dropout(options.dropout());
  const auto in = to.shape_here();
  low_rank_layer::shape shape{
      .tokens = in.pixels(), .in = in.channels, .out = out.channels, .rank = options.rank(), .scale = options.scale()};
  for (const auto& part : parts) {
    auto own = make_low_rank(part.name + ".lora_A.weight", part.name + ".lora_B.weight", in.channels, part.count,
                             options.rank());
    const auto down = to.add_parameter(std::move(own.down)), up = to.add_parameter(std::move(own.up));
    shape.parts.push_back({.down_offset = down, .up_offset = up, .first = part.first, .count = part.count});
  }
  to.add_node({.operation = std::make_unique<low_rank_layer>(std::move(shape))}, out, true);
  to.add_sum(body, activation::none);
  to.freeze(frozen);
}

void add_tokens_linear(network_builder& to, const std::string& name, const tokens_linear_options& layer,
                       const low_rank_options& options, const char* target) {
  const auto x = to.cursor();
  add_tokens_linear(to, name, layer);
  if (options.has(target))
    add_low_rank(to, x, options, {{.name = name, .count = layer.out}});
}

std::vector<low_rank_part> attention_parts(const low_rank_options& options, const std::string& prefix,
                                           std::int64_t channels) {
  if (options.has("qkv"))
    return {{.name = prefix + "qkv", .count = 3 * channels}};
  std::vector<low_rank_part> parts;
  std::int64_t first = 0;
  for (const auto* const matrix : {"query", "key", "value"}) {
    if (options.has(matrix))
      parts.push_back({.name = prefix + matrix, .first = first, .count = channels});
    first += channels;
  }
  return parts;
}

void add_gelu(network_builder& to) {
  const auto in = to.shape_here();
  to.add_node({.operation = std::make_unique<gelu_layer>(in.floats())}, in, false);
}

void add_quick_gelu(network_builder& to) {
  const auto in = to.shape_here();
  to.add_node({.operation = std::make_unique<quick_gelu_layer>(in.floats())}, in, false);
}

void add_first_token(network_builder& to) {
  const auto in = to.shape_here();
  to.add_node({.operation = std::make_unique<chosen_token_layer>(in.channels, 0)}, {1, 1, in.channels}, false);
}

void add_last_token(network_builder& to) {
  const auto in = to.shape_here();
  to.add_node({.operation = std::make_unique<chosen_token_layer>(in.channels, in.pixels() - 1)}, {1, 1, in.channels},
              false);
}

void add_token_embedding(network_builder& to, const std::string& name, std::int64_t vocabulary, std::int64_t channels) {
  const auto in = to.shape_here();
  MNEME_CHECK(to.cursor() == 0 && in.height == 1 && in.channels == 1, to.identity(), to.cursor(), in.height,
              in.channels);
  token_embedding_layer::shape shape{.tokens = in.width, .vocabulary = vocabulary, .channels = channels};
  shape.weight_offset = to.add_parameter(
      {.name = name + ".weight", .shape = {vocabulary, channels}, .deviation = 1.0}); // PyTorch's default
  to.add_node({.operation = std::make_unique<token_embedding_layer>(shape)}, {in.width, 1, channels}, true);
}

void add_text_embedding(network_builder& to, const std::string& prefix, const text_embedding_options& layer) {
  const auto in = to.shape_here();
  MNEME_CHECK(to.cursor() == 0 && in.height == 1 && in.channels == 1, to.identity(), to.cursor(), in.height,
              in.channels);
  MNEME_CHECK(layer.positions >= in.width && layer.types > 0, to.identity(), layer.positions, in.width, layer.types);
  token_embedding_layer::shape shape{.tokens = in.width,
                                     .vocabulary = layer.vocabulary,
                                     .channels = layer.channels,
                                     .padding = layer.padding,
                                     .positions = layer.positions,
                                     .types = layer.types,
                                     .frozen = to.frozen()};
  const auto table = [&](const char* name, std::int64_t rows) {
    return to.add_parameter(
        {.name = prefix + name + ".weight", .shape = {rows, layer.channels}, .deviation = deviation});
  };
  shape.weight_offset = table("word_embeddings", layer.vocabulary);
  shape.position_offset = table("position_embeddings", layer.positions);
  shape.type_offset = table("token_type_embeddings", layer.types);
  to.add_node({.operation = std::make_unique<token_embedding_layer>(shape)}, {in.width, 1, layer.channels},
              !to.frozen());
}

void add_lstm(network_builder& to, const std::string& name, std::int64_t number, std::int64_t hidden) {
  const auto in = to.shape_here();
  const auto bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  const auto suffix = "_l" + std::to_string(number);
  lstm_layer::shape shape{.tokens = in.pixels(), .in = in.channels, .hidden = hidden};
  const auto added = [&](const char* part, std::vector<std::int64_t> sizes) {
    return to.add_parameter({.name = name + "." + part + suffix, .shape = std::move(sizes), .bound = bound});
  };
  shape.input_weight_offset = added("weight_ih", {4 * hidden, in.channels});
  shape.hidden_weight_offset = added("weight_hh", {4 * hidden, hidden});
  shape.input_bias_offset = added("bias_ih", {4 * hidden});
  shape.hidden_bias_offset = added("bias_hh", {4 * hidden});
  to.add_node({.operation = std::make_unique<lstm_layer>(shape)}, {in.pixels(), 1, hidden}, true);
}

} // namespace mneme
