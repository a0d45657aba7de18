/// linear_head: what methods say of nets whose head they cannot read.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/model.hpp"
#include <string_view>
namespace mneme {

/// A finding unless one linear layer with a bias stands upon all features of the net: none where layers lie between
/// them (model.head_hidden, a classifier of embeddings), where a head reads a part of the features (a task's token), or
/// where there is no bias. @param reader what the method does with the layer: "the proxy scores features by it"
[[nodiscard]] diagnostics without_linear_head(const model& net, std::string_view reader);

} // namespace mneme
