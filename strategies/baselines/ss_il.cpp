// SS-IL: H. Ahn, J. Kwak, S. Lim, H. Bang, H. Kim and T. Moon, "SS-IL: Separated Softmax for Incremental Learning",
// ICCV 2021. Old and new classes have separate softmaxes, so new rows never reduce the scores of old classes.
// Distillation uses a separate softmax for each earlier task. Every step has current rows and replayed exemplars. With
// T = 2 and means over all rows of the step:
//     L = mean of CE(z over the block of y, y)
//         + sum over earlier tasks k of T^2 mean of KL(softmax(q_k / T) || softmax(z_k / T)).
// The prediction is the argmax over all logits.
//
// The official code divides the learning rate of task t, counted from 0, by t + 1. It drops the last batch of an epoch
// and keeps the first rows of a class as exemplars.
//
// Ours: federated as described in rehearsal.hpp. The rate is divided as in the official code. The label of a row
// selects its softmax, because the current rows of a client that keeps an old task have old classes. The last batch is
// used; otherwise clients with few rows would not train. Exemplars are herded; preset "official" has exemplars =
// "first".
#include "strategies/baselines/rehearsal.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme::ss_il_method {
namespace {

struct options {
  std::int64_t replayed = 0;
  double temperature = 2.0, distillation_weight = 1.0;
  bool divides_rate = true;
};

/// Cross-entropy of each row within the block of its class. The blocks are the classes below `old`, and those from
/// `old` to `seen`. Returns [R].
at::Tensor separated_cross_entropy(const loss_rows& in, std::int64_t old, std::int64_t seen) {
  const auto within = [&](class_range block) {
    const auto labels = (in.labels - block.low).clamp(0, block.size() - 1);
    return cross_entropy_rows(in.logits.narrow(1, block.low, block.size()), labels, in.label_smoothing);
  };
  const auto fresh = within({old, seen});
  return old == 0 ? fresh : at::where(in.labels < old, within({0, old}), fresh);
}

/// Returns SS-IL's loss. @param blocks classes of every task so far, in order
loss_ref separated_objective(const options& options, const std::vector<class_range>& blocks) {
  auto identity = fmt::format("ss-il {} {}", options.temperature, options.distillation_weight);
  for (const auto& block : blocks)
    identity += fmt::format(" {}-{}", block.low, block.high);
  return differentiable_objective(
      {.identity = std::move(identity), .terms = {"cross_entropy", "distillation"}, .reads_label_smoothing = true},
      [options, blocks](const loss_rows& in) {
        const auto weight = in.equal_weight(); // one mean over current and replayed rows
        const auto [old, seen] = blocks.back();
        std::vector<at::Tensor> terms{weighted_sum(separated_cross_entropy(in, old, seen), weight), {}};
        at::Tensor distillation;
        for (std::size_t k = 0; !in.teachers.empty() && k + 1 < blocks.size(); ++k) {
          const auto low = blocks[k].low, size = blocks[k].size();
          const auto of_task =
              distillation_rows(in.logits.narrow(1, low, size), in.teachers[0].logits.narrow(1, low, size),
                                {.form = distillation_form::kl_scaled, .temperature = options.temperature});
          distillation = distillation.defined() ? distillation + of_task : of_task;
        }
        if (distillation.defined())
          terms[1] = weighted_sum(distillation, weight) * options.distillation_weight;
        return terms;
      });
}

class ss_il final : public rehearsing_method {
public:
  void keys(key_table& table) override {
    table.integer("replay_rows", options_.replayed, {.low = 0}, "Exemplars per step; 0: a quarter of training.batch.");
    table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
                 "T: temperature of the distillation.");
    table.number("distillation_weight", options_.distillation_weight, {.low = 0.0}, "Weight of the distillation.");
    table.flag("rate_divided_by_task", options_.divides_rate,
               "Divide the learning rate of task t, counted from 0, by t + 1.");
    memory_keys(table);
  }
  std::vector<preset> presets() const override {
    const std::string training = "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 0.1\nschedule = \"step\"\n"
                                 "milestones = [4, 8]\nfactor = 0.1\nmomentum = 0.9\nweight_decay = 1e-4\n";
    return {{.name = "paper",
             .meaning = "as in LGA's comparison, with 20 epochs in each of 10 rounds and rates of SS-IL's official "
                        "code scaled to these 200 epochs",
             .toml = training + "augment = \"crop-flip-jitter\"\n"},
            {.name = "official",
             .meaning = "like preset paper, with the exemplars of SS-IL's official code, the first rows of each class",
             .toml = "[strategy]\nexemplars = \"first\"\nreplay_rows = 32\n" + training + "augment = \"crop-flip\"\n"}};
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

private:
  [[nodiscard]] std::vector<class_range> blocks_of(const class_split& classes) const {
    const auto& tasks = setup().task_classes;
    const auto count = std::min(classes.task + 1, std::ssize(tasks));
    return tasks.empty() ? std::vector{classes.fresh} : std::vector(tasks.begin(), tasks.begin() + count);
  }

  options options_;
};

task<client_result> ss_il::client_round(client_context& ctx, const broadcast& in) const {
  auto recalling = load_rehearsal(ctx, in);
  const auto now = co_await recalling;

  auto job = training(ctx, in, now, now.current);
  job.objective = separated_objective(options_, blocks_of(now.classes));
  if (!now.exemplars.empty()) {
    const auto batch = job.options.batch_rows == 0 ? job.samples.size() : job.options.batch_rows;
    job.replay.samples = view_of(ctx.samples(), now.exemplars);
    job.options.replay_rows = options_.replayed > 0 ? options_.replayed : std::max<std::int64_t>((batch + 3) / 4, 1);
  }
  if (options_.divides_rate)
    job.options.learning_rate /= static_cast<double>(now.classes.task + 1);
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;
  co_return result_of(now, trained.weights);
}

const strategy_registration line{
    {.name = "ss-il",
     .summary = "separate softmax for old and new classes, with replay (SS-IL, Ahn et al. 2021), federated",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<ss_il>(); }}};

} // namespace
} // namespace mneme::ss_il_method
