// MFCL compared with its authors' program, step by step. tools/research/official/mfcl.py wrote the reference values.
#include "runtime/models/function.hpp"
#include "strategies/baselines/mfcl_generator.hpp"
#include "strategies/baselines/mfcl_loss.hpp"
#include "strategies/lander/first_epoch_loss.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/official_images.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 6, first_classes = 4;

model_ref official_net() { return model_named("resnet8", official_image, classes); }

/// "bn1.weight" of a generator with this number of stages, numbered like the layers of the official code.
std::string mfcl_name(const std::string& name, std::int64_t stages) {
  const auto dot = name.find('.');
  const auto layer = name.substr(0, dot), end = name.substr(dot);
  if (layer == "fc1")
    return "l1.0" + end;
  if (layer == "bn0")
    return "conv_blocks0.0" + end;
  if (layer == "conv_image" || layer == "bn_image")
    return fmt::format("conv_blocks{}.{}{}", stages, layer == "conv_image" ? 3 : 5, end);
  const auto number = layer.substr(layer.size() - 1);
  return fmt::format("conv_blocks{}.{}{}", number, layer.starts_with("conv") ? 0 : 1, end);
}

void compare_steps(official_steps& both, const char* name, std::int64_t stages) {
  mfcl_settings settings{.shape = official_image, .seen_classes = first_classes, .upsamplings = stages};
  settings.code = both["settings"]["code"], settings.filters = both["settings"]["filters"];
  settings.batch = both["settings"]["batch"];
  const auto net = official_net(), generator = mfcl_generator(settings);
  const auto teacher = official_weights(*net, "teacher.", both["running"]).to(at::kDouble);
  auto flat = initial_weights(*generator, 1);
  for (const auto& entry : generator->layout())
    if (!entry.buffer && !entry.name.starts_with("bn_image"))
      put_as_in_files(flat, entry, made_values("generator." + mfcl_name(entry.name, stages), entry.shape));
  flat = flat.to(at::kDouble).unsqueeze(0);
  const auto codes_of = [&](std::size_t step) {
    return (2 * values_named(fmt::format("codes.{}", step), {settings.batch, settings.code})).to(at::kDouble);
  };
  mfcl_generator_state now{adam(flat), flat};
  const auto& steps = both[name]["steps"];
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto ours = mfcl_step(*net, *generator, settings, teacher, codes_of(step), now);
    const auto where = fmt::format("{} upsamplings, step {} ", stages, step + 1);
    both.term(where + "labels", steps[step]["labels"], ours.labels);
    both.term(where + "information", steps[step]["information"], ours.information);
    both.term(where + "statistics", steps[step]["statistics"], ours.statistics);
    both.term(where + "smoothness", steps[step]["smoothness"], ours.smoothness);
    both.term(where + "total", steps[step]["total"], ours.total);
    const auto weights = now.whole(*generator);
    for (const auto& entry : generator->layout()) {
      const auto theirs = mfcl_name(entry.name, stages);
      if (entry.buffer || !entry.name.starts_with("bn_image"))
        both.weights(where + theirs, "generator." + theirs, as_in_files(weights, entry),
                     steps[step]["generator"][theirs]);
    }
  }
  const auto images = mfcl_images(*generator, settings, now.whole(*generator), codes_of(steps.size()));
  both.weights(fmt::format("{} upsamplings, images in evaluation mode", stages), "sample", images.contiguous(),
               both[name]["sample"]);
  const auto answers =
      net->differentiable(teacher.unsqueeze(0), images.unsqueeze(0).contiguous(), {0, first_classes}, {});
  const auto taken_for = answers.logits[0].argmax(1).contiguous();
  const auto* const first = taken_for.const_data_ptr<std::int64_t>();
  both.equal(fmt::format("{} upsamplings, classes of images", stages), both[name]["labels"],
             std::vector<std::int64_t>(first, first + taken_for.numel()));
}

} // namespace

TEST_CASE("MFCL's generator descends like the official code's", "[official][mfcl]") {
  official_steps both("mfcl/generator");
  compare_steps(both, "two", 2);
  compare_steps(both, "three", 3);
}

TEST_CASE("MFCL's clients step like the official code's", "[official][mfcl]") {
  official_steps both("mfcl/local_steps");
  const auto& given = both["settings"];
  const auto net = official_net();
  const std::int64_t own = given["own"], replayed = given["replayed"];
  const auto teacher = official_weights(*net, "teacher.", both["running"]);
  const auto images = images_named("own", both["labels"], own);
  double sum = 0.0;
  for (std::int64_t count = 1; count <= std::ssize(both["steps"]); ++count) {
    train_job job{.net = net,
                  .start = weights_only(official_weights(*net, "client.", both["running"])),
                  .samples = rows_from(images, 0, own * count),
                  .objective = mfcl_objective(first_classes, {})};
    job.options = {.batch_rows = own,
                   .learning_rate = given["rate"],
                   .weight_decay = given["decay"],
                   .in_order = true,
                   .classes = {0, classes}};
    job.observation = first_epoch_observation();
    job.options.running_stats_updates = 2;
    job.replay.samples = rows_from(images_named("replayed", both["labels"], replayed), 0, replayed * count);
    job.options.replay_rows = replayed;
    job.add_teacher(weights_only(teacher), {.classes = {0, first_classes}});
    job.auxiliary = old_head(*net, teacher, first_classes);
    const std::vector<mneme::job> batch{{.request = job}};
    const auto outcome = make_executor("cpu")->run(batch)[0];
    const auto last = static_cast<std::size_t>(count - 1);
    const auto where = fmt::format("step {} ", count);
    for (const auto& entry : net->layout())
      both.weights(where + entry.name, entry.name, as_in_files(weights_of(outcome), entry),
                   both["weights"][last][entry.name]);
    for (const auto* const term : {"cross_entropy", "head_cross_entropy", "feature_distillation"})
      sum += both["steps"][last][term].get<double>();
    both.term(where + "sum of losses", sum,
              std::get<train_output>(std::get<work_output>(outcome)).observed->at(first_epoch_loss).item<double>(),
              1e-5);
  }
}
