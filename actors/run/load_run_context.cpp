#include "actors/run/load_run_context.hpp"
#include "actors/parties/personal_evaluation.hpp"
#include "actors/run/context_warnings.hpp"
#include "actors/run/method_inputs.hpp"
#include "actors/run/run_data.hpp"
#include "actors/run/run_net.hpp"
#include "actors/run/starting_weights.hpp"
#include "runtime/data/data_content.hpp"
#include "runtime/method/upload_pipeline.hpp"
#include "runtime/population/availability_trace.hpp"
#include "runtime/population/client_rows_user.hpp"
#include "runtime/population/device_speeds.hpp"
#include "runtime/population/link_trace.hpp"
#include "runtime/training/executor.hpp"
namespace mneme {
namespace {

/// Appends the errors of a step, so that errors of independent steps are reported together.
template <class T>
void gather(diagnostics& problems, const expected<T>& step) {
  if (!step)
    append(problems, step.error());
}

/// Reads traces and tables of devices. Returns nullopt and appends the errors if one cannot be read.
std::optional<device_inputs> facts_of_devices(const scenario& settings, diagnostics& problems) {
  const auto availability = read_availability_trace(settings);
  const auto links = read_link_trace(settings);
  const auto capacity = read_capacity_table(settings);
  gather(problems, availability);
  gather(problems, links);
  gather(problems, capacity);
  if (!availability || !links || !capacity)
    return std::nullopt;
  return device_inputs{.availability = *availability, .links = *links, .capacity = *capacity};
}

/// Makes the population. tasks.keep_task_share has no effect if the method assigns clients to old tasks itself.
std::shared_ptr<const population> population_of(scenario settings, const device_inputs& facts) {
  if (settings.strategy.method->needs().assigns_old_task_clients)
    settings.tasks.keep_task_share = 0.0;
  return std::make_shared<const population>(settings, facts);
}

/// Adds the training rates of device profiles for this net, in rows per second. Returns false if the scenario has no
/// profiles, or if a profile lacks this net.
bool add_speeds(device_inputs& facts, const scenario& settings, const model& net, const task_stream& tasks,
                diagnostics& problems) {
  if (settings.devices.profiles.empty())
    return false;
  const auto speeds = device_speeds_of(settings, {.net = net, .shape = tasks.train->shape(), .classes = tasks.classes});
  gather(problems, speeds);
  if (speeds)
    facts.speeds = *speeds;
  return speeds.has_value();
}

/// Prepares the method and fills the context.
std::shared_ptr<run_context> assemble_context(const scenario& settings, const std::shared_ptr<const task_stream>& tasks,
                                              const std::shared_ptr<const population>& people,
                                              const std::shared_ptr<const partition>& parts, const model_ref& net,
                                              const std::string& device, const method_setup& setup) {
  auto context = std::make_shared<run_context>();
  context->scenario = settings;
  context->tasks = tasks;
  context->population = people;
  context->net = net;
  context->device = device;
  context->needs = settings.strategy.method->needs();
  context->generated_rows = std::make_shared<generated_row_store>(
      row_format{.scale = tasks->train->scale, .shift = tasks->train->shift, .classes = setup.classes});
  context->features = std::make_shared<feature_store>(context->needs.feature_folder);
  settings.strategy.method->prepare(setup);
  context->method = settings.strategy.method;
  if (has_upload_pipeline(settings)) {
    context->method = std::make_shared<const upload_pipeline>(context->method, settings, *tasks);
    context->needs = context->method->needs();
  }
  if (const auto& evaluation = settings.evaluation; evaluation.holds_out_rows())
    context->held_out =
        std::make_shared<const held_out_partition>(parts, evaluation.personal_share, settings.data_seed());
  const std::shared_ptr<const partition> trained = context->held_out ? context->held_out : parts;
  context->rows = std::make_shared<const client_rows>(tasks, trained, context->population, context->needs.rows);
  if (auto* const user = dynamic_cast<client_rows_user*>(settings.strategy.method.get()))
    user->set_client_rows(context->rows);
  return context;
}

} // namespace

expected<std::shared_ptr<run_context>> load_run_context(const scenario& settings, const run_context_request& request) {
  const auto device = resolve_device(settings.worker.device);
  const bool checks = request.use == run_context_use::check;
  auto raw = load_run_data(settings, request.data, checks ? row_values::zeros : row_values::drawn, device);
  if (!raw)
    return tl::unexpected{raw.error()};
  if (request.warnings)
    append(*request.warnings, data_warnings(settings.data));
  if (request.data_digest)
    *request.data_digest = hex_text(data_content(*raw));
  auto tasks = make_task_stream(settings, std::move(*raw));
  if (!tasks)
    return tl::unexpected{tasks.error()};
  diagnostics problems;
  auto shared_tasks = std::make_shared<const task_stream>(std::move(*tasks));

  const auto marks = settings.strategy.method->needs().partition_column;
  if (!marks.name.empty() && settings.partition.kind != partition_kind::file)
    return failed(settings.where("partition.kind"), "the method reads the column '" + marks.name +
                                                        "' of partition.file; expected partition.kind = \"file\"");
  auto facts = facts_of_devices(settings, problems);
  auto people = facts ? population_of(settings, *facts) : nullptr;
  const auto parts = make_partition(settings, shared_tasks, marks,
                                    people ? [&](task_id task) { return people->members(task); } : enrolled_clients{});
  gather(problems, parts);
  if (request.warnings)
    append(*request.warnings, context_warnings(settings, *shared_tasks, parts ? parts->get() : nullptr));
  const auto net = make_run_model(settings, *shared_tasks, *device);
  if (net && request.warnings)
    append(*request.warnings, module_warnings(settings, **net));
  auto setup = net ? load_method_inputs(settings, *shared_tasks, *net, *device)
                   : expected<method_setup>(tl::unexpected(net.error()));
  gather(problems, setup);
  if (facts && net && add_speeds(*facts, settings, **net, *shared_tasks, problems))
    people = population_of(settings, *facts);
  expected<at::Tensor> initial;
  expected<tensors_ref> initial_downstream;
  if (net) {
    const auto downstream = setup ? settings.strategy.method->downstream_net(*setup) : nullptr;
    initial = starting_weights(settings, **net, downstream.get(), request.backbone, !checks);
    initial_downstream = downstream_weights(settings, **net, downstream);
    gather(problems, initial);
    gather(problems, initial_downstream);
  }
  if (problems.empty())
    problems = untrained_frozen_net(settings, **net);
  if (!problems.empty())
    return tl::unexpected{problems};

  setup->initial = weights_only(initial->to(at::Device(*device))); // the device of all trained weights
  setup->initial_downstream = *initial_downstream;

  auto context = assemble_context(settings, shared_tasks, people, *parts, *net, *device, *setup);
  if (auto errors = personal_evaluation_errors(*context); !errors.empty())
    return tl::unexpected{std::move(errors)};
  if (request.split)
    *request.split = *parts;
  return context;
}

} // namespace mneme
