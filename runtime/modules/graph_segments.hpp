/// graph_segments: parts of an exported program that run as one layer of a net, by the operators of the file.
#pragma once
#include "runtime/models/foreign_layer.hpp"
#include "runtime/modules/graph_view.hpp"
#include "runtime/modules/row_form.hpp"
namespace mneme {

/// The operators that compute the value `to` from the value `from`. Operators outside the segment read `to` only.
struct graph_segment {
  std::int32_t from = -1, to = -1; ///< Slots.
  /// The text that represents the segment in a list of layers.
  [[nodiscard]] std::string text() const;
};

/// The dominators of each value in the graph that leads from the rows to it.
class row_flow {
public:
  explicit row_flow(const graph_view& graph);
  /// Returns the nearest dominator of `slot` that a layer can return. Such a value has 2 to 4 axes, and its first axis
  /// is the rows. Throws no_layer if a layer cannot return `slot`.
  [[nodiscard]] std::int32_t before(std::int32_t slot) const;
  /// True if a layer can return the value.
  [[nodiscard]] bool is_layer_value(std::int32_t slot) const;

private:
  struct node {
    std::int32_t before = -1; // nearest dominator
    std::size_t depth = 0;
  };
  [[nodiscard]] std::int32_t common(std::int32_t a, std::int32_t b) const;

  const graph_view& graph_;
  std::map<std::int32_t, node> nodes_; // values that depend on the rows
};

/// Returns the program of the segment: its operators, and the operators on constants that they read. Throws no_layer if
/// they also read the rows, or if they update buffers other than the running statistics of batch norms in training
/// mode.
/// @param training false: the segment runs in evaluation mode throughout
[[nodiscard]] exported_program segment_program(const graph_view& graph, const graph_segment& segment, bool training);

/// Options of a segment's layer.
struct segment_layer_options {
  std::string file{};               ///< Name of the file, for errors.
  row_form form = row_form::images; ///< Form of the net's rows.
  bool training = false;            ///< Training passes run in training mode.
  std::int64_t row_bytes = 0;       ///< See module_shape::row_bytes.
};
/// Returns a layer that runs the segment for one model after the other. Passes throw std::runtime_error with the file's
/// name if an operator fails, a result does not have the shape that `graph` states, or memory exceeds the limit of a
/// module's pass.
[[nodiscard]] foreign_layer make_segment_layer(const graph_view& graph, const graph_segment& segment,
                                               exported_program program, const segment_layer_options& options);

} // namespace mneme
