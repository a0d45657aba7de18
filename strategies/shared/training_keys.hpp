/// training_keys: rejects keys of [training] and nets that a method does not support.
#pragma once
#include "runtime/method/strategy.hpp"
#include <string_view>
namespace mneme {

/// Returns an error if training.label_smoothing is not 0.
/// @param reason reason for the error text, optionally with a replacement; for example "its loss compares rows with
/// proxies"
[[nodiscard]] diagnostics reject_label_smoothing(const method_setup& setup, std::string_view reason);
/// Returns an error for each of training.label_smoothing and training.drop_last that differs from its default.
/// @param reason reason for the error text, for example "clients train generators by steps of their own"
[[nodiscard]] diagnostics reject_batch_keys(const method_setup& setup, std::string_view reason);
/// Returns an error if the net predicts the next token of each position (model.causal), and so has no output and no
/// loss of a whole row. @param reason why the method needs one: "moon compares features of rows"
[[nodiscard]] diagnostics reject_token_losses(const method_setup& setup, std::string_view reason);

} // namespace mneme
