#include "actors/run/load_world.hpp"
#include "runtime/base/lent.hpp"
#include "runtime/data/catalog.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/population/reach_trace.hpp"
#include "runtime/storage/safetensors.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ops/zeros.h>
namespace mneme {
namespace {

/// The weights a run starts from: drawn from the seed, then read from files where the scenario names some.
expected<at::Tensor> starting_weights(const scenario& what, const model& net, world_use use) {
  auto flat =
      use == world_use::check ? at::zeros({net.size()}) : initial_weights(net, static_cast<std::uint64_t>(what.seed));
  auto read = [&](const std::filesystem::path& file, const char* key, const at::Tensor* head) -> expected<at::Tensor> {
    auto named = read_safetensors(file);
    if (!named)
      return tl::unexpected{named.error()};
    auto weights = flat_parameters(net, *named, file.string(), head);
    if (!weights)
      for (auto& one : weights.error())
        one.where = what.where(key) + ": " + one.where;
    return weights;
  };
  if (!what.model.weights.empty()) {
    auto pretrained = read(what.model.weights, "model.weights", &flat);
    if (!pretrained)
      return pretrained;
    flat = *pretrained;
  }
  if (!what.model.seed_weights.empty())
    return read(what.model.seed_weights, "model.seed_weights", nullptr);
  return flat;
}

/// Findings of several independent steps, together.
template <class T>
void gather(findings& all, const expected<T>& step) {
  if (!step)
    all.insert(all.end(), step.error().begin(), step.error().end());
}

expected<model_ref> build_model(const scenario& what, const curriculum& tasks) {
  what.model.kind->use_head(what.strategy.method->needs().head);
  auto net = what.model.kind->build(tasks.train->shape(), tasks.classes);
  if (!net)
    return failed(what.where("model.name"), net.error());
  return *net;
}

/// A finding of the method's, with the place in the scenario. The line that names the model does not name the method.
finding placed(const scenario& what, const finding& found) {
  const auto lead = found.where == "model.name" ? what.strategy.name + ": " : std::string{};
  return {what.where(found.where), lead + found.text};
}

/// Everything a method is told before the run, but for the weights; files that its keys name are read, and the method
/// has checked it.
expected<method_setup> setup_of(const scenario& what, const curriculum& tasks, const model_ref& net) {
  method_setup made{.net = lent(net),
                    .training = what.training,
                    .trainable = what.model.trainable,
                    .weighting = what.strategy.weighting,
                    .rounds = what.rounds,
                    .oracle = what.strategy.oracle,
                    .tasks = std::ssize(tasks.tasks),
                    .transition = what.tasks.transition,
                    .classes = tasks.classes,
                    .shape = tasks.train->shape(),
                    .clients = what.clients.count,
                    .seed = static_cast<std::uint64_t>(what.seed)};
  for (const auto& one : tasks.tasks)
    made.task_classes.push_back(one.classes);
  findings wrong;
  const auto needs = what.strategy.method->needs();
  for (const auto& [key, file] : needs.tensor_files) {
    auto read = read_safetensors(file);
    if (read)
      made.files[key] = std::move(*read);
    else
      for (auto& one : read.error())
        wrong.push_back({what.where("strategy." + key) + ": " + one.where, one.text});
  }
  if (wrong.empty())
    for (const auto& found : what.strategy.method->check(made))
      wrong.push_back(placed(what, found));
  if (!wrong.empty())
    return tl::unexpected(std::move(wrong));
  return made;
}

} // namespace

expected<std::shared_ptr<world>> load_world(const scenario& what, std::shared_ptr<const partition>* split,
                                            world_use use) {
  findings all;
  const auto device = resolve_device(what.worker.device);
  if (!device)
    all.push_back({what.where("worker.device"), device.error()});
  auto raw = load_data(what.data, static_cast<std::uint64_t>(what.seed));
  gather(all, raw);
  if (!all.empty())
    return tl::unexpected{all};
  auto tasks = make_curriculum(what, std::move(*raw));
  if (!tasks)
    return tl::unexpected{tasks.error()};
  auto shared_tasks = std::make_shared<const curriculum>(std::move(*tasks));

  const auto marks = what.strategy.method->needs().row_marks;
  if (!marks.name.empty() && what.partition.kind != partition_kind::file)
    return failed(what.where("partition.kind"), "the method reads the column '" + marks.name +
                                                    "' of partition.file; expected partition.kind = \"file\"");
  const auto parts = make_partition(what, shared_tasks, marks);
  gather(all, parts);
  const auto net = build_model(what, *shared_tasks);
  auto setup = net ? setup_of(what, *shared_tasks, *net) : expected<method_setup>(tl::unexpected(net.error()));
  gather(all, setup);
  const auto trace = read_reach_trace(what);
  gather(all, trace);
  expected<at::Tensor> initial;
  if (net) {
    initial = starting_weights(what, **net, use);
    gather(all, initial);
  }
  if (!all.empty())
    return tl::unexpected{all};

  setup->initial = weights_only(*initial);

  auto made = std::make_shared<world>();
  made->what = what;
  made->tasks = shared_tasks;
  made->people = std::make_shared<const population>(what, *trace);
  made->net = *net;
  made->device = *device;
  made->needs = what.strategy.method->needs();
  made->features = std::make_shared<feature_store>(made->needs.feature_folder);
  what.strategy.method->prepare(*setup);
  made->method = what.strategy.method;
  made->rows = std::make_shared<const client_rows>(shared_tasks, *parts, made->people, made->needs.rows);
  if (split)
    *split = *parts;
  return made;
}

} // namespace mneme
