/// native_net: translates a module to a net of mneme's layers.
#pragma once
#include "runtime/modules/graph_layers.hpp"
#include "runtime/modules/module_net.hpp"
namespace mneme {

/// The layers that a module was translated to, or the reasons why it has no equivalent. Operators without a layer
/// become segments of the net (graph_segments.hpp) if a layer with weights remains in addition to the head.
struct native_net {
  model_ref net{};             ///< Null if the module has no equivalent.
  graph_layers described{};    ///< The layers of `net`; its `unmatched` holds the reasons if there is no net.
  std::string note{};          ///< With segments in `net`: a sentence that counts and names their operators.
  std::string segment_error{}; ///< Reason why not even a part of the module became layers.
};

/// Translates the program of `module` and compares both nets: scores in evaluation mode, with changed weights, must be
/// equal within rounding errors. The net's parameters have the names of the file, and its initial weights are those of
/// the file. Throws no exception. @param shape properties of `module`
[[nodiscard]] native_net make_native_net(const exported_graph& graph, const module_net& module,
                                         const module_shape& shape, const module_rows& rows);

/// Sentence for the user if there is no net: the number of operators with a layer, and the operators without one.
[[nodiscard]] std::string unfused_text(const native_net& tried);

} // namespace mneme
