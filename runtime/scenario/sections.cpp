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
  keys.text("title", to.title, "Description of the scenario in one line.");
  keys.integer("seed", to.seed, {.low = 0, .high = seed_max}, "Determines all random numbers of the run.");
  return keys;
}

section_keys model_keys(scenario& of_run) {
  auto& to = of_run.model;
  const bool is_built = to.module.empty();
  const auto& method = of_run.strategy.method;
  section_keys keys;
  keys.word("name", to.name, names_of(models()),
            "The net; see `mneme list models`. The net's own keys are in this section, too.");
  keys.used_if(is_built, "only scenarios without model.module");
  keys.path("module", to.module,
            "File of torch.export.save (.pt2) to use as the net instead of a built-in one; empty: none. See "
            "docs/modules.md.");
  keys.flag("native_code", to.native_code,
            "Load modules on machines without support for sandboxes, too. Their files are still checked.");
  keys.used_if(!is_built || (method && !method->needs().module_files.empty()), "only scenarios with modules");
  keys.choice("module_output", to.module_scores, {{"features", false}, {"scores", true}},
              "module: its output per row: features, to which the run adds a head, or class scores.");
  keys.used_if(!is_built, "only scenarios with model.module");
  keys.path("weights", to.weights,
            "safetensors file of a pretrained net (torchvision or timm names); the head may be missing. \"as-drawn\": "
            "allow random weights for a net that is never trained.");
  keys.path("seed_weights", to.seed_weights,
            "safetensors file with the initial weights of the whole net, such as a run's model.safetensors; empty: "
            "random by the seed.");
  keys.path("backbone", to.backbone,
            "A scenario that trains the same net on other classes, instead of model.weights. It is run once, and its "
            "net is cached by its digest; empty: none.");
  keys.choice("trainable", to.trainable, {{"all", trainable_part::all}, {"head", trainable_part::head}},
              "The trained part of the net.");
  keys.texts(
      "frozen", to.frozen,
      "Parameters that are not trained, by their names in the net: \"conv1.weight\"; a layer with everything in it, "
      "including running statistics, \"layer1\"; or patterns with *, \"*.bias\". They are sent to a client once.");
  keys.omit_default_from_digest();
  keys.flag("module_training", to.module_training,
            "module: during training, use training mode for the batch norms and dropout that the file has in "
            "training mode; false: evaluation mode throughout.");
  keys.used_if(!is_built, "only scenarios with model.module");
  keys.omit_default_from_digest();
  keys.flag("module_fused", to.module_fused,
            "module: if every operator of the file has a layer of mneme, run the net as these layers, fused over "
            "clients; false: always run the file's operators, client by client.");
  keys.used_if(!is_built, "only scenarios with model.module");
  keys.omit_default_from_digest();
  const auto own = keys.all().size();
  if (to.kind)
    to.kind->keys(keys);
  for (auto i = own; i < keys.all().size(); ++i)
    keys.used_if(keys.all()[i].name, is_built, "only scenarios without model.module");
  return keys;
}

section_keys training_keys(training_section& to) {
  section_keys keys;
  keys.choice("optimizer", to.optimizer,
              {{"sgd", optimizer_kind::sgd}, {"adam", optimizer_kind::adam}, {"adamw", optimizer_kind::adamw}},
              "The optimizer, as in PyTorch. Its state is new in each round.");
  keys.integer("epochs", to.epochs, {.low = 0, .high = 1'000'000},
               "Passes over a client's rows per round; 0: no training.");
  keys.integer("batch", to.batch, {.low = 0}, "Rows per step; 0: all of a client's rows.");
  keys.number("learning_rate", to.learning_rate, {.low = 0.0}, "Base rate, before the schedule.");
  keys.choice("schedule", to.schedule,
              {{"constant", schedule_kind::constant}, {"cosine", schedule_kind::cosine}, {"step", schedule_kind::step}},
              "Learning rate over the rounds of a task.");
  keys.integers("milestones", to.milestones, {.low = 1},
                "step: rounds of the task, counted from 1, after which the rate is multiplied by factor: [5] acts from "
                "round 6 on, as PyTorch's MultiStepLR with one step after each round.");
  const bool steps = to.schedule == schedule_kind::step;
  keys.used_if(steps, "only training.schedule = \"step\"");
  keys.number("factor", to.factor, {.low = 1e-30}, "step: factor by which the rate is multiplied.");
  keys.used_if(steps, "only training.schedule = \"step\"");
  keys.number("momentum", to.momentum, {.low = 0.0, .high = 1.0}, "sgd: momentum.");
  keys.used_if(to.optimizer == optimizer_kind::sgd, "only training.optimizer = \"sgd\"");
  keys.number("weight_decay", to.weight_decay, {.low = 0.0}, "Weight decay: added to the gradient, adamw: decoupled.");
  keys.number("clip_norm", to.clip_norm, {.low = 0.0}, "Maximum gradient norm of a step; 0: no limit.");
  keys.choice("augment", to.augment,
              {{"none", augmentation_kind::none},
               {"crop-flip", augmentation_kind::crop_flip},
               {"crop-flip-jitter", augmentation_kind::crop_flip_jitter},
               {"resized-crop-flip", augmentation_kind::resized_crop_flip}},
              "crop-flip: padded random crops and flips; crop-flip-jitter: also random brightness; resized-crop-flip: "
              "flips, and a random part of 5 to 100 % of the image, resized to its size or to data.crop.");
  keys.number("label_smoothing", to.label_smoothing, {.low = 0.0, .high = 1.0},
              "Label smoothing in the clients' cross-entropy, as in PyTorch: share of the target that is spread evenly "
              "over all classes of the loss.");
  keys.omit_default_from_digest();
  keys.flag("drop_last", to.drop_last,
            "Skip the last batch of an epoch if it is not full, as in PyTorch's DataLoader. A client with fewer rows "
            "than a batch does not train.");
  keys.omit_default_from_digest();
  keys.used_if(to.batch > 0, "only training.batch > 0");
  return keys;
}

section_keys strategy_keys(scenario& of_run) {
  auto& to = of_run.strategy;
  section_keys keys;
  keys.word("name", to.name, names_of(strategies()),
            "The method; see `mneme list strategies`. The method's own keys are in this section, too.");
  keys.text("preset", to.preset, "A named set of defaults of the method; given keys override it.");
  keys.choice("weighting", to.weighting,
              {{"samples", upload_weighting::samples}, {"uniform", upload_weighting::uniform}},
              "Averaging methods: weight of an upload: the client's number of rows, or uniform; if not given, uniform "
              "with rounds.mode = \"async\" and with uploads.noise_multiplier > 0.");
  keys.default_from([&of_run] {
    if (of_run.rounds.mode == round_mode::async || of_run.uploads.has_server_noise())
      of_run.strategy.weighting = upload_weighting::uniform;
  });
  keys.number("old_model_share", to.old_model_share, {.low = 0.0, .high = 1.0},
              "Averaging methods: share of the old model in the new one, s w_old + (1 - s) mean of the uploads.");
  keys.omit_default_from_digest();
  keys.used_if(of_run.rounds.mode == round_mode::sync, "only rounds.mode = \"sync\"");
  keys.flag("oracle", to.oracle, "Tell the method about task transitions.");
  if (to.method)
    to.method->keys(keys);
  return keys;
}

section_keys worker_keys(worker_section& to) {
  section_keys keys;
  keys.text("device", to.device, "\"auto\", \"cpu\" or \"cuda:N\"; \"cuda\" is \"cuda:0\".");
  keys.integer("count", to.count, {.low = 0, .high = 4096}, "CPU workers; 0: as many as --threads, or one per core.");
  keys.integer("fused_clients_max", to.fused_clients_max, {.low = 0},
               "Maximum number of clients trained in one batch; 0: chosen by the size of cache or memory.");
  keys.integer("shards", to.shards, {.low = 0, .high = 65'536},
               "Number of shards of the population; clients of one shard are batched together. 0: chosen by "
               "clients.count and, for short rounds, by the threads.");
  keys.size("lookahead_memory", to.lookahead_memory, "Memory for results computed ahead of virtual time.");
  keys.choice("no_nodes", to.no_nodes, {{"local", no_nodes_policy::local}, {"wait", no_nodes_policy::wait}},
              "With --accept, if no node is connected: the run computes in its own process, or waits for a node.");
  keys.choice(
      "arithmetic", to.arithmetic, {{"machine", arithmetic_kind::machine}, {"portable", arithmetic_kind::portable}},
      "machine: the fastest kernels of this machine; machines with the same instruction set give the same bits. "
      "portable: AVX2 with FMA and a fixed order of operations; the same bits on every x86-64 machine that has them.");
  keys.duration("node_timeout", to.node_timeout,
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
               "Rounds (async: server steps) between evaluations; 0: only at the end of tasks. The end of a task is "
               "always evaluated.");
  keys.choice("mask", to.mask,
              {{"seen", evaluation_mask::seen}, {"all", evaluation_mask::all}, {"task", evaluation_mask::task}},
              "Classes that can be predicted: those of the tasks opened so far (seen), of all tasks (all), or of the "
              "row's own task (task: task-incremental). For domain-incremental tasks the three are equal.");
  keys.numbers("targets", to.targets, {.low = 0.0, .high = 100.0},
               "Accuracies in percent; the summary has the virtual time at which each was first reached.");
  keys.flag("fairness", to.fairness,
            "Whether the summary has the deciles over clients of the final accuracy, measured on each client's class "
            "distribution.");
  keys.choice(
      "personal", to.personal,
      {{"none", personal_model::none}, {"fine-tuned", personal_model::fine_tuned}, {"local", personal_model::local}},
      "Each client's own model, tested on the client's own rows at every evaluation. fine-tuned: the server's "
      "model after personal_epochs of local training; local: the last model that the client uploaded.");
  keys.omit_default_from_digest();
  const bool personal = to.personal != personal_model::none;
  keys.choice("personal_rows", to.personal_rows,
              {{"held-out", personal_test_rows::held_out}, {"classes", personal_test_rows::classes}},
              "Test rows of a client: held-out: a share of its training rows, on which it does not train; classes: all "
              "test rows of the classes that it holds in each task.");
  keys.omit_default_from_digest();
  keys.used_if(personal, "only evaluation.personal = \"fine-tuned\" and \"local\"");
  keys.number("personal_share", to.personal_share, {.low = 0.0, .high = 0.9, .open_low = true},
              "held-out: share of a client's training rows of each task that are its test rows, rounded down.");
  keys.omit_default_from_digest();
  keys.used_if(to.holds_out_rows(), "only evaluation.personal_rows = \"held-out\" with evaluation.personal");
  keys.integer("personal_epochs", to.personal_epochs, {.low = 1, .high = 1'000'000},
               "fine-tuned: epochs of local training, with the keys of [training] and the learning rate of a task's "
               "first round.");
  keys.omit_default_from_digest();
  keys.used_if(to.personal == personal_model::fine_tuned, "only evaluation.personal = \"fine-tuned\"");
  keys.choice("models", to.models, {{"last", kept_models::last}, {"tasks", kept_models::tasks}},
              "Models to save: last: model.safetensors at the end of the run; tasks: also models/task_N.safetensors at "
              "the end of each task.");
  return keys;
}

section_keys checkpoint_keys(checkpoint_section& to) {
  section_keys keys;
  keys.integer("every", to.every, {.low = 0},
               "Rounds or server steps between checkpoints; 0: none. A checkpoint is delayed while checkpoints use "
               "more than 5 % of the wall time.");
  keys.flag("force", to.force, "Write every checkpoint when it is due, and wait until it is on disk.");
  keys.integer("keep", to.keep, {.low = 1, .high = 1'000'000}, "Number of newest checkpoints to keep on disk.");
  return keys;
}

} // namespace

std::vector<section> sections_of(scenario& into) {
  std::vector<section> sections;
  sections.push_back({"", "Keys outside all sections.", top_keys(into)});
  for (auto& group : federation_sections(into))
    sections.push_back(std::move(group));
  sections.push_back({"model", "The net that is trained.", model_keys(into)});
  sections.push_back({"training", "Local training of a client in a round.", training_keys(into.training)});
  sections.push_back({"strategy", "The method of federated continual learning.", strategy_keys(into)});
  sections.push_back({"worker", "Devices, workers and nodes; do not affect results.", worker_keys(into.worker)});
  sections.push_back({"evaluation", "Time and kind of accuracy measurements.", evaluation_keys(into.evaluation)});
  sections.push_back(
      {"checkpoint", "Checkpoints for resuming a run; do not affect results.", checkpoint_keys(into.checkpoint)});
  return sections;
}

} // namespace mneme
