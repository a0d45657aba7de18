/// native_net: a module as a net of mneme's layers, if every operator has an equivalent layer.
#pragma once
#include "runtime/modules/graph_layers.hpp"
#include "runtime/modules/module_net.hpp"
namespace mneme {

/// A module as layers, or the reasons why it has no equivalent.
struct native_net {
  model_ref net{};          ///< Null if the module has no equivalent.
  graph_layers described{}; ///< The layers of `net`. Without a net, `unmatched` holds the reasons.
};

/// Translates the program of `module` and compares both nets: scores in evaluation mode, with changed weights, must be
/// equal within rounding errors. The net's parameters have the names of the file, and its initial weights are those of
/// the file. Throws no exception. @param shape of `module`
[[nodiscard]] native_net make_native_net(const exported_graph& graph, const module_net& module,
                                         const module_shape& shape, const module_rows& rows);

/// Sentence for the user: the number of operators with a layer, and the operators without one.
[[nodiscard]] std::string unfused_text(const graph_layers& layers);

} // namespace mneme
