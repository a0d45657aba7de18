// iCaRL: S.-A. Rebuffi, A. Kolesnikov, G. Sperl and C. H. Lampert, "iCaRL: Incremental Classifier and Representation
// Learning", CVPR 2017. The method has one sigmoid per class (Algorithm 3), exemplars selected by herding (Algorithm
// 4), and nearest-mean-of-exemplars classification (Algorithm 1). For all rows, the targets of old classes are the
// previous model's sigmoids:
//     loss = sum over rows and classes of BCE(z_c, target_c),  target_c = sigmoid(q_c) if c is old, else [c = y].
//
// The official code takes the mean over rows and all 100 classes from the first task on, and its learning rate is 2.0.
// PyCIL's iCaRL has cross-entropy over the classes seen, plus cross-entropy with the teacher's softmax at T = 2,
// without a factor T^2.
//
// Ours: federated as described in rehearsal.hpp. The loss is a mean over rows and the classes seen, as in inclearn and
// in LGA's program. losses = "softmax" selects PyCIL's form, the base of our DDE. Preset "official" has the herding and
// momentum of the official code.
#include "strategies/baselines/rehearsal.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <fmt/format.h>
namespace mneme::icarl_method {
namespace {

enum class icarl_losses : std::uint8_t { sigmoid, softmax };
struct options {
  icarl_losses losses = icarl_losses::sigmoid;
  double distillation_weight = 1.0, temperature = 2.0;
};

/// BCE with one-hot targets, whose old columns are replaced by the teacher's sigmoids.
loss_ref sigmoid_objective() {
  return differentiable_objective(
      {.identity = "icarl sigmoid", .terms = {"binary_cross_entropy"}}, [](const loss_rows& in) {
        auto targets = one_hot_rows(in.labels, in.logits);
        if (!in.teachers.empty())
          targets.narrow(1, 0, in.teachers[0].logits.size(1)).copy_(at::sigmoid(in.teachers[0].logits));
        return std::vector{binary_cross_entropy_rows(in.logits, targets)};
      });
}

loss_ref softmax_objective(const options& options) {
  return differentiable_objective(
      {.identity = fmt::format("icarl softmax {} {}", options.distillation_weight, options.temperature),
       .terms = {"cross_entropy", "distillation"},
       .reads_label_smoothing = true},
      [options](const loss_rows& in) -> std::vector<at::Tensor> {
        const auto cross_entropy = cross_entropy_rows(in.logits, in.labels, in.label_smoothing);
        if (in.teachers.empty())
          return {cross_entropy, {}};
        return {cross_entropy,
                old_class_distillation(in.logits, in.teachers[0].logits, {.temperature = options.temperature}) *
                    options.distillation_weight};
      });
}

class icarl final : public rehearsing_method {
public:
  icarl() : rehearsing_method(class_readout::nearest_mean) {}
  void keys(key_table& table) override {
    table.choice("losses", options_.losses, {{"sigmoid", icarl_losses::sigmoid}, {"softmax", icarl_losses::softmax}},
                 "iCaRL's sigmoid losses, or the softmax losses of PyCIL's iCaRL.");
    table.number("distillation_weight", options_.distillation_weight, {.low = 0.0},
                 "Weight of the distillation that is added to cross-entropy (losses = \"softmax\").");
    table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
                 "Temperature of the distillation (losses = \"softmax\").");
    memory_keys(table);
    readout_keys(table);
  }
  std::vector<preset> presets() const override {
    return {{.name = "paper",
             .meaning = "as in LGA's comparison, with 20 epochs in each of 10 rounds and rates of iCaRL's official "
                        "code scaled to these 200 epochs",
             .toml = "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 2.0\nschedule = \"step\"\n"
                     "milestones = [7, 9]\nfactor = 0.2\nweight_decay = 1e-5\naugment = \"crop-flip-jitter\"\n"},
            {.name = "official",
             .meaning = "like preset paper, with the herding and the momentum of iCaRL's official code",
             .toml = "[strategy]\nexemplars = \"repeats\"\n[training]\nepochs = 20\nbatch = 128\nlearning_rate = 2.0\n"
                     "schedule = \"step\"\nmilestones = [7, 9]\nfactor = 0.2\nmomentum = 0.9\nweight_decay = 2e-5\n"
                     "augment = \"crop-flip\"\n"}};
  }
  diagnostics check(const method_setup& setup) const override {
    auto errors = rehearsing_method::check(setup);
    if (options_.losses == icarl_losses::sigmoid)
      append(errors, reject_label_smoothing(setup, "strategy.losses = \"sigmoid\" has no cross-entropy over classes; "
                                                   "\"softmax\" has one"));
    return errors;
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

protected:
  loss_ref objective() const override {
    if (options_.losses == icarl_losses::sigmoid)
      return sigmoid_objective();
    return softmax_objective(options_);
  }

private:
  options options_;
};

task<client_result> icarl::client_round(client_context& ctx, const broadcast& in) const {
  auto recalling = load_rehearsal(ctx, in);
  const auto now = co_await recalling;

  auto job = training(ctx, in, now, now.all_rows());
  job.objective = objective();
  auto learning = ctx.train(std::move(job));
  const auto trained = co_await learning;

  auto summing = class_sums(ctx, now, trained.weights);
  const auto sums = co_await summing;
  co_return result_of(now, trained.weights, sums);
}

const strategy_registration line{
    {.name = "icarl",
     .summary =
         "exemplars, sigmoid distillation and nearest-mean classification (iCaRL, Rebuffi et al. 2017), federated",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<icarl>(); }}};

} // namespace
} // namespace mneme::icarl_method
