#include "tools/python/engine/objective_terms.hpp"
#include "runtime/base/tensor_map.hpp"
#include "strategies/shared/quadratic_penalty.hpp"
#include "strategies/shared/row_losses.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>
namespace mneme {
namespace {

/// Adds factor * side["correction"] to the gradients of one segment of the weights.
void add_correction(double factor, const at::Tensor& weights, std::int64_t offset, const tensor_map* auxiliary,
                    at::Tensor& gradients) {
  if (!auxiliary || !auxiliary->find("correction"))
    throw std::invalid_argument("mneme.corrected() reads side={'correction': tensor [P]}, which the job does not have");
  const auto& correction = auxiliary->at("correction");
  if (correction.numel() < offset + weights.numel() || correction.scalar_type() != at::kFloat)
    throw std::invalid_argument("side['correction'] is not float32 of as many numbers as the net has weights");
  gradients.add_(correction.to(weights.device()).narrow(0, offset, weights.numel()), factor);
}

loss_ref pure_distillation(const distillation_options& options) {
  return differentiable_objective({.identity = "distillation", .terms = {"distillation"}}, [options](
                                                                                               const loss_rows& in) {
    return std::vector{old_class_distillation(in.logits, in.teachers[0].logits, {.temperature = options.temperature}) *
                       options.weight};
  });
}

/// Names of the tensors of quadratic terms in a job. The number of terms is limited by this table.
struct quadratic_names {
  const char *importance, *anchor;
};
constexpr std::array<quadratic_names, 8> names_of_quadratic{{{"mneme.importance.0", "mneme.anchor.0"},
                                                             {"mneme.importance.1", "mneme.anchor.1"},
                                                             {"mneme.importance.2", "mneme.anchor.2"},
                                                             {"mneme.importance.3", "mneme.anchor.3"},
                                                             {"mneme.importance.4", "mneme.anchor.4"},
                                                             {"mneme.importance.5", "mneme.anchor.5"},
                                                             {"mneme.importance.6", "mneme.anchor.6"},
                                                             {"mneme.importance.7", "mneme.anchor.7"}}};

/// The penalties of the terms; null if there are none.
loss_ref quadratic_of(const objective_terms& terms) {
  std::vector<quadratic_penalty> penalties;
  for (std::size_t i = 0; i < terms.quadratic.size(); ++i)
    penalties.push_back({.term = "quadratic",
                         .importance = names_of_quadratic[i].importance,
                         .anchor = terms.quadratic[i].anchor.defined() ? names_of_quadratic[i].anchor : nullptr,
                         .strength = terms.quadratic[i].factor});
  return penalties.empty() ? nullptr : quadratic_objective("quadratic", std::move(penalties));
}

/// Sum of several terms, or one term with a factor.
class summed_loss final : public loss {
public:
  explicit summed_loss(objective_terms terms)
      : terms_(std::move(terms)), identity_(terms_.text()),
        pull_(terms_.proximal ? proximal_objective(*terms_.proximal) : nullptr), quadratic_(quadratic_of(terms_)),
        distillation_(terms_.distillation ? pure_distillation(*terms_.distillation) : nullptr) {}
  std::string identity() const override { return identity_; }
  bool reads_targets() const override { return terms_.cross_entropy && terms_.written.empty(); }
  bool reads_label_smoothing() const override { return terms_.cross_entropy.has_value(); }

  const char* main_term() const override {
    if (terms_.written.size() == 1 && !terms_.cross_entropy && !terms_.distillation)
      return terms_.written[0].loss->main_term();
    return terms_.cross_entropy ? "cross_entropy" : "distillation";
  }

  loss_output operator()(const loss_input& in) const override {
    loss_output sum;
    if (terms_.cross_entropy)
      add(sum, (*cross_entropy_objective())(in), "cross_entropy", *terms_.cross_entropy);
    if (distillation_)
      add(sum, (*distillation_)(in), "distillation", 1.0);
    for (const auto& term : terms_.written)
      if (!term.loss->regularizes())
        add(sum, (*term.loss)(in), term.loss->main_term(), term.factor);
    return sum;
  }

  bool regularizes() const override {
    return (pull_ && pull_->regularizes()) || terms_.correction || quadratic_ ||
           std::any_of(terms_.written.begin(), terms_.written.end(),
                       [](const auto& term) { return term.loss->regularizes(); });
  }
  void regularize(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset, const tensor_map* auxiliary,
                  at::Tensor& gradients) const override {
    if (pull_ && pull_->regularizes())
      pull_->regularize(weights, start, offset, auxiliary, gradients);
    if (terms_.correction)
      add_correction(*terms_.correction, weights, offset, auxiliary, gradients);
    if (quadratic_)
      quadratic_->regularize(weights, start, offset, auxiliary, gradients);
    for (const auto& term : terms_.written)
      if (term.loss->regularizes())
        term.loss->add_penalty(term.factor, weights, start, offset, auxiliary, gradients);
  }
  std::vector<loss_term> penalties(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                   const tensor_map* auxiliary) const override {
    std::vector<loss_term> all;
    const auto add_all = [&](const loss& from, double factor) {
      for (auto& term : from.penalties(weights, start, offset, auxiliary))
        all.push_back({term.name, factor == 1.0 ? term.value : term.value * factor});
    };
    if (pull_)
      add_all(*pull_, 1.0);
    if (quadratic_)
      add_all(*quadratic_, 1.0);
    for (const auto& term : terms_.written)
      add_all(*term.loss, term.factor);
    return all;
  }

private:
  /// Adds a term. A factor of 1 leaves its bits unchanged.
  static void add(loss_output& sum, loss_output term, const char* name, double factor) {
    if (factor != 1.0) {
      term.values = term.values * factor;
      if (term.d_logits.defined())
        term.d_logits = term.d_logits * factor;
      if (term.d_features.defined())
        term.d_features = term.d_features * factor;
    }
    sum.terms.push_back({name, term.values});
    if (term.d_features.defined())
      sum.d_features = sum.d_features.defined() ? sum.d_features + term.d_features : term.d_features;
    if (sum.values.defined()) {
      sum.values = sum.values + term.values;
      sum.d_logits.add_(term.d_logits);
    } else {
      sum.values = std::move(term.values);
      sum.d_logits = std::move(term.d_logits);
    }
  }

  objective_terms terms_;
  std::string identity_;
  loss_ref pull_;         // nullptr: no proximal term
  loss_ref quadratic_;    // nullptr: no quadratic term
  loss_ref distillation_; // nullptr: no distillation
};

void expect_same(bool is_same, const std::string& term, const std::string& first, const std::string& second) {
  if (!is_same)
    throw std::invalid_argument(
        fmt::format("the sum has {} twice, with {} and with {}; expected each term once: mneme.proximal(mu) and "
                    "mneme.corrected() contain cross-entropy, and a factor multiplies all terms of a loss",
                    term, first, second));
}

std::optional<double> merged(const char* term, const std::optional<double>& a, const std::optional<double>& b) {
  if (a && b)
    expect_same(*a == *b, term, fmt::format("{}", *a), fmt::format("{}", *b));
  return a ? a : b;
}

std::string text_of(const distillation_options& options) {
  return fmt::format("weight {} and temperature {}", options.weight, options.temperature);
}

} // namespace

objective_terms objective_terms::times(double factor) const {
  if (!std::isfinite(factor))
    throw std::invalid_argument(fmt::format("a loss times {}; expected a finite factor", factor));
  auto scaled = *this;
  for (auto* value : {&scaled.cross_entropy, &scaled.proximal, &scaled.correction})
    if (*value)
      **value *= factor;
  if (scaled.distillation)
    scaled.distillation->weight *= factor;
  for (auto& term : scaled.written)
    term.factor *= factor;
  for (auto& term : scaled.quadratic)
    term.factor *= factor;
  return scaled;
}

objective_terms objective_terms::plus(const objective_terms& others) const {
  objective_terms sum{.cross_entropy = merged("cross-entropy", cross_entropy, others.cross_entropy),
                      .proximal = merged("the proximal term", proximal, others.proximal),
                      .correction = merged("the correction", correction, others.correction),
                      .distillation = distillation ? distillation : others.distillation,
                      .written = written,
                      .quadratic = quadratic};
  if (distillation && others.distillation)
    expect_same(distillation->weight == others.distillation->weight &&
                    distillation->temperature == others.distillation->temperature,
                "distillation", text_of(*distillation), text_of(*others.distillation));
  for (const auto& term : others.written) {
    const auto same = std::find_if(written.begin(), written.end(), [&](const written_term& known) {
      return known.loss->identity() == term.loss->identity();
    });
    if (same == written.end())
      sum.written.push_back(term);
    else
      expect_same(same->factor == term.factor, fmt::format("the loss '{}'", term.loss->main_term()),
                  fmt::format("the factor {}", same->factor), fmt::format("the factor {}", term.factor));
  }
  for (const auto& term : others.quadratic) {
    const auto same = std::find_if(quadratic.begin(), quadratic.end(), [&](const quadratic_term& known) {
      return known.anchor.is_same(term.anchor) && known.importance.is_same(term.importance);
    });
    if (same == quadratic.end())
      sum.quadratic.push_back(term);
    else
      expect_same(same->factor == term.factor, "a quadratic penalty", fmt::format("the factor {}", same->factor),
                  fmt::format("the factor {}", term.factor));
  }
  if (sum.quadratic.size() > names_of_quadratic.size())
    throw std::invalid_argument(fmt::format("the sum has {} quadratic penalties; expected at most {}: several with one "
                                            "anchor are one with the sum of their importances",
                                            sum.quadratic.size(), names_of_quadratic.size()));
  return sum;
}

bool objective_terms::has_rows() const {
  return cross_entropy || distillation ||
         std::any_of(written.begin(), written.end(), [](const auto& term) { return !term.loss->regularizes(); });
}

bool objective_terms::reads_views() const {
  return std::any_of(written.begin(), written.end(),
                     [](const auto& term) { return term.loss->function().reads_views(); });
}

bool objective_terms::reads_teacher() const {
  return distillation || std::any_of(written.begin(), written.end(),
                                     [](const auto& term) { return term.loss->function().reads("teacher_logits"); });
}

void objective_terms::add_tensors(tensor_map& auxiliary) const {
  for (std::size_t i = 0; i < quadratic.size(); ++i) {
    auxiliary.put(names_of_quadratic[i].importance, quadratic[i].importance);
    if (quadratic[i].anchor.defined())
      auxiliary.put(names_of_quadratic[i].anchor, quadratic[i].anchor);
  }
}

std::string objective_terms::text() const {
  std::string text;
  const auto add = [&](const std::string& term) { text += (text.empty() ? "" : " + ") + term; };
  if (cross_entropy)
    add(*cross_entropy == 1.0 ? "cross-entropy" : fmt::format("{} cross-entropy", *cross_entropy));
  if (proximal)
    add(fmt::format("proximal {}", *proximal));
  if (correction)
    add(fmt::format("correction {}", *correction));
  if (distillation)
    add(fmt::format("distillation {} {}", distillation->weight, distillation->temperature));
  for (const auto& term : written)
    add(fmt::format("{} {}", term.factor, term.loss->identity()));
  for (const auto& term : quadratic)
    add(fmt::format("{} quadratic{}", term.factor, term.anchor.defined() ? "" : " from the start"));
  return text;
}

loss_ref objective_of(const objective_terms& terms) {
  const bool is_plain = terms.cross_entropy == 1.0 && !terms.correction && !terms.distillation &&
                        terms.written.empty() && terms.quadratic.empty();
  if (is_plain)
    return terms.proximal ? proximal_objective(*terms.proximal) : cross_entropy_objective();
  const bool is_written = terms.written.size() == 1 && terms.written[0].factor == 1.0 && !terms.cross_entropy &&
                          !terms.proximal && !terms.correction && !terms.distillation && terms.quadratic.empty();
  if (is_written)
    return terms.written[0].loss;
  return std::make_shared<const summed_loss>(terms);
}

objective_terms proximal_terms(double mu) {
  if (!(mu >= 0.0) || !std::isfinite(mu))
    throw std::invalid_argument(fmt::format("mneme.proximal({}): expected mu >= 0", mu));
  return {.cross_entropy = 1.0, .proximal = mu};
}

objective_terms corrected_terms() { return {.cross_entropy = 1.0, .correction = 1.0}; }

objective_terms distillation_terms(double weight, double temperature) {
  if (!(weight >= 0.0) || !(temperature > 0.0) || !std::isfinite(weight) || !std::isfinite(temperature))
    throw std::invalid_argument(
        fmt::format("mneme.distillation({}, {}): expected weight >= 0 and temperature > 0", weight, temperature));
  return {.distillation = distillation_options{.weight = weight, .temperature = temperature}};
}

objective_terms quadratic_terms(at::Tensor anchor, at::Tensor importance) {
  for (const auto& [name, value] : {std::pair{"anchor", &anchor}, {"importance", &importance}})
    if (value->defined() && (value->dim() != 1 || value->scalar_type() != at::kFloat))
      throw std::invalid_argument(fmt::format("mneme.quadratic(): {} is {} of {} axes; expected float32 [P], flat "
                                              "weights as broadcast.weights",
                                              name, c10::toString(value->scalar_type()), value->dim()));
  if (anchor.defined() && anchor.numel() != importance.numel())
    throw std::invalid_argument(fmt::format("mneme.quadratic(): anchor has {} numbers and importance {}; expected one "
                                            "of each weight",
                                            anchor.numel(), importance.numel()));
  objective_terms terms;
  terms.quadratic.push_back({.anchor = std::move(anchor), .importance = std::move(importance)});
  return terms;
}

} // namespace mneme
