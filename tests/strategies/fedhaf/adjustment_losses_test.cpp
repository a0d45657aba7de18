// FedHAF's losses compared with their formulas in float64, row by row, and gradients with LibTorch's autograd.
#include "runtime/method/gradients.hpp"
#include "strategies/fedhaf/adjustment_losses.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

using whole_numbers = std::vector<std::int64_t>;
constexpr std::int64_t classes = 7, old_classes = 5, width = 3;
const std::vector<class_range> tasks{{0, 2}, {2, 5}, {5, 7}};

at::Tensor numbers_of(std::int64_t count, std::int64_t columns, double shift) {
  const auto at = at::arange(count * columns, at::kDouble) + shift;
  return (2.5 * at::sin(at * at * 0.37)).view({count, columns}).to(at::kFloat);
}

/// Step of one model: rows of the task (5 and 6), exemplars, and a padding row.
struct step {
  whole_numbers labels{0, 5, 1, 5, 6, 2, 6, 4, 5, -1};
  at::Tensor logits = numbers_of(10, classes, 1.0), features = numbers_of(10, width, 7.0);
  at::Tensor taught = numbers_of(10, old_classes, 40.0), teacher_features = numbers_of(10, width, 90.0);
  bool has_teacher = true;

  [[nodiscard]] loss_output loss_of(const adjustment_terms& terms) const {
    const auto z = logits.unsqueeze(0), f = features.unsqueeze(0), y = at::tensor(labels, at::kLong).unsqueeze(0);
    const auto w = at::full({1, std::ssize(labels)}, 1.0F / static_cast<float>(labels.size()));
    const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{nullptr};
    loss_input in{.logits = z, .features = f, .labels = y, .row_weight = w, .auxiliaries = auxiliaries};
    if (has_teacher)
      in.teachers = {{.features = teacher_features.unsqueeze(0), .logits = taught.unsqueeze(0)}};
    return (*adjustment_objective(terms))(in);
  }
  [[nodiscard]] whole_numbers rows_where(auto of_label) const {
    whole_numbers rows;
    for (std::int64_t i = 0; i < std::ssize(labels); ++i)
      if (const auto y = labels[static_cast<std::size_t>(i)]; y >= 0 && of_label(y))
        rows.push_back(i);
    return rows;
  }
  [[nodiscard]] std::int64_t label(std::int64_t row) const { return labels[static_cast<std::size_t>(row)]; }
};

class_range task_of(std::int64_t label) {
  for (const auto& task : tasks)
    if (label < task.high)
      return task;
  return {};
}

/// Eqs. 2-5 of the paper, as functions for autograd. @param z, f of the step, float64
at::Tensor reference(const step& at, const adjustment_terms& terms, const at::Tensor& z, const at::Tensor& f) {
  const auto fresh = at.rows_where([](auto y) { return y >= old_classes; });
  const auto old = at.rows_where([](auto y) { return y < old_classes; });
  const auto every = at.rows_where([](auto) { return true; });
  const auto taught = at.taught.to(at::kDouble), taught_f = at.teacher_features.to(at::kDouble);
  auto sum = at::zeros({}, at::kDouble);

  const auto& labeled = terms.rows == label_rows::fresh ? fresh : every; // eq. 4
  for (const auto i : labeled) {
    const auto among = terms.scope == label_scope::own_task ? task_of(at.label(i)) : class_range{0, classes};
    const auto log_p = at::log_softmax(z[i].narrow(0, among.low, among.size()), 0);
    sum = sum - log_p[at.label(i) - among.low] * (terms.cross_entropy / static_cast<double>(labeled.size()));
  }
  if (!at.has_teacher)
    return sum;
  const auto n = static_cast<double>(old.size());
  for (const auto i : old) { // eqs. 5 and 2
    const auto log_q = at::log_softmax(z[i].narrow(0, 0, old_classes) / terms.temperature, 0);
    const auto log_p = at::log_softmax(taught[i] / terms.temperature, 0);
    const auto kl = terms.direction == divergence::present_from_before ? (log_q.exp() * (log_q - log_p)).sum()
                                                                       : (log_p.exp() * (log_p - log_q)).sum();
    const auto moved = (f[i] - taught_f[i]).square();
    const auto fd = terms.dimensions == dimension_sum::sum ? moved.sum() : moved.mean();
    sum = sum + kl * (terms.distillation / n) + fd * (terms.feature_distillation / n);
  }

  const bool of_features = terms.balanced == balanced_vectors::features; // eq. 3
  const auto& present = of_features ? f : z;
  const auto& before = of_features ? taught_f : taught;
  const auto mean_length = [&](const whole_numbers& rows, const at::Tensor& vectors, std::int64_t classes_of_side) {
    std::map<std::int64_t, double> counts;
    for (const auto i : rows)
      counts[at.label(i)] += 1.0;
    auto total = at::zeros({}, at::kDouble);
    for (const auto i : rows) {
      const auto share = terms.division == balance_division::class_counts
                             ? 1.0 / static_cast<double>(classes_of_side)
                             : 1.0 / (counts.at(at.label(i)) * static_cast<double>(counts.size()));
      total = total + vectors[i].square().sum().sqrt() * share;
    }
    return total;
  };
  const auto& known = terms.reference == balance_reference::present ? present : before;
  const auto difference = mean_length(fresh, present, 2) - mean_length(old, known, old_classes);
  return sum + difference.abs() * terms.feature_balance;
}

void check_against_reference(const step& at, const adjustment_terms& terms) {
  const auto z = leaf_of(at.logits.to(at::kDouble)), f = leaf_of(at.features.to(at::kDouble));
  const auto expected = reference(at, terms, z, f);
  const auto gradients = gradients_of(expected, {z, f});
  const auto found = at.loss_of(terms);
  CHECK(found.values[0].item<double>() == Approx(expected.item<double>()).epsilon(1e-6));
  CHECK(largest_difference(found.d_logits[0].contiguous(), gradients[0].to(at::kFloat)) < 1e-6);
  CHECK(found.d_features.defined() == terms.compares_features());
  if (found.d_features.defined())
    CHECK(largest_difference(found.d_features[0].contiguous(), gradients[1].to(at::kFloat)) < 1e-6);
}

adjustment_terms one_term(double adjustment_terms::*term) {
  adjustment_terms terms{.tasks = tasks};
  terms.*term = 1.0;
  return terms;
}

} // namespace

TEST_CASE("values and gradients of every variant equal the formulas") {
  const step at;
  const adjustment_terms all{
      .feature_distillation = 2.0, .feature_balance = 0.7, .cross_entropy = 1.5, .distillation = 0.8, .tasks = tasks};
  check_against_reference(at, all);
  auto printed = all;
  printed.scope = label_scope::own_task;
  printed.rows = label_rows::fresh;
  printed.dimensions = dimension_sum::sum;
  printed.division = balance_division::class_counts;
  printed.reference = balance_reference::present;
  check_against_reference(at, printed);
  auto others = all;
  others.scope = label_scope::own_task; // also for exemplars
  others.direction = divergence::before_from_present;
  others.temperature = 2.5;
  others.balanced = balanced_vectors::logits;
  check_against_reference(at, others);
  others.reference = balance_reference::present;
  check_against_reference(at, others);
}

TEST_CASE("the feature gradient contains only the terms that reach the features") {
  const step at;
  for (const bool labels : {false, true})
    for (const auto vectors : {balanced_vectors::features, balanced_vectors::logits}) {
      CAPTURE(labels, static_cast<int>(vectors));
      adjustment_terms sum{.feature_distillation = 2.0,
                           .feature_balance = 0.7,
                           .cross_entropy = 1.5,
                           .distillation = 0.8,
                           .balanced = vectors,
                           .tasks = tasks};
      const auto joint = at.loss_of(sum);
      CHECK_FALSE(joint.d_head_logits.defined());
      auto staged = sum, passing = sum;
      staged.labels_pass = labels;
      staged.distillation_passes = false;
      passing.distillation = 0.0;
      passing.cross_entropy = labels ? 1.5 : 0.0;
      const auto cut = at.loss_of(staged);
      REQUIRE(cut.d_head_logits.defined());
      CHECK(largest_difference(cut.d_logits[0] + cut.d_head_logits[0], joint.d_logits[0].contiguous()) < 1e-7);
      CHECK(at::equal(cut.d_features, joint.d_features));
      CHECK(largest_difference(cut.d_logits[0].contiguous(), at.loss_of(passing).d_logits[0].contiguous()) < 1e-7);
    }
}

TEST_CASE("there is no distillation if the current model equals the previous one") {
  step same;
  same.taught = same.logits.narrow(1, 0, old_classes).contiguous();
  same.teacher_features = same.features;
  for (const auto term : {&adjustment_terms::distillation, &adjustment_terms::feature_distillation}) {
    const auto found = same.loss_of(one_term(term));
    CHECK(found.values[0].item<double>() == Approx(0.0).margin(1e-12));
    CHECK(found.d_logits.abs().max().item<float>() < 1e-7F);
  }
}

TEST_CASE("balanced lengths have no gradient, and doubling a step only changes the printed loss") {
  step level;
  level.features = at::zeros({10, width}, at::kFloat);
  level.features.select(1, 1).fill_(2.0F);
  level.teacher_features = level.features;
  auto terms = one_term(&adjustment_terms::feature_balance);
  CHECK(level.loss_of(terms).values[0].item<double>() == 0.0);
  CHECK(level.loss_of(terms).d_features.abs().max().item<float>() == 0.0F);

  const step single;
  auto doubled = single;
  doubled.labels.insert(doubled.labels.end(), single.labels.begin(), single.labels.end());
  for (auto tensor : {&step::logits, &step::features, &step::taught, &step::teacher_features})
    doubled.*tensor = at::cat({single.*tensor, single.*tensor});
  CHECK(doubled.loss_of(terms).values[0].item<double>() == Approx(single.loss_of(terms).values[0].item<double>()));
  terms.division = balance_division::class_counts;
  CHECK(doubled.loss_of(terms).values[0].item<double>() ==
        Approx(2.0 * single.loss_of(terms).values[0].item<double>()));
}

TEST_CASE("divergences of (3/4, 1/4) and (1/2, 1/2) equal values worked out by hand") {
  step two;
  two.labels = {0, 2};
  two.logits = floats({std::log(3.0F), 0.0F, 9.0F, 0.0F, 0.0F, 0.0F}).view({2, 3});
  two.taught = at::zeros({2, 2}, at::kFloat);
  two.features = two.teacher_features = at::zeros({2, width}, at::kFloat);
  auto terms = one_term(&adjustment_terms::distillation);
  terms.tasks = {{0, 2}, {2, 3}};
  const double present = 0.75 * std::log(0.75 / 0.5) + 0.25 * std::log(0.25 / 0.5); // 0.130812
  const double before = 0.5 * std::log(0.5 / 0.75) + 0.5 * std::log(0.5 / 0.25);    // 0.143841
  CHECK(two.loss_of(terms).values[0].item<double>() == Approx(present).epsilon(1e-6));
  terms.direction = divergence::before_from_present;
  CHECK(two.loss_of(terms).values[0].item<double>() == Approx(before).epsilon(1e-6));
}

TEST_CASE("cross-entropy within a task has no gradient by other tasks' logits") {
  auto terms = one_term(&adjustment_terms::cross_entropy);
  terms.scope = label_scope::own_task;
  const step at;
  const auto d = at.loss_of(terms).d_logits[0];
  for (std::int64_t i = 0; i < 9; ++i)
    for (std::int64_t c = 0; c < classes; ++c) {
      const auto own = task_of(at.label(i));
      CHECK((d[i][c].item<float>() == 0.0F) == (c < own.low || c >= own.high));
    }
  CHECK(d[9].abs().max().item<float>() == 0.0F); // padded
}

TEST_CASE("terms are zero in the first task, without a teacher, and without auxiliary tensors") {
  adjustment_terms all{.feature_distillation = 2.0, .feature_balance = 1.0, .distillation = 1.0, .tasks = tasks};
  step at;
  at.has_teacher = false;
  CHECK(at.loss_of(all).values[0].item<double>() == 0.0);
  CHECK(at.loss_of(all).d_features.abs().max().item<float>() == 0.0F);
  step first;
  all.tasks = {{0, classes}};
  CHECK(first.loss_of(all).values[0].item<double>() == 0.0);
  step no_new;
  no_new.labels = {0, 1, 2, 3, 4, 0, 1, 2, 3, -1};
  all.tasks = tasks;
  all.feature_distillation = all.distillation = 0.0;
  CHECK(no_new.loss_of(all).values[0].item<double>() == 0.0);
}

TEST_CASE("a model's loss has the same bits in any stack") {
  adjustment_terms all{
      .feature_distillation = 2.0, .feature_balance = 0.7, .cross_entropy = 1.5, .distillation = 0.8, .tasks = tasks};
  const auto objective = adjustment_objective(all);
  const step at;
  const auto y = at::tensor(at.labels, at::kLong);
  const auto stacked = [&](const at::Tensor& of_step, std::int64_t models) {
    std::vector<at::Tensor> parts;
    for (std::int64_t k = 0; k < models; ++k)
      parts.push_back(k == models - 1 ? of_step : (of_step * 0.5).contiguous());
    return at::stack(parts);
  };
  const auto loss_of = [&](std::int64_t models) {
    const auto z = stacked(at.logits, models), f = stacked(at.features, models);
    const auto labels = y.expand({models, 10}).contiguous();
    const auto weights = at::full({models, 10}, 0.1F);
    const std::vector<std::shared_ptr<const tensor_map>> auxiliaries(static_cast<std::size_t>(models));
    loss_input in{.logits = z, .features = f, .labels = labels, .row_weight = weights, .auxiliaries = auxiliaries};
    in.teachers = {{.features = stacked(at.teacher_features, models), .logits = stacked(at.taught, models)}};
    return (*objective)(in);
  };
  const auto alone = loss_of(1), last = loss_of(3);
  CHECK(alone.values[0].item<double>() == last.values[2].item<double>());
  CHECK(same_bits(alone.d_logits[0].contiguous(), last.d_logits[2].contiguous()));
  CHECK(same_bits(alone.d_features[0].contiguous(), last.d_features[2].contiguous()));
}
