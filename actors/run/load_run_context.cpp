#include "actors/run/load_run_context.hpp"
#include "actors/run/backbone_run.hpp"
#include "actors/run/context_warnings.hpp"
#include "actors/run/freeze_parameters.hpp"
#include "actors/run/memory_estimate.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/base/non_owning.hpp"
#include "runtime/data/data_content.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/user_module.hpp"
#include "runtime/population/availability_trace.hpp"
#include "runtime/population/client_rows_user.hpp"
#include "runtime/population/device_speeds.hpp"
#include "runtime/population/link_trace.hpp"
#include "runtime/scenario/named_paths.hpp"
#include "runtime/storage/parameters.hpp"
#include "runtime/training/executor.hpp"
#include <algorithm>
#include <cctype>
namespace mneme {
namespace {

/// Parts of the model.safetensors of an earlier run that model.seed_weights names.
struct seed_weights {
  tensor_map net{}, behind{}; ///< Tensors of the run's net, and of the net that the method trains on its outputs.
};

/// Splits named tensors over the two nets. Omits a ridge read-out and its projection, which methods fit from all rows.
seed_weights in_parts(const tensor_map& named, const model& net, const model* behind) {
  const auto is_of = [](const model& owner, const std::string& name) {
    const auto& parameters = owner.layout();
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const parameter& entry) { return entry.name == name; });
  };
  seed_weights parts;
  for (const auto& [name, value] : named)
    if (behind && is_of(*behind, name) && !is_of(net, name))
      parts.behind.put(name, value);
    else if (is_of(net, name) || (name != projection_name && name != readout_name))
      parts.net.put(name, value);
  return parts;
}

/// Weights of the downstream net in model.seed_weights; null if the file has none. Fails if they do not fit the net.
expected<tensors_ref> starting_weights_behind(const scenario& settings, const model& net, const model_ref& behind) {
  const auto& file = settings.model.seed_weights;
  if (!behind || file.empty())
    return nullptr;
  const auto named = read_safetensors(file);
  if (!named) // reported for the run's net
    return nullptr;
  const auto parts = in_parts(*named, net, behind.get());
  if (parts.behind.empty())
    return nullptr;
  auto weights = flat_parameters(*behind, parts.behind, file.string(), nullptr);
  if (weights)
    return weights_only(*weights);
  for (auto& diagnostic : weights.error())
    diagnostic.where = settings.where("model.seed_weights") + ": " + diagnostic.where;
  return tl::unexpected{weights.error()};
}

/// Initial weights of a run: drawn from the seed, then replaced by those in files that the scenario names.
/// @param behind net that the method trains on the net's outputs; may be null
expected<at::Tensor> starting_weights(const scenario& settings, const model& net, const model* behind,
                                      const run_context_request& request) {
  auto flat = request.use == run_context_use::check ? new_tensor({net.size()}, at::kFloat).zero_()
                                                    : initial_weights(net, static_cast<std::uint64_t>(settings.seed));
  const auto* const module = dynamic_cast<const user_module*>(&net);
  if (module)
    module->put_own_values(flat);
  auto read = [&](const std::filesystem::path& file, const char* key, const at::Tensor* head) -> expected<at::Tensor> {
    auto named = read_safetensors(file);
    if (!named)
      return tl::unexpected{named.error()};
    if (file == settings.model.seed_weights)
      named = in_parts(*named, net, behind).net;
    auto weights = flat_parameters(net, *named, file.string(), head);
    if (!weights)
      for (auto& diagnostic : weights.error())
        diagnostic.where = settings.where(key) + ": " + diagnostic.where;
    return weights;
  };
  if (!settings.model.weights.empty() && settings.model.weights != weights_as_drawn) {
    auto pretrained = read(settings.model.weights, "model.weights", &flat);
    if (!pretrained)
      return pretrained;
    flat = *pretrained;
  }
  if (!request.backbone.empty()) {
    auto trained = read(request.backbone, "model.backbone", &flat);
    if (!trained)
      return trained;
    flat = *trained;
  }
  if (!settings.model.seed_weights.empty())
    return read(settings.model.seed_weights, "model.seed_weights", nullptr);
  return flat;
}

/// Returns an error if the net is frozen but untrained, unless the scenario allows it by model.weights = "as-drawn".
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

/// Appends the errors of a step, so that errors of independent steps are reported together.
template <class T>
void gather(diagnostics& problems, const expected<T>& step) {
  if (!step)
    append(problems, step.error());
}

/// Prefixes errors of a file with the location of the key that names the file.
diagnostics at_key(const scenario& settings, const std::string& key, diagnostics problems) {
  for (auto& diagnostic : problems)
    diagnostic.where = settings.where(key) + ": " + diagnostic.where;
  return problems;
}

/// Number of outputs of the net's head.
std::int64_t outputs_of(const scenario& settings, const task_stream& tasks) {
  return tasks.classes + settings.strategy.method->needs().further_outputs;
}

std::vector<class_range> classes_of_tasks(const task_stream& tasks) {
  std::vector<class_range> classes;
  for (const auto& task : tasks.tasks)
    classes.push_back(task.classes);
  return classes;
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
                                                            .native_code = settings.model.native_code,
                                                            .device = device});
  if (!net)
    return tl::unexpected(at_key(settings, "model.module", net.error()));
  return *net;
}

/// Returns errors for settings that move pixels, since the rows have none. For generated rows the scenario's own checks
/// report them earlier. @param kind of the rows: "tokens" or "numbers"
diagnostics wrong_without_pixels(const scenario& settings, const std::string& kind) {
  diagnostics wrong;
  if (settings.training.augment != augmentation_kind::none)
    wrong.push_back({settings.where("training.augment"),
                     "the data are rows of " + kind + ", but augmentation moves pixels; expected \"none\""});
  const auto transform = settings.tasks.transform;
  if (settings.tasks.kind == task_kind::domain_incremental &&
      (transform == task_transform::permute || transform == task_transform::affine))
    wrong.push_back({settings.where("tasks.transform"),
                     "the data are rows of " + kind + ", but other transforms move pixels; expected \"class-blocks\""});
  return wrong;
}

/// Warnings about model.module: layers that are not trained, a deprecated format.
diagnostics module_warnings(const scenario& settings, const model& net) {
  diagnostics warnings;
  if (const auto* const module = dynamic_cast<const user_module*>(&net))
    for (const auto& text : module->warnings())
      warnings.push_back({settings.where("model.module"), text});
  return warnings;
}

/// Location of the first key that the reason names and the scenario sets; of model.name if there is none.
std::string place_of_reason(const scenario& settings, const std::string& reason) {
  auto first = std::string::npos;
  std::string place = settings.where("model.name");
  for (const auto& [key, given_at] : settings.key_places) {
    const auto at = reason.find(key);
    if (!key.starts_with("model.") && !key.starts_with("strategy."))
      continue;
    const auto behind = at == std::string::npos ? at : at + key.size();
    const bool is_whole = behind < reason.size() ? reason[behind] != '_' && !std::islower(reason[behind]) : true;
    if (at < first && is_whole) {
      first = at;
      place = given_at;
    }
  }
  return place;
}

/// Returns an error if the weights do not fit into memory: the server's, and a client's with gradients if it trains.
diagnostics too_large_net(const scenario& settings, const model& net, const memory_room& room) {
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
  kind.use_head(needs.head);
  kind.use_proxies(needs.proxies);
  kind.use_signed_features(needs.signed_features);
  kind.use_prompts(needs.prompts);
  kind.use_tasks(classes_of_tasks(tasks));
  kind.use_tokens(tasks.tokens);
  auto net = settings.strategy.method->build_net(kind, tasks.train->shape(), outputs_of(settings, tasks));
  if (!net)
    return failed(place_of_reason(settings, net.error()), net.error());
  if (auto wrong = too_large_net(settings, **net, available_memory()); !wrong.empty())
    return tl::unexpected(std::move(wrong));
  return *net;
}

/// Builds the run's net and freezes the parameters that model.frozen names.
expected<model_ref> model_of_run(const scenario& settings, const task_stream& tasks, const std::string& device) {
  const auto net = build_model(settings, tasks, device);
  return net ? freeze_parameters(settings, *net) : net;
}

/// Adds the location in the scenario to a diagnostic of the method. Where it concerns model.name, whose line does not
/// name the method, its text begins with the method's name.
diagnostic placed(const scenario& settings, const diagnostic& problem) {
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
  diagnostics wrong;
  const auto add = [&](const std::string& key, const diagnostics& problems) {
    const auto placed_there = at_key(settings, "strategy." + key, problems);
    wrong.insert(wrong.end(), placed_there.begin(), placed_there.end());
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
  return wrong;
}

/// All inputs of a method before the run, except the initial weights. Reads the files that its keys name and lets the
/// method validate the result. Fails with all errors.
expected<method_setup> setup_of(const scenario& settings, const task_stream& tasks, const model_ref& net,
                                const std::string& device) {
  method_setup setup{.net = non_owning(net),
                     .training = settings.training,
                     .trainable = settings.model.trainable,
                     .weighting = settings.strategy.weighting,
                     .keep_share = settings.strategy.keep_share,
                     .rounds = settings.rounds,
                     .oracle = settings.strategy.oracle,
                     .tasks = std::ssize(tasks.tasks),
                     .transition = settings.tasks.transition,
                     .staying_share = settings.tasks.staying_share,
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
    setup.public_rows += std::ssize(task.open);
  auto wrong = read_files(settings, device, setup);
  if (wrong.empty())
    for (const auto& problem : settings.strategy.method->check(setup))
      wrong.push_back(placed(settings, problem));
  if (!wrong.empty())
    return tl::unexpected(std::move(wrong));
  return setup;
}

/// Reads traces and tables of devices. Returns nullopt and appends the errors if one cannot be read.
std::optional<device_facts> facts_of_devices(const scenario& settings, diagnostics& problems) {
  const auto availability = read_availability_trace(settings);
  const auto links = read_link_trace(settings);
  const auto capacity = read_capacity_table(settings);
  gather(problems, availability);
  gather(problems, links);
  gather(problems, capacity);
  if (!availability || !links || !capacity)
    return std::nullopt;
  return device_facts{.availability = *availability, .links = *links, .capacity = *capacity};
}

/// Makes the population. tasks.staying_share has no effect if the method assigns clients to old tasks itself.
std::shared_ptr<const population> population_of(scenario settings, const device_facts& facts) {
  if (settings.strategy.method->needs().own_groups)
    settings.tasks.staying_share = 0.0;
  return std::make_shared<const population>(settings, facts);
}

/// Adds the training rates of device profiles for this net, in rows per second. Returns false if the scenario has no
/// profiles or one lacks this net.
bool add_speeds(device_facts& facts, const scenario& settings, const model& net, const task_stream& tasks,
                diagnostics& problems) {
  if (settings.devices.profiles.empty())
    return false;
  const auto speeds = device_speeds_of(settings, {.net = net, .shape = tasks.train->shape(), .classes = tasks.classes});
  gather(problems, speeds);
  if (speeds)
    facts.speeds = *speeds;
  return speeds.has_value();
}

/// Replaces keys and data sets by locations in the scenario. Locations in files stay as they are.
diagnostics placed_in_scenario(diagnostics wrong, const scenario& settings) {
  for (auto& [where, text] : wrong) {
    const bool is_key = where.starts_with("data.");
    if (!is_key && !where.starts_with("data set '"))
      continue;
    text = where + (is_key ? " " : ": ") + text;
    where = settings.where(settings.key_places.contains(where) ? where : "data.name");
  }
  return wrong;
}

/// Loads the rows of the run. Fails with all errors of the device, the number of clients and the rows.
expected<raw_data> data_of_run(const scenario& settings, const run_context_request& request,
                               const tl::expected<std::string, std::string>& device) {
  diagnostics problems;
  if (!device)
    problems.push_back({settings.where("worker.device"), device.error()});
  if (const auto crowd = too_many_clients(settings, available_memory()); !crowd.empty()) {
    append(problems, crowd); // stops before anything is loaded
    return tl::unexpected{problems};
  }
  auto raw = request.data ? expected<raw_data>(*request.data)
                          : load_data(settings.data, static_cast<std::uint64_t>(settings.seed),
                                      request.use == run_context_use::check ? row_values::zeros : row_values::drawn);
  if (!raw)
    append(problems, placed_in_scenario(raw.error(), settings));
  if (!problems.empty())
    return tl::unexpected{problems};
  problems = wrong_backbone(settings, *raw);
  if (raw->train.images.scalar_type() != at::kByte)
    append(problems, wrong_without_pixels(settings, raw->tokens > 0 ? "tokens" : "numbers"));
  if (!problems.empty())
    return tl::unexpected{problems};
  return raw;
}

} // namespace

expected<std::shared_ptr<run_context>> load_run_context(const scenario& settings, const run_context_request& request) {
  const auto device = resolve_device(settings.worker.device);
  auto raw = data_of_run(settings, request, device);
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

  const auto marks = settings.strategy.method->needs().row_marks;
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
  const auto net = model_of_run(settings, *shared_tasks, *device);
  if (net && request.warnings)
    append(*request.warnings, module_warnings(settings, **net));
  auto setup =
      net ? setup_of(settings, *shared_tasks, *net, *device) : expected<method_setup>(tl::unexpected(net.error()));
  gather(problems, setup);
  if (facts && net && add_speeds(*facts, settings, **net, *shared_tasks, problems))
    people = population_of(settings, *facts);
  expected<at::Tensor> initial;
  expected<tensors_ref> initial_behind;
  if (net) {
    const auto behind = setup ? settings.strategy.method->net_behind(*setup) : nullptr;
    initial = starting_weights(settings, **net, behind.get(), request);
    initial_behind = starting_weights_behind(settings, **net, behind);
    gather(problems, initial);
    gather(problems, initial_behind);
  }
  if (problems.empty())
    problems = untrained_frozen_net(settings, **net);
  if (!problems.empty())
    return tl::unexpected{problems};

  setup->initial = weights_only(initial->to(at::Device(*device))); // the device of all trained weights
  setup->initial_behind = *initial_behind;

  auto context = std::make_shared<run_context>();
  context->scenario = settings;
  context->tasks = shared_tasks;
  context->population = people;
  context->net = *net;
  context->device = *device;
  context->needs = settings.strategy.method->needs();
  context->made_rows = std::make_shared<row_store>(
      row_format{.scale = shared_tasks->train->scale, .shift = shared_tasks->train->shift, .classes = setup->classes});
  context->features = std::make_shared<feature_store>(context->needs.feature_folder);
  settings.strategy.method->prepare(*setup);
  context->method = settings.strategy.method;
  context->rows = std::make_shared<const client_rows>(shared_tasks, *parts, context->population, context->needs.rows);
  if (auto* const user = dynamic_cast<client_rows_user*>(settings.strategy.method.get()))
    user->set_client_rows(context->rows);
  if (request.split)
    *request.split = *parts;
  return context;
}

} // namespace mneme
