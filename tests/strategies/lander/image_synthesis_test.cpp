// Images by LANDER's generator of ten classes of CIFAR-100 in few steps; takes one to two CPU minutes.
#include "runtime/data/data_sources.hpp"
#include "strategies/lander/anchored_loss.hpp"
#include "strategies/lander/image_synthesis.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
#include <ctime>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 10, embedding = 64;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Residual net trained by Adam on these rows.
tensors_ref learned(const model_ref& net, const sample_view& samples, class_range covered, const loss_ref& objective) {
  train_job job{.net = net, .start = weights_only(initial_weights(*net, 1)), .samples = samples};
  job.objective = objective;
  job.options = {.optimizer = optimizer_kind::adam,
                 .epochs = 8,
                 .batch_rows = 64,
                 .learning_rate = 3e-3,
                 .augment = augmentation_kind::crop_flip,
                 .classes = covered};
  const std::vector<mneme::job> batch{{.id = {}, .request = job}};
  const auto outcome = make_executor("cpu")->run(batch).front();
  return std::get<train_output>(std::get<work_output>(outcome)).weights;
}

double accuracy(const model_ref& net, const tensors_ref& weights, const sample_view& samples) {
  const std::vector<mneme::job> batch{
      {.id = {},
       .request = evaluate_job{.learned = {.net = net, .weights = weights}, .samples = samples, .mask = {0, classes}}}};
  const auto outcome = make_executor("cpu")->run(batch).front();
  const auto& found = std::get<evaluate_output>(std::get<work_output>(outcome));
  return 100.0 * static_cast<double>(found.correct) / static_cast<double>(found.rows);
}

/// Every second row, from `first` on.
sample_view half(const task_stream& tasks, std::size_t first) {
  std::vector<std::int64_t> rows;
  for (auto i = first; i < tasks.tasks[0].train.size(); i += 2)
    rows.push_back(tasks.tasks[0].train[i]);
  return view_of(tasks.train, rows);
}

} // namespace

// Seed 1, 180 steps: 720 images, 7.1 per CPU second. The teacher has 40 % accuracy on test rows and assigns 48.9 % of
// the images to their intended class. The oracle, with 39.3 % on test rows, recognizes 10.3 %, which is chance. So few
// steps make images that the teacher recognizes, but not yet another net.
TEST_CASE("LANDER's generator makes images in few steps that its teacher assigns to their classes", "[slow]") {
  const auto raw = load_data({.name = "cifar100"}, 1);
  if (!raw)
    SKIP("CIFAR-100 is not there");
  scenario settings;
  settings.tasks.kind = task_kind::single;
  settings.tasks.classes = classes;
  const auto tasks = make_task_stream(settings, *raw).value();
  const std::array<std::int64_t, 3> image{3, 32, 32};
  const auto net = model_named("resnet8", image, classes + embedding);
  anchored_terms terms{.classes = classes, .old = 0, .seen_classes = classes, .anchoring = 5.0, .radius = 0.015};
  terms.anchors = drawn({classes, embedding}, 7);
  const auto teacher = learned(net, half(tasks, 0), {0, classes + embedding}, anchored_objective(terms));
  const auto plain = model_named("resnet8", image, classes);
  const auto oracle = learned(plain, half(tasks, 1), {0, classes}, nullptr);

  // 12 rounds of 15 steps with 80 images, three times as many steps as in scenarios/small. The defaults are 50 rounds
  // of 40 steps with 256 images.
  synthesis_settings with{.shape = image, .scale = tasks.train->scale, .shift = tasks.train->shift, .classes = classes};
  with.seen_classes = classes, with.embedding = embedding;
  with.noise = 64, with.filters = 16, with.rounds = 12, with.warm_up = 4, with.steps = 15, with.batch = 80;
  with.student_steps = 10;
  auto in = std::make_shared<tensor_map>();
  in->put(flat_weights, teacher->at(flat_weights));
  in->put("student", initial_weights(*net, 2));
  in->put("anchors", terms.anchors);
  const auto before = cpu_seconds();
  const auto made = run_by_width(
      {{.body = synthesis_program(net, with), .in = in, .stream = {.seed = 1, .purpose = first_method_purpose}}}, 1);
  const auto took = cpu_seconds() - before;

  const auto& out = tensors_of(made[0]);
  const auto images = out.at("images");
  REQUIRE(images.size(0) == 720);
  generated_row_store store({.scale = tasks.train->scale, .shift = tasks.train->shift, .classes = classes});
  const auto dreamt = every_row_of(store.rows_of(images, out.at("labels")));
  const auto test = view_of(tasks.test, tasks.tasks[0].test);
  const auto recognized = accuracy(plain, oracle, dreamt), known = accuracy(net, teacher, dreamt);
  const auto* const apart = out.at("statistics").const_data_ptr<double>();
  WARN(images.size(0) << " images in " << took << " CPU seconds, " << static_cast<double>(images.size(0)) / took
                      << " a second; statistics " << apart[0] << " in the first round, " << apart[11]
                      << " in the last; of test rows teacher and oracle know " << accuracy(net, teacher, test)
                      << " % and " << accuracy(plain, oracle, test) << " %, of what is made " << known << " % and "
                      << recognized << " %");
  CHECK(apart[11] < apart[0]);
  CHECK(known >= 40.0); // chance is 10
}
