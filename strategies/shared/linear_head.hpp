/// linear_head: validates nets for methods that require a linear head.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/model.hpp"
#include <string_view>
namespace mneme {

/// Returns an error if the head is not a single linear layer with a bias on all features of the net. It rejects hidden
/// layers in the head (model.head_hidden, a classifier of embeddings). It also rejects a head that reads only part of
/// the features (a task's token), or that has no bias.
/// @param reader use of the layer by the method, for the error text; for example "the proxy scores features with the
/// head"
[[nodiscard]] diagnostics without_linear_head(const model& net, std::string_view reader);

} // namespace mneme
