#include "actors/run/freeze_parameters.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/frozen_parameters.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

/// Returns the reason why training this net would change no parameter; "" if it would.
std::string untrained_error(const scenario& settings, const model& net) {
  const bool head_only = settings.model.trainable == trainable_part::head;
  if (!has_held_parameters(net) || settings.strategy.method->needs().frozen_net || settings.training.epochs == 0 ||
      has_trained_parameters(net, head_only))
    return "";
  return fmt::format("every parameter of the {} is frozen, so nothing can be trained; expected at least one other "
                     "parameter, or training.epochs = 0 to evaluate the net only",
                     head_only ? "head (model.trainable = \"head\")" : "net");
}

} // namespace

expected<model_ref> freeze_parameters(const scenario& settings, const model_ref& net) {
  const auto frozen = with_frozen(net, settings.model.frozen);
  const auto place = settings.where(settings.model.frozen.empty() ? "model.module" : "model.frozen");
  diagnostics errors;
  for (const auto& text : frozen ? std::vector<std::string>{} : frozen.error())
    errors.push_back({place, text});
  if (const auto text = frozen ? untrained_error(settings, **frozen) : ""; !text.empty())
    errors.push_back({place, text});
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return *frozen;
}

} // namespace mneme
