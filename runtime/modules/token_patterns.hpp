/// token_patterns: groups of calls in an exported program that one token layer computes.
#pragma once
#include "runtime/modules/layer_text.hpp"
#include <optional>
namespace mneme {

/// Self-attention that ends at `slot`: a linear layer for queries, keys and values, attention over heads, and a linear
/// projection, with changes of shape between them. Returns nullopt if the calls have another structure. Throws no_layer
/// if the attention has masks, dropout or other options that mneme's layer lacks.
/// @param training as in layer_of_call()
[[nodiscard]] std::optional<layer_text> attention_pattern(const graph_view& graph, std::int32_t slot, bool training);

/// The patch embedding of a vision transformer that ends at the sum `slot`: a class token and a convolution over
/// patches, plus positions. Returns nullopt for other sums.
[[nodiscard]] std::optional<layer_text> patch_embedding_pattern(const graph_view& graph, std::int32_t slot);

/// Trained positions [1, T, W] that the sum `slot` adds to tokens. Returns nullopt for other sums.
[[nodiscard]] std::optional<layer_text> positions_pattern(const graph_view& graph, std::int32_t slot);

} // namespace mneme
