#include "strategies/shared/training_keys.hpp"
#include "runtime/models/row_wise_model.hpp"
#include <fmt/format.h>
namespace mneme {

diagnostics reject_label_smoothing(const method_setup& setup, std::string_view reason) {
  const auto share = setup.training.label_smoothing;
  if (share == 0.0)
    return {};
  return {{"training.label_smoothing", fmt::format("training.label_smoothing = {}: {}; expected 0.0", share, reason)}};
}

diagnostics reject_batch_keys(const method_setup& setup, std::string_view reason) {
  auto errors = reject_label_smoothing(setup, reason);
  if (setup.training.drop_last)
    errors.push_back({"training.drop_last", fmt::format("training.drop_last = true: {}; expected false", reason)});
  return errors;
}

diagnostics reject_token_losses(const method_setup& setup, std::string_view reason) {
  if (positions_of(*setup.net) == 1)
    return {};
  return {{"model.causal", fmt::format("model.causal = true: the net predicts the next token of each position, and {}; "
                                       "expected false, or a method that averages weights, such as \"fedavg\"",
                                       reason)}};
}

} // namespace mneme
