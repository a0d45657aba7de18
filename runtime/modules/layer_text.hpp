/// layer_text: translates one call of an exported program to an equivalent layer of model.layers.
#pragma once
#include "runtime/modules/graph_view.hpp"
namespace mneme {

/// A layer in the syntax of model.layers.
struct layer_text {
  std::string name{}; ///< Prefix of its parameters; "" if it has none.
  std::string text{}; ///< "" if the call returns its input unchanged.
  /// Names of parameters that the layer names differently: {name in the file, name in mneme}.
  std::map<std::string, std::string> renamed{};
  std::vector<std::string> fixed{}; ///< Running statistics that training does not change, by their names in the file.
  std::int32_t input = -1;          ///< Slot that the layer reads.

  /// Formats "conv1: conv 6 5x5", or the text alone for a layer without parameters.
  [[nodiscard]] std::string whole() const { return name.empty() ? text : name + ": " + text; }
};

/// True if the layer, written as in layer_text::whole(), has parameters.
[[nodiscard]] bool has_weights(const std::string& layer);

/// Translates the call that computes `slot`. Throws no_layer if no layer computes the same.
/// @param training false: dropout and running statistics are in evaluation mode throughout
[[nodiscard]] layer_text layer_of_call(const graph_view& graph, std::int32_t slot, bool training);

} // namespace mneme
