#include "runtime/method/jobs.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

train_job usual() {
  static const auto source = drawn_data(10, {1, 1, 8}, 4);
  const auto net = mlp_of({6}, 8, 4);
  return {.net = net,
          .start = weights_only(initial_weights(*net, 1)),
          .samples = rows_from(source, 0, 5),
          .options = {.classes = {0, 4}}};
}

} // namespace

TEST_CASE("a fuse key depends on everything that changes arithmetic", "[jobs]") {
  std::set<fuse_key> keys{key_of(usual())};
  std::size_t variants = 1;
  const auto differs = [&](auto change) {
    auto job = usual();
    change(job);
    keys.insert(key_of(job));
    ++variants;
    CHECK(keys.size() == variants);
  };
  differs([](train_job& job) { job.net = mlp_of({5}, 8, 4); });
  differs([](train_job& job) { job.objective = proximal_objective(0.1); });
  differs([](train_job& job) { job.objective = proximal_objective(0.2); });
  differs([](train_job& job) { job.options.optimizer = optimizer_kind::adam; });
  differs([](train_job& job) { job.options.epochs = 2; });
  differs([](train_job& job) { job.options.batch_rows = 3; });
  differs([](train_job& job) { job.options.learning_rate = 0.06; });
  differs([](train_job& job) { job.options.momentum = 0.5; });
  differs([](train_job& job) { job.options.weight_decay = 0.5; });
  differs([](train_job& job) { job.options.clip_norm = 0.5; });
  differs([](train_job& job) { job.options.augment = augmentation_kind::crop_flip; });
  differs([](train_job& job) { job.options.trained = trainable_part::head; });
  differs([](train_job& job) { job.options.classes = {0, 3}; });
  differs([](train_job& job) { job.options.classes = {1, 4}; });
  differs([](train_job& job) { job.options.trained = trainable_part::body; });
  differs([](train_job& job) { job.options.layers = {"fc1"}; });
  differs([](train_job& job) { job.options.layers = {"fc2"}; });
  differs([](train_job& job) { job.options.teachers = {{.features = true}}; });
  differs([](train_job& job) { job.options.maps = {"fc1"}; });
  differs([](train_job& job) { job.options.evaluation = true; });
  differs([](train_job& job) { job.options.result = training_result::gradient; });
  differs([](train_job& job) { job.options.replay_rows = 3; });
  differs([](train_job& job) { job.options.replay_weight = 0.5; });
  differs([](train_job& job) { job.annotations.targets = at::zeros({5, 4}); });
  differs([](train_job& job) { job.replay.samples = rows_from(drawn_data(10, {1, 2, 4}, 4), 0, 5); });
}

TEST_CASE("a fuse key does not depend on a client's rows, initial weights, stream or side tensors", "[jobs]") {
  const auto expected = key_of(usual());
  auto job = usual();
  job.samples = rows_from(job.samples.source, 3, 7);
  job.start = weights_only(initial_weights(*job.net, 2));
  job.auxiliary = weights_only(at::zeros({3}));
  job.annotations.weights = std::make_shared<const std::vector<float>>(7, 0.5F);
  job.stream = {.seed = 9, .client = {7}};
  job.net = mlp_of({6}, 8, 4); // another object of the same net
  job.objective = cross_entropy_objective();
  CHECK(key_of(job) == expected);
}

TEST_CASE("jobs of different kinds, masks and widths have different fuse keys", "[jobs]") {
  const auto base = usual();
  const auto with = [&](std::int64_t width) {
    return statistics_job{.net = base.net,
                          .weights = base.start,
                          .samples = base.samples,
                          .projection = width > 0 ? at::zeros({6, width}) : at::Tensor{}};
  };
  const auto over = [&](class_range mask) {
    return evaluate_job{.learned = {base.net, base.start}, .samples = base.samples, .mask = mask};
  };
  const std::set<fuse_key> keys{
      key_of(base),         key_of(extract_job{.net = base.net, .weights = base.start, .samples = base.samples}),
      key_of(with(0)),      key_of(with(9)),
      key_of(over({0, 4})), key_of(over({0, 2}))};
  CHECK(keys.size() == 6);
}

TEST_CASE("rows and bytes of jobs follow from their description", "[jobs]") {
  auto training = usual();
  CHECK(rows_of(training) == 5);
  training.options.epochs = 3;
  CHECK(rows_of(training) == 15);
  training.options.epochs = 0;
  CHECK(rows_of(training) == 5);
  training.options = {.epochs = 3, .batch_rows = 2, .classes = {0, 4}, .replay_rows = 4};
  CHECK(rows_of(training) == 15);
  training.replay.samples = rows_from(training.samples.source, 0, 3);
  CHECK(rows_of(training) == 3 * (5 + 3 * 3)); // per epoch: 5 own rows, and 3 steps with 3 replayed rows
  training.options.batch_rows = 0;
  CHECK(rows_of(training) == 3 * (5 + 3));
  auto norms = training;
  norms.options.result = training_result::row_norms;
  CHECK(outcome_bytes(norms) == 8 * 5);
  CHECK(outcome_bytes(training) == 4 * (8 * 6 + 6 + 6 * 4 + 4));
  const extract_job extract{.net = training.net, .weights = training.start, .samples = training.samples};
  CHECK(rows_of(extract) == 5);
  CHECK(outcome_bytes(extract) == 5 * (4 * (6 + 4) + 8));
  statistics_job statistics{
      .net = training.net, .weights = training.start, .samples = training.samples, .classes = {0, 4}};
  CHECK(outcome_bytes(statistics) == 8 * (6 * 6 + 4 * 6 + 4));
  statistics.gram = false;
  statistics.projection = at::zeros({6, 20});
  statistics.classes = {3, 10};
  statistics.parts = 2;
  CHECK(outcome_bytes(statistics) == 8 * 2 * (7 * 20 + 7));
  CHECK(std::string(work_name(training)) == "train");
  CHECK(std::string(work_name(extract)) == "extract");
  CHECK(std::string(work_name(statistics)) == "statistics");
  CHECK(std::string(work_name(evaluate_job{})) == "evaluate");
  CHECK(std::string(work_name(compute_job{})) == "compute");
}
