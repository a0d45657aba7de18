// Fed-CPrompt: G. Bagwe, X. Yuan, M. Pan and L. Zhang, "Fed-CPrompt: Contrastive Prompt for Rehearsal-Free Federated
// Continual Learning", ICML 2023 workshop. The method uses the components of Fed-CODAP, with a softmax of A, and adds a
// contrastive loss between models. Every row has three class tokens [d]: a with the trained prompts, p with the
// broadcast prompts, and n with the prompts at the end of the previous task.
//     L = CE over the task's classes + contrast L_c,
//     L_c = relu(sum_b (1000 |a_b - p_b|^2 - 10 |a_b - n_b|^2) + 1), in task 1 sum_b 1000 |a_b - p_b|^2.
//
// The official code sums over the batch inside the relu (reduction = "sum"). It draws all components before the first
// task. In the first round of a task, clients continue from their own weights. Training stops early on validation rows.
//
// Ours: by default, L_c has means over rows, as in the text of the paper. Components are drawn per task as in
// Fed-CODAP. Clients start every round from the broadcast and never stop early. All clients are in the same task, so we
// omit the components that the paper prepares for the next task. From task 2 on, a client round costs about 2.3 times
// as much as a round of FedAvg on the whole transformer (docs/benchmarks.md), because two additional models process
// every row.
#include "strategies/baselines/prompting.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
namespace mneme::fed_cprompt_method {
namespace {

constexpr double pull = 1000.0, push = 10.0, margin = 1.0;

enum class reduction { mean, sum };

/// CE + L_c. Teacher 0 of the job is the broadcast model; teacher 1, from task 2 on, the model at the end of the
/// previous task.
loss_ref contrast_objective(double weight, reduction over) {
  return differentiable_objective(
      {.identity = fmt::format("fed-cprompt {} {}", weight, over == reduction::sum),
       .terms = {"cross_entropy", "contrast"},
       .reads_label_smoothing = true,
       .reads_features = true},
      [weight, over](const loss_rows& in) -> std::vector<at::Tensor> {
        const auto share = over == reduction::sum ? 1.0 : 1.0 / static_cast<double>(in.count());
        const auto distance_to = [&](const activations& teacher) {
          return (in.features - teacher.features).square().sum(at::kDouble) * share;
        };
        auto contrast = pull * distance_to(in.teachers[0]);
        if (in.teachers.size() > 1)
          contrast = at::relu(contrast - push * distance_to(in.teachers[1]) + margin);
        return {cross_entropy_rows(in.logits, in.labels, in.label_smoothing), contrast * weight};
      });
}

/// Sends the prompts and head of the previous task's model with every broadcast. The frozen body is not sent again.
class fed_cprompt_server final : public server_half {
public:
  fed_cprompt_server(std::unique_ptr<server_half> prompting, transmitted_weights traveling, bool contrasts)
      : prompting_(std::move(prompting)), transmitted_(std::move(traveling)), contrasts_(contrasts) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    if (info.task.value > 0 && contrasts_)
      previous_ = transmitted_.pick(prompting_->predict().weights->at(flat_weights));
    auto opening = prompting_->open_task(ctx, info);
    const auto plan = co_await opening;
    co_return plan;
  }
  broadcast open_round(const round_info& info) override {
    auto sent = prompting_->open_round(info);
    sent.extra = previous_;
    return sent;
  }
  void fold(const delivery& in) override { prompting_->fold(in); }
  task<void> close_round(server_context& ctx, const round_info& info) override {
    auto closing = prompting_->close_round(ctx, info);
    co_await closing;
  }
  predictor predict() const override { return prompting_->predict(); }
  std::map<std::string, double> summary_metrics() const override { return prompting_->summary_metrics(); }
  void persist(archive& state) override {
    prompting_->persist(state);
    state(previous_);
  }

private:
  std::unique_ptr<server_half> prompting_;
  transmitted_weights transmitted_;
  bool contrasts_;
  tensors_ref previous_; // null in the first task
};

class fed_cprompt final : public prompting_method {
public:
  void keys(key_table& table) override {
    component_keys(table, shape_);
    table.number("contrast", contrast_, {.low = 0.0}, "Weight of the contrastive loss between models; 0: Fed-CODAP.");
    table.choice("reduction", over_, {{"mean", reduction::mean}, {"sum", reduction::sum}},
                 "Reduction of the hinge over a batch: mean as in the paper, or sum as in the official code.");
  }
  std::vector<preset> presets() const override {
    return {stsa_preset(),
            {"official",
             "the official code, with sums over the batch, 5 epochs in each of 40 rounds, and weights by rows",
             "[strategy]\nreduction = \"sum\"\n[rounds]\nper_task = 40\n"
             "[training]\nepochs = 5\nbatch = 64\noptimizer = \"adam\"\nlearning_rate = 1e-4\n"}};
  }
  void prepare(const method_setup& setup) override {
    prompting_method::prepare(setup);
    transmitted_ = transmitted_weights(setup.net, setup.trainable);
    objective_ = contrast_objective(contrast_, over_);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<fed_cprompt_server>(prompting_method::make_server(), transmitted_, contrast_ > 0.0);
  }

protected:
  prompt_shape prompts() const override { return shape_; }

private:
  prompt_shape shape_{.form = prompt_form::components, .blocks = {0, 1, 2, 3, 4}, .softmax_focus = true};
  double contrast_ = 1.0;
  reduction over_ = reduction::mean;
  transmitted_weights transmitted_;
  loss_ref objective_;
};

task<client_result> fed_cprompt::client_round(client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered_classes(in.info)});
  job.start = full_weights(in.weights, in);
  if (contrast_ > 0.0) {
    job.objective = objective_;
    job.add_teacher(job.start, {.features = true});
    if (in.extra)
      job.add_teacher(full_weights(in.extra, in), {.features = true});
  }
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;
  client_result result;
  result.upload = transmitted_.pick(trained.weights->at(flat_weights));
  result.rows = trained.rows_seen;
  co_return result;
}

const strategy_registration line{
    {.name = "fed-cprompt",
     .summary =
         "prompt components and a contrastive loss to received and earlier model (Fed-CPrompt, Bagwe et al. 2023)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_cprompt>(); }}};

} // namespace
} // namespace mneme::fed_cprompt_method
