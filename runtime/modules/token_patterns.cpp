#include "runtime/modules/token_patterns.hpp"
#include <cmath>
#include <fmt/format.h>
#include <set>
namespace mneme {
namespace {

// A pattern is recognized by its structure alone. native_net.cpp compares the values of the whole net, so it finds
// calls with this structure that compute something else.

bool changes_shape(const exported_call& call) {
  static const std::set<std::string> names{"view",   "reshape", "permute",   "transpose", "contiguous",
                                           "clone",  "flatten", "unflatten", "squeeze",   "unsqueeze",
                                           "select", "unbind",  "split",     "chunk",     "split_with_sizes",
                                           "slice",  "t",       "alias",     "expand"};
  return names.contains(call.name);
}

/// Returns the first call that does more than change shapes, at or before the call that computes `slot`; null for an
/// input.
const exported_call* before_reshaping(const graph_view& graph, std::int32_t& slot) {
  const auto* call = graph.producer(slot);
  while (call && changes_shape(*call)) {
    slot = graph.first_slot(*call);
    call = slot < 0 ? nullptr : graph.producer(slot);
  }
  return call;
}

/// Slots of queries, keys and values.
struct attention_core {
  std::int32_t q = -1, k = -1, v = -1;
};

/// Skips multiplications by constants and dropout in evaluation mode.
const exported_call* before_scaling(const graph_view& graph, std::int32_t& slot, bool training) {
  const auto* call = before_reshaping(graph, slot);
  while (call) {
    const auto name = plain_name(*call);
    if (name == "dropout" && training && graph.flag(*call, "train") && graph.number(*call, "p", 0.5) > 0.0)
      throw no_layer("its attention weights have dropout; expected none");
    if (name != "dropout" && !((name == "mul" || name == "div") && graph.slot(*call, "other") < 0))
      return call;
    slot = graph.first_slot(*call);
    call = before_reshaping(graph, slot);
  }
  return nullptr;
}

/// The attention whose result is `slot`, as one operator or as softmax(q k^T) v.
std::optional<attention_core> core_of(const graph_view& graph, std::int32_t slot, bool training) {
  const auto* const call = before_reshaping(graph, slot);
  if (!call)
    return std::nullopt;
  if (call->name == "scaled_dot_product_attention") {
    const bool drops = training && graph.number(*call, "dropout_p", 0.0) > 0.0;
    if (graph.slot(*call, "attn_mask") >= 0 || drops || graph.flag(*call, "is_causal"))
      throw no_layer("expected attention with no mask and no dropout");
    return attention_core{graph.slot(*call, "query"), graph.slot(*call, "key"), graph.slot(*call, "value")};
  }
  if (call->name != "matmul" && call->name != "bmm")
    return std::nullopt;
  const auto* const second = call->name == "bmm" ? "mat2" : "other";
  auto weights = graph.slot(*call, "self");
  const auto* const softmax = before_scaling(graph, weights, training);
  if (!softmax || softmax->name != "softmax")
    return std::nullopt;
  auto scores = graph.first_slot(*softmax);
  const auto* const product = before_scaling(graph, scores, training);
  if (!product || product->name != call->name)
    return std::nullopt;
  return attention_core{graph.slot(*product, "self"), graph.slot(*product, second), graph.slot(*call, second)};
}

/// The linear layer that computes queries, keys and values; null if several layers do.
const exported_call* common_linear(const graph_view& graph, const attention_core& core, bool training) {
  const exported_call* common = nullptr;
  for (auto slot : {core.q, core.k, core.v}) {
    const auto* const call = slot < 0 ? nullptr : before_scaling(graph, slot, training);
    if (!call || call->name != "linear" || (common && common != call))
      return nullptr;
    common = call;
  }
  return common;
}

/// Adds the names of a linear layer's parameters. @param ours the layer's name in mneme
void rename_linear(const graph_view& graph, const exported_call& linear, const std::string& ours, layer_text& in) {
  const auto* const weight = graph.parameter(linear, "weight");
  const auto* const bias = graph.parameter(linear, "bias");
  if (!weight || !bias)
    throw no_layer("its projections have no bias; expected one");
  for (const auto& [held, member] : {std::pair{weight, ".weight"}, std::pair{bias, ".bias"}})
    if (held->name != ours + member)
      in.renamed[held->name] = ours + member;
}

/// Name of the module `levels` above a parameter: "blocks.0.attn" for "blocks.0.attn.qkv.weight".
std::string owner_of(const std::string& parameter, std::size_t levels) {
  auto name = parameter;
  for (; levels > 0 && name.find('.') != std::string::npos; --levels)
    name.resize(name.rfind('.'));
  return name;
}

} // namespace

std::optional<layer_text> attention_pattern(const graph_view& graph, std::int32_t slot, bool training) {
  const auto& out = graph.sizes(slot);
  if (out.size() != 3)
    return std::nullopt;
  auto at = slot;
  const auto* const projection = before_reshaping(graph, at);
  if (!projection || projection->name != "linear")
    return std::nullopt;
  const auto core = core_of(graph, graph.slot(*projection, "input"), training);
  const auto* const inputs = core ? common_linear(graph, *core, training) : nullptr;
  if (!inputs)
    return std::nullopt;
  const auto* const weight = graph.parameter(*inputs, "weight");
  const auto head_width = graph.sizes(core->q).back(), width = out.back();
  if (weight->value.size(0) != 3 * width || head_width <= 0 || width % head_width != 0)
    throw no_layer("the widths of its heads do not add up to the width of a token");
  const bool is_fused_weight = weight->name.ends_with(".in_proj_weight"); // nn.MultiheadAttention
  layer_text made{.name = owner_of(weight->name, is_fused_weight ? 1 : 2),
                  .text = fmt::format("attention {}", width / head_width)};
  rename_linear(graph, *inputs, made.name + ".qkv", made);
  rename_linear(graph, *projection, made.name + ".proj", made);
  made.input = graph.slot(*inputs, "input");
  while (graph.sizes(made.input) != out || (graph.producer(made.input) && changes_shape(*graph.producer(made.input)))) {
    const auto* const moved = graph.producer(made.input);
    if (!moved || !changes_shape(*moved))
      throw no_layer("its inputs are no tokens of the width of its results");
    made.input = graph.first_slot(*moved);
  }
  return made;
}

std::optional<layer_text> patch_embedding_pattern(const graph_view& graph, std::int32_t slot) {
  const auto* const sum = graph.producer(slot);
  auto joined_at = graph.slot(*sum, "self"), positions_at = graph.slot(*sum, "other");
  if (joined_at < 0 || positions_at < 0)
    return std::nullopt;
  if (graph.held(joined_at))
    std::swap(joined_at, positions_at);
  const auto* const positions = graph.held(positions_at);
  const auto* const joined = graph.producer(joined_at);
  if (!positions || !joined || (joined->name != "cat" && joined->name != "concat"))
    return std::nullopt;
  const auto parts = graph.slots(*joined, "tensors");
  if (parts.size() != 2)
    return std::nullopt;
  auto token_at = static_cast<std::int32_t>(parts[0]), patches_at = static_cast<std::int32_t>(parts[1]);
  for (const auto* call = graph.producer(token_at); call && (call->name == "expand" || call->name == "repeat");
       call = graph.producer(token_at))
    token_at = graph.slot(*call, "self");
  const auto* const token = graph.held(token_at);
  const auto* const conv = before_reshaping(graph, patches_at);
  if (!token || !conv || conv->name != "conv2d" || graph.sizes(slot).size() != 3 ||
      graph.sizes(graph.first_slot(*conv)).size() != 4)
    return std::nullopt;
  const auto *const weight = graph.parameter(*conv, "weight"), *const bias = graph.parameter(*conv, "bias");
  const auto patch = weight->value.size(2);
  const auto& images = graph.sizes(graph.slot(*conv, "input"));
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(graph.sizes(slot)[1] - 1)));
  if (!bias || !token->parameter || !positions->parameter || weight->value.size(3) != patch ||
      graph.square(*conv, "stride", 1) != patch || graph.square(*conv, "padding", 0) != 0 ||
      graph.number(*conv, "groups", 1) != 1.0 || images[2] != side * patch || images[3] != side * patch ||
      graph.sizes(slot)[1] != side * side + 1)
    throw no_layer("expected a trained class token and positions, and square patches of square images");
  layer_text made{.text = fmt::format("patch-embedding {} {}", patch, weight->value.size(0)),
                  .input = graph.slot(*conv, "input")};
  made.renamed = {{token->name, "cls_token"},
                  {positions->name, "pos_embed"},
                  {weight->name, "patch_embed.proj.weight"},
                  {bias->name, "patch_embed.proj.bias"}};
  std::erase_if(made.renamed, [](const auto& names) { return names.first == names.second; });
  return made;
}

std::optional<layer_text> positions_pattern(const graph_view& graph, std::int32_t slot) {
  const auto* const sum = graph.producer(slot);
  auto tokens_at = graph.slot(*sum, "self"), positions_at = graph.slot(*sum, "other");
  if (graph.held(tokens_at))
    std::swap(tokens_at, positions_at);
  const auto* const positions = positions_at < 0 ? nullptr : graph.held(positions_at);
  if (!positions || tokens_at < 0)
    return std::nullopt;
  const auto& tokens = graph.sizes(tokens_at);
  const auto sizes = positions->value.sizes().vec();
  if (tokens.size() != 3 || !positions->parameter || sizes != graph_view::shape{1, tokens[1], tokens[2]})
    throw no_layer(fmt::format("it adds '{}'; expected a parameter [1, tokens, width]", positions->name));
  return layer_text{.name = positions->name, .text = "positions", .input = tokens_at};
}

} // namespace mneme
