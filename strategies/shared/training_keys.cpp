#include "strategies/shared/training_keys.hpp"
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

} // namespace mneme
