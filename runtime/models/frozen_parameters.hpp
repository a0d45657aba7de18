/// frozen_parameters: which parameters of a net the entries of model.frozen name.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

/// The net with these parameters frozen. An entry is the name of a parameter ("conv1.weight"), the name of a layer
/// ("layer1": every parameter and running statistic whose name begins with "layer1."), or a pattern in which each *
/// matches any text.
/// Fails with a text for each entry that names nothing, and where only one of a layer's two running statistics is
/// named.
/// @return the net itself if there is no entry
[[nodiscard]] tl::expected<model_ref, std::vector<std::string>> with_frozen(const model_ref& net,
                                                                            const std::vector<std::string>& entries);

/// True if a training of the head alone (`head_only`), or of all parameters, has something to learn.
[[nodiscard]] bool has_trained_parameters(const model& net, bool head_only);

} // namespace mneme
