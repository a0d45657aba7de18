#include "actors/run/load_world.hpp"
#include "runtime/base/lent.hpp"
#include "runtime/data/catalog.hpp"
#include "runtime/population/reach_trace.hpp"
#include "runtime/storage/safetensors.hpp"
#include "runtime/training/executor.hpp"
#include <ATen/ops/zeros.h>
namespace mneme {
namespace {

/// Shards follow from the number of clients alone: batches never cross them.
std::int64_t shards_for(std::int64_t clients) {
  if (clients < 1'000)
    return 1;
  return clients < 100'000 ? 2 : 4;
}

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
  if (auto own = what.strategy.method->own_net(tasks.train->shape(), tasks.classes))
    return own;
  what.model.kind->use_head(what.strategy.method->head());
  auto net = what.model.kind->build(tasks.train->shape(), tasks.classes);
  if (!net)
    return failed(what.where("model.name"), net.error());
  if (const auto why = what.strategy.method->objection(**net); !why.empty())
    return failed(what.where("model.name"), what.strategy.name + ": " + why);
  return *net;
}

/// Everything a method is told before the run; files that its keys name are read.
expected<method_setup> setup_of(const scenario& what, const curriculum& tasks, const model_ref& net,
                                const at::Tensor& initial) {
  method_setup made{.net = lent(net),
                    .initial = weights_only(initial),
                    .training = what.training,
                    .trainable = what.model.trainable,
                    .weighting = what.strategy.weighting,
                    .rounds = what.rounds,
                    .oracle = what.strategy.oracle,
                    .tasks = std::ssize(tasks.tasks),
                    .classes = tasks.classes,
                    .shape = tasks.train->shape(),
                    .clients = what.clients.count,
                    .seed = static_cast<std::uint64_t>(what.seed)};
  for (const auto& one : tasks.tasks)
    made.task_classes.push_back(one.classes);
  findings wrong;
  for (const auto& [key, file] : what.strategy.method->tensor_files()) {
    auto read = read_safetensors(file);
    if (read)
      made.files[key] = std::move(*read);
    else
      for (auto& one : read.error())
        wrong.push_back({what.where("strategy." + key) + ": " + one.where, one.text});
  }
  if (wrong.empty())
    for (auto& one : what.strategy.method->objections(made))
      wrong.push_back({what.where(one.where), one.text});
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

  const auto marks = what.strategy.method->row_marks();
  if (!marks.name.empty() && what.partition.kind != partition_kind::file)
    return failed(what.where("partition.kind"), "the method reads the column '" + marks.name +
                                                    "' of partition.file; expected partition.kind = \"file\"");
  const auto parts = make_partition(what, shared_tasks, marks);
  gather(all, parts);
  const auto net = build_model(what, *shared_tasks);
  gather(all, net);
  const auto trace = read_reach_trace(what);
  gather(all, trace);
  if (!all.empty())
    return tl::unexpected{all};
  const auto initial = starting_weights(what, **net, use);
  if (!initial)
    return tl::unexpected{initial.error()};

  const auto setup = setup_of(what, *shared_tasks, *net, *initial);
  if (!setup)
    return tl::unexpected{setup.error()};

  auto made = std::make_shared<world>();
  made->what = what;
  made->tasks = shared_tasks;
  made->people = std::make_shared<const population>(what, *trace);
  made->net = *net;
  made->device = *device;
  made->shards = what.worker.shards > 0 ? what.worker.shards : shards_for(what.clients.count);
  made->features = std::make_shared<feature_store>(what.strategy.method->feature_folder());
  what.strategy.method->prepare(*setup);
  made->method = what.strategy.method;
  made->rows = std::make_shared<const client_rows>(shared_tasks, *parts, made->people, made->method->rows());
  if (split)
    *split = *parts;
  return made;
}

} // namespace mneme
