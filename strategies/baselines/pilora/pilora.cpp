// PILoRA: H. Guo, F. Zhu, W. Liu, X.-Y. Zhang and C.-L. Liu, "PILoRA: Prototype Guided Incremental LoRA for Federated
// Class-Incremental Learning", ECCV 2024. A frozen transformer gets a LoRA of queries and values per task, and a center
// c per class instead of a head. With dist_c = |f(x) - c| / sqrt(d), a client minimizes over all classes of the run
//     L = CE(-dist, y) + .001 dist_y + .01 sum |A| + .5 sum_{s < t} sum |A^s A^T|.
// Only the LoRA (A, B) and the centers of the current task are trained. A client uploads both, together with the mean
// feature of each class during training. The server averages LoRAs, weighted by numbers of rows, and averages centers,
// weighted by their distances to these mean features (center_weights).
//
// Official code: the evaluated net holds only one LoRA, which always remains that of task 1 (evaluate = "released").
// The rows are split over clients again in every round. Early stopping uses the accuracy on test rows. For a class
// without rows, all centers have weight 0.1, which is correct only for ten clients.
//
// Ours: by default the LoRAs of all tasks are summed, as in the paper. The split is fixed for a task, training never
// stops early, and a class without rows gets the plain mean of the centers. A client without rows still counts in the
// mean of centers, as in the official code. Every broadcast contains the centers and the matrices A of earlier tasks;
// STSA's comparison does not count these bytes. A client round costs about two thirds of a round of FedAvg on the whole
// transformer (docs/benchmarks.md), because frozen weights need no gradients.
#include "strategies/baselines/pilora/pilora_server.hpp"
#include "strategies/baselines/prompting.hpp"
#include <ATen/TensorOperators.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme::pilora_method {
namespace {

// Axes: d channels, c classes of the task, n classes of the task of which the client has rows.

// -- client half ------------------------------------------------------------------------------------------------------

class pilora final : public averaging_method {
public:
  void keys(key_table& table) override;
  std::vector<preset> presets() const override;
  method_needs needs() const override;
  upload_content uploads() const override { return upload_content::other; }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<pilora_server>(run_); }

private:
  [[nodiscard]] tensors_ref start_of(const broadcast& in) const;
  [[nodiscard]] tensors_ref upload_of(const train_output& trained, class_range classes) const;

  options options_;
  std::shared_ptr<const run_settings> run_;
  loss_ref objective_;
};

void pilora::prepare(const method_setup& setup) {
  averaging_method::prepare(setup);
  auto run = std::make_shared<run_settings>();
  run->settings = options_;
  run->setup = setup;
  run->net = std::dynamic_pointer_cast<const low_rank_vit>(setup.net);
  objective_ = pilora_objective(*run->net, options_.weights);
  run_ = std::move(run);
}

task<client_result> pilora::client_round(client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = {0, setup().classes}});
  if (options_.late_schedule)
    job.options.learning_rate =
        options_for_round(setup().training, setup().trainable, job.options.classes,
                          std::max<std::int64_t>(in.info.round_of_task - 1, 0), in.info.rounds_of_task)
            .learning_rate;
  job.start = start_of(in);
  job.objective = objective_;
  job.auxiliary = in.extra;
  job.options.trained_classes = in.info.current_classes;
  job.options.rates = {{low_rank_vit::layers, options_.low_rank_rate / setup().training.learning_rate}};
  job.observation = class_feature_observation(job.options.classes.size());
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;
  co_return client_result{
      .upload = upload_of(trained, in.info.current_classes), .memory = nullptr, .rows = trained.rows_seen};
}

/// Returns the start weights. The transformer and the centers of future classes come from the initial payload, all
/// other weights from this broadcast.
tensors_ref pilora::start_of(const broadcast& in) const {
  auto flat = in.initial_payload->at(flat_weights).clone();
  for (const auto& entry : run_->low_rank())
    put_as_in_files(flat, entry, in.weights->at(entry.name));
  centers_of(*run_, flat, in.info.current_classes).copy_(in.weights->at(task_centers));
  if (in.extra)
    centers_of(*run_, flat, {0, in.info.current_classes.low}).copy_(in.extra->at(earlier_centers));
  return weights_only(flat);
}

tensors_ref pilora::upload_of(const train_output& trained, class_range classes) const {
  const auto& flat = trained.weights->at(flat_weights);
  auto upload = std::make_shared<tensor_map>();
  for (const auto& entry : run_->low_rank())
    upload->put(entry.name, as_in_files(flat, entry).clone());
  upload->put(task_centers, centers_of(*run_, flat, classes).clone());
  if (!trained.observed)
    return upload;
  const auto rows = trained.observed->at(observed_class_rows).narrow(0, classes.low, classes.size());
  const auto held = rows.nonzero().flatten(); // [n]
  if (held.numel() == 0)
    return upload;
  const auto sums =
      trained.observed->at(observed_feature_sums).narrow(0, classes.low, classes.size()).index_select(0, held);
  upload->put(class_means, (sums / rows.index_select(0, held).unsqueeze(1)).to(at::kFloat));
  upload->put(classes_of_means, held);
  return upload;
}

// -- declarations -----------------------------------------------------------------------------------------------------

method_needs pilora::needs() const {
  return {.prompts = options_.parts,
          .round_barrier = true, // center weights depend on the means of all clients
          .defaults = "[model]\nname = \"vit\"\n[training]\noptimizer = \"adam\"\nlearning_rate = 2e-3\n"
                      "weight_decay = 1e-5\n"};
}

diagnostics pilora::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  if (!dynamic_cast<const low_rank_vit*>(setup.net.get()))
    errors.push_back(
        {"model.name",
         fmt::format("the net '{}' has no attention blocks for low-rank adapters; expected model.name = \"vit\"",
                     setup.net->identity())});
  if (setup.trainable != trainable_part::all)
    errors.push_back({"model.trainable", "model.trainable: the transformer is always frozen, and low-rank adapters are "
                                         "trained together with the centers; expected \"all\""});
  if (setup.old_model_share > 0.0)
    errors.push_back(
        {"strategy.old_model_share", "strategy.old_model_share > 0: pilora has its own server step; expected 0"});
  append(errors, validate_class_repeats(setup, "low-rank adapter is"));
  const char* const kept = ": parts and centers of earlier tasks are frozen, so a client that is still at such a task "
                           "has nothing to train; expected ";
  if (setup.transition == task_transition::staggered)
    errors.push_back({"tasks.transition", fmt::format("tasks.transition = \"staggered\"{}\"round\"", kept)});
  if (setup.keep_task_share > 0.0)
    errors.push_back({"tasks.keep_task_share", fmt::format("tasks.keep_task_share > 0{}0", kept)});
  if (setup.training.learning_rate <= 0.0)
    errors.push_back(
        {"training.learning_rate",
         "training.learning_rate = 0: strategy.low_rank_rate is scaled by its schedule; expected a number > 0"});
  auto blocks = options_.parts.blocks;
  std::sort(blocks.begin(), blocks.end());
  if (const auto twice = std::adjacent_find(blocks.begin(), blocks.end()); twice != blocks.end())
    errors.push_back(
        {"strategy.blocks", fmt::format("strategy.blocks: block {} has two low-rank adapters; expected each "
                                        "block once",
                                        *twice)});
  return errors;
}

void pilora::keys(key_table& table) {
  table.integers("blocks", options_.parts.blocks, {.low = 0, .high = 199},
                 "Blocks of the transformer whose attention has low-rank adapters, counted from 0.");
  table.integer("rank", options_.parts.rank, {.low = 1, .high = 4096}, "Rank of a low-rank adapter.");
  table.number(
      "low_rank_rate", options_.low_rank_rate, {.low = 0.0, .open_low = true},
      "Learning rate of low-rank adapters; training.learning_rate is for centers. Both follow training.schedule.");
  table.number("prototype", options_.weights.prototype, {.low = 0.0},
               "Weight of the distance to the center of the row's class.");
  table.number("sparsity", options_.weights.sparsity, {.low = 0.0}, "Weight of the sum of |A|.");
  table.number("orthogonality", options_.weights.orthogonality, {.low = 0.0}, "Weight of the sums of |A^s A^T|.");
  table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
               "Temperature of the softmax that weights the clients' centers.");
  table.choice("evaluate", options_.evaluate,
               {{"sum", evaluated_parts::sum},
                {"first-plus-current", evaluated_parts::first_and_present},
                {"released", evaluated_parts::released}},
               "Low-rank adapters of the evaluated net: those of all tasks as in the paper; those of the first and the "
               "current task; or always that of the first, as in the official code.");
  table.flag("lagged_schedule", options_.late_schedule,
             "Use the rate of the previous round, as in the official code; the first two rounds have the first rate.");
}

std::vector<preset> pilora::presets() const {
  const auto program = [](const char* centers, const char* low_rank, const char* ends) {
    return fmt::format("[strategy]\nlow_rank_rate = {}\n{}[rounds]\nper_task = 30\ncohort = 10\n"
                       "[training]\nepochs = 10\nbatch = 64\noptimizer = \"adam\"\nlearning_rate = {}\n"
                       "weight_decay = 1e-5\nschedule = \"cosine\"\n",
                       low_rank, ends, centers);
  };
  const char* const released = "evaluate = \"released\"\nlagged_schedule = true\n";
  return {{"stsa",
           "as in STSA's comparison, with 2 epochs and batches of 128; the learning rates of the comparison are not "
           "published",
           "[training]\nepochs = 2\nbatch = 128\noptimizer = \"adam\"\nlearning_rate = 2e-3\nweight_decay = 1e-5\n"},
          {"paper", "30 rounds of 10 epochs with 10 of 30 clients; adapters are summed over tasks",
           program("2e-3", "1e-5", "")},
          {"official", "the official code for CIFAR-100, which evaluates with the low-rank adapter of task 1",
           program("2e-3", "1e-5", released) + "[evaluation]\nmask = \"all\"\n"},
          {"official-tiny", "the official code for Tiny-ImageNet",
           program("5e-3", "5e-6", released) + "[evaluation]\nmask = \"all\"\n"}};
}

const strategy_registration line{
    {.name = "pilora",
     .summary = "a low-rank adapter per task and re-weighted class centers (PILoRA, Guo et al. 2024)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<pilora>(); }}};

} // namespace
} // namespace mneme::pilora_method
