/// graph_layers: translates an exported program to the layers of model.layers.
#pragma once
#include "runtime/modules/graph_segments.hpp"
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
  std::vector<std::string> unmatched{}; ///< Operators without a layer, each with the reason; empty: translated.
  /// Operators that no layer computes, in the order of `layers`, which name them by graph_segment::text().
  std::vector<graph_segment> segments{};
  [[nodiscard]] bool is_whole() const noexcept { return unmatched.empty(); }
};

struct translation_options {
  /// false: evaluation mode throughout, so running statistics are frozen and there is no dropout.
  bool training = false;
  bool partly = false; ///< true: operators without a layer are grouped into as few segments as possible.
  bool scores = false; ///< With `partly`: the result is the class scores, so a last layer without a bias is a segment.
};

/// Translates chains of layers with residual sums, from the rows to the result. The translation follows the structure
/// of the program; compare values before you use it.
/// @param sizes shapes of all tensors, from exported_graph::sizes()
[[nodiscard]] graph_layers translate_graph(const exported_program& program,
                                           const std::vector<std::vector<std::int64_t>>& sizes,
                                           const translation_options& options);

/// Returns an equivalent net whose last block of attention computes only the first token, if later layers read only
/// that token.
[[nodiscard]] std::vector<std::string> first_token_only(const std::vector<std::string>& layers);

} // namespace mneme
