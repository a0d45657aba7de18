#include "runtime/scenario/sections.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/options/number_limits.hpp"
namespace mneme {
namespace {

template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries)
    names.push_back(entry.name);
  return names;
}

section_keys top_keys(scenario& to) {
  section_keys keys;
  keys.text("title", to.title, "One line that says what the scenario shows.");
  keys.integer("seed", to.seed, {.low = 0, .high = seed_max}, "Every draw of the run follows from it.");
  return keys;
}

section_keys model_keys(scenario& of_run) {
  auto& to = of_run.model;
  const bool is_built = to.module.empty();
  const auto& method = of_run.strategy.method;
  section_keys keys;
  keys.word("name", to.name, names_of(models()),
            "The net; `mneme list models` describes them, their own keys follow here.");
  keys.read_if(is_built, "only scenarios without model.module");
  keys.path("module", to.module,
            "File of torch.export.save (.pt2) or, deprecated, TorchScript that is the net, in place of a net of this "
            "program; empty: none. See docs/modules.md.");
  keys.flag("native_code", to.native_code,
            "Modules are loaded on a machine that gives no process without rights to try them in: their files are "
            "checked all the same.");
  keys.read_if(!is_built || (method && !method->needs().module_files.empty()), "only scenarios with modules");
  keys.choice("module_output", to.module_scores, {{"features", false}, {"scores", true}},
              "module: what it returns for a row: features, behind which a head of the run's own stands, or the scores "
              "of the classes.");
  keys.read_if(!is_built, "only scenarios with model.module");
  keys.path("weights", to.weights,
            "safetensors of a pretrained net (torchvision or timm names); the head may be absent. \"as-drawn\": a net "
            "that is "
            "never trained stays as it is drawn, which is refused otherwise.");
  keys.path(
      "seed_weights", to.seed_weights,
      "safetensors with the initial weights of the whole net, as a run's model.safetensors; empty: drawn from the "
      "seed.");
  keys.path("backbone", to.backbone,
            "A scenario that trains the same net on classes that the tasks do not use, in place of weights: it is run "
            "once and kept by its digest; empty: none.");
  keys.choice("trainable", to.trainable, {{"all", trainable_part::all}, {"head", trainable_part::head}},
              "What training may change.");
  keys.texts(
      "frozen", to.frozen,
      "Parameters that keep their values, in [model]'s own names: \"conv1.weight\"; a layer, \"layer1\", with "
      "all that lies in it, running statistics too; or names with *, \"*.bias\". They are sent to a client once.");
  keys.added_later();
  keys.flag("module_training", to.module_training,
            "module: while it is trained, batch norms and dropout are in training mode where the file has them so. "
            "false: the module is in evaluation mode throughout.");
  keys.read_if(!is_built, "only scenarios with model.module");
  keys.added_later();
  const auto own = keys.all().size();
  if (to.kind)
    to.kind->keys(keys);
  for (auto i = own; i < keys.all().size(); ++i)
    keys.read_if(keys.all()[i].name, is_built, "only scenarios without model.module");
  return keys;
}

section_keys training_keys(training_section& to) {
  section_keys keys;
  keys.choice("optimizer", to.optimizer,
              {{"sgd", optimizer_kind::sgd}, {"adam", optimizer_kind::adam}, {"adamw", optimizer_kind::adamw}},
              "A fresh one each round, as PyTorch defines it.");
  keys.integer("epochs", to.epochs, {.low = 0, .high = 1'000'000},
               "Passes over a client's rows per round; 0: no training.");
  keys.integer("batch", to.batch, {.low = 0}, "Rows per step; 0: all of a client's rows.");
  keys.number("learning_rate", to.learning_rate, {.low = 0.0}, "Before the schedule.");
  keys.choice("schedule", to.schedule,
              {{"constant", schedule_kind::constant}, {"cosine", schedule_kind::cosine}, {"step", schedule_kind::step}},
              "Of the learning rate, per round within a task.");
  keys.integers("milestones", to.milestones, {.low = 1},
                "step: rounds of the task, counted from 1, after which the rate is multiplied by factor: [5] acts from "
                "round 6 on, as PyTorch's MultiStepLR with one step after each round.");
  const bool steps = to.schedule == schedule_kind::step;
  keys.read_if(steps, "only training.schedule = \"step\"");
  keys.number("factor", to.factor, {.low = 1e-30}, "step: what the rate is multiplied by.");
  keys.read_if(steps, "only training.schedule = \"step\"");
  keys.number("momentum", to.momentum, {.low = 0.0, .high = 1.0}, "sgd: momentum.");
  keys.read_if(to.optimizer == optimizer_kind::sgd, "only training.optimizer = \"sgd\"");
  keys.number("weight_decay", to.weight_decay, {.low = 0.0}, "Weight decay: added to the gradient, adamw: decoupled.");
  keys.number("clip_norm", to.clip_norm, {.low = 0.0}, "Largest norm of the gradient of a step; 0: no limit.");
  keys.choice("augment", to.augment,
              {{"none", augmentation_kind::none},
               {"crop-flip", augmentation_kind::crop_flip},
               {"crop-flip-jitter", augmentation_kind::crop_flip_jitter},
               {"resized-crop-flip", augmentation_kind::resized_crop_flip}},
              "Padded random crops and mirror images, with random brightness if wanted; resized-crop-flip: a random "
              "part of 5 to 100 % of the image instead, brought to its size or to data.crop.");
  keys.number(
      "label_smoothing", to.label_smoothing, {.low = 0.0, .high = 1.0},
      "Share of each label's target that is spread evenly over all classes of the loss, in the cross-entropy of "
      "clients' training, as PyTorch's cross_entropy has it.");
  keys.added_later();
  keys.flag("drop_last", to.drop_last,
            "The last batch of an epoch is left out where it has fewer rows than training.batch, as by PyTorch's "
            "DataLoader: a client with fewer rows than a batch trains nothing.");
  keys.added_later();
  keys.read_if(to.batch > 0, "only training.batch > 0");
  return keys;
}

section_keys strategy_keys(scenario& of_run) {
  auto& to = of_run.strategy;
  section_keys keys;
  keys.word("name", to.name, names_of(strategies()),
            "The method; `mneme list strategies` describes them, their own keys follow here.");
  keys.text("preset", to.preset, "A named set of defaults of the method; keys given win.");
  keys.choice("weighting", to.weighting,
              {{"samples", upload_weighting::samples}, {"uniform", upload_weighting::uniform}},
              "Averaging methods: whether an upload counts by its client's rows; if not given, uniform where "
              "rounds.mode = \"async\".");
  keys.unless_given([&of_run] {
    if (of_run.rounds.mode == round_mode::async)
      of_run.strategy.weighting = upload_weighting::uniform;
  });
  keys.number("keep_share", to.keep_share, {.low = 0.0, .high = 1.0},
              "Averaging methods: share of the old model in the new one, s w_old + (1 - s) mean of the uploads.");
  keys.added_later();
  keys.read_if(of_run.rounds.mode == round_mode::sync, "only rounds.mode = \"sync\"");
  keys.flag("oracle", to.oracle, "The method is told of task transitions.");
  if (to.method)
    to.method->keys(keys);
  return keys;
}

section_keys worker_keys(worker_section& to) {
  section_keys keys;
  keys.text("device", to.device, "\"auto\", \"cpu\" or \"cuda:N\"; \"cuda\" is \"cuda:0\".");
  keys.integer("count", to.count, {.low = 0, .high = 4096}, "CPU workers; 0: as many as --threads, else one per core.");
  keys.integer("models_max", to.models_max, {.low = 0},
               "Clients trained together at most; 0: chosen from the size of cache or memory.");
  keys.integer(
      "shards", to.shards, {.low = 0, .high = 65'536},
      "Parts of the population that are trained together among themselves; 0: chosen from clients.count, and where "
      "rounds are short from the threads.");
  keys.size("ahead_max", to.ahead_max, "Memory for outcomes computed ahead of virtual time.");
  keys.choice("without_nodes", to.without_nodes, {{"here", lonely_run::here}, {"wait", lonely_run::wait}},
              "With --accept, while there is no node: the run computes in its own process, or waits for a node.");
  keys.choice("arithmetic", to.arithmetic,
              {{"machine", arithmetic_kind::machine}, {"portable", arithmetic_kind::portable}},
              "machine: the fastest kernels of this machine, whose bits others with the same instruction set repeat; "
              "portable: AVX2 with FMA and one order of everything, the same bits on every x86-64 that has them.");
  keys.duration("node_silence", to.node_silence,
                "With --accept: a node without a heartbeat for this long, by the clock, counts as lost.");
  keys.duration(
      "join_timeout", to.join_timeout,
      "How long, by the clock, a run waits until the workers of --workers-min, or all ranks of --distributed, "
      "have joined.");
  keys.number(
      "verify_share", to.verify_share, {.low = 0.0, .high = 1.0},
      "With --accept, on CPUs: the share of client rounds, a random sample, that the run's process computes, too, "
      "and compares bit by bit. A difference ends the run.");
  return keys;
}

section_keys evaluation_keys(evaluation_section& to) {
  section_keys keys;
  keys.integer("every", to.every, {.low = 0},
               "Rounds (async: server steps) between evaluations; 0: only at the end of tasks, which always are.");
  keys.choice("mask", to.mask,
              {{"seen", evaluation_mask::seen}, {"all", evaluation_mask::all}, {"task", evaluation_mask::task}},
              "Predictions are among the classes of the tasks opened so far (seen), of all tasks (all), or of the "
              "row's own task "
              "(task: task-incremental). Domain-incremental tasks have the same classes, so the three are one.");
  keys.numbers("targets", to.targets, {.low = 0.0, .high = 100.0},
               "Accuracies in percent; the summary says when each was first reached, in virtual time.");
  keys.flag("fairness", to.fairness,
            "Whether the summary has the deciles over clients of the final accuracy on rows like their own.");
  keys.choice("models", to.models, {{"last", kept_models::last}, {"tasks", kept_models::tasks}},
              "Models that are kept: model.safetensors of the end of the run, or models/task_N.safetensors of the end "
              "of each task as well.");
  return keys;
}

section_keys checkpoint_keys(checkpoint_section& to) {
  section_keys keys;
  keys.integer("every", to.every, {.low = 0},
               "Rounds or server steps between checkpoints; 0: none. A due one waits while checkpoints have used more "
               "than 5 % of the wall time.");
  keys.flag("force", to.force, "A due checkpoint never waits, and the run waits until it is on the disk.");
  keys.integer("keep", to.keep, {.low = 1, .high = 1'000'000}, "How many of the newest stay on the disk.");
  return keys;
}

} // namespace

std::vector<section> sections_of(scenario& into) {
  std::vector<section> sections;
  sections.push_back({"", "Keys above all sections.", top_keys(into)});
  for (auto& group : federation_sections(into))
    sections.push_back(std::move(group));
  sections.push_back({"model", "The net that is trained.", model_keys(into)});
  sections.push_back({"training", "How a client trains in a round.", training_keys(into.training)});
  sections.push_back({"strategy", "The method of federated continual learning.", strategy_keys(into)});
  sections.push_back({"worker", "Where the arithmetic is done; never changes a result.", worker_keys(into.worker)});
  sections.push_back({"evaluation", "When and how accuracy is measured.", evaluation_keys(into.evaluation)});
  sections.push_back(
      {"checkpoint", "How a run can go on after a crash; never changes a result.", checkpoint_keys(into.checkpoint)});
  return sections;
}

} // namespace mneme
