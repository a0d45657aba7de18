/// frozen_parameters: freezes the parameters of a net that model.frozen names.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

/// Returns the net with the named parameters frozen, or the net itself if `entries` is empty. An entry is the name of a
/// parameter ("conv1.weight"), the name of a layer ("layer1": every parameter and running statistic whose name begins
/// with "layer1."), or a pattern in which each * stands for any text. Fails with one text for each entry that matches
/// nothing, and for each layer of which only one running statistic is named.
[[nodiscard]] tl::expected<model_ref, std::vector<std::string>> with_frozen(const model_ref& net,
                                                                            const std::vector<std::string>& entries);

/// True if training changes at least one parameter. @param head_only true: only the head is trained
[[nodiscard]] bool has_trained_parameters(const model& net, bool head_only);

} // namespace mneme
