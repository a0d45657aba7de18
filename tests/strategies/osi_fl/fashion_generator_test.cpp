// Images of Fashion-MNIST by the embedded generator; takes CPU minutes.
#include "runtime/data/data_sources.hpp"
#include "strategies/osi_fl/latent_generator.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
#include <array>
#include <cmath>
#include <ctime>
#include <numeric>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 10;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Net trained by Adam on these rows, at a rate that falls by half a cosine over the passes.
tensors_ref learned(const model_ref& net, const sample_view& samples, std::int64_t passes) {
  auto weights = weights_only(initial_weights(*net, 1));
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const double angle = 3.14159265358979 * static_cast<double>(pass) / static_cast<double>(passes);
    train_job job{.net = net, .start = weights, .samples = samples};
    job.options = {.optimizer = optimizer_kind::adam,
                   .epochs = 1,
                   .batch_rows = 64,
                   .learning_rate = 1e-3 * 0.5 * (1.0 + std::cos(angle)),
                   .classes = {0, classes}};
    job.stream.index = static_cast<std::uint64_t>(pass);
    const std::vector<mneme::job> batch{{.id = {}, .request = job}};
    const auto outcome = make_executor("cpu")->run(batch).front();
    weights = std::get<train_output>(std::get<work_output>(outcome)).weights;
  }
  return weights;
}

/// The first rows of each class.
sample_view first_of_each(const std::shared_ptr<const dataset>& from, const std::vector<std::int64_t>& rows,
                          std::int64_t of_class) {
  std::array<std::int64_t, classes> taken{};
  std::vector<std::int64_t> chosen;
  for (const auto row : rows)
    if (auto& count = taken.at(static_cast<std::size_t>(from->label(row))); count < of_class) {
      ++count;
      chosen.push_back(row);
    }
  return view_of(from, chosen);
}

double accuracy(const model_ref& net, const tensors_ref& weights, const sample_view& samples) {
  const std::vector<mneme::job> batch{
      {.id = {},
       .request = evaluate_job{.learned = {.net = net, .weights = weights}, .samples = samples, .mask = {0, classes}}}};
  const auto outcome = make_executor("cpu")->run(batch).front();
  const auto& found = std::get<evaluate_output>(std::get<work_output>(outcome));
  return 100.0 * static_cast<double>(found.correct) / static_cast<double>(found.rows);
}

} // namespace

// A fifth of the training rows is public. The oracle is a LeNet trained on all others. The classifier is the
// multi-layer perceptron 784-200-100-10, trained for 20 passes on 20,000 generated images only. A LeNet reaches less
// from the same images, because they are locally smooth.
TEST_CASE("an oracle recognizes generated images, and a classifier trained on them recognizes real ones", "[slow]") {
  const auto raw = load_data({.name = "fashion-mnist"}, 1);
  if (!raw)
    SKIP("Fashion-MNIST is not there");
  scenario settings;
  settings.tasks.kind = task_kind::single;
  settings.partition.public_share = 0.2;
  const auto tasks = make_task_stream(settings, *raw).value();
  const auto& rows = tasks.tasks[0];
  const method_setup setup{
      .tasks = 1, .classes = classes, .shape = {1, 28, 28}, .task_classes = {{0, classes}}, .seed = 1};

  const auto before = cpu_seconds();
  constexpr std::int64_t of_class = 2'000;
  latent_generator generator(setup, {.matches_moments = true, .sampling = {.images = of_class}});
  struct open_rows final : central_rows {
    const task_stream& tasks;
    explicit open_rows(const task_stream& from) : tasks(from) {}
    [[nodiscard]] sample_view of_task(task_id) const override { return {}; }
    [[nodiscard]] sample_view of_enrolled(task_id) const override { return {}; }
    [[nodiscard]] sample_view of_public(task_id) const override {
      return view_of(tasks.train, tasks.tasks[0].public_rows);
    }
  };
  const open_rows open(tasks);
  const auto device = make_executor("cpu");
  job_channel channel;
  server_context ctx(channel, &open);
  run_step(generator.train(ctx), channel, *device);
  const auto trained = cpu_seconds();

  // One client holds all rows that are not public.
  const auto held = view_of(tasks.train, rows.train);
  const auto means = run_by_width(
      {{.body = class_means(latent_generator::shape_of(setup), classes), .in = generator.encoder(), .samples = held}},
      1);
  const auto described = cpu_seconds();
  std::vector<at::Tensor> images, labels;
  for (std::int64_t label = 0; label < classes; ++label) {
    const auto condition = tensors_of(means[0]).at("means")[label].clone();
    const rng_key stream{.seed = 1, .purpose = first_method_purpose, .index = static_cast<std::uint64_t>(label)};
    images.push_back(tensors_of(run_by_width({generator.generation(condition, stream)}, 1)[0]).at("images"));
    labels.push_back(at::full({of_class}, label, at::kLong));
  }
  const auto generated = cpu_seconds();
  generated_row_store store({.scale = tasks.train->scale, .shift = tasks.train->shift, .classes = classes});
  const auto whole = at::cat(images), kinds = at::cat(labels);
  const auto made = every_row_of(store.rows_of(whole, kinds));

  const auto lenet = model_named("lenet", {1, 28, 28}, classes), mlp = model_named("mlp", {1, 28, 28}, classes);
  const auto test = view_of(tasks.test, rows.test);
  const auto oracle = learned(lenet, held, 4);
  const auto real = accuracy(lenet, oracle, test), recognized = accuracy(lenet, oracle, made);
  const auto learned_from_made = accuracy(mlp, learned(mlp, made, 20), test);
  const auto learned_from_real =
      accuracy(mlp, learned(mlp, first_of_each(tasks.train, rows.train, of_class), 20), test);
  WARN("generator trained in " << trained - before << " CPU seconds; class means " << described - trained << ", "
                               << classes * of_class << " images " << generated - described << "; oracle " << real
                               << " % on test rows, " << recognized << " % on what is generated; a perceptron learnt "
                               << "from that " << learned_from_made << " % on test rows, from as many real rows "
                               << learned_from_real << " %");
  CHECK(recognized >= 90.0);
  CHECK(learned_from_made >= 85.0);
}
