// Fed-CPrompt: G. Bagwe, X. Yuan, M. Pan and L. Zhang, "Fed-CPrompt: Contrastive Prompt for Rehearsal-Free Federated
// Continual Learning", ICML 2023 workshop. The components of Fed-CODAP, with a softmax of A, and a contrast of models:
// a, p and n [d] are a row's class tokens under the prompts that learn, those of the round's broadcast, and those at
// the end of the previous task. With reduction = "sum", as released,
//     L_c = relu(sum_b (1000 |a_b - p_b|^2 - 10 |a_b - n_b|^2) + 1), in task 1 sum_b 1000 |a_b - p_b|^2,
// beside CE over the task's classes; "mean" has means over rows in place of sums. The hinge is one for the batch.
//
// Ours: components are drawn at the start of each task as in Fed-CODAP, where the program draws the whole pool once;
// clients take the broadcast in every round, where the program's go on from their own in the first round of a task; no
// early stop; synchronous tasks, so the paper's next-task components are not there. From task 2 on a client-round costs
// about 2.3 times FedAvg's of the whole transformer, since two more models read every row (docs/benchmarks.md counts
// it).
#include "runtime/method/twice_taught_loss.hpp"
#include "strategies/baselines/prompting.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
namespace mneme::fed_cprompt_method {
namespace {

constexpr double pull = 1000.0, push = 10.0, margin = 1.0;

enum class reduction { mean, sum };

/// L_c and its slope, model by model, so that the bits of one do not depend on the others.
class contrast_term {
public:
  contrast_term(double weight, reduction over) : weight_(weight), over_(over) {}
  [[nodiscard]] std::string identity(const char* task) const {
    return fmt::format("fed-cprompt {} {} {}", weight_, over_ == reduction::sum, task);
  }
  /// CE + L_c. @param second_features of the previous task's model [K, B, d]; undefined in task 1, where there is none
  [[nodiscard]] loss_output added(const loss_input& in, const at::Tensor& second_features) const;

private:
  double weight_;
  reduction over_;
  loss_ref plain_ = cross_entropy_objective();
};

loss_output contrast_term::added(const loss_input& in, const at::Tensor& second_features) const {
  auto out = (*plain_)(in);
  const auto cross_entropy = out.values.clone();
  out.d_features = at::zeros_like(in.features);
  for (std::int64_t k = 0; k < in.features.size(0); ++k) {
    const auto counted = in.row_weight[k].gt(0.0).to(at::kFloat).unsqueeze(1); // [B, 1]
    const auto rows = counted.sum().item<double>();
    const auto share = over_ == reduction::sum || rows == 0.0 ? 1.0 : 1.0 / rows;
    const auto near = (in.features[k] - in.teacher_features[k]) * counted; // [B, d]
    auto value = share * pull * near.pow(2).sum(at::kDouble);
    at::Tensor far; // [B, d]
    if (second_features.defined()) {
      far = (in.features[k] - second_features[k]) * counted;
      value = value - share * push * far.pow(2).sum(at::kDouble) + margin;
      if (value.item<double>() <= 0.0)
        continue; // behind the hinge
    }
    out.values[k].add_(value, weight_);
    out.d_features[k].copy_(near * (2.0 * pull * share * weight_));
    if (far.defined())
      out.d_features[k].sub_(far, 2.0 * push * share * weight_);
  }
  out.terms = {{"cross_entropy", cross_entropy}, {"contrast", out.values - cross_entropy}};
  return out;
}

/// Task 1: the teacher is the broadcast model, and no second one is asked.
class contrast_of_first_task final : public loss {
public:
  explicit contrast_of_first_task(const contrast_term& term) : term_(term) {}
  std::string identity() const override { return term_.identity("first"); }
  bool reads_label_smoothing() const override { return true; }
  loss_output operator()(const loss_input& in) const override { return term_.added(in, {}); }

private:
  contrast_term term_;
};

/// Later tasks: the second teacher is the model at the end of the previous one.
class contrast_of_later_task final : public twice_taught_loss {
public:
  explicit contrast_of_later_task(const contrast_term& term) : term_(term) {}
  std::string identity() const override { return term_.identity("later"); }
  bool reads_label_smoothing() const override { return true; }
  loss_output operator()(const loss_input& in, const at::Tensor& second_features) const override {
    return term_.added(in, second_features);
  }

private:
  contrast_term term_;
};

/// Sends what travels of the previous task's model beside the round's own: its body is everybody's.
class fed_cprompt_server final : public server_half {
public:
  fed_cprompt_server(std::unique_ptr<server_half> prompting, travelling_weights travelling, bool contrasts)
      : prompting_(std::move(prompting)), travelling_(std::move(travelling)), contrasts_(contrasts) {}
  task<task_plan> open_task(server_context& ctx, const round_place& place) override {
    if (place.task.value > 0 && contrasts_)
      previous_ = travelling_.pick(prompting_->predict().weights->at(flat_weights));
    auto opening = prompting_->open_task(ctx, place);
    const auto plan = co_await opening;
    co_return plan;
  }
  broadcast open_round(const round_place& place) override {
    auto sent = prompting_->open_round(place);
    sent.extra = previous_;
    return sent;
  }
  void fold(const delivery& in) override { prompting_->fold(in); }
  task<void> close_round(server_context& ctx, const round_place& place) override {
    auto closing = prompting_->close_round(ctx, place);
    co_await closing;
  }
  predictor predict() const override { return prompting_->predict(); }
  std::map<std::string, double> figures() const override { return prompting_->figures(); }
  void persist(archive& state) override {
    prompting_->persist(state);
    state(previous_);
  }

private:
  std::unique_ptr<server_half> prompting_;
  travelling_weights travelling_;
  bool contrasts_;
  tensors_ref previous_; // null in task 1
};

class fed_cprompt final : public prompting_method {
public:
  void keys(key_table& table) override {
    component_keys(table, shape_);
    table.number("contrast", contrast_, {.low = 0.0}, "Weight of the contrast of models; 0: Fed-CODAP.");
    table.choice("reduction", over_, {{"mean", reduction::mean}, {"sum", reduction::sum}},
                 "Rows of a batch under the hinge: their mean, as the paper writes, or their sum, as released.");
  }
  std::vector<preset> presets() const override {
    return {stsa_preset(),
            {"official", "the released program: sums over the batch, 5 epochs in each of 40 rounds, samples count",
             "[strategy]\nreduction = \"sum\"\n[rounds]\nper_task = 40\n"
             "[training]\nepochs = 5\nbatch = 64\noptimizer = \"adam\"\nlearning_rate = 1e-4\n"}};
  }
  void prepare(const method_setup& setup) override {
    prompting_method::prepare(setup);
    travelling_ = travelling_weights(setup.net, setup.trainable);
    const contrast_term term(contrast_, over_);
    contrast_of_first_ = std::make_shared<contrast_of_first_task>(term);
    contrast_of_later_ = std::make_shared<contrast_of_later_task>(term);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<fed_cprompt_server>(prompting_method::make_server(), travelling_, contrast_ > 0.0);
  }

protected:
  prompt_shape prompts() const override { return shape_; }

private:
  prompt_shape shape_{.form = prompt_form::components, .blocks = {0, 1, 2, 3, 4}, .softmax_focus = true};
  double contrast_ = 1.0;
  reduction over_ = reduction::mean;
  travelling_weights travelling_;
  loss_ref contrast_of_first_, contrast_of_later_;
};

task<client_result> fed_cprompt::client_round(client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered(in.place)});
  job.start = whole_weights(in.weights, in);
  if (contrast_ > 0.0) {
    job.objective = in.extra ? contrast_of_later_ : contrast_of_first_;
    job.teacher = job.start;
    job.options.taught_features = true;
  }
  if (contrast_ > 0.0 && in.extra) {
    auto side = std::make_shared<tensor_map>();
    side->put(second_teacher_weights, whole_weights(in.extra, in)->at(flat_weights));
    job.side = std::move(side);
  }
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;
  client_result result;
  result.upload = travelling_.pick(trained.weights->at(flat_weights));
  result.rows = trained.rows_seen;
  co_return result;
}

const strategy_registration line{
    {.name = "fed-cprompt",
     .summary = "prompt components and a contrast with received and earlier model (Fed-CPrompt, Bagwe et al. 2023)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_cprompt>(); }}};

} // namespace
} // namespace mneme::fed_cprompt_method
