// FedHAF: federated class-incremental learning with a frozen backbone, a feature adjustment module F' and a head with
// outputs F (OpenReview RvAvRC3cUW). A client trains in two stages: the head by cross-entropy and distillation (eqs. 4,
// 5), then the module by distillation and balance of adjusted features (eqs. 2, 3). Both use the rows of the task and
// exemplars of earlier tasks (eq. 6). In each stage, parameters and running statistics of the other part are frozen.
// The server averages both parts. The teacher is the model before the task.
//
// Official code: none; neither the paper nor its OpenReview entry names a repository. So there is no preset "official",
// and tests compute the equations by hand.
//
// Ours: the paper contradicts itself, so keys select among its interpretations; presets "paper" and "recommended" set
// these keys. Stage 2 has no labels in the paper and would never train the module in task 1. Therefore we add
// cross-entropy through the frozen head in task 1 (stage2_ce). Eq. 2 is a mean over dimensions (fd_reduction). Eq. 3
// compares mean lengths per class (fb_division); the lengths of old features are those of the model before the task
// (fb_reference). Eq. 5 is KL(present || before) over old classes at temperature 1, as printed. Cross-entropy covers
// new rows over the classes of their task ("paper"), or all rows over all classes ("recommended"). adjustment_net.hpp
// corrects the inconsistent widths of Table 6. Module and head are initialized once (reinit_each_task). Epochs, batch
// size, momentum and clipping are ours. A client selects a share of each class as exemplars in its first round of a
// task (exemplar_rows_max is the paper's "fixed buffer size B"). ablation = "stages" trains both parts at the same
// time: by default, the module gets the gradients of stage 2; with stages_gradient = "joint", both parts get those of
// eq. 7.
#include "strategies/fedhaf/adjustment_losses.hpp"
#include "strategies/shared/split_learning.hpp"
#include "strategies/shared/training_keys.hpp"
#include <fmt/format.h>
namespace mneme::fedhaf_method {

// -- the method's parts -----------------------------------------------------------------------------------------------

namespace {

/// Ablations of Table 3. Each omits what the paper's text on this ablation names.
enum class ablation_kind : std::uint8_t {
  none,
  cross_entropy,        ///< No head splitting: the cross-entropy of new rows covers all classes seen.
  distillation,         ///< No KD.
  feature_distillation, ///< No FD.
  feature_balance,      ///< No FB.
  adjustment,           ///< No module: the head reads the backbone's features.
  stages,               ///< No stages: module and head are trained together.
};
enum class stage2_labels : std::uint8_t { first_task, always, never };
/// Gradient of the module if module and head are trained together.
enum class one_stage_gradient : std::uint8_t {
  joint,     ///< Gradient of the sum of all losses, as printed in eq. 7.
  as_staged, ///< Gradient of the losses of stage 2. They exclude KD, and stage2_ce decides whether they include CE.
};

struct options {
  adjustment_terms terms{
      .feature_distillation = 2.0, .feature_balance = 1.0, .cross_entropy = 1.0, .distillation = 1.0};
  std::int64_t adjustment_epochs = 1; // E2; training.epochs is E1
  stage2_labels stage2_ce = stage2_labels::first_task;
  exemplar_rules exemplars{};
  ablation_kind ablation = ablation_kind::none;
  one_stage_gradient at_once = one_stage_gradient::as_staged;
};

/// Returns the options without the ablated term.
options without_ablated(options options) {
  switch (options.ablation) {
  case ablation_kind::cross_entropy:
    options.terms.scope = label_scope::seen;
    options.terms.rows = label_rows::fresh;
    break;
  case ablation_kind::distillation:
    options.terms.distillation = 0.0;
    break;
  case ablation_kind::feature_distillation:
    options.terms.feature_distillation = 0.0;
    break;
  case ablation_kind::feature_balance:
    options.terms.feature_balance = 0.0;
    break;
  case ablation_kind::none:
  case ablation_kind::adjustment:
  case ablation_kind::stages:
    break;
  }
  return options;
}

class fedhaf final : public split_method {
public:
  void keys(key_table& table) override;
  std::vector<preset> presets() const override;
  method_needs needs() const override;
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

protected:
  bool needs_teacher() const override { return true; }

private:
  enum class stage { head, adjustment, both };
  [[nodiscard]] train_job stage_of(train_job job, const broadcast& in, stage trained) const;
  [[nodiscard]] adjustment_terms terms_of(const round_info& info, stage trained) const;
  [[nodiscard]] bool rehearses() const;

  options options_; // as set in the scenario; without_ablated() is applied to copies
};

// -- client half ------------------------------------------------------------------------------------------------------

/// Losses of a stage: L_Head = l_CE L_CE + l_KD L_KD, L_FAM = l_FD L_FD + l_FB L_FB, or their sum (eq. 7).
adjustment_terms fedhaf::terms_of(const round_info& info, stage trained) const {
  const auto options = without_ablated(options_);
  auto terms = options.terms;
  const auto& tasks = net().whole.task_classes;
  terms.tasks.assign(tasks.begin(), tasks.begin() + static_cast<std::ptrdiff_t>(info.task.value) + 1);
  if (trained == stage::head)
    terms.feature_distillation = terms.feature_balance = 0.0;
  const bool labels = options.stage2_ce == stage2_labels::always ||
                      (options.stage2_ce == stage2_labels::first_task && info.task.value == 0);
  if (trained == stage::adjustment) {
    terms.distillation = 0.0;
    if (!labels)
      terms.cross_entropy = 0.0;
  }
  if (trained == stage::both && options.at_once == one_stage_gradient::as_staged) {
    terms.labels_pass = labels;
    terms.distillation_passes = false;
  }
  return terms;
}

train_job fedhaf::stage_of(train_job job, const broadcast& in, stage trained) const {
  const auto terms = terms_of(in.info, trained);
  if (trained != stage::both) {
    job.options.trained = trainable_part::layers;
    job.options.layers = {trained == stage::head ? "head" : "adjustment"};
  }
  if (trained == stage::adjustment) {
    job.options.epochs = options_.adjustment_epochs;
    job.stream.visit += std::uint32_t{1} << 24; // no round has this visit number, so stage 2 gets its own shuffle
  }
  if (trained == stage::both)
    job.options.epochs += options_.adjustment_epochs;
  job.objective = adjustment_objective(terms);
  if (in.extra && terms.old_classes() > 0) {
    const bool reads_logits =
        terms.distillation > 0.0 || (terms.feature_balance > 0.0 && terms.balanced == balanced_vectors::logits);
    const class_range old{0, terms.old_classes()};
    job.add_teacher(
        in.extra,
        {.classes = reads_logits ? old : class_range{}, .features = terms.compares_features(), .only_labels = old});
  }
  return job;
}

task<client_result> fedhaf::client_round(client_context& ctx, const broadcast& in) const {
  // Computes features of the rows. In the client's first round of a task, also selects exemplars by eq. 6.
  auto looking = features_of_rows(ctx, in, net(), options_.exemplars);
  const auto features = co_await looking;
  const std::vector<embedding_rows> parts{features.current(), features.old()};
  auto job = training(ctx, in, rows_to_train(parts, net().features()));
  const auto rows = job.samples.size();

  const bool at_once = options_.ablation == ablation_kind::stages, adjusts = settings().net.adjusts;
  auto first = ctx.train(stage_of(job, in, at_once ? stage::both : stage::head));
  auto learned = co_await first;
  if (!at_once && adjusts && options_.adjustment_epochs > 0) {
    job.start = learned.weights;
    auto second = ctx.train(stage_of(job, in, stage::adjustment));
    learned = co_await second;
  }

  auto memory = std::make_shared<tensor_map>();
  features.save(*memory);
  co_return client_result{.upload = learned.weights, .memory = memory, .rows = rows};
}

// -- declarations -----------------------------------------------------------------------------------------------------

method_needs fedhaf::needs() const {
  auto needs = split_method::needs();
  needs.defaults = "[training]\nepochs = 2\nlearning_rate = 0.02\nmomentum = 0.9\nclip_norm = 5.0\n";
  return needs;
}

void fedhaf::prepare(const method_setup& setup) {
  settings().net.adjusts = options_.ablation != ablation_kind::adjustment;
  split_method::prepare(setup);
}

/// True if any loss reads exemplars.
bool fedhaf::rehearses() const {
  const auto terms = without_ablated(options_).terms;
  return terms.compares_features() || terms.distillation > 0.0 || terms.rows == label_rows::every;
}

diagnostics fedhaf::check(const method_setup& setup) const {
  auto errors = split_method::check(setup);
  append(errors,
         reject_label_smoothing(setup, "its losses weight terms of old and new rows and read unsmoothed labels"));
  if (options_.exemplars.ratio == 0.0 && rehearses() && setup.tasks > 1)
    errors.push_back(
        {"strategy.exemplar_ratio",
         "strategy.exemplar_ratio = 0: clients keep no exemplars, but losses that read them are on; expected more, or "
         "distillation = 0, feature_distillation = 0, feature_balance = 0 and ce_rows = \"new\""});
  const bool collapses = options_.terms.scope == label_scope::seen && options_.terms.rows == label_rows::fresh;
  if (collapses && options_.ablation != ablation_kind::cross_entropy)
    errors.push_back({"strategy.ce_rows",
                      "strategy.ce_rows = \"new\" with ce_scope = \"seen\": every step would lower the logits "
                      "of old classes, which looks like forgetting; expected ce_rows = \"all\" or ce_scope = "
                      "\"task\", or ablation = \"cross-entropy\", which means exactly this"});
  return errors;
}

void fedhaf::keys(key_table& table) {
  auto& terms = options_.terms;
  split_method::keys(table);
  table.integer("adjustment_epochs", options_.adjustment_epochs, {.low = 0, .high = 1'000'000},
                "E2: epochs of stage 2, which trains the module; training.epochs (E1) is for stage 1, the head.");
  table.number("feature_distillation", terms.feature_distillation, {.low = 0.0}, "lambda_FD (eq. 2).");
  table.number("feature_balance", terms.feature_balance, {.low = 0.0}, "lambda_FB (eq. 3).");
  table.number("cross_entropy", terms.cross_entropy, {.low = 0.0}, "lambda_CE (eq. 4).");
  table.number("distillation", terms.distillation, {.low = 0.0}, "lambda_KD (eq. 5).");
  table.choice(
      "stage2_ce", options_.stage2_ce,
      {{"first-task", stage2_labels::first_task}, {"always", stage2_labels::always}, {"never", stage2_labels::never}},
      "Tasks in which stage 2 uses cross-entropy through the frozen head; in the paper it uses no labels.");
  table.choice("fd_reduction", terms.dimensions, {{"mean", dimension_sum::mean}, {"sum", dimension_sum::sum}},
               "Reduction over the dimensions of a feature in eq. 2: mean, or sum as printed.");
  table.choice("fb_vectors", terms.balanced,
               {{"features", balanced_vectors::features}, {"logits", balanced_vectors::logits}},
               "Vectors whose norms eq. 3 compares.");
  table.choice("fb_reference", terms.reference,
               {{"before-task", balance_reference::before_task}, {"present", balance_reference::present}},
               "Model that computes the exemplars' norms in eq. 3: the one before the task, or the current one.");
  table.choice("fb_division", terms.division,
               {{"class-means", balance_division::class_means}, {"class-counts", balance_division::class_counts}},
               "Eq. 3 compares mean norms per class, or sums divided by the numbers of classes as printed.");
  table.choice("ce_scope", terms.scope, {{"task", label_scope::own_task}, {"seen", label_scope::seen}},
               "Classes of a row's cross-entropy: those of its task, or all seen.");
  table.choice("ce_rows", terms.rows, {{"new", label_rows::fresh}, {"all", label_rows::every}},
               "Rows of the cross-entropy: those of the task (eq. 4), or these and the exemplars.");
  table.choice(
      "kd_direction", terms.direction,
      {{"present-before", divergence::present_from_before}, {"before-present", divergence::before_from_present}},
      "Eq. 5: KL(current || previous) as printed, or KL(previous || current).");
  table.number("kd_temperature", terms.temperature, {.low = 0.0, .open_low = true}, "Temperature of eq. 5.");
  table.choice("herding", options_.exemplars.how,
               {{"nearest", exemplar_rules::choice::nearest}, {"icarl", exemplar_rules::choice::icarl}},
               "Exemplars are the rows nearest to their class mean (eq. 6), or those of iCaRL's herding.");
  table.number("exemplar_ratio", options_.exemplars.ratio, {.low = 0.0, .high = 1.0},
               "Share of its rows of a class that a client keeps as exemplars, at least one row; 0: none.");
  table.integer("exemplar_rows_max", options_.exemplars.rows_max, {.low = 0, .high = 100'000'000},
                "Maximum number of a client's exemplars, the same for each class; 0: no limit.");
  table.choice("ablation", options_.ablation,
               {{"none", ablation_kind::none},
                {"cross-entropy", ablation_kind::cross_entropy},
                {"distillation", ablation_kind::distillation},
                {"feature-distillation", ablation_kind::feature_distillation},
                {"feature-balance", ablation_kind::feature_balance},
                {"adjustment", ablation_kind::adjustment},
                {"stages", ablation_kind::stages}},
               "Part to leave out, as in Table 3: head splitting of the cross-entropy, KD, FD, FB, the module or the "
               "separate stages.");
  table.choice("stages_gradient", options_.at_once,
               {{"as-staged", one_stage_gradient::as_staged}, {"joint", one_stage_gradient::joint}},
               "Losses that train the module if ablation = \"stages\": those of stage 2, or the sum of all losses "
               "(eq. 7), with KD and CE in every task.");
  table.omit_default_from_digest();
}

std::vector<preset> fedhaf::presets() const {
  const std::string training = "[training]\nepochs = 2\nbatch = 64\nlearning_rate = 0.02\nmomentum = 0.9\n"
                               "clip_norm = 5.0\n";
  return {{.name = "paper",
           .meaning = "cross-entropy of new rows over the classes of their task, as in eq. 4 and the ablations",
           .toml = "[strategy]\nce_scope = \"task\"\nce_rows = \"new\"\n" + training},
          {.name = "recommended",
           .meaning = "cross-entropy of new rows and exemplars over all classes seen",
           .toml = "[strategy]\nce_scope = \"seen\"\nce_rows = \"all\"\n" + training}};
}

const strategy_registration line{
    {.name = "fedhaf",
     .summary = "frozen backbone, feature adjustment and head in two stages, exemplars (FedHAF, OpenReview RvAvRC3cUW)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fedhaf>(); }}};

} // namespace
} // namespace mneme::fedhaf_method
