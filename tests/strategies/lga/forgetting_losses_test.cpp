// Losses of GLFC and LGA compared with float64 and LibTorch's autograd, row by row.
#include "runtime/method/gradients.hpp"
#include "strategies/lga/gradient_compensation.hpp"
#include "strategies/shared/exemplar_selection.hpp"
#include "tests/support/tensors.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
using namespace mneme;
using Catch::Approx;

namespace {

using numbers = std::vector<double>;
constexpr std::int64_t classes = 7, old_classes = 4, rows = 9;
const std::vector<std::int64_t> labels{0, 4, 1, 5, 6, 2, 3, 4, -1}; // the last row is padding
const forgetting_context known{.group_of_class = {0, 0, 1, 1, -1, -1, -1}, .old_tasks = 2, .exponent = 2.0 / 3.0};

at::Tensor numbers_of(std::int64_t count, std::int64_t columns, double shift) {
  const auto at = at::arange(count * columns, at::kDouble) + shift;
  return (2.5 * at::sin(at * at * 0.37)).view({count, columns}).to(at::kFloat);
}

struct step {
  at::Tensor logits = numbers_of(rows, classes, 1.0), taught = numbers_of(rows, old_classes, 40.0);
  at::Tensor truth = at::tensor(labels, at::kLong);
  at::Tensor weight = at::full({rows}, 1.0 / 8.0).index_put({at::tensor(std::int64_t{8})}, at::tensor(0.0f));
  bool has_teacher = true, has_memory = true;

  [[nodiscard]] loss_output loss_of(const forgetting_terms& terms) const {
    const auto z = logits.unsqueeze(0), y = truth.unsqueeze(0), r = weight.unsqueeze(0);
    const std::vector<std::shared_ptr<const tensor_map>> auxiliaries{has_memory ? to_auxiliary(known) : nullptr};
    loss_input in{.logits = z, .features = z, .labels = y, .row_weight = r, .auxiliaries = auxiliaries};
    if (has_teacher)
      in.teachers = {{.logits = taught.unsqueeze(0)}};
    return (*forgetting_objective(terms))(in);
  }
};

double sigmoid(double z) { return 1.0 / (1.0 + std::exp(-z)); }

/// Weights from the definitions, in loops.
numbers weights_by_hand(const step& at, const forgetting_terms& terms) {
  numbers g, weights(8, 1.0);
  std::vector<std::int64_t> groups;
  for (std::int64_t i = 0; i < 8; ++i) {
    const auto y = labels[static_cast<std::size_t>(i)];
    const auto row = at.logits[i].to(at::kDouble);
    const double p = terms.likelihood == class_likelihood::softmax ? at::softmax(row, 0)[y].item<double>()
                                                                   : sigmoid(row[y].item<double>());
    g.push_back(std::pow(std::abs(p - 1.0), known.exponent));
    groups.push_back(known.group_of_class[static_cast<std::size_t>(y)]);
  }
  if (!at.has_memory || terms.weighting == gradient_weighting::none)
    return weights;
  const auto mean_where = [&](auto in) {
    double sum = 0.0, count = 0.0;
    for (std::size_t i = 0; i < 8; ++i)
      if (in(groups[i]))
        sum += g[i], count += 1.0;
    return sum / count;
  };
  for (std::size_t i = 0; i < 8; ++i) {
    const auto own = groups[i];
    if (own < 0)
      weights[i] = g[i] / mean_where([](auto k) { return k < 0; });
    else if (terms.weighting == gradient_weighting::old_new)
      weights[i] = g[i] / mean_where([](auto k) { return k >= 0; });
    else if (terms.weighting == gradient_weighting::per_task)
      weights[i] = g[i] / mean_where([&](auto k) { return k == own; });
    else
      weights[i] = g[i] / mean_where([](auto k) { return k >= 0 && k <= 1; }) +
                   (own == 0 ? g[i] / mean_where([](auto k) { return k == 0; }) : 0.0);
    if (terms.weighting == gradient_weighting::cumulative)
      weights[i] = std::clamp(weights[i], 0.5, 5.0);
  }
  return weights;
}

/// The loss in float64, as a function that autograd follows.
at::Tensor reference(const step& at, const forgetting_terms& terms, const at::Tensor& z) {
  const auto weights = weights_by_hand(at, terms);
  const bool softmax = terms.likelihood == class_likelihood::softmax;
  const auto taught = at.taught.to(at::kDouble);
  auto sum = at::zeros({}, at::kDouble);
  for (std::int64_t i = 0; i < 8; ++i) {
    const auto y = labels[static_cast<std::size_t>(i)];
    const auto hot = at::zeros({classes}, at::kDouble).index_put({at::tensor(y)}, at::tensor(1.0, at::kDouble));
    const auto log_p = at::log_softmax(z[i], 0), p = at::sigmoid(z[i]);
    const auto bce_sum = [&](const at::Tensor& t, std::int64_t columns) {
      const auto q = p.narrow(0, 0, columns);
      return -(t * q.log() + (1.0 - t) * (1.0 - q).log()).sum();
    };
    const auto against = [&](const at::Tensor& t) {
      return softmax ? -(t * log_p).sum() : bce_sum(t, classes) / static_cast<double>(classes);
    };
    const double w = weights[static_cast<std::size_t>(i)];
    const double labels_w = terms.weighs_labels ? w : 1.0, teacher_w = terms.weighs_distillation ? w : 1.0;
    sum = sum + against(hot) * (labels_w * (at.has_teacher ? terms.label_factor : 1.0) / 8.0);
    if (!at.has_teacher)
      continue;
    auto mixed = hot.clone();
    mixed.narrow(0, 0, old_classes).copy_(softmax ? at::softmax(taught[i], 0) : at::sigmoid(taught[i]));
    const auto term = terms.distillation == distillation_kind::mixed
                          ? against(mixed)
                          : bce_sum(at::sigmoid(taught[i]), old_classes) / (softmax ? 1.0 : double(classes));
    sum = sum + term * (teacher_w * terms.distillation_factor / 8.0);
  }
  return sum;
}

numbers as_numbers(const at::Tensor& values) {
  const auto host = values.to(at::kDouble).contiguous();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel()};
}

at::Tensor weights_of(numbers g, std::vector<std::int64_t> groups, std::int64_t old_tasks, gradient_weighting kind) {
  return row_weights(at::tensor(g, at::kDouble), at::tensor(groups, at::kLong), old_tasks, kind);
}

void check_close(const at::Tensor& found, const numbers& expected, double margin) {
  const auto values = as_numbers(found);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(values[i] == Approx(expected[i]).margin(margin));
  }
}

} // namespace

TEST_CASE("values and gradients of every form agree with autograd in float64") {
  using enum gradient_weighting;
  const forgetting_terms forms[] = {
      {class_likelihood::softmax, per_task, distillation_kind::mixed},
      {class_likelihood::sigmoid, cumulative, distillation_kind::mixed},
      {class_likelihood::sigmoid, old_new, distillation_kind::mixed, true, false, 0.5, 0.5},
      {class_likelihood::softmax, per_task, distillation_kind::icarl, true, false},
      {class_likelihood::sigmoid, cumulative, distillation_kind::icarl, true, false},
      {class_likelihood::sigmoid, cumulative, distillation_kind::mixed, false, true},
      {class_likelihood::softmax, none, distillation_kind::mixed},
  };
  for (const auto& terms : forms)
    for (const bool has_teacher : {true, false})
      for (const bool has_memory : {true, false}) {
        step at;
        at.has_teacher = has_teacher;
        at.has_memory = has_memory;
        CAPTURE(&terms - forms, has_teacher, has_memory);
        const auto found = at.loss_of(terms);
        const auto z = leaf_of(at.logits.to(at::kDouble));
        const auto value = reference(at, terms, z);
        const auto slope = gradients_of(value, {z}).front();
        CHECK(found.values[0].item<double>() == Approx(value.item<double>()).margin(1e-6));
        CHECK((found.d_logits[0].to(at::kDouble) - slope).abs().max().item<double>() < 1e-6);
        CHECK(found.d_logits[0][8].abs().max().item<double>() == 0.0); // padded
      }
}

TEST_CASE("official weights add up over tasks, those of the paper do not") {
  const std::vector<std::int64_t> groups{0, 0, 1, 2, -1, -1, -1, -1};
  check_close(weights_of(numbers(8, 0.3), groups, 3, gradient_weighting::cumulative), {3, 3, 2, 1, 1, 1, 1, 1}, 1e-12);
  check_close(weights_of(numbers(8, 0.3), groups, 3, gradient_weighting::per_task), numbers(8, 1.0), 1e-12);
  const numbers g{.9, .7, .5, .4, .2, .3, .1, .2};
  check_close(weights_of(g, groups, 3, gradient_weighting::per_task), {1.125, .875, 1, 1, 1, 1.5, .5, 1}, 1e-12);
  check_close(weights_of(g, groups, 3, gradient_weighting::cumulative), {3.85, 2.99, 1.51, .64, 1, 1.5, .5, 1}, 0.006);
}

TEST_CASE("weights have a mean of 1 within their groups, and are bounded as in official code") {
  const std::vector<std::int64_t> groups{0, 1, 1, -1, -1, -1, -2};
  const numbers g{.9, .01, .8, .5, .001, .2, .7};
  const auto printed = as_numbers(weights_of(g, groups, 2, gradient_weighting::per_task));
  CHECK(printed[0] == Approx(1.0));
  CHECK(printed[1] + printed[2] == Approx(2.0));
  CHECK(printed[3] + printed[4] + printed[5] == Approx(3.0));
  CHECK(printed[6] == 0.0); // padded
  const auto two = as_numbers(weights_of(g, groups, 2, gradient_weighting::old_new));
  CHECK(two[0] + two[1] + two[2] == Approx(3.0));
  CHECK(two[3] + two[4] + two[5] == Approx(3.0));
  const auto released = as_numbers(weights_of(g, groups, 2, gradient_weighting::cumulative));
  for (std::size_t i = 0; i < 6; ++i)
    CHECK((released[i] >= 0.5 && released[i] <= 5.0));
  check_close(weights_of({0, 0, 0}, {0, 0, -1}, 1, gradient_weighting::per_task), {1, 1, 1}, 0.0); // no forgetting
}

TEST_CASE("a mixed target has the teacher's old classes and the label among the new ones") {
  const auto taught = at::tensor({30.0f, -30.0f, -30.0f, 30.0f}).view({2, 2});
  const auto mixed = mix_targets(taught, at::tensor(std::vector<std::int64_t>{2, 0}), 3, class_likelihood::sigmoid);
  check_close(mixed, {1, 0, 1, 0, 1, 0}, 1e-6); // the second row's own label is old: the teacher determines the target
}

TEST_CASE("a student equal to its teacher has no distillation gradient on old classes") {
  for (const auto kind : {distillation_kind::icarl, distillation_kind::mixed}) {
    step at;
    at.taught = at.logits.narrow(1, 0, old_classes).contiguous();
    const auto found =
        at.loss_of({class_likelihood::sigmoid, gradient_weighting::none, kind, true, true, /*label_factor=*/0.0});
    CHECK(found.d_logits[0].narrow(1, 0, old_classes).abs().max().item<double>() < 1e-8);
    const auto fresh = found.d_logits[0].narrow(1, old_classes, found.d_logits.size(2) - old_classes);
    CHECK((fresh.abs().max().item<double>() > 1e-3) ==
          (kind == distillation_kind::mixed)); // its label is among new ones
  }
}

TEST_CASE("entropy is ln C for uniform logits and 0 for certain ones") {
  CHECK(mean_entropy(at::zeros({4, 10})) == Approx(-std::log(0.1 + 1e-5)));
  CHECK(mean_entropy(at::eye(3) * 100.0) == Approx(-std::log(1.0 + 1e-5)).margin(1e-9));
}

TEST_CASE("a task begins if entropy rises by more than the threshold, in the first round from 0") {
  CHECK_FALSE(begins_task(0.3, 1.5, 1.2, false)); // 1.2 is not exceeded
  CHECK(begins_task(0.3, 1.5, 1.2, true));
  CHECK(begins_task(0.3, 1.51, 1.2, false));
  for (const bool included : {false, true}) {
    CHECK(begins_task(0.0, 1.21, 1.2, included));
    CHECK_FALSE(begins_task(0.0, 1.19, 1.2, included));
    CHECK_FALSE(begins_task(2.0, 0.5, 1.2, included));
  }
}

TEST_CASE("exemplars per class are those of the papers' tables") {
  std::vector<std::int64_t> found;
  for (std::int64_t k = 1; k < 10; ++k)
    found.push_back(exemplars_per_class(2000, 6 * k));
  CHECK(found == std::vector<std::int64_t>{333, 166, 111, 83, 66, 55, 47, 41, 37});
}

TEST_CASE("herding begins at the row nearest to the mean, and early picks do not depend on the number") {
  const auto features = numbers_of(12, 5, 3.0);
  const auto all = choose_exemplars(features, 12, exemplar_choice::greedy);
  const std::vector<std::int64_t> first(all.begin(), all.begin() + 5);
  CHECK(choose_exemplars(features, 5, exemplar_choice::greedy) == first);
  CHECK(all.front() == choose_exemplars(features, 1, exemplar_choice::rank).front());
  auto sorted = all;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t i = 0; i < 12; ++i)
    CHECK(sorted[static_cast<std::size_t>(i)] == i); // each once, and no more than exist
  CHECK(choose_exemplars(features, 20, exemplar_choice::greedy).size() == 12);
  CHECK(choose_exemplars(features, 20, exemplar_choice::duplicates).size() == 20);

  // Greedy selection from the definition.
  const auto unit = features.to(at::kDouble) / features.to(at::kDouble).norm(2, {1}, true);
  auto sum = at::zeros({5}, at::kDouble);
  std::vector<bool> taken(12, false);
  for (std::int64_t k = 0; k < 12; ++k) {
    double best = 1e9;
    std::int64_t chosen = -1;
    for (std::int64_t i = 0; i < 12; ++i) {
      const double far = (unit.mean(0) - (sum + unit[i]) / static_cast<double>(k + 1)).norm().item<double>();
      if (!taken[static_cast<std::size_t>(i)] && far < best)
        best = far, chosen = i;
    }
    taken[static_cast<std::size_t>(chosen)] = true;
    sum += unit[chosen];
    CHECK(all[static_cast<std::size_t>(k)] == chosen);
  }
}

TEST_CASE("official learning rates fall for single rounds, persistent ones for the rest of the task") {
  using stretches = std::vector<rate_stretch>;
  const auto quirk = [](std::int64_t round) { return rates_of_round(rate_schedule::code_quirk, round, 20); };
  for (const std::int64_t round : {0, 1, 2, 3, 4, 6, 8})
    CHECK((quirk(round) == stretches{{20, 1.0}}));
  CHECK((quirk(5) == stretches{{20, 1.0 / 5}}));
  CHECK((quirk(7) == stretches{{10, 1.0}, {10, 1.0 / 25}}));
  CHECK((quirk(9) == stretches{{20, 1.0 / 125}}));
  const auto lasting = [](std::int64_t round) { return rates_of_round(rate_schedule::persistent_decay, round, 20); };
  CHECK((lasting(4) == stretches{{20, 1.0}}));
  CHECK((lasting(6) == stretches{{20, 1.0 / 5}}));
  CHECK((lasting(7) == stretches{{10, 1.0 / 5}, {10, 1.0 / 25}}));
  CHECK((lasting(9) == stretches{{20, 1.0 / 125}}));
  CHECK((rates_of_round(rate_schedule::scenario, 9, 20) == stretches{{20, 1.0}}));
}
