#include "runtime/data/data_sources.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/gather.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/data.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/reference_gather.hpp"
#include "tests/support/wrapped_model.hpp"
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

at::Tensor trained(const train_job& request) {
  const std::vector<job> single{{.request = request}};
  return weights_of(make_executor("cpu")->run(single)[0]).clone();
}

/// The same training as a plain loop with autograd and PyTorch's SGD.
at::Tensor plainly_trained(const train_job& job) {
  const auto& options = job.options;
  auto flat = job.start->at(flat_weights).clone();
  at::Tensor momentum;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    auto key = key_for(job.stream, purpose::shuffle);
    key.index = static_cast<std::uint64_t>(epoch);
    auto order = *job.samples.rows;
    rng_stream(key).shuffle(std::span(order));
    for (std::size_t first = 0; first < order.size(); first += static_cast<std::size_t>(options.batch_rows)) {
      const auto count = std::min(order.size() - first, static_cast<std::size_t>(options.batch_rows));
      const auto rows = std::span(order).subspan(first, count);
      const auto x = reference_gather(*job.samples.source, rows, {}).flatten(1);
      std::vector<std::int64_t> labels;
      for (const auto row : rows)
        labels.push_back(job.samples.source->label(row));
      flat.set_requires_grad(true);
      std::vector<at::Tensor> parts;
      for (const auto& parameter : job.net->layout())
        parts.push_back(flat.narrow(0, parameter.offset, parameter.size).view(parameter.shape));
      const auto logits = at::linear(at::relu(at::linear(x, parts[0], parts[1])), parts[2], parts[3]);
      at::cross_entropy_loss(logits, at::tensor(labels, at::kLong)).backward();
      auto step = flat.grad().clone();
      flat = flat.detach().clone();
      if (options.clip_norm > 0)
        step *= std::min(1.0, options.clip_norm / (step.norm().item<double>() + 1e-6));
      step += options.weight_decay * flat;
      momentum = momentum.defined() ? options.momentum * momentum + step : step;
      flat -= options.learning_rate * momentum;
    }
  }
  return flat;
}

/// Clients with these numbers of rows and different initial weights.
std::vector<job> clients_of(const model_ref& net, shape3 shape, const std::vector<std::int64_t>& rows,
                            training_options options) {
  const auto source = drawn_data(40, shape, net->classes());
  options.classes = {0, net->classes()};
  const auto base = initial_weights(*net, 1);
  std::vector<job> jobs;
  for (std::uint64_t k = 0; k < rows.size(); ++k)
    jobs.push_back({.id = {{k}, 0, 0},
                    .request = train_job{.net = net,
                                         .start = weights_only(base * (1.0 + 0.01 * static_cast<double>(k))),
                                         .samples = rows_from(source, static_cast<std::int64_t>(k), rows[k]),
                                         .options = options,
                                         .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(k)}}}});
  return jobs;
}

/// Checks that clients alone, in pairs and in fives end with the same bits, and that training changed them.
void check_fused(const model_ref& net, shape3 shape, training_options options,
                 const std::vector<std::int64_t>& rows = {7, 3, 4, 0, 7}) {
  INFO(net->identity());
  const auto jobs = clients_of(net, shape, rows, options);
  const auto runs = make_executor("cpu");
  const auto in_groups = [&](std::size_t width) {
    std::vector<at::Tensor> weights;
    for (std::size_t first = 0; first < jobs.size(); first += width)
      for (const auto& output : runs->run(std::span(jobs).subspan(first, std::min(width, jobs.size() - first))))
        weights.push_back(weights_of(output).clone());
    return weights;
  };
  const auto alone = in_groups(1), pairs = in_groups(2), together = in_groups(5);
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    INFO("client " << k);
    CHECK(same_bits(alone[k], pairs[k]));
    CHECK(same_bits(alone[k], together[k]));
    const auto& job = std::get<train_job>(jobs[k].request);
    CHECK(same_bits(alone[k], job.start->at(flat_weights)) == (job.samples.size() == 0));
  }
}

/// Running statistics in weights [P], concatenated.
at::Tensor statistics_of(const model& net, const at::Tensor& flat) {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : net.layout())
    if (parameter.buffer)
      tensors.push_back(flat.narrow(0, parameter.offset, parameter.size));
  return at::cat(tensors);
}

train_job with_model(const model_ref& net, shape3 shape, std::int64_t rows, training_options options) {
  return std::get<train_job>(clients_of(net, shape, {rows}, options)[0].request);
}

} // namespace

TEST_CASE("clients of every model end with the same bits alone and fused", "[executor]") {
  at::set_num_threads(1);
  const shape3 small{3, 10, 9};
  const model_keys groups{{"norm", "group"}}, few_groups{{"norm", "group"}, {"groups", "4"}};
  for (const auto& options : {training_options{.epochs = 2, .batch_rows = 4},
                              training_options{.batch_rows = 3, .momentum = 0.9, .weight_decay = 0.01},
                              training_options{.optimizer = optimizer_kind::adam, .batch_rows = 0}}) {
    check_fused(net_of("linear", small, 6), small, options);
    check_fused(mlp_of({21}, 270, 6), small, options);
    check_fused(net_of("cnn", small, 6), small, options); // has dropout
    check_fused(net_of("lenet", {1, 17, 16}, 6), {1, 17, 16}, options);
    check_fused(net_of("resnet8", small, 6), small, options);
    check_fused(net_of("resnet8", small, 6, few_groups), small, options);
    check_fused(net_of("resnet8", small, 6, {{"shortcut", "conv1x1"}}), small, options);
  }
  check_fused(net_of("resnet32", small, 6), small, {.batch_rows = 4});
}

TEST_CASE("clients of a fully connected net have the same bits trained one by one and in step", "[executor]") {
  at::set_num_threads(1);
  const shape3 small{3, 10, 9};
  for (const auto& net : {net_of("linear", small, 6), mlp_of({21}, 270, 6), mlp_of({33, 12}, 270, 6)})
    for (const auto& [batch, classes] : std::vector<std::pair<std::int64_t, class_range>>{
             {4, {0, 6}}, {0, {0, 6}}, {3, {0, 6}}, {4, {0, 5}}}) { // labels are 0 to 4 for five classes
      INFO(net->identity() << ", batch " << batch << ", classes below " << classes.high);
      auto alone = clients_of(net, small, {7, 3, 4, 0, 7}, {.epochs = 3, .batch_rows = batch});
      const auto few = drawn_data(40, small, 5);
      for (auto& job : alone) {
        auto& request = std::get<train_job>(job.request);
        request.options.classes = classes;
        if (classes.high == 5)
          request.samples.source = few;
      }
      auto in_step = alone;
      const auto hidden = std::make_shared<const wrapped_model>(net);
      for (auto& job : in_step)
        std::get<train_job>(job.request).net = hidden;
      const auto runs = make_executor("cpu");
      const auto ours = runs->run(alone), expected = runs->run(in_step);
      for (std::size_t k = 0; k < alone.size(); ++k) {
        CHECK(same_bits(weights_of(ours[k]), weights_of(expected[k])));
        CHECK(std::get<train_output>(std::get<work_output>(ours[k])).loss_mean ==
              std::get<train_output>(std::get<work_output>(expected[k])).loss_mean);
      }
    }
}

TEST_CASE("clients of resnet18 end with the same bits alone and fused", "[executor]") {
  at::set_num_threads(1);
  const auto net = net_of("resnet18", {3, 18, 17}, 6, {{"stem", "imagenet"}}); // its pooling windows overlap
  check_fused(net, {3, 18, 17}, {.batch_rows = 4}, {2, 4, 3, 0, 2});           // one step per client
}

TEST_CASE("a frozen body keeps every bit, with its running statistics and without dropout", "[executor]") {
  at::set_num_threads(1);
  const shape3 small{3, 10, 9};
  for (const auto& net : {net_of("resnet8", small, 6), net_of("cnn", small, 6)}) {
    INFO(net->identity());
    auto job =
        with_model(net, small, 7, {.epochs = 2, .batch_rows = 4, .momentum = 0.9, .trained = trainable_part::head});
    const auto after = trained(job), before = job.start->at(flat_weights);
    for (const auto& parameter : net->layout()) {
      INFO(parameter.name);
      CHECK(same_bits(after.narrow(0, parameter.offset, parameter.size),
                      before.narrow(0, parameter.offset, parameter.size)) == !parameter.head);
    }
    // With a full batch, only masks are random.
    job.options.batch_rows = 0;
    auto other = job;
    other.stream.visit = 9;
    CHECK(largest_difference(trained(job), trained(other)) < 1e-6);
    job.options.trained = other.options.trained = trainable_part::all;
    CHECK((largest_difference(trained(job), trained(other)) > 1e-4) == net->uses_random_numbers());
  }
}

TEST_CASE("running statistics are updated by the step's own rows and not by the optimizer", "[executor]") {
  at::set_num_threads(1);
  const shape3 small{3, 10, 9};
  const auto net = net_of("resnet8", small, 6);
  const auto job = with_model(net, small, 3, {.batch_rows = 0}); // padding would make four rows
  auto seen = job.start->at(flat_weights).clone().unsqueeze(0);
  const auto inputs = reference_gather(*job.samples.source, *job.samples.rows, {});
  const training_mode training;
  tape kept;
  (void)net->forward(seen, inputs.unsqueeze(0).contiguous(), {0, 6}, &kept, &training);
  const auto expected = statistics_of(*net, seen[0]);
  CHECK(largest_difference(expected, statistics_of(*net, job.start->at(flat_weights))) > 1e-2);
  for (const auto kind : {optimizer_kind::sgd, optimizer_kind::adamw})
    for (const double extra : {0.0, 1.0}) {
      auto moved = job;
      moved.options.optimizer = kind;
      moved.options.momentum = kind == optimizer_kind::sgd ? 0.9 * extra : 0.0;
      moved.options.weight_decay = 0.1 * extra;
      moved.options.clip_norm = 0.5 * extra;
      moved.objective = extra > 0 ? proximal_objective(0.1) : nullptr;
      CHECK(largest_difference(statistics_of(*net, trained(moved)), expected) < 1e-5); // rows come in another order
    }
}

TEST_CASE("dropout does not depend on the padding of a step", "[executor]") {
  at::set_num_threads(1);
  const shape3 small{3, 10, 9};
  const auto net = net_of("cnn", small, 6);
  // Three rows are padded to four if a batch allows it.
  const auto padded = trained(with_model(net, small, 3, {.epochs = 2, .batch_rows = 4}));
  const auto tight = trained(with_model(net, small, 3, {.epochs = 2, .batch_rows = 3}));
  CHECK(largest_difference(padded, tight) < 1e-6);
}

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

TEST_CASE("every client and every epoch has its own shuffle", "[executor]") {
  const auto base = usual(23, {.batch_rows = 5});
  CHECK(same_bits(trained(base), trained(base)));
  auto other = base;
  other.stream.visit = 3;
  CHECK_FALSE(same_bits(trained(base), trained(other)));
  auto second = base; // the same stream shuffles both single epochs equally, but not two epochs of one training
  second.start = weights_only(trained(base));
  auto both = base;
  both.options.epochs = 2;
  CHECK_FALSE(same_bits(trained(both), trained(second)));
}

TEST_CASE("the order of rows hardly affects a full batch but affects small ones", "[executor]") {
  const auto difference = [](std::int64_t batch_rows) {
    auto job = usual(20, {.batch_rows = batch_rows, .learning_rate = 0.5}), other = job;
    other.stream.visit = 3;
    return largest_difference(trained(job), trained(other));
  };
  CHECK(difference(0) < 1e-6); // only the summation order differs
  CHECK(difference(2) > 1e-3);
}

TEST_CASE("augmentation is drawn again in every epoch", "[executor]") {
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
  const std::vector<job> asking{{.request = evaluate_job{.learned = {net, weights_only(weights)},
                                                         .samples = rows_from(test, 0, 1000),
                                                         .mask = {0, 10}}}};
  const auto answer = make_executor("cpu")->run(asking);
  const auto& result = std::get<evaluate_output>(std::get<work_output>(answer[0]));
  INFO(result.correct << " of 1000 right");
  CHECK(result.correct > 890);
  CHECK(result.loss_sum / 1000 < 0.4);
}
