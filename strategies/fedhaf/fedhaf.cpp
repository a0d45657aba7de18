// FedHAF: federated class-incremental learning with a frozen backbone, a feature adjustment module F' and a head behind
// it, whose outputs are F (OpenReview RvAvRC3cUW). A client learns in two stages: the head, by cross-entropy and
// distillation (eqs. 4, 5), then the module, by distillation and balance of adjusted features (eqs. 2, 3), on rows of
// the task and exemplars of those before (eq. 6). What is not trained keeps every bit, running statistics included. The
// server averages both parts, and the model of the task before is everybody's teacher.
//
// The paper contradicts itself in places; each reading is a key, and presets follow two of them. What is ours:
// - stage 2 has no label in the paper, so the module would stay as drawn in task 1: there cross-entropy through the
//   frozen head joins it (stage2_ce);
// - eq. 2 is a mean over dimensions, as `nn.MSELoss` is; eq. 3 compares mean lengths by class of adjusted features, and
//   those of exemplars are taken of the model before the task;
// - exemplars are chosen at a client's first delivery in a task: who never takes part in one keeps none of it;
// - rows of the head for classes to come are drawn at first and wait, and travel;
// - the last, short batch of an epoch is used; of a single row no running statistics are taken.
#include "runtime/method/partly_taught_loss.hpp"
#include "strategies/fedhaf/adjustment_losses.hpp"
#include "strategies/shared/split_learning.hpp"
#include <ATen/ATen.h>
#include <array>
#include <fmt/format.h>
#include <limits>
namespace mneme::fedhaf_method {
namespace {

// -- what a client minimises (eqs. 2-5) -------------------------------------------------------------------------------

/// One model's part of a step.
struct model_step {
  at::Tensor logits{}, features{}, labels{};     // [B, C], [B, D], [B]
  at::Tensor old_rows{}, new_rows{};             // [n] places
  at::Tensor taught_logits{}, taught_features{}; // [B, O], [B, D]; undefined: no teacher
  at::Tensor d_logits{}, d_features{};           // written
  std::vector<at::Tensor> values{};              // [] float64 each, by term
};
/// The places of the loss's terms, and their names.
enum adjustment_term : std::size_t { label_term, distillation_term, feature_term, balance_term };
constexpr std::array term_names{"cross_entropy", "distillation", "feature_distillation", "feature_balance"};

at::Tensor places_where(const at::Tensor& chosen) { return chosen.nonzero().squeeze(1); }

/// d |v| / d v of every row; 0 where |v| = 0.
at::Tensor directions(const at::Tensor& rows, const at::Tensor& lengths) {
  return rows / lengths.unsqueeze(1).clamp_min(std::numeric_limits<float>::min());
}

class adjustment_loss final : public partly_taught_loss {
public:
  explicit adjustment_loss(const adjustment_terms& terms) : terms_(terms) {
    identity_ = fmt::format(
        "adjustment {} {} {} {} {} {} {} {} {} {} {} {}", terms.feature_distillation, terms.feature_balance,
        terms.cross_entropy, terms.distillation, static_cast<int>(terms.scope), static_cast<int>(terms.rows),
        static_cast<int>(terms.direction), terms.temperature, static_cast<int>(terms.dimensions),
        static_cast<int>(terms.balanced), static_cast<int>(terms.reference), static_cast<int>(terms.division));
    for (const auto& classes : terms.tasks) {
      identity_ += fmt::format(" {}-{}", classes.low, classes.high);
      for (auto label = classes.low; label < classes.high; ++label) {
        lows_.push_back(classes.low);
        highs_.push_back(classes.high);
      }
    }
  }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] class_range taught_labels() const override { return {0, terms_.old_classes()}; }

  /// Model by model, so that the bits of one do not depend on the others.
  [[nodiscard]] loss_output operator()(const loss_input& in) const override {
    const auto options = in.logits.options().dtype(at::kDouble);
    loss_output out{.values = at::zeros({in.logits.size(0)}, options), .d_logits = at::zeros_like(in.logits)};
    for (const char* name : term_names)
      out.terms.push_back({name, at::zeros({in.logits.size(0)}, options)});
    if (terms_.compares_features())
      out.d_features = at::zeros_like(in.features);
    for (std::int64_t k = 0; k < in.logits.size(0); ++k) {
      auto step = step_of(in, k, out);
      add_cross_entropy(step);
      if (step.old_rows.numel() == 0)
        continue;
      if (terms_.distillation > 0.0 && step.taught_logits.defined())
        add_distillation(step);
      if (terms_.feature_distillation > 0.0 && step.taught_features.defined())
        add_feature_distillation(step);
      if (terms_.feature_balance > 0.0 && step.new_rows.numel() > 0 && has_reference(step))
        add_feature_balance(step);
    }
    for (const auto& [name, value] : out.terms)
      out.values.add_(value);
    std::size_t place = 0; // terms without a factor are none
    const std::array factors{terms_.cross_entropy, terms_.distillation, terms_.feature_distillation,
                             terms_.feature_balance};
    std::erase_if(out.terms, [&](const loss_term&) { return factors[place++] == 0.0; });
    return out;
  }

private:
  [[nodiscard]] model_step step_of(const loss_input& in, std::int64_t k, loss_output& out) const {
    const auto old = terms_.old_classes();
    model_step step{.logits = in.logits[k], .features = in.features[k], .labels = in.labels[k]};
    step.old_rows = places_where((step.labels >= 0).logical_and(step.labels < old));
    step.new_rows = places_where(step.labels >= old);
    if (in.teacher.defined())
      step.taught_logits = in.teacher[k];
    if (in.teacher_features.defined())
      step.taught_features = in.teacher_features[k];
    step.d_logits = out.d_logits[k];
    if (out.d_features.defined())
      step.d_features = out.d_features[k];
    for (const auto& [name, value] : out.terms)
      step.values.push_back(value[k]);
    return step;
  }

  /// L_FD (eq. 2): | F'_t(x) - F'_t-1(x) |^2 over exemplars.
  void add_feature_distillation(model_step& step) const {
    const auto moved =
        step.features.index_select(0, step.old_rows) - step.taught_features.index_select(0, step.old_rows); // [n, D]
    double share = terms_.feature_distillation / static_cast<double>(step.old_rows.numel());
    if (terms_.dimensions == dimension_sum::mean)
      share /= static_cast<double>(moved.size(1));
    step.values[feature_term].add_(moved.square().sum(at::kDouble) * share);
    step.d_features.index_add_(0, step.old_rows, moved * (2.0 * share));
  }

  [[nodiscard]] const at::Tensor& vectors_of(const model_step& step) const {
    return terms_.balanced == balanced_vectors::features ? step.features : step.logits;
  }
  [[nodiscard]] const at::Tensor& taught_vectors_of(const model_step& step) const {
    return terms_.balanced == balanced_vectors::features ? step.taught_features : step.taught_logits;
  }
  [[nodiscard]] bool has_reference(const model_step& step) const {
    return terms_.reference == balance_reference::present || taught_vectors_of(step).defined();
  }

  /// What each of these rows counts in its side's mean, [n].
  [[nodiscard]] at::Tensor shares_of(const at::Tensor& labels, std::int64_t classes_of_side) const {
    if (terms_.division == balance_division::class_counts)
      return at::full({labels.numel()}, 1.0 / static_cast<double>(classes_of_side),
                      labels.options().dtype(at::kDouble));
    const auto counts = at::bincount(labels).to(at::kDouble); // by class
    const auto present = (counts > 0).sum().to(at::kDouble);
    return 1.0 / (counts.index_select(0, labels) * present);
  }

  /// L_FB (eq. 3): | mean length of new vectors - mean length of old ones |.
  void add_feature_balance(model_step& step) const {
    const auto old = terms_.old_classes();
    const auto fresh = vectors_of(step).index_select(0, step.new_rows);
    const bool frozen = terms_.reference == balance_reference::before_task;
    const auto known = (frozen ? taught_vectors_of(step) : vectors_of(step)).index_select(0, step.old_rows);
    const auto new_lengths = fresh.norm(2, {1}), old_lengths = known.norm(2, {1});
    const auto new_shares = shares_of(step.labels.index_select(0, step.new_rows), terms_.tasks.back().size());
    const auto old_shares = shares_of(step.labels.index_select(0, step.old_rows), old);
    const auto difference = (new_lengths * new_shares).sum() - (old_lengths * old_shares).sum(); // float64
    step.values[balance_term].add_(difference.abs() * terms_.feature_balance);

    const auto slope = difference.sign() * terms_.feature_balance;
    auto& d = terms_.balanced == balanced_vectors::features ? step.d_features : step.d_logits;
    d.index_add_(0, step.new_rows, (directions(fresh, new_lengths) * (new_shares * slope).unsqueeze(1)).to(at::kFloat));
    if (!frozen)
      d.index_add_(0, step.old_rows,
                   (directions(known, old_lengths) * (old_shares * -slope).unsqueeze(1)).to(at::kFloat));
  }

  /// L_CE (eq. 4), a mean over its rows, each among the classes of its scope.
  void add_cross_entropy(model_step& step) const {
    if (terms_.cross_entropy == 0.0)
      return;
    const auto rows = terms_.rows == label_rows::fresh ? step.new_rows : places_where(step.labels >= 0);
    if (rows.numel() == 0)
      return;
    const auto labels = step.labels.index_select(0, rows);
    auto logits = step.logits.index_select(0, rows);
    if (terms_.scope == label_scope::own_task)
      logits = logits.masked_fill(outside_own_task(labels, logits.size(1)), -std::numeric_limits<float>::infinity());
    const auto log_p = at::log_softmax(logits, 1), of_label = labels.unsqueeze(1);
    const double share = terms_.cross_entropy / static_cast<double>(rows.numel());
    step.values[label_term].sub_(log_p.gather(1, of_label).sum(at::kDouble) * share);
    auto d = log_p.exp();
    d.scatter_add_(1, of_label, at::full_like(of_label, -1, d.options()));
    step.d_logits.index_add_(0, rows, d * share);
  }

  /// [n, C] true in the columns of other tasks.
  [[nodiscard]] at::Tensor outside_own_task(const at::Tensor& labels, std::int64_t classes) const {
    const auto bound_of = [&](const std::vector<std::int64_t>& bounds) {
      return at::tensor(bounds, at::kLong).to(labels.device()).index_select(0, labels).unsqueeze(1);
    };
    const auto columns = at::arange(classes, labels.options()).unsqueeze(0);
    return (columns < bound_of(lows_)).logical_or(columns >= bound_of(highs_));
  }

  /// L_KD (eq. 5) over the columns of old classes, renormalised on both sides. With q of the present model and p of the
  /// teacher, d KL(q || p) / d z = q (log q - log p - KL) / T, and d KL(p || q) / d z = (q - p) / T.
  void add_distillation(model_step& step) const {
    const auto old = terms_.old_classes();
    const auto present = step.logits.index_select(0, step.old_rows).narrow(1, 0, old);
    const auto log_q = at::log_softmax(present / terms_.temperature, 1);
    const auto log_p = at::log_softmax(step.taught_logits.index_select(0, step.old_rows) / terms_.temperature, 1);
    const auto q = log_q.exp(), p = log_p.exp();
    const double share = terms_.distillation / static_cast<double>(step.old_rows.numel());
    at::Tensor divergences, d; // [n], [n, O]
    if (terms_.direction == divergence::present_from_before) {
      const auto ratio = log_q - log_p;
      divergences = (q * ratio).sum(1);
      d = q * (ratio - divergences.unsqueeze(1));
    } else {
      divergences = (p * (log_p - log_q)).sum(1);
      d = q - p;
    }
    step.values[distillation_term].add_(divergences.sum(at::kDouble) * share);
    step.d_logits.narrow(1, 0, old).index_add_(0, step.old_rows, d * (share / terms_.temperature));
  }

  adjustment_terms terms_;
  std::string identity_;
  std::vector<std::int64_t> lows_, highs_; // of the task of each class
};

} // namespace
} // namespace mneme::fedhaf_method

mneme::loss_ref mneme::adjustment_objective(const adjustment_terms& terms) {
  return std::make_shared<fedhaf_method::adjustment_loss>(terms);
}

// -- the method's parts -----------------------------------------------------------------------------------------------

namespace mneme::fedhaf_method {
namespace {

/// Table 3's rows without a part; what each leaves out follows the text of its section.
enum class ablation_kind : std::uint8_t {
  none,
  cross_entropy,        ///< No head splitting: new rows are compared over all classes seen.
  distillation,         ///< No KD.
  feature_distillation, ///< No FD.
  feature_balance,      ///< No FB.
  adjustment,           ///< No module: the head reads the backbone's features.
  stages,               ///< Module and head are trained at once.
};
enum class stage2_labels : std::uint8_t { first_task, always, never };

struct options {
  adjustment_terms terms{
      .feature_distillation = 2.0, .feature_balance = 1.0, .cross_entropy = 1.0, .distillation = 1.0};
  std::int64_t adjustment_epochs = 1; // E2; E1 is training.epochs
  stage2_labels stage2_ce = stage2_labels::first_task;
  exemplar_rules exemplars{};
  ablation_kind ablation = ablation_kind::none;
};

/// What the keys come to.
options without_ablated(options with) {
  switch (with.ablation) {
  case ablation_kind::cross_entropy:
    with.terms.scope = label_scope::seen;
    with.terms.rows = label_rows::fresh;
    break;
  case ablation_kind::distillation:
    with.terms.distillation = 0.0;
    break;
  case ablation_kind::feature_distillation:
    with.terms.feature_distillation = 0.0;
    break;
  case ablation_kind::feature_balance:
    with.terms.feature_balance = 0.0;
    break;
  case ablation_kind::none:
  case ablation_kind::adjustment:
  case ablation_kind::stages:
    break;
  }
  return with;
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
  [[nodiscard]] adjustment_terms terms_of(const round_place& place, stage trained) const;
  [[nodiscard]] bool rehearses() const;

  options with_; // as the keys have it
};

// -- client half ------------------------------------------------------------------------------------------------------

/// The losses of a stage: L_Head = l_CE L_CE + l_KD L_KD, L_FAM = l_FD L_FD + l_FB L_FB, or their sum (eq. 7).
adjustment_terms fedhaf::terms_of(const round_place& place, stage trained) const {
  const auto with = without_ablated(with_);
  auto terms = with.terms;
  const auto& tasks = net().whole.task_classes;
  terms.tasks.assign(tasks.begin(), tasks.begin() + static_cast<std::ptrdiff_t>(place.task.value) + 1);
  if (trained == stage::head)
    terms.feature_distillation = terms.feature_balance = 0.0;
  if (trained == stage::adjustment) {
    terms.distillation = 0.0;
    const bool labels = with.stage2_ce == stage2_labels::always ||
                        (with.stage2_ce == stage2_labels::first_task && place.task.value == 0);
    if (!labels)
      terms.cross_entropy = 0.0;
  }
  return terms;
}

train_job fedhaf::stage_of(train_job job, const broadcast& in, stage trained) const {
  const auto terms = terms_of(in.place, trained);
  if (trained != stage::both) {
    job.options.trained = trainable_part::layers;
    job.options.layers = {trained == stage::head ? "head" : "adjustment"};
  }
  if (trained == stage::adjustment) {
    job.options.epochs = with_.adjustment_epochs;
    job.stream.visit += std::uint32_t{1} << 24; // visits are fewer: the stages shuffle apart
  }
  if (trained == stage::both)
    job.options.epochs += with_.adjustment_epochs;
  job.objective = adjustment_objective(terms);
  if (in.extra && terms.old_classes() > 0) {
    job.teacher = in.extra;
    job.options.taught_features = terms.compares_features();
    const bool teaches_logits =
        terms.distillation > 0.0 || (terms.feature_balance > 0.0 && terms.balanced == balanced_vectors::logits);
    if (teaches_logits)
      job.options.taught = {0, terms.old_classes()};
  }
  return job;
}

task<client_result> fedhaf::client_round(client_context& ctx, const broadcast& in) const {
  // Features, and exemplars, which eq. 6 chooses at a task's first delivery.
  auto looking = features_of_rows(ctx, in, net(), with_.exemplars);
  const auto features = co_await looking;
  const std::vector<embedding_rows> parts{features.current(), features.old()};
  auto job = training(ctx, in, rows_to_train(parts, net().features()));
  const auto rows = job.samples.size();

  const bool at_once = with_.ablation == ablation_kind::stages, adjusts = with().net.adjusts;
  auto first = ctx.train(stage_of(job, in, at_once ? stage::both : stage::head));
  auto learnt = co_await first;
  if (!at_once && adjusts && with_.adjustment_epochs > 0) {
    job.start = learnt.weights;
    auto second = ctx.train(stage_of(job, in, stage::adjustment));
    learnt = co_await second;
  }

  auto memory = std::make_shared<tensor_map>();
  features.save(*memory);
  co_return client_result{.upload = learnt.weights, .memory = memory, .rows = rows};
}

// -- what the engine is told ------------------------------------------------------------------------------------------

method_needs fedhaf::needs() const {
  auto needs = split_method::needs();
  needs.defaults = "[training]\nepochs = 2\nlearning_rate = 0.02\nmomentum = 0.9\nclip_norm = 5.0\n";
  return needs;
}

void fedhaf::prepare(const method_setup& setup) {
  with().net.adjusts = with_.ablation != ablation_kind::adjustment;
  split_method::prepare(setup);
}

/// True if something besides the labels of new rows is read of exemplars.
bool fedhaf::rehearses() const {
  const auto terms = without_ablated(with_).terms;
  return terms.compares_features() || terms.distillation > 0.0 || terms.rows == label_rows::every;
}

diagnostics fedhaf::check(const method_setup& setup) const {
  auto wrong = split_method::check(setup);
  if (with_.exemplars.ratio == 0.0 && rehearses() && setup.tasks > 1)
    wrong.push_back(
        {"strategy.exemplar_ratio",
         "strategy.exemplar_ratio = 0: clients keep no exemplars, and losses that read them are on; "
         "expected more, or distillation = 0, feature_distillation = 0, feature_balance = 0 and ce_rows = \"new\""});
  const bool collapses = with_.terms.scope == label_scope::seen && with_.terms.rows == label_rows::fresh;
  if (collapses && with_.ablation != ablation_kind::cross_entropy)
    wrong.push_back({"strategy.ce_rows", "strategy.ce_rows = \"new\" with ce_scope = \"seen\": old classes would be "
                                         "pushed down in every step, which looks like forgetting; expected ce_rows = "
                                         "\"all\" or ce_scope = \"task\", or ablation = \"cross-entropy\", which is "
                                         "just that"});
  return wrong;
}

void fedhaf::keys(key_table& table) {
  auto& terms = with_.terms;
  split_method::keys(table);
  table.integer("adjustment_epochs", with_.adjustment_epochs, {.low = 0, .high = 1'000'000},
                "E2: epochs of stage 2, which trains the module; training.epochs are those of stage 1, the head.");
  table.number("feature_distillation", terms.feature_distillation, {.low = 0.0}, "lambda_FD (eq. 2).");
  table.number("feature_balance", terms.feature_balance, {.low = 0.0}, "lambda_FB (eq. 3).");
  table.number("cross_entropy", terms.cross_entropy, {.low = 0.0}, "lambda_CE (eq. 4).");
  table.number("distillation", terms.distillation, {.low = 0.0}, "lambda_KD (eq. 5).");
  table.choice(
      "stage2_ce", with_.stage2_ce,
      {{"first-task", stage2_labels::first_task}, {"always", stage2_labels::always}, {"never", stage2_labels::never}},
      "When cross-entropy through the frozen head joins stage 2, which has no labels in the paper.");
  table.choice("fd_reduction", terms.dimensions, {{"mean", dimension_sum::mean}, {"sum", dimension_sum::sum}},
               "Eq. 2 over the dimensions of a feature: a mean, or a sum as printed.");
  table.choice("fb_vectors", terms.balanced,
               {{"features", balanced_vectors::features}, {"logits", balanced_vectors::logits}},
               "The vectors whose lengths eq. 3 compares.");
  table.choice("fb_reference", terms.reference,
               {{"before-task", balance_reference::before_task}, {"present", balance_reference::present}},
               "The model whose lengths of exemplars eq. 3 compares with: that before the task, or the present one.");
  table.choice("fb_division", terms.division,
               {{"class-means", balance_division::class_means}, {"class-counts", balance_division::class_counts}},
               "Eq. 3 compares mean lengths by class, or sums divided by the numbers of classes, as printed.");
  table.choice("ce_scope", terms.scope, {{"task", label_scope::own_task}, {"seen", label_scope::seen}},
               "The classes that a row's cross-entropy compares: those of its own task, or all seen.");
  table.choice("ce_rows", terms.rows, {{"new", label_rows::fresh}, {"all", label_rows::every}},
               "The rows that cross-entropy reads: those of the task (eq. 4), or exemplars too.");
  table.choice(
      "kd_direction", terms.direction,
      {{"present-before", divergence::present_from_before}, {"before-present", divergence::before_from_present}},
      "Eq. 5: KL(present || before) as printed, or KL(before || present).");
  table.number("kd_temperature", terms.temperature, {.low = 0.0, .open_low = true}, "Temperature of eq. 5.");
  table.choice("herding", with_.exemplars.how,
               {{"nearest", exemplar_rules::choice::nearest}, {"icarl", exemplar_rules::choice::icarl}},
               "Exemplars are the rows nearest to their class mean (eq. 6), or those of iCaRL's herding.");
  table.number("exemplar_ratio", with_.exemplars.ratio, {.low = 0.0, .high = 1.0},
               "Share of a client's rows of a class that it keeps, at least one; 0: none.");
  table.integer("exemplar_rows_max", with_.exemplars.rows_max, {.low = 0, .high = 100'000'000},
                "Exemplars that a client keeps at most, the same number of each class; 0: no limit.");
  table.choice("ablation", with_.ablation,
               {{"none", ablation_kind::none},
                {"cross-entropy", ablation_kind::cross_entropy},
                {"distillation", ablation_kind::distillation},
                {"feature-distillation", ablation_kind::feature_distillation},
                {"feature-balance", ablation_kind::feature_balance},
                {"adjustment", ablation_kind::adjustment},
                {"stages", ablation_kind::stages}},
               "The part left out: new rows are compared over all classes; no KD, FD, FB or module; one stage.");
}

std::vector<preset> fedhaf::presets() const {
  const std::string training = "[training]\nepochs = 2\nbatch = 64\nlearning_rate = 0.02\nmomentum = 0.9\n"
                               "clip_norm = 5.0\n";
  return {{.name = "paper",
           .meaning = "cross-entropy of new rows among the classes of their task, as eq. 4 and the ablations have it",
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
