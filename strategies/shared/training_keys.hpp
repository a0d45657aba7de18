/// training_keys: refusals of keys of [training] that a method cannot honour.
#pragma once
#include "runtime/method/strategy.hpp"
#include <string_view>
namespace mneme {

/// Empty where training.label_smoothing is 0. @param reason why the method has no smoothed labels, and what else to
/// write, if anything: "its loss compares rows with proxies"
[[nodiscard]] diagnostics reject_label_smoothing(const method_setup& setup, std::string_view reason);
/// Empty where both training.label_smoothing and training.drop_last have their defaults.
/// @param reason why clients read neither: "clients train generators by steps of their own"
[[nodiscard]] diagnostics reject_batch_keys(const method_setup& setup, std::string_view reason);

} // namespace mneme
