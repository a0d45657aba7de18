#include "strategies/fedhaf/adjustment_losses.hpp"
#include "runtime/method/partly_taught_loss.hpp"
#include <ATen/ATen.h>
#include <array>
#include <fmt/format.h>
#include <limits>
namespace mneme {
namespace {

/// One model's part of a step.
struct model_step {
  at::Tensor logits{}, features{}, labels{};     // [B, C], [B, D], [B]
  at::Tensor old_rows{}, new_rows{};             // [n] places
  at::Tensor taught_logits{}, taught_features{}; // [B, O], [B, D]; undefined: no teacher
  at::Tensor d_logits{}, d_features{};           // written
  at::Tensor d_passing{};           // the part of d_logits that reaches the module, or undefined: all of it
  std::vector<at::Tensor> values{}; // [] float64 each, by term
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
    identity_ = fmt::format("adjustment {} {} {} {} {} {} {} {} {} {} {} {} {} {}", terms.feature_distillation,
                            terms.feature_balance, terms.cross_entropy, terms.distillation,
                            static_cast<int>(terms.scope), static_cast<int>(terms.rows),
                            static_cast<int>(terms.direction), terms.temperature, static_cast<int>(terms.dimensions),
                            static_cast<int>(terms.balanced), static_cast<int>(terms.reference),
                            static_cast<int>(terms.division), terms.labels_pass, terms.distillation_passes);
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
    out.stops_at_features = terms_.stops_at_features();
    if (out.stops_at_features && terms_.some_logits_pass())
      out.d_passing = at::zeros_like(in.logits);
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
    if (out.d_passing.defined())
      step.d_passing = out.d_passing[k];
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

  /// Adds rows to the gradient by logits, [n, columns] of the first columns.
  static void add_to_logits(model_step& step, const at::Tensor& rows, const at::Tensor& d, bool passes) {
    step.d_logits.narrow(1, 0, d.size(1)).index_add_(0, rows, d);
    if (passes && step.d_passing.defined())
      step.d_passing.narrow(1, 0, d.size(1)).index_add_(0, rows, d);
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
    const auto add = [&](const at::Tensor& rows, const at::Tensor& towards, const at::Tensor& shares) {
      const auto d = (towards * shares.unsqueeze(1)).to(at::kFloat);
      if (terms_.balanced == balanced_vectors::features)
        step.d_features.index_add_(0, rows, d);
      else
        add_to_logits(step, rows, d, true);
    };
    add(step.new_rows, directions(fresh, new_lengths), new_shares * slope);
    if (!frozen)
      add(step.old_rows, directions(known, old_lengths), old_shares * -slope);
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
    add_to_logits(step, rows, d * share, terms_.labels_pass);
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
    add_to_logits(step, step.old_rows, d * (share / terms_.temperature), terms_.distillation_passes);
  }

  adjustment_terms terms_;
  std::string identity_;
  std::vector<std::int64_t> lows_, highs_; // of the task of each class
};

} // namespace

loss_ref adjustment_objective(const adjustment_terms& terms) { return std::make_shared<adjustment_loss>(terms); }

} // namespace mneme
