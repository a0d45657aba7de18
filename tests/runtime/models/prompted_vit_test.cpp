// A transformer with prompts, compared with the code of CODA-Prompt and DualPrompt, and the prompts used in each pass.
#include "tests/support/small_prompted_vit.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <torch/csrc/autograd/autograd.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

at::Tensor made_numbers(const std::string& name, const std::vector<std::int64_t>& shape) {
  return at::tensor(formula("prompted." + name, c10::multiply_integers(shape))).view(shape);
}
at::Tensor listed_numbers(const nlohmann::json& values) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble);
}
double distance(const at::Tensor& ours, const at::Tensor& theirs) {
  return (ours.to(at::kDouble).flatten() - theirs.to(at::kDouble).flatten()).abs().max().item<double>();
}
at::Tensor prompted_images() { return made_numbers("images", {1, 4, 3, 8, 8}); }
class_range classes_of_task(std::int64_t task) { return {2 * task, 2 * task + 2}; }

/// Compares features with the script's in float64, and gradients of sum(features d) + factor sum(map) by autograd.
void check_against(const nlohmann::json& theirs, const prompted_vit& net, std::int64_t filled, std::int64_t task,
                   double map_factor, const training_mode* training) {
  const auto weights = official_prompts(net, filled).unsqueeze(0).requires_grad_(true);
  const auto results =
      net.differentiable(weights, prompted_images().to(at::kDouble), classes_of_task(task), {.training = training});
  CHECK(distance(results.features, listed_numbers(theirs["features"])) < 1e-12);
  const auto loss = results.maps.at(0).values.sum() * map_factor;
  CHECK_THAT(loss.item<double>(), WithinAbs(theirs["loss"].get<double>(), 1e-10));
  const auto end = (results.features[0] * made_numbers("d_features", {4, 16}).to(at::kDouble)).sum() + loss;
  const auto gradient = torch::autograd::grad({end}, {weights})[0][0];
  std::size_t compared = 0;
  for (const auto& entry : net.layout())
    if (theirs["gradients"].contains(entry.name)) {
      INFO(entry.name);
      CHECK(distance(as_in_files(gradient, entry), listed_numbers(theirs["gradients"][entry.name])) < 1e-10);
      ++compared;
    }
  CHECK(compared == theirs["gradients"].size());
}

at::Tensor features_of(const prompted_vit& net, const at::Tensor& flat, class_range classes,
                       const training_mode* training = nullptr) {
  const auto weights = flat.to(at::kFloat).unsqueeze(0);
  if (training) // without a backward pass, forward() uses evaluation mode
    return net.differentiable(weights, prompted_images(), classes, {.training = training}).features[0];
  return net.forward(weights, prompted_images(), classes, nullptr, nullptr).features[0];
}

} // namespace

TEST_CASE("prompt components equal the official code's, and those of earlier tasks have no gradient", "[prompts]") {
  const auto record = golden_record("prompts/coda_prompt")["components"];
  const auto net = small_prompted_vit(small_components());
  for (const std::int64_t task : {0, 1}) // the four rows have one penalty
    check_against(record[std::to_string(task)], *net, 2 * (task + 1), task, 0.1 / 4.0, nullptr);
  const auto& gradient = record["1"]["gradients"]["prompts.0.keys"];
  CHECK(listed_numbers(gradient).narrow(0, 0, 2 * 16).abs().max().item<double>() == 0.0);
}

TEST_CASE("prompt components under a softmax equal Fed-CPrompt's official code", "[prompts]") {
  const auto record = golden_record("prompts/fed_cprompt")["components"];
  auto shape = small_components();
  shape.softmax_focus = true;
  const auto net = small_prompted_vit(shape);
  for (const std::int64_t task : {0, 1})
    check_against(record[std::to_string(task)], *net, 2 * (task + 1), task, 0.0, nullptr);
}

TEST_CASE("prompt slots equal the official code's: selected by task in training, by nearest key in tests",
          "[prompts]") {
  const auto record = golden_record("prompts/coda_prompt");
  const auto net = small_prompted_vit(small_slots());
  const training_mode training{};
  check_against(record["slots"], *net, prompted_tasks, 1, 1.0, &training);
  const auto flat = official_prompts(*net, prompted_tasks);
  CHECK(distance(features_of(*net, flat, classes_of_task(1)), listed_numbers(record["slots_chosen"]["features"])) <
        1e-5);
}

TEST_CASE("with a single slot training and evaluation are equal", "[prompts]") {
  auto shape = small_slots();
  shape.all_slots = false;
  const auto net = small_prompted_vit(shape);
  const auto flat = official_prompts(*net, prompted_tasks);
  const training_mode training{};
  CHECK(distance(features_of(*net, flat, classes_of_task(0)), features_of(*net, flat, classes_of_task(0), &training)) <
        1e-6);
  double largest = 0.0;
  for (const std::int64_t task : {1, 2, 3})
    largest = std::max(largest, distance(features_of(*net, flat, classes_of_task(task)),
                                         features_of(*net, flat, classes_of_task(task), &training)));
  CHECK(largest > 1e-3); // the nearest of several keys is not always the task's
}

TEST_CASE("without prompts in any block the net equals vit", "[prompts]") {
  auto shape = small_components();
  shape.blocks.clear();
  const auto with = small_prompted_vit(shape);
  const auto plain = small_vit({});
  auto flat = at::zeros({plain->size()}, at::kDouble);
  const auto theirs = official_prompts(*with, 0);
  for (const auto& entry : plain->layout())
    for (const auto& same : with->layout())
      if (same.name == entry.name)
        put_as_in_files(flat, entry, as_in_files(theirs, same));
  const auto outputs = plain->forward(flat.to(at::kFloat).unsqueeze(0), prompted_images(), {0, 8}, nullptr);
  CHECK(distance(features_of(*with, theirs, {0, 8}), outputs.features[0]) < 1e-5);
}

TEST_CASE("components of zeros change nothing, and prompts of zeros do", "[prompts]") {
  const auto net = small_prompted_vit(small_components());
  const auto flat = official_prompts(*net, 4);
  CHECK(distance(features_of(*net, flat, classes_of_task(1)), features_of(*net, flat, classes_of_task(3))) < 1e-6);

  auto shape = small_components();
  shape.blocks.clear();
  const auto without = small_prompted_vit(shape);
  CHECK(distance(features_of(*net, official_prompts(*net, 0), {0, 2}),
                 features_of(*without, official_prompts(*without, 0), {0, 2})) > 1e-3);
}

TEST_CASE("the body is frozen, and invalid block numbers are refused", "[prompts]") {
  const auto net = small_prompted_vit(small_components());
  for (const auto& entry : net->layout())
    CHECK(entry.frozen == !(entry.name.starts_with("prompts.") || entry.name.starts_with("head.")));
  const auto kind = kind_with("vit", {{"patch", "4"}, {"width", "16"}, {"depth", "4"}, {"heads", "2"}});
  kind->set_prompts(small_components());
  const auto refused = kind->build({3, 8, 8}, 8);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == "a prompt of block 4 is outside a vit of 4 blocks, which are counted from 0; expected "
                           "smaller numbers in strategy.blocks, or a larger model.depth");
}
