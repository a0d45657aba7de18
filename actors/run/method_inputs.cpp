#include "actors/run/method_inputs.hpp"
#include "actors/run/at_key.hpp"
#include "actors/run/memory_estimate.hpp"
#include "actors/run/run_net.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/base/non_owning.hpp"
#include "runtime/models/user_module.hpp"
#include "runtime/storage/parameters.hpp"
namespace mneme {
namespace {

/// Adds the location in the scenario to a diagnostic of the method. If the diagnostic concerns model.name, its text
/// starts with the method's name, because the line of model.name does not contain that name.
diagnostic locate_diagnostic(const scenario& settings, const diagnostic& problem) {
  const auto lead = problem.where == "model.name" ? settings.strategy.name + ": " : std::string{};
  return {settings.where(problem.where), lead + problem.text};
}

loaded_module with_own_weights(const std::shared_ptr<const user_module>& net) {
  auto flat = new_tensor({net->size()}, at::kFloat);
  net->put_own_values(flat);
  return {.net = net, .weights = weights_only(flat), .input = net->input()};
}

constexpr std::uint64_t text_bytes_max = std::uint64_t{64} << 20; // limit of a text file of a method

/// Reads the files that keys of the method name into `into`. Returns their errors.
diagnostics read_files(const scenario& settings, const std::string& device, method_setup& into) {
  diagnostics errors;
  const auto add = [&](const std::string& key, const diagnostics& problems) {
    append(errors, at_key(settings, "strategy." + key, problems));
  };
  const auto needs = settings.strategy.method->needs();
  for (const auto& [key, file] : needs.tensor_files) {
    if (auto read = read_safetensors(file))
      into.files[key] = std::move(*read);
    else
      add(key, read.error());
  }
  for (const auto& [key, file] : needs.text_files) {
    if (auto read = text_of_file(file, text_bytes_max))
      into.texts[key] = std::move(*read);
    else
      add(key, read.error());
  }
  for (const auto& [key, asked] : needs.module_files) {
    const bool of_data = asked.input == std::array<std::int64_t, 3>{};
    const auto form = of_data ? form_of_rows(into.shape, into.tokens) : row_form::images;
    if (const auto net = load_user_module(asked.file, {.input = of_data ? into.shape : asked.input,
                                                       .form = form,
                                                       .tokens = into.tokens,
                                                       .own_rows = asked.own_rows,
                                                       .native_code = settings.model.native_code,
                                                       .device = device}))
      into.modules[key] = with_own_weights(*net);
    else
      add(key, net.error());
  }
  return errors;
}

} // namespace

expected<method_setup> load_method_inputs(const scenario& settings, const task_stream& tasks, const model_ref& net,
                                          const std::string& device) {
  method_setup setup{.net = non_owning(net),
                     .training = settings.training,
                     .trainable = settings.model.trainable,
                     .weighting = settings.strategy.weighting,
                     .old_model_share = settings.strategy.old_model_share,
                     .rounds = settings.rounds,
                     .oracle = settings.strategy.oracle,
                     .tasks = std::ssize(tasks.tasks),
                     .transition = settings.tasks.transition,
                     .keep_task_share = settings.tasks.keep_task_share,
                     .classes = tasks.classes,
                     .shape = tasks.train->shape(),
                     .tokens = tasks.tokens,
                     .scale = tasks.train->scale,
                     .shift = tasks.train->shift,
                     .clients = settings.clients.count,
                     .seed = static_cast<std::uint64_t>(settings.seed),
                     .memory = available_memory()};
  setup.task_classes = classes_of_tasks(tasks);
  for (const auto& task : tasks.tasks)
    setup.public_rows += std::ssize(task.public_rows);
  auto errors = read_files(settings, device, setup);
  if (errors.empty())
    for (const auto& problem : settings.strategy.method->check(setup))
      errors.push_back(locate_diagnostic(settings, problem));
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return setup;
}

} // namespace mneme
