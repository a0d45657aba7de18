#include "actors/run/run_net.hpp"
#include "actors/run/at_key.hpp"
#include "actors/run/freeze_parameters.hpp"
#include "actors/run/memory_estimate.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/network.hpp"
#include "runtime/models/user_module.hpp"
#include <cctype>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Number of outputs of the net's head.
std::int64_t outputs_of(const scenario& settings, const task_stream& tasks) {
  return tasks.classes + settings.strategy.method->needs().extra_outputs;
}

expected<model_ref> read_module(const scenario& settings, const task_stream& tasks, const std::string& device) {
  const auto net = load_user_module(settings.model.module, {.input = tasks.train->shape(),
                                                            .form = form_of_rows(tasks.train->shape(), tasks.tokens),
                                                            .tokens = tasks.tokens,
                                                            .classes = outputs_of(settings, tasks),
                                                            .scores = settings.model.module_scores,
                                                            .head = settings.strategy.method->needs().head,
                                                            .trained = settings.model.trainable == trainable_part::all,
                                                            .training = settings.model.module_training,
                                                            .fused = settings.model.module_fused,
                                                            .native_code = settings.model.native_code,
                                                            .device = device});
  if (!net)
    return tl::unexpected(at_key(settings, "model.module", net.error()));
  if (auto native = (*net)->native())
    return native;
  return *net;
}

/// Location of the first key that the error text names and the scenario sets; otherwise the location of model.name.
std::string place_of_reason(const scenario& settings, const std::string& reason) {
  auto first = std::string::npos;
  std::string place = settings.where("model.name");
  for (const auto& [key, given_at] : settings.key_places) {
    const auto at = reason.find(key);
    if (!key.starts_with("model.") && !key.starts_with("strategy."))
      continue;
    const auto key_end = at == std::string::npos ? at : at + key.size();
    const bool is_whole = key_end < reason.size() ? reason[key_end] != '_' && !std::islower(reason[key_end]) : true;
    if (at < first && is_whole) {
      first = at;
      place = given_at;
    }
  }
  return place;
}

/// Returns an error if memory is too small for the weights. These are the weights of the server and, if clients train,
/// also the weights and gradients of one client.
diagnostics too_large_net(const scenario& settings, const model& net, const memory_budget& room) {
  const auto copies = settings.strategy.method->needs().frozen_net ? 1.0 : 3.0;
  const auto bytes = 4.0 * copies * static_cast<double>(net.size());
  if (bytes <= static_cast<double>(room.bytes))
    return {};
  return {{settings.where("model.name"),
           fmt::format("a net of {} weights needs about {}, but only {} are {}; expected a smaller net", net.size(),
                       bytes_text(bytes), bytes_text(static_cast<double>(room.bytes)), room.source)}};
}

expected<model_ref> build_model(const scenario& settings, const task_stream& tasks, const std::string& device) {
  if (!settings.model.module.empty() && settings.strategy.method->needs().head == head_kind::proxies)
    return failed(settings.where("model.module"), "a module has a linear or a cosine head, and \"" +
                                                      settings.strategy.name +
                                                      "\" needs several proxies per class; expected model.name");
  if (!settings.model.module.empty())
    return read_module(settings, tasks, device);
  auto& kind = *settings.model.kind;
  if (kind.reads_tokens() && tasks.tokens == 0)
    return failed(settings.where("model.name"), "\"" + settings.model.name +
                                                    "\" reads rows of tokens, and data.name = \"" + settings.data.name +
                                                    "\" has images; expected data of tokens or another net");
  if (!kind.reads_tokens() && tasks.tokens > 0)
    return failed(settings.where("model.name"), "\"" + settings.model.name +
                                                    "\" reads images, and the data are rows of tokens; expected a net "
                                                    "that reads tokens, as \"lstm\"");
  const auto needs = settings.strategy.method->needs();
  kind.set_head(needs.head);
  kind.set_proxies(needs.proxies);
  kind.set_signed_features(needs.signed_features);
  kind.set_prompts(needs.prompts);
  kind.set_tasks(classes_of_tasks(tasks));
  kind.set_tokens(tasks.tokens);
  auto net = settings.strategy.method->build_net(kind, tasks.train->shape(), outputs_of(settings, tasks));
  if (!net)
    return failed(place_of_reason(settings, net.error()), net.error());
  if (auto errors = too_large_net(settings, **net, available_memory()); !errors.empty())
    return tl::unexpected(std::move(errors));
  return *net;
}

} // namespace

std::vector<class_range> classes_of_tasks(const task_stream& tasks) {
  std::vector<class_range> classes;
  for (const auto& task : tasks.tasks)
    classes.push_back(task.classes);
  return classes;
}

expected<model_ref> make_run_model(const scenario& settings, const task_stream& tasks, const std::string& device) {
  const auto net = build_model(settings, tasks, device);
  return net ? freeze_parameters(settings, *net) : net;
}

diagnostics module_warnings(const scenario& settings, const model& net) {
  diagnostics warnings;
  if (const auto* const module = dynamic_cast<const user_module*>(&net))
    for (const auto& text : module->warnings())
      warnings.push_back({settings.where("model.module"), text});
  if (const auto* const layers = dynamic_cast<const network*>(&net); layers && !layers->note().empty())
    warnings.push_back({settings.where("model.module"), layers->note()});
  return warnings;
}

} // namespace mneme
