/// graph_layers: translates an exported program to the layers of model.layers.
#pragma once
#include "runtime/modules/graph_view.hpp"
#include <string>
#include <vector>
namespace mneme {

/// A net as layers, or the operators without a layer.
struct graph_layers {
  std::vector<std::string> layers{}; ///< Texts of model.layers, as "conv1: conv 6 5x5"; the head is the last.
  /// Names of parameters that the layers name differently: {name in the file, name in mneme}.
  std::map<std::string, std::string> renamed{};
  /// Parameters and running statistics that training does not change, by their names in the file.
  std::vector<std::string> frozen{};
  std::size_t operators = 0;            ///< Number of operators of the program, without arithmetic on sizes.
  std::vector<std::string> unmatched{}; ///< Operators without a layer, each with the reason; empty: all were
                                        ///< translated.
  [[nodiscard]] bool is_whole() const noexcept { return unmatched.empty(); }
};

/// Translates chains of layers with residual sums, from the rows to the result. The translation considers only the
/// structure of the program, so the caller has to compare values before using it.
/// @param sizes shapes of all tensors, from exported_graph::sizes()
/// @param training false: evaluation mode throughout, so running statistics are frozen and there is no dropout
[[nodiscard]] graph_layers translate_graph(const exported_program& program,
                                           const std::vector<std::vector<std::int64_t>>& sizes, bool training);

/// Returns an equivalent net whose last block of attention computes only the first token, if later layers read only
/// that one.
[[nodiscard]] std::vector<std::string> first_token_only(const std::vector<std::string>& layers);

} // namespace mneme
