#include "actors/run/starting_weights.hpp"
#include "actors/run/at_key.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/user_module.hpp"
#include "runtime/scenario/named_paths.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Parts of the model.safetensors of an earlier run that model.seed_weights names.
struct initial_tensors {
  tensor_map net{}, downstream{}; ///< Tensors of the run's net, and of the net that the method trains on the outputs of
                                  ///< the run's net.
};

/// Splits named tensors between the two nets. Omits a ridge readout and its projection, which the method fits to all
/// rows.
initial_tensors in_parts(const tensor_map& named, const model& net, const model* downstream) {
  const auto is_of = [](const model& owner, const std::string& name) {
    const auto& parameters = owner.layout();
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const parameter& entry) { return entry.name == name; });
  };
  initial_tensors parts;
  for (const auto& [name, value] : named)
    if (downstream && is_of(*downstream, name) && !is_of(net, name))
      parts.downstream.put(name, value);
    else if (is_of(net, name) || (name != projection_name && name != readout_name))
      parts.net.put(name, value);
  return parts;
}

} // namespace

expected<tensors_ref> downstream_weights(const scenario& settings, const model& net, const model_ref& downstream) {
  const auto& file = settings.model.seed_weights;
  if (!downstream || file.empty())
    return nullptr;
  const auto named = read_safetensors(file);
  if (!named) // the call for the run's net has reported this error
    return nullptr;
  const auto parts = in_parts(*named, net, downstream.get());
  if (parts.downstream.empty())
    return nullptr;
  auto weights = flat_parameters(*downstream, parts.downstream, file.string(), nullptr);
  if (!weights)
    return tl::unexpected(at_key(settings, "model.seed_weights", weights.error()));
  return weights_only(*weights);
}

expected<at::Tensor> starting_weights(const scenario& settings, const model& net, const model* downstream,
                                      const std::filesystem::path& backbone, bool draws) {
  auto flat = draws ? initial_weights(net, static_cast<std::uint64_t>(settings.seed))
                    : new_tensor({net.size()}, at::kFloat).zero_();
  const auto* const module = dynamic_cast<const user_module*>(&net);
  if (module)
    module->put_own_values(flat);
  auto read = [&](const std::filesystem::path& file, const char* key, const at::Tensor* head) -> expected<at::Tensor> {
    auto named = read_safetensors(file);
    if (!named)
      return tl::unexpected{named.error()};
    if (file == settings.model.seed_weights)
      named = in_parts(*named, net, downstream).net;
    auto weights = flat_parameters(net, *named, file.string(), head);
    if (!weights)
      return tl::unexpected(at_key(settings, key, weights.error()));
    return weights;
  };
  if (!settings.model.weights.empty() && settings.model.weights != weights_as_drawn) {
    auto pretrained = read(settings.model.weights, "model.weights", &flat);
    if (!pretrained)
      return pretrained;
    flat = *pretrained;
  }
  if (!backbone.empty()) {
    auto trained = read(backbone, "model.backbone", &flat);
    if (!trained)
      return trained;
    flat = *trained;
  }
  if (!settings.model.seed_weights.empty())
    return read(settings.model.seed_weights, "model.seed_weights", nullptr);
  return flat;
}

diagnostics untrained_frozen_net(const scenario& settings, const model& net) {
  const auto& from = settings.model;
  const auto needs = settings.strategy.method->needs();
  const bool frozen =
      from.trainable == trainable_part::head || needs.frozen_net || needs.prompts.form != prompt_form::none;
  const bool has_body = std::any_of(net.layout().begin(), net.layout().end(),
                                    [](const parameter& entry) { return !entry.head && !entry.frozen; });
  const bool begins_somewhere =
      !from.weights.empty() || !from.seed_weights.empty() || !from.backbone.empty() || !from.module.empty();
  if (!frozen || !has_body || begins_somewhere)
    return {};
  const auto* const key = from.trainable == trainable_part::head ? "model.trainable" : "strategy.name";
  return {{settings.where(key),
           "the net is frozen and untrained, so later parts would be trained on random features; expected "
           "model.weights (see tools/fetch_weights), model.backbone, or model.weights = \"as-drawn\" to allow it"}};
}

} // namespace mneme
