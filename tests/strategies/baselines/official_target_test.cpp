// TARGET beside its authors' program, step by step: what tools/official/target.py has written.
#include "runtime/models/function.hpp"
#include "strategies/baselines/target_images.hpp"
#include "strategies/baselines/target_loss.hpp"
#include "strategies/shared/image_generator.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/official_steps.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 6, first_classes = 4, side = 16;
const std::array<std::int64_t, 3> image{3, side, side};

model_ref official_net() { return model_named("resnet8", image, classes); }

at::Tensor values_of(const std::string& name, at::IntArrayRef sizes) {
  return at::tensor(formula(name, c10::multiply_integers(sizes)), at::kFloat).view(sizes);
}
/// Weights by name; running statistics are the record's.
at::Tensor official_weights(const model& net, const std::string& prefix, const nlohmann::json& running) {
  auto flat = at::empty({net.size()}, at::kFloat);
  for (const auto& entry : net.layout())
    put_as_in_files(flat, entry,
                    entry.buffer ? at::tensor(running[entry.name].get<std::vector<float>>(), at::kFloat)
                                 : made_values(prefix + entry.name, entry.shape));
  return flat;
}
/// Every parameter and running statistic beside the record's, whose head has `opened` rows.
void compare_weights(official_steps& both, const std::string& where, const model& net, const at::Tensor& flat,
                     const nlohmann::json& official, std::int64_t opened) {
  for (const auto& entry : net.layout()) {
    const auto values = as_in_files(flat, entry);
    both.weights(where + entry.name, entry.name, entry.head ? values.narrow(0, 0, opened) : values,
                 official[entry.name]);
  }
}

/// Names of a generator's parameters there.
std::string official_name(const std::string& name) {
  static const std::map<std::string, std::string> names{
      {"fc1", "l1.0"},           {"bn1", "conv_blocks.0"},   {"conv1", "conv_blocks.2"},
      {"bn2", "conv_blocks.3"},  {"conv2", "conv_blocks.6"}, {"bn3", "conv_blocks.7"},
      {"conv3", "conv_blocks.9"}};
  const auto dot = name.find('.');
  return names.at(name.substr(0, dot)) + name.substr(dot);
}

target_settings settings_of(const official_steps& both) {
  const auto& given = both["settings"];
  target_settings with{.shape = image, .opened = first_classes};
  for (std::size_t c = 0; c < 3; ++c) {
    with.scale.push_back(given["scale"][c].get<float>() / 255.0F);
    with.shift.push_back(given["shift"][c]);
  }
  with.batch = given["batch"], with.code = given["code"], with.filters = given["filters"];
  with.steps = given["steps"], with.warm_up = given["warm_up"];
  return with;
}

/// What the script draws in a round; views count over all rounds.
target_draws draws_of(const target_settings& with, std::int64_t round, const nlohmann::json& official) {
  target_draws draws{.labels = at::tensor(official["labels"].get<std::vector<std::int64_t>>(), at::kLong),
                     .codes = (2 * values_of(fmt::format("codes.{}", round), {with.batch, with.code})).to(at::kDouble)};
  std::vector<at::Tensor> shown;
  for (std::int64_t step = 0; step < with.steps; ++step) {
    const auto drawn = values_of(fmt::format("views.{}", round * with.steps + step), {3, with.batch}).to(at::kDouble);
    const auto offsets = ((drawn.narrow(0, 0, 2) + 1.0) * 4.5).to(at::kLong).clamp_max(8);
    shown.push_back(at::cat({offsets, (drawn.narrow(0, 2, 1) > 0.0).to(at::kLong)}).t());
  }
  draws.views = at::stack(shown);
  return draws;
}

/// In float64, as the script computes: Adam makes of what is zero in exact numbers a step of full length.
void synthesise(official_steps& both, const char* rounds, outer_step outer) {
  auto with = settings_of(both);
  with.outer = outer;
  const auto net = official_net();
  const auto teacher = official_weights(*net, "teacher.", both["running"]).to(at::kDouble);
  const auto student = official_weights(*net, "student.", both["running"]).to(at::kDouble);
  const auto generator = image_generator(image, with.code, with.filters);
  auto start = initial_weights(*generator, 1);
  for (const auto& entry : generator->layout())
    if (!entry.buffer)
      put_as_in_files(start, entry, made_values("generator." + official_name(entry.name), entry.shape));
  target_maker now{.generator = adam(start.to(at::kDouble).unsqueeze(0))};
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
    for (const auto& entry : generator->layout())
      if (!entry.buffer) {
        const auto name = official_name(entry.name);
        both.weights(in_round + name, "generator." + name, as_in_files(now.generator.weights()[0], entry),
                     official["generator"][name]);
      }
    both.weights(in_round + "best images", "best", ours.best, official["best"]["pixels"]);
    both.weights(in_round + "bytes", "bytes", (ours.best * 255.0).to(at::kByte), official["best"]["bytes"], 1e-4);
  }
}

} // namespace

TEST_CASE("TARGET's generator descends what the authors' program descends, with either outer step",
          "[official][target]") {
  official_steps both("target/synthesize");
  synthesise(both, "first-order", outer_step::first_order);
  synthesise(both, "reptile", outer_step::reptile);
}

TEST_CASE("TARGET's student moves as in the authors' program", "[official][target]") {
  official_steps both("target/synthesize");
  const auto net = official_net();
  const auto teacher = official_weights(*net, "teacher.", both["running"]).to(at::kDouble);
  auto student = official_weights(*net, "student.", both["running"]).to(at::kDouble);
  at::Tensor momentum;
  const std::int64_t rows = both["settings"]["student_batch"];
  const student_rules rules{.classes = classes, .opened = first_classes, .rate = 0.2, .decay = 1e-4};
  for (std::size_t step = 0; step < both["student"].size(); ++step) {
    const auto inputs = 2 * values_of(fmt::format("student.{}", step), {rows, 3, side, side}).to(at::kDouble);
    teach_student(*net, rules, teacher, inputs, student, momentum);
    compare_weights(both, fmt::format("student step {} ", step + 1), *net, student, both["student"][step],
                    first_classes);
  }
}

namespace {

/// Images by name as vectors, beside their labels.
std::shared_ptr<dataset> named_images(const std::string& set, const nlohmann::json& labels_of_steps,
                                      std::int64_t rows) {
  auto images = std::make_shared<dataset>();
  std::vector<at::Tensor> steps;
  for (std::size_t step = 0; step < labels_of_steps.size(); ++step) {
    steps.push_back(2 * values_of(fmt::format("{}.{}", set, step), {rows, 3 * side * side}));
    for (std::int64_t i = 0; i < rows; ++i)
      images->labels.push_back(labels_of_steps[step][static_cast<std::size_t>(i)].get<std::int32_t>());
  }
  images->vectors = at::cat(steps);
  return images;
}

} // namespace

TEST_CASE("TARGET's clients step as in the authors' program", "[official][target]") {
  official_steps both("target/local_steps");
  const auto& given = both["settings"];
  const auto net = official_net();
  const std::int64_t own = given["own"], replayed = given["replayed"];
  const auto images = named_images("own", both["labels"], own);
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
    job.options.first_loss = true;
    job.replay.samples = rows_from(named_images("replayed", both["labels"], replayed), 0, replayed * count);
    job.options.replay_rows = replayed;
    job.options.replay_by = replay_pass::separate;
    job.teacher = weights_only(official_weights(*net, "teacher.", both["running"]));
    job.options.taught = {0, first_classes};
    const std::vector<mneme::job> batch{{.request = job}};
    const auto outcome = make_executor("cpu")->run(batch)[0];
    const auto last = static_cast<std::size_t>(count - 1);
    const auto where = fmt::format("step {} ", count);
    compare_weights(both, where, *net, weights_of(outcome), both["weights"][last], classes);
    const auto& theirs = both["steps"][last];
    sum += theirs["cross_entropy"].get<double>() + 25.0 * theirs["distillation"].get<double>();
    both.term(where + "sum of losses", sum, std::get<train_output>(std::get<work_output>(outcome)).first_loss, 1e-5);
  }
}
