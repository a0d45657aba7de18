#include "runtime/data/catalog.hpp"
#include "runtime/gather.hpp"
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one holds

#include "tests/support/data.hpp"
#include "tests/support/learning.hpp"
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
using namespace mneme;
using namespace mneme::test;

namespace {

train_job usual(std::int64_t rows, training_options options) {
  static const auto source = drawn_data(40, {1, 1, 33}, 10);
  static const auto net = mlp_of({17}, 33, 10);
  options.classes = {0, 10};
  return {.net = net,
          .start = weights_only(initial_weights(*net, 1)),
          .samples = rows_from(source, 3, rows),
          .options = options,
          .stream = {.seed = 5, .client = {6}, .task = {1}, .visit = 2}};
}

at::Tensor trained(const train_job& what) {
  const std::vector<job> one{{.what = what}};
  return weights_of(make_executor("cpu")->run(one)[0]).clone();
}

/// The same training as a plain loop: autograd, and SGD as PyTorch documents it.
at::Tensor plainly_trained(const train_job& what) {
  const auto& with = what.options;
  auto flat = what.start->at(flat_weights).clone();
  at::Tensor momentum;
  for (std::int64_t epoch = 0; epoch < with.epochs; ++epoch) {
    auto key = key_for(what.stream, purpose::shuffle);
    key.index = static_cast<std::uint64_t>(epoch);
    auto order = *what.samples.rows;
    rng_stream(key).shuffle(std::span(order));
    for (std::size_t first = 0; first < order.size(); first += static_cast<std::size_t>(with.batch_rows)) {
      const auto count = std::min(order.size() - first, static_cast<std::size_t>(with.batch_rows));
      const auto rows = std::span(order).subspan(first, count);
      const auto x = composite_gather(*what.samples.source, what.samples.source->images, rows, {}).flatten(1);
      std::vector<std::int64_t> labels;
      for (const auto row : rows)
        labels.push_back(what.samples.source->label(row));
      flat.set_requires_grad(true);
      std::vector<at::Tensor> parts;
      for (const auto& one : what.net->layout())
        parts.push_back(flat.narrow(0, one.offset, one.size).view(one.shape));
      const auto logits = at::linear(at::relu(at::linear(x, parts[0], parts[1])), parts[2], parts[3]);
      at::cross_entropy_loss(logits, at::tensor(labels, at::kLong)).backward();
      auto step = flat.grad().clone();
      flat = flat.detach().clone();
      if (with.clip_norm > 0)
        step *= std::min(1.0, with.clip_norm / (step.norm().item<double>() + 1e-6));
      step += with.weight_decay * flat;
      momentum = momentum.defined() ? with.momentum * momentum + step : step;
      flat -= with.learning_rate * momentum;
    }
  }
  return flat;
}

} // namespace

TEST_CASE("a training equals a plain loop of autograd and SGD over the same shuffles", "[executor]") {
  at::set_num_threads(1);
  for (const std::int64_t rows : {1, 10, 23}) // with and without a last short batch
    for (const bool with_extras : {false, true}) {
      const auto extra = with_extras ? 1.0 : 0.0;
      const auto job = usual(rows, {.epochs = 3,
                                    .batch_rows = 10,
                                    .momentum = 0.9 * extra,
                                    .weight_decay = 0.05 * extra,
                                    .clip_norm = 0.7 * extra});
      CHECK(largest_difference(trained(job), plainly_trained(job)) < 2e-6);
    }
}

TEST_CASE("every client and every epoch has a shuffle of its own", "[executor]") {
  const auto base = usual(23, {.batch_rows = 5});
  CHECK(same_bits(trained(base), trained(base)));
  auto other = base;
  other.stream.visit = 3;
  CHECK_FALSE(same_bits(trained(base), trained(other)));
  auto second = base; // one epoch after another of the same stream repeats the shuffle; two epochs do not
  second.start = weights_only(trained(base));
  auto both = base;
  both.options.epochs = 2;
  CHECK_FALSE(same_bits(trained(both), trained(second)));
}

TEST_CASE("the order of a full batch hardly matters, that of small ones does", "[executor]") {
  const auto difference = [](std::int64_t batch_rows) {
    auto one = usual(20, {.batch_rows = batch_rows, .learning_rate = 0.5}), other = one;
    other.stream.visit = 3;
    return largest_difference(trained(one), trained(other));
  };
  CHECK(difference(0) < 1e-6); // only sums are taken in another order
  CHECK(difference(2) > 1e-3);
}

TEST_CASE("augmentation is drawn anew in every epoch", "[executor]") {
  auto job = usual(20, {.epochs = 2, .batch_rows = 0});
  const auto source = drawn_data(40, {1, 12, 12}, 10);
  job.net = mlp_of({8}, 144, 10);
  job.start = weights_only(initial_weights(*job.net, 1));
  job.samples = rows_from(source, 0, 20);
  job.options.augment = augmentation_kind::crop_flip;
  auto first = job;
  first.options.epochs = 1;
  auto second = first;
  second.start = weights_only(trained(first));
  CHECK(largest_difference(trained(job), trained(second)) > 1e-5); // equal if epoch 2 saw the crops of epoch 1
}

TEST_CASE("a multi-layer perceptron learns the digits of MNIST in two epochs", "[executor][data]") {
  MNEME_NEEDS_DATA(folder, "mnist");
  at::set_num_threads(1);
  const auto loaded =
      load_data({.name = "mnist", .root = folder.parent_path(), .train_rows = 6000, .test_rows = 1000}, 1);
  REQUIRE(loaded.has_value());
  const auto as_dataset = [&](const image_table& table) {
    auto made = std::make_shared<dataset>();
    made->images = table.images;
    made->labels = table.labels;
    made->transforms.resize(1);
    made->scale = {static_cast<float>(1.0 / 255.0 / loaded->deviation[0])};
    made->shift = {static_cast<float>(-loaded->mean[0] / loaded->deviation[0])};
    return made;
  };
  const auto train = as_dataset(loaded->train), test = as_dataset(loaded->test);
  const auto net = net_of("mlp", {1, 28, 28}, 10);
  const auto weights = trained({.net = net,
                                .start = weights_only(initial_weights(*net, 1)),
                                .samples = rows_from(train, 0, 6000),
                                .options = {.epochs = 2, .batch_rows = 32, .learning_rate = 0.1, .classes = {0, 10}}});
  const std::vector<job> asking{
      {.what =
           evaluate_job{.what = {net, weights_only(weights)}, .samples = rows_from(test, 0, 1000), .mask = {0, 10}}}};
  const auto answer = make_executor("cpu")->run(asking);
  const auto& result = std::get<evaluate_output>(std::get<work_output>(answer[0]));
  INFO(result.correct << " of 1000 right");
  CHECK(result.correct > 890);
  CHECK(result.loss_sum / 1000 < 0.4);
}
