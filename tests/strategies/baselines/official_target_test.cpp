// TARGET compared with its authors' program, step by step. tools/research/official/target.py wrote the reference
// values.
#include "runtime/models/function.hpp"
#include "strategies/baselines/target_images.hpp"
#include "strategies/baselines/target_loss.hpp"
#include "strategies/lander/first_epoch_loss.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/official_images.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 6, first_classes = 4;

model_ref official_net() { return model_named("resnet8", official_image, classes); }

/// Compares every parameter and running statistic with the record, whose head has `opened` rows.
void compare_weights(official_steps& both, const std::string& where, const model& net, const at::Tensor& flat,
                     const nlohmann::json& official, std::int64_t opened) {
  for (const auto& entry : net.layout()) {
    const auto values = as_in_files(flat, entry);
    both.weights(where + entry.name, entry.name, entry.head ? values.narrow(0, 0, opened) : values,
                 official[entry.name]);
  }
}

target_settings settings_of(const official_steps& both) {
  const auto& given = both["settings"];
  target_settings with{.shape = official_image, .seen_classes = first_classes};
  for (std::size_t c = 0; c < 3; ++c) {
    with.scale.push_back(given["scale"][c].get<float>() / 255.0F);
    with.shift.push_back(given["shift"][c]);
  }
  with.batch = given["batch"], with.code = given["code"], with.filters = given["filters"];
  with.steps = given["steps"], with.warm_up = given["warm_up"];
  return with;
}

/// Draws of the script in a round; views are counted over all rounds.
target_draws draws_of(const target_settings& with, std::int64_t round, const nlohmann::json& official) {
  target_draws draws{.labels = at::tensor(official["labels"].get<std::vector<std::int64_t>>(), at::kLong),
                     .codes =
                         (2 * values_named(fmt::format("codes.{}", round), {with.batch, with.code})).to(at::kDouble)};
  draws.views = views_named(round * with.steps, with.steps, with.batch);
  return draws;
}

/// In float64 like the script: Adam turns values that are zero in exact arithmetic into full steps.
void synthesize(official_steps& both, const char* rounds, outer_step outer) {
  auto with = settings_of(both);
  with.outer = outer;
  const auto net = official_net();
  const auto teacher = official_weights(*net, "teacher.", both["running"]).to(at::kDouble);
  const auto student = official_weights(*net, "student.", both["running"]).to(at::kDouble);
  const auto generator = image_generator(official_image, with.code, with.filters);
  target_generator_state now{.generator = adam(official_generator(*generator).to(at::kDouble).unsqueeze(0))};
  for (std::size_t round = 0; round < both[rounds].size(); ++round) {
    const auto& official = both[rounds][round];
    const auto number = static_cast<std::int64_t>(round);
    const auto ours = target_round(*net, *generator, with, teacher, number + 1 >= with.warm_up ? student : at::Tensor{},
                                   now, draws_of(with, number, official));
    const auto in_round = fmt::format("{} round {} ", rounds, round + 1);
    REQUIRE(ours.losses.size() == official["steps"].size());
    for (std::size_t step = 0; step < ours.losses.size(); ++step) {
      const auto& theirs = official["steps"][step];
      const auto term = [&](const char* name, double value) {
        both.term(fmt::format("{}step {} {}", in_round, step + 1, name), theirs[name], value);
      };
      term("statistics", ours.losses[step].statistics);
      term("labels", ours.losses[step].labels);
      term("adversary", ours.losses[step].adversary);
      term("total", ours.losses[step].total);
    }
    compare_generator(both, in_round, *generator, now.generator.weights()[0], official["generator"]);
    both.weights(in_round + "best images", "best", ours.best, official["best"]["pixels"]);
    both.weights(in_round + "bytes", "bytes", (ours.best * 255.0).to(at::kByte), official["best"]["bytes"], 1e-4);
  }
}

} // namespace

TEST_CASE("TARGET's generator descends like the official code's, with both outer steps", "[official][target]") {
  official_steps both("target/synthesize");
  synthesize(both, "first-order", outer_step::first_order);
  synthesize(both, "reptile", outer_step::reptile);
}

TEST_CASE("TARGET's student trains like the official code's", "[official][target]") {
  official_steps both("target/synthesize");
  const auto net = official_net();
  const auto teacher = official_weights(*net, "teacher.", both["running"]).to(at::kDouble);
  auto student = official_weights(*net, "student.", both["running"]).to(at::kDouble);
  at::Tensor momentum;
  const std::int64_t rows = both["settings"]["student_batch"];
  const student_rules rules{.classes = classes, .seen_classes = first_classes, .rate = 0.2, .decay = 1e-4};
  for (std::size_t step = 0; step < both["student"].size(); ++step) {
    const auto inputs = lesson_named(step, rows);
    train_student(*net, rules, teacher, inputs, student, momentum);
    compare_weights(both, fmt::format("student step {} ", step + 1), *net, student, both["student"][step],
                    first_classes);
  }
}

TEST_CASE("TARGET's clients step like the official code's", "[official][target]") {
  official_steps both("target/local_steps");
  const auto& given = both["settings"];
  const auto net = official_net();
  const std::int64_t own = given["own"], replayed = given["replayed"];
  const auto images = images_named("own", both["labels"], own);
  double sum = 0.0;
  for (std::int64_t count = 1; count <= std::ssize(both["steps"]); ++count) {
    train_job job{.net = net,
                  .start = weights_only(official_weights(*net, "client.", both["running"])),
                  .samples = rows_from(images, 0, own * count),
                  .objective = target_objective(first_classes, 25.0, 2.0)};
    job.options = {.batch_rows = own,
                   .learning_rate = given["rate"],
                   .momentum = given["momentum"],
                   .weight_decay = given["decay"],
                   .in_order = true,
                   .classes = {0, classes}};
    job.observation = first_epoch_observation();
    job.replay.samples = rows_from(images_named("replayed", both["labels"], replayed), 0, replayed * count);
    job.options.replay_rows = replayed;
    job.options.replay_by = replay_pass::separate;
    job.add_teacher(weights_only(official_weights(*net, "teacher.", both["running"])), {.classes = {0, first_classes}});
    const std::vector<mneme::job> batch{{.request = job}};
    const auto outcome = make_executor("cpu")->run(batch)[0];
    const auto last = static_cast<std::size_t>(count - 1);
    const auto where = fmt::format("step {} ", count);
    compare_weights(both, where, *net, weights_of(outcome), both["weights"][last], classes);
    const auto& theirs = both["steps"][last];
    sum += theirs["cross_entropy"].get<double>() + 25.0 * theirs["distillation"].get<double>();
    both.term(where + "sum of losses", sum,
              std::get<train_output>(std::get<work_output>(outcome)).observed->at(first_epoch_loss).item<double>(),
              1e-5);
  }
}
