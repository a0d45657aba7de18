// LANDER compared with its authors' program, step by step. tools/research/official/lander.py wrote the reference
// values.
#include "runtime/models/function.hpp"
#include "strategies/lander/anchored_loss.hpp"
#include "strategies/lander/first_epoch_loss.hpp"
#include "strategies/lander/image_synthesis.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/official_images.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 6, first_classes = 4, embedding = 5;

model_ref official_net() { return model_named("resnet8", official_image, classes + embedding); }

at::Tensor official_anchors() { return values_named("anchors", {classes, embedding}); }

/// Compares every parameter and running statistic with the record, whose head has `opened` rows and a separate map.
void compare_weights(official_steps& both, const std::string& where, const model& net, const at::Tensor& flat,
                     const nlohmann::json& official, std::int64_t opened) {
  for (const auto& entry : net.layout()) {
    const auto values = as_in_files(flat, entry);
    if (!entry.head) {
      both.weights(where + entry.name, entry.name, values, official[entry.name]);
      continue;
    }
    both.weights(where + entry.name, entry.name, values.narrow(0, 0, opened), official[entry.name]);
    const auto map = "mapping" + entry.name.substr(entry.name.find('.'));
    both.weights(where + map, map, values.narrow(0, classes, embedding), official[map]);
  }
}

synthesis_settings settings_of(const official_steps& both) {
  const auto& given = both["settings"];
  synthesis_settings with{
      .shape = official_image, .classes = classes, .seen_classes = first_classes, .embedding = embedding};
  with.batch = given["batch"], with.noise = given["noise"], with.filters = given["filters"];
  with.chunk = given["chunk"], with.warm_up = given["warm_up"], with.steps = given["steps"];
  return with;
}

/// Draws of the script in a round: noise layers by name, labels, and views, which are counted over all rounds.
synthesis_draws draws_of(const synthesis_settings& with, std::int64_t round, const nlohmann::json& official,
                         bool views) {
  synthesis_draws draws{.labels = at::tensor(official["labels"].get<std::vector<std::int64_t>>(), at::kLong)};
  std::vector<at::Tensor> layers;
  for (std::int64_t i = 0; i < with.noise_layers(); ++i)
    layers.push_back(2 * values_named(fmt::format("noise.{}.{}", round, i), {with.noise, embedding}));
  draws.layers = at::stack(layers).to(at::kDouble);
  if (views)
    draws.views = views_named(round * with.steps, with.steps, with.batch);
  return draws;
}

/// In float64 like the script: Adam turns values that are zero in exact arithmetic into full steps.
void synthesize(official_steps& both, const char* rounds, bool views) {
  const auto with = settings_of(both);
  const auto net = official_net();
  const auto teacher = official_weights(*net, "teacher.", both["running"]).to(at::kDouble);
  const auto student = official_weights(*net, "student.", both["running"]).to(at::kDouble);
  const auto generator = image_generator(official_image, with.noise, with.filters);
  synthesis_state now{.generator = official_generator(*generator),
                      .norm = at::stack({made_values("generator.n1.weight", {embedding}),
                                         made_values("generator.n1.bias", {embedding})}),
                      .mean = at::full({3}, 0.5),
                      .deviation = at::full({3}, 0.2)};
  for (auto* part : {&now.generator, &now.norm, &now.mean, &now.deviation})
    *part = part->to(at::kDouble);
  for (std::size_t round = 0; round < both[rounds].size(); ++round) {
    const auto& official = both[rounds][round];
    const auto number = static_cast<std::int64_t>(round);
    const bool uses_adversary = number >= with.warm_up + with.lead;
    const auto draws = draws_of(with, number, official, views);
    const auto dreamt = synthesis_round(*net, *generator, with, teacher, uses_adversary ? student : at::Tensor{},
                                        official_anchors().to(at::kDouble), now, draws);
    const auto in_round = fmt::format("{}{} ", rounds, round + 1);
    for (std::size_t step = 0; step < dreamt.losses.size(); ++step) {
      const auto& ours = dreamt.losses[step];
      const auto& theirs = official["steps"][step];
      const auto term = [&](const char* name, const at::Tensor& value) {
        both.term(fmt::format("{}step {} {}", in_round, step + 1, name), theirs[name], value.item<double>());
      };
      term("statistics", ours.statistics);
      term("labels", ours.labels);
      term("bound", ours.bound);
      term("adversary", ours.adversary);
      term("total", ours.total);
    }
    compare_generator(both, in_round, *generator, now.generator, official["generator"]);
    both.weights(in_round + "n1.weight", "generator.n1.weight", now.norm[0], official["generator"]["n1.weight"]);
    for (const auto& [name, values] : {std::pair("mean", now.mean), std::pair("deviation", now.deviation)})
      for (std::int64_t c = 0; c < 3; ++c)
        both.term(fmt::format("{}{}[{}]", in_round, name, c), official[name][static_cast<std::size_t>(c)],
                  values[c].item<double>());
    if (!official["best"].is_null())
      both.weights(in_round + "best images", "best", dreamt.best, official["best"]["pixels"]);
  }
}

} // namespace

TEST_CASE("LANDER's generator descends like the official code's, with its adversary", "[official][lander]") {
  official_steps both("lander/synthesize");
  synthesize(both, "rounds", false);
}

TEST_CASE("LANDER's generator uses the official code's crops and flips", "[official][lander]") {
  official_steps both("lander/synthesize");
  synthesize(both, "rounds_of_views", true);
}

TEST_CASE("LANDER's student trains like the official code's", "[official][lander]") {
  official_steps both("lander/synthesize");
  const auto with = settings_of(both);
  const auto net = official_net();
  const auto teacher = official_weights(*net, "teacher.", both["running"]).to(at::kDouble);
  auto student = official_weights(*net, "student.", both["running"]).to(at::kDouble);
  at::Tensor momentum;
  const std::int64_t rows = both["settings"]["student_batch"];
  for (std::size_t step = 0; step < both["student"].size(); ++step) {
    const auto inputs = lesson_named(step, rows);
    train_student(*net, with.student(), teacher, inputs, student, momentum);
    compare_weights(both, fmt::format("student step {} ", step + 1), *net, student, both["student"][step],
                    first_classes);
  }
}

TEST_CASE("LANDER's clients step like the official code's, in both tasks", "[official][lander]") {
  official_steps both("lander/local_steps");
  const auto& given = both["settings"];
  const auto net = official_net();
  for (const auto& [task, old, opened] :
       {std::tuple("first", std::int64_t{0}, first_classes), std::tuple("later", first_classes, classes)}) {
    const auto& official = both[task];
    const std::int64_t own = given["own"], replayed = given["replayed"];
    const auto steps = std::ssize(official["steps"]);
    anchored_terms terms{
        .classes = classes, .old = old, .seen_classes = opened, .anchoring = 5.0, .radius = given["radius"]};
    terms.anchors = official_anchors();
    const auto images = images_named("own", official["labels"], own);
    for (std::int64_t count = 1; count <= steps; ++count) {
      train_job job{.net = net,
                    .start = weights_only(official_weights(*net, "client.", official["running"])),
                    .samples = rows_from(images, 0, own * count),
                    .objective = anchored_objective(terms)};
      job.options = {.batch_rows = own,
                     .learning_rate = given["rate"],
                     .momentum = given["momentum"],
                     .weight_decay = given["decay"],
                     .in_order = true,
                     .classes = {0, classes + embedding}};
      job.observation = first_epoch_observation();
      if (old > 0) {
        job.replay.samples = rows_from(images_named("replayed", official["labels"], replayed), 0, replayed * count);
        job.options.replay_rows = replayed;
        job.options.replay_by = replay_pass::separate;
        job.add_teacher(weights_only(official_weights(*net, "teacher.", official["running"])),
                        {.classes = {0, classes + embedding}});
      }
      const std::vector<mneme::job> batch{{.request = job}};
      const auto outcome = make_executor("cpu")->run(batch)[0];
      const auto where = fmt::format("{} step {} ", task, count);
      compare_weights(both, where, *net, weights_of(outcome), official["weights"][static_cast<std::size_t>(count - 1)],
                      opened);
      const auto& output = std::get<train_output>(std::get<work_output>(outcome));
      const auto parts = part_weights_of(old, opened);
      double sum = 0.0;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto& theirs = official["steps"][static_cast<std::size_t>(i)];
        const double bound = std::max(theirs["squares"].get<double>() - given["radius"].get<double>(), 0.0);
        sum += parts.fresh * (theirs["cross_entropy"].get<double>() + 5.0 * bound);
        if (old > 0)
          sum += parts.old * (theirs["distillation"].get<double>() + theirs["map_distillation"].get<double>());
      }
      both.term(where + "sum of losses", sum, output.observed->at(first_epoch_loss).item<double>(), 1e-5);
    }
  }
}
