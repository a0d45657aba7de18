// LGA: local-global anti-forgetting (J. Dong, H. Li, Y. Cong, G. Sun, Y. Zhang and L. Van Gool, "No One Left Behind:
// Real-World Federated Class-Incremental Learning", TPAMI 2023). A client weights rows by the gradients of their task
// (category-balanced loss, eqs. 3-6) and distills an old model (semantic distillation, eqs. 7-9). A proxy reconstructs
// prototypes from gradients and scores global models on noisy copies of their features (eqs. 11-14). It sends clients
// the best model of the latest task and of the one before.
//
// The official code (github.com/JiahuaDong/LGA, commit 867988c, without a license) uses sigmoid losses. Keys select its
// unusual choices. The standard deviation of feature noise is the squared variance (`noise`). Herding can select a row
// twice (`exemplars`). The best score is reset only once (`best_reset`). New clients are never drawn into cohorts
// (`pool`), and clients of an old task keep all rows of the task (`old_clients`). The groups of clients are drawn again
// for each task (`regroup`), and prototypes are perturbed as unnormalized pixels (`perturbation`). We omit its bugs in
// reconstruction (8-bit overflow, augmentation, dropped batches of fewer than 64 rows, no labels from 100 on), and its
// use of augmented rows for the entropy.
//
// Ours: presets are "paper", "official" (without bugs) and "released" (with bugs). The KL divergence of eq. 9 is
// infinite if a label has zeros, so we use the cross-entropy with the mixed label. Entropies and scores are computed
// without augmentation. The noise scale is computed from reconstructions instead of training images, or is fixed
// (`noise_scale`). Gradients that arrive in the first rounds of a task are assigned to this task. With softmax losses,
// the entropy of a confident net does not rise, so clients detect no new tasks and keep no exemplars. With sigmoid
// losses, they detect new tasks (docs/results.md).
#include "strategies/lga/gradient_compensation.hpp"
#include "strategies/shared/row_losses.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

at::Tensor probabilities(const at::Tensor& logits, class_likelihood kind) {
  return kind == class_likelihood::softmax ? at::softmax(logits, 1) : at::sigmoid(logits);
}

} // namespace

// -- local forgetting: the category-balanced loss (eqs. 3-6) ----------------------------------------------------------

/// |V| = |P_y - 1| (eq. 3).
at::Tensor gradient_magnitudes(const at::Tensor& logits, const at::Tensor& labels, class_likelihood kind) {
  const auto of_label = probabilities(logits.to(at::kDouble), kind).gather(1, labels.clamp_min(0).unsqueeze(1));
  return (of_label.squeeze(1) - 1.0).abs().masked_fill(labels < 0, 0.0);
}

/// |V_i|^a over its mean in the group (eq. 4), 0 outside the group. If the mean is 0, each row of the group has weight
/// 1.
at::Tensor divide_by_mean(const at::Tensor& magnitudes, const at::Tensor& group) {
  const auto members = group.to(at::kDouble);
  const auto mean = (magnitudes * members).sum() / members.sum().clamp_min(1.0);
  return at::where(mean > 0, magnitudes / mean, at::ones_like(magnitudes)) * members;
}

namespace {

/// Each row relative to the mean of its own task (eq. 5).
at::Tensor per_task_weights(const at::Tensor& magnitudes, const at::Tensor& groups, std::int64_t old_tasks) {
  auto sum = divide_by_mean(magnitudes, groups == -1);
  for (std::int64_t k = 0; k < old_tasks; ++k)
    sum = sum + divide_by_mean(magnitudes, groups == k);
  return sum;
}

/// Official: an old row's weight is a sum over all groups S_k that contain it. S_k holds the old rows of tasks up to k.
at::Tensor cumulative_weights(const at::Tensor& magnitudes, const at::Tensor& groups, std::int64_t old_tasks) {
  auto sum = divide_by_mean(magnitudes, groups == -1);
  for (std::int64_t k = 0; k < old_tasks; ++k)
    sum = sum + divide_by_mean(magnitudes, (groups >= 0).logical_and(groups <= k));
  return sum.clamp(0.5, 5.0).masked_fill(groups < -1, 0.0);
}

} // namespace

at::Tensor row_weights(const at::Tensor& magnitudes, const at::Tensor& groups, std::int64_t old_tasks,
                       gradient_weighting kind) {
  switch (kind) {
  case gradient_weighting::none:
    return (groups >= -1).to(at::kDouble);
  case gradient_weighting::per_task:
    return per_task_weights(magnitudes, groups, old_tasks);
  case gradient_weighting::cumulative:
    return cumulative_weights(magnitudes, groups, old_tasks);
  case gradient_weighting::old_new:
    return old_new_weights(magnitudes, groups);
  }
  return {};
}

// -- local forgetting: semantic distillation (eqs. 7-9) ---------------------------------------------------------------

/// Y: one-hot labels whose old columns are the old model's probabilities (eqs. 7, 8).
at::Tensor mix_targets(const at::Tensor& teacher_output, const at::Tensor& labels, std::int64_t classes,
                       class_likelihood kind) {
  auto targets = at::one_hot(labels, classes).to(at::kFloat);
  targets.narrow(1, 0, teacher_output.size(1)).copy_(probabilities(teacher_output, kind));
  return targets;
}

namespace {

constexpr const char *group_name = "group_of_class", *exponent_name = "exponent", *tasks_name = "old_tasks";

/// Softmax: -sum_c Y_c log P_c, where Y need not sum to 1; a finite form of the KL of eq. 9, which is infinite for
/// zeros in Y. Sigmoid: binary cross-entropies, summed over the columns and divided by `classes`. Returns [R].
at::Tensor likelihood_rows(const at::Tensor& logits, const at::Tensor& targets, class_likelihood kind,
                           std::int64_t classes) {
  if (kind == class_likelihood::softmax)
    return -(targets * at::log_softmax(logits, 1)).sum(1);
  return (at::softplus(logits) - logits * targets).sum(1) / static_cast<double>(classes);
}

/// Returns the weight of each row by eqs. 3-5: [R].
at::Tensor weights_of(const loss_rows& in, const forgetting_terms& with) {
  if (with.weighting == gradient_weighting::none || !in.auxiliary)
    return at::ones_like(in.labels, in.labels.options().dtype(at::kDouble));
  const auto groups = in.auxiliary->at(group_name).to(in.labels.device()).index_select(0, in.labels);
  const auto exponent = in.auxiliary->at(exponent_name).to(in.labels.device());
  const auto magnitudes = gradient_magnitudes(in.logits.detach(), in.labels, with.likelihood).pow(exponent);
  return row_weights(magnitudes, groups, in.auxiliary->at(tasks_name).item<std::int64_t>(), with.weighting);
}

/// Returns the distillation loss of each row, by eq. 9 or as in iCaRL: [R].
at::Tensor distillation_of(const loss_rows& in, const forgetting_terms& with) {
  const auto& teacher_output = in.teachers[0].logits;
  const auto classes = in.logits.size(1);
  if (with.distillation == distillation_kind::mixed)
    return likelihood_rows(in.logits, mix_targets(teacher_output, in.labels, classes, with.likelihood), with.likelihood,
                           classes);
  // iCaRL's distillation is a sum over classes. With binary cross-entropies, which are means over C, the sum is divided
  // by C. With a softmax cross-entropy, it is not divided.
  const auto divisor = with.likelihood == class_likelihood::softmax ? 1 : classes;
  return likelihood_rows(in.logits.narrow(1, 0, teacher_output.size(1)), at::sigmoid(teacher_output),
                         class_likelihood::sigmoid, divisor);
}

/// Returns the label term with weighted rows (eq. 6) and the distillation term (eq. 9).
std::vector<at::Tensor> forgetting_values(const loss_rows& in, const forgetting_terms& with) {
  const auto weight = in.weight * weights_of(in, with).to(at::kFloat);
  const auto classes = in.logits.size(1);
  const bool has_teacher = !in.teachers.empty();
  const auto of_labels = likelihood_rows(in.logits, one_hot_rows(in.labels, in.logits), with.likelihood, classes);
  std::vector<at::Tensor> terms{weighted_sum(of_labels, with.weighs_labels ? weight : in.weight), {}};
  if (!has_teacher)
    return terms;
  terms[0] = terms[0] * with.label_factor;
  terms[1] =
      weighted_sum(distillation_of(in, with), with.weighs_distillation ? weight : in.weight) * with.distillation_factor;
  return terms;
}

} // namespace

loss_ref forgetting_objective(const forgetting_terms& with) {
  const bool is_softmax = with.likelihood == class_likelihood::softmax;
  return differentiable_objective(
      {.identity =
           fmt::format("forgetting {} {} {} {} {} {} {}", static_cast<int>(with.likelihood),
                       static_cast<int>(with.weighting), static_cast<int>(with.distillation), with.weighs_labels,
                       with.weighs_distillation, with.label_factor, with.distillation_factor),
       .terms = {is_softmax ? "cross_entropy" : "binary_cross_entropy", "distillation"}},
      [with](const loss_rows& in) { return forgetting_values(in, with); });
}

tensors_ref to_auxiliary(const forgetting_context& known) {
  auto auxiliary = std::make_shared<tensor_map>();
  auxiliary->put(group_name, at::tensor(known.group_of_class, at::kLong));
  auxiliary->put(exponent_name, at::tensor(known.exponent, at::kDouble));
  auxiliary->put(tasks_name, at::tensor(known.old_tasks, at::kLong));
  return auxiliary;
}

// -- global forgetting: the proxy scores models (eqs. 11-14) ----------------------------------------------------------

namespace {

constexpr double bound_share = 0.1;
constexpr int draws_max = 20;

} // namespace

/// omega N(0, v) with |noise| <= 0.1 sum v (eq. 11). Official: omega v^2 N(0, 1) with |noise|^2 <= 0.1 sum v^2, because
/// the squared variance is passed as a standard deviation.
at::Tensor accepted_noise(const at::Tensor& variances, const feature_noise& how, rng_stream& stream) {
  const auto deviations = how.as_printed ? variances.sqrt() : variances.square();
  const double bound = bound_share * (how.as_printed ? variances : deviations).sum().item<double>();
  auto noise = at::zeros_like(variances);
  for (int draw = 0; draw < draws_max; ++draw) {
    auto* const values = noise.mutable_data_ptr<double>();
    for (std::int64_t i = 0; i < noise.numel(); ++i)
      values[i] = stream.normal();
    noise.mul_(deviations).mul_(how.scale);
    const double length = noise.norm().item<double>(), measured = how.as_printed ? length : length * length;
    if (measured <= bound)
      return noise;
    if (draw + 1 == draws_max)
      noise.mul_((how.as_printed ? bound : std::sqrt(bound)) / length * (1.0 - 1e-12));
  }
  return noise;
}

at::Tensor variances_by_class(const at::Tensor& features, const at::Tensor& labels) {
  const auto rows = features.cpu().to(at::kDouble);
  const auto classes = std::get<0>(at::_unique(labels.cpu(), /*sorted=*/true));
  std::vector<at::Tensor> variances;
  for (std::int64_t c = 0; c < classes.size(0); ++c) {
    const auto own = rows.index_select(0, (labels.cpu() == classes[c]).nonzero().squeeze(1));
    variances.push_back(own.size(0) > 1 ? own.var(0, /*unbiased=*/true) : at::zeros({rows.size(1)}, at::kDouble));
  }
  return at::stack(variances);
}

/// omega_t (eq. 12).
double next_noise_scale(double scale, std::int64_t old_classes, const at::Tensor& traces) {
  const auto fresh = static_cast<double>(traces.size(0)), old = static_cast<double>(old_classes);
  return ((old_classes == 0 ? 0.0 : old * scale) + traces.sum().item<double>()) / (old + fresh);
}

void running_scale::learn(const at::Tensor& traces) {
  scale = next_noise_scale(scale_before, classes_before, traces);
  classes = classes_before + traces.size(0);
}

/// Accuracy of the head on noisy copies (eq. 13).
double monitor_score(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& head,
                     const at::Tensor& bias, const feature_noise& how, const rng_key& key) {
  const auto rows = features.cpu().to(at::kDouble), truth = labels.cpu();
  const auto weight = head.cpu().to(at::kDouble).t(), offset = bias.cpu().to(at::kDouble);
  const auto right = [&](const at::Tensor& shown) {
    return (at::addmm(offset, shown, weight).argmax(1) == truth).sum().item<std::int64_t>();
  };
  const auto total = static_cast<double>(rows.size(0));
  if (how.copies == 0)
    return static_cast<double>(right(rows)) / total;
  const auto variances = variances_by_class(rows, truth);
  const auto place = std::get<1>(at::_unique(truth, /*sorted=*/true, /*return_inverse=*/true));
  rng_stream stream(key);
  std::int64_t answers = 0;
  for (std::int64_t copy = 0; copy < how.copies; ++copy) {
    auto shown = rows.clone();
    for (std::int64_t i = 0; i < shown.size(0); ++i)
      shown[i] += accepted_noise(variances[place[i].item<std::int64_t>()], how, stream);
    answers += right(shown);
  }
  return static_cast<double>(answers) / (total * static_cast<double>(how.copies));
}

/// Keeps the best model of the task so far (eq. 14).
void best_models::offer(double score, const old_model& now) {
  if (score < best)
    return;
  best = score;
  chosen.latest = now;
}

// -- the method -------------------------------------------------------------------------------------------------------

namespace {

enum class lga_form : std::uint8_t {
  printed,  ///< Softmax, weights per task, exponent from the client's own classes.
  released, ///< Sigmoid, cumulative weights in [0.5, 5], exponent from the number of tasks.
};

class lga final : public gradient_compensation_method {
public:
  void keys(key_table& table) override {
    table.choice("losses", losses_, {{"paper", lga_form::printed}, {"official", lga_form::released}},
                 "Softmax losses with weights per task (paper), or sigmoid losses with cumulative weights.");
    shared_keys(table, options_);
    table.choice("noise", noise_, {{"paper", lga_form::printed}, {"official", lga_form::released}},
                 "Noise on features and its scale: as in the paper (eqs. 11, 12) or in the official code.");
    table.number("noise_scale", options_.proxy.noise_scale, {.low = 0.0},
                 "omega: scale of the noise; 0: omega is estimated from reconstructed images.");
    table.omit_default_from_digest();
    table.flag("cbl", category_balanced_, "Weight the rows of the classification loss; false: plain cross-entropy.");
    table.flag("sdl", semantic_, "Use semantic distillation; false: iCaRL's distillation.");
    table.flag("psr", options_.proxy.reconstructs,
               "The proxy reconstructs prototypes; false: no model selection by prototypes.");
    table.flag("sbm", options_.proxy.selects, "The proxy selects the best model; false: the last model of the task.");
    table.flag("ssa", options_.proxy.augments, "Score models on noisy copies of features; false: without noise.");
    table.flag("npb", options_.perturbs, "Perturb prototypes before they are encoded.");
  }
  std::vector<preset> presets() const override {
    const std::string released = "losses = \"official\"\nnoise = \"official\"\nrates = \"official\"\n"
                                 "reconstruction_rate = 0.1\nproxy_init = 6\nweighting = \"uniform\"\n" +
                                 std::string(released_training);
    return {{.name = "paper",
             .meaning =
                 "losses, weights, proxy, groups and perturbation as in the paper; rate 0.1 with momentum 0.9 is ours "
                 "(the paper's 2.0 diverges with softmax losses), batches and augmentation are the official code's",
             .toml = "[strategy]\nlosses = \"paper\"\nnoise = \"paper\"\nexemplars = \"rank\"\nproxy_init = 0\n"
                     "images_per_gradient = 1\nold_clients = \"exemplars\"\nregroup = \"round\"\n"
                     "perturbation = \"latent\"\nweighting = \"uniform\"\n" +
                     std::string(printed_training)},
            {.name = "official",
             .meaning = "the official code with its learning rates, without its bugs",
             .toml = "[strategy]\nexemplars = \"greedy\"\n" + released},
            {.name = "released",
             .meaning =
                 "the official code with the bugs that change results: exemplars that are selected twice, a best score "
                 "that is reset once, new clients that never take part",
             .toml = "[strategy]\nexemplars = \"duplicates\"\nbest_reset = \"second-task\"\npool = \"fixed\"\n" +
                     released}};
  }

protected:
  gradient_compensation_options options() const override {
    auto with = options_;
    const bool printed = losses_ == lga_form::printed;
    with.terms = {.likelihood = printed ? class_likelihood::softmax : class_likelihood::sigmoid,
                  .weighting = printed ? gradient_weighting::per_task : gradient_weighting::cumulative,
                  .distillation = semantic_ ? distillation_kind::mixed : distillation_kind::icarl,
                  .weighs_labels = category_balanced_,
                  .weighs_distillation = semantic_};
    with.exponent = printed ? exponent_rule::own_classes : exponent_rule::tasks;
    with.threshold_included = printed;
    with.proxy.noise_as_printed = with.proxy.running_scale = noise_ == lga_form::printed;
    return with;
  }

private:
  gradient_compensation_options options_;
  lga_form losses_ = lga_form::printed, noise_ = lga_form::printed;
  bool category_balanced_ = true, semantic_ = true;
};

const strategy_registration lga_line{
    {.name = "lga",
     .summary = "local-global anti-forgetting with a proxy server (LGA, Dong et al. 2023, TPAMI)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<lga>(); }}};

} // namespace
} // namespace mneme
