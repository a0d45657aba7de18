// Restricts the last attention block of a net to the first token.
#include "runtime/modules/graph_layers.hpp"
#include <algorithm>
namespace mneme {
namespace {

using texts = std::vector<std::string>;

/// Kind of a layer: "attention" for "blocks.0: attention 2".
std::string kind_of(const std::string& text) {
  const auto colon = text.find(": ");
  const auto plain = colon == std::string::npos ? text : text.substr(colon + 2);
  return plain.substr(0, plain.find(' '));
}

/// True for layers that process tokens independently.
bool is_by_token(const std::string& text) {
  const auto kind = kind_of(text);
  for (const auto* const known :
       {"layer-norm", "linear", "relu", "leaky-relu", "sigmoid", "tanh", "silu", "gelu", "dropout"})
    if (kind == known)
      return true;
  return false;
}

/// Index of the "residual [" that opens the block that ends at `end`.
std::size_t start_of_block(const texts& layers, std::size_t end) {
  std::size_t depth = 0, at = end;
  for (;; --at) {
    depth += layers[at] == "]" ? 1 : 0;
    depth -= layers[at] == "residual [" ? 1 : 0;
    if (depth == 0)
      return at;
  }
}

/// The layers, with a last block that computes only the first token. @param end end of the block @param select index of
/// first-token
texts rewritten(const texts& layers, std::size_t attention, std::size_t end, std::size_t select) {
  texts made(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(end));
  made[attention] += " first-token";
  for (const auto* const text : {"] shortcut [", "first-token", "]"})
    made.emplace_back(text);
  for (auto i = end + 1; i < layers.size(); ++i)
    if (i != select)
      made.push_back(layers[i]);
  return made;
}

} // namespace

texts first_token_only(const texts& layers) {
  const auto found = std::find(layers.rbegin(), layers.rend(), "first-token");
  if (found == layers.rend())
    return layers;
  const auto select = static_cast<std::size_t>(layers.rend() - found) - 1;
  for (auto at = select; at-- > 0;) {
    if (layers[at] != "]") {
      if (!is_by_token(layers[at]))
        return layers;
      continue;
    }
    const auto start = start_of_block(layers, at);
    auto attention = at; // index of the block's last attention; `at` if there is none
    for (auto i = start + 1; i < at; ++i)
      if (kind_of(layers[i]) == "attention")
        attention = i;
    for (auto i = start + 1; i < at; ++i) {
      const bool may_be_attention = attention != at && i <= attention && kind_of(layers[i]) == "attention";
      if (!is_by_token(layers[i]) && !may_be_attention)
        return layers;
    }
    if (attention != at)
      return rewritten(layers, attention, at, select);
    at = start;
  }
  return layers;
}

} // namespace mneme
