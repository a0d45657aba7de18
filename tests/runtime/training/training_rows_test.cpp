// Weights and targets of rows, and replayed rows that join every step.
#include "runtime/training/executor.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/learning.hpp"
#include "tests/support/reference_gather.hpp"
#include "tests/support/wrapped_model.hpp"
#include <ATen/Parallel.h>
using namespace mneme;
using namespace mneme::test;

namespace {

std::shared_ptr<const std::vector<float>> listed(std::vector<float> values) {
  return std::make_shared<const std::vector<float>>(std::move(values));
}

/// Weights 0.5, 1, 1.5, 2, 0.5, ...
std::shared_ptr<const std::vector<float>> varied_weights(std::int64_t n) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(0.5F * static_cast<float>(1 + i % 4));
  return listed(std::move(values));
}

at::Tensor drawn_targets(std::int64_t n, std::int64_t classes) { return at::softmax(drawn({n, classes}, 3), 1); }

/// Records the loss of every step.
class loss_recorder final : public training_observer {
public:
  void observe(const observed_step& step) override { losses_.push_back(step.loss.clone()); }
  [[nodiscard]] tensor_map result() const override {
    tensor_map records;
    records.put("losses", at::stack(losses_));
    return records;
  }

private:
  std::vector<at::Tensor> losses_;
};
observation_ref recorded_losses() {
  return std::make_shared<const training_observation>(training_observation{
      .identity = "losses of steps", .begin = [](const at::Tensor&) { return std::make_unique<loss_recorder>(); }});
}

/// Seven rows of an MLP's own data and five of another data set, in order.
train_job usual(training_options options) {
  static const auto source = drawn_data(40, {1, 1, 33}, 10), other = drawn_data(20, {1, 1, 33}, 7);
  static const auto net = mlp_of({17}, 33, 10);
  options.classes = {0, 10};
  options.in_order = true;
  return {.net = net,
          .start = weights_only(initial_weights(*net, 1)),
          .samples = rows_from(source, 3, 7),
          .replay = {.samples = rows_from(other, 6, 5)},
          .options = options,
          .stream = {.seed = 5, .client = {6}, .task = {1}, .visit = 2}};
}

job_outcome outcome_of(const train_job& request) {
  const std::vector<job> single{{.request = request}};
  return make_executor("cpu")->run(single)[0];
}
at::Tensor trained(const train_job& request) { return weights_of(outcome_of(request)).clone(); }
std::string refusal(const train_job& request) { return std::get<std::string>(outcome_of(request)); }

/// Loss of some rows of one set: sum_i weight_i CE_i divided by their number, in float64.
at::Tensor set_loss(const train_job& job, const sample_view& samples, const row_annotations& annotations,
                    const std::vector<std::int64_t>& positions, const at::Tensor& flat) {
  std::vector<std::int64_t> rows;
  auto targets = at::zeros({std::ssize(positions), 10}, at::kDouble),
       weights = at::ones({std::ssize(positions)}, at::kDouble);
  for (std::int64_t i = 0; i < std::ssize(positions); ++i) {
    const auto position = positions[static_cast<std::size_t>(i)];
    rows.push_back((*samples.rows)[static_cast<std::size_t>(position)]);
    if (annotations.targets.defined())
      targets[i].copy_(annotations.targets[position]);
    else
      targets[i][samples.source->label(rows.back())] = 1.0;
    if (annotations.weights)
      weights[i] = (*annotations.weights)[static_cast<std::size_t>(position)];
  }
  auto x = reference_gather(*samples.source, rows, {}).flatten(1).to(at::kDouble);
  const auto& layout = job.net->layout();
  for (std::size_t i = 0; i < layout.size(); i += 2) {
    const auto part = [&](const parameter& entry) {
      return flat.narrow(0, entry.offset, entry.size).view(entry.shape);
    };
    x = at::linear(i == 0 ? x : at::relu(x), part(layout[i]), part(layout[i + 1]));
  }
  return -((targets * at::log_softmax(x, 1)).sum(1) * weights).mean();
}

/// The same training as a plain loop of autograd and SGD in float64. Rows come in order, replayed ones repeatedly.
at::Tensor plainly_trained(const train_job& job) {
  const auto& options = job.options;
  auto flat = job.start->at(flat_weights).to(at::kDouble);
  std::int64_t replayed = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch)
    for (std::int64_t first = 0; first < job.samples.size(); first += options.batch_rows) {
      std::vector<std::int64_t> own, second;
      for (auto i = first; i < std::min(first + options.batch_rows, job.samples.size()); ++i)
        own.push_back(i);
      for (std::int64_t i = 0; i < std::min(options.replay_rows, job.replay.samples.size()); ++i)
        second.push_back(replayed++ % job.replay.samples.size());
      flat = flat.detach().set_requires_grad(true);
      auto loss = set_loss(job, job.samples, job.annotations, own, flat);
      if (!second.empty())
        loss = loss + options.replay_weight * set_loss(job, job.replay.samples, job.replay.annotations, second, flat);
      loss.backward();
      flat = flat.detach() - options.learning_rate * flat.grad();
    }
  return flat.to(at::kFloat);
}

/// Cross-entropy that records its inputs.
class noting_loss final : public loss {
public:
  std::string identity() const override { return "noting"; }
  bool reads_targets() const override { return true; }
  loss_output operator()(const loss_input& in) const override {
    for (auto i = in.labels.size(1) - in.replayed; i < in.labels.size(1); ++i)
      replayed.push_back(in.labels[0][i].item<std::int64_t>());
    widths.push_back(in.labels.size(1));
    return (*cross_entropy_objective())(in);
  }
  mutable std::vector<std::int64_t> replayed, widths;
};

class labels_only final : public loss {
public:
  std::string identity() const override { return "labels"; }
  loss_output operator()(const loss_input& in) const override { return (*cross_entropy_objective())(in); }
};

/// Clients with different initial weights and different numbers of own and replayed rows.
std::vector<job> clients_of(const model_ref& net, shape3 shape, training_options options) {
  const auto source = drawn_data(40, shape, net->classes()), other = drawn_data(30, shape, net->classes());
  options.classes = {0, net->classes()};
  options.replay_rows = 3;
  const std::vector<std::pair<std::int64_t, std::int64_t>> rows{{7, 5}, {3, 1}, {4, 0}, {0, 4}, {7, 3}, {7, 0}, {3, 2}};
  std::vector<job> jobs;
  for (std::uint64_t k = 0; k < rows.size(); ++k) {
    const auto [own, replayed] = rows[k];
    jobs.push_back(
        {.id = {{k}, 0, 0},
         .request = train_job{.net = net,
                              .start = weights_only(initial_weights(*net, k)),
                              .samples = rows_from(source, static_cast<std::int64_t>(k), own),
                              .annotations = {.weights = k % 2 == 0 ? varied_weights(own) : nullptr},
                              .replay = {.samples = rows_from(other, static_cast<std::int64_t>(k), replayed),
                                         .annotations = {.targets = drawn_targets(replayed, net->classes())}},
                              .options = options,
                              .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(k)}}}});
  }
  return jobs;
}

} // namespace

TEST_CASE("training with weights, targets and replayed rows equals autograd in float64", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.epochs = 3, .batch_rows = 3, .learning_rate = 0.2, .replay_rows = 2, .replay_weight = 0.7});
  const auto plain = trained(job);
  CHECK(largest_difference(plain, plainly_trained(job)) < 2e-6);
  job.annotations.weights = varied_weights(7);
  CHECK(largest_difference(trained(job), plainly_trained(job)) < 2e-6);
  job.replay.annotations.weights = varied_weights(5);
  CHECK(largest_difference(trained(job), plainly_trained(job)) < 2e-6);
  job.replay.annotations.targets = drawn_targets(5, 10);
  CHECK(largest_difference(trained(job), plainly_trained(job)) < 2e-6);
  job.annotations.targets = drawn_targets(7, 10);
  const auto expected = plainly_trained(job);
  CHECK(largest_difference(trained(job), expected) < 2e-6);
  CHECK(largest_difference(plain, expected) > 1e-2); // all of them affect the result
  job.options.replay_rows = 100;                     // more than exist: all are used
  CHECK(largest_difference(trained(job), plainly_trained(job)) < 2e-6);
}

TEST_CASE("clients with replayed and weighted rows end with the same bits alone and fused", "[training rows]") {
  at::set_num_threads(1);
  const shape3 small{3, 10, 9};
  for (const auto& options :
       {training_options{.epochs = 2, .batch_rows = 4},
        training_options{
            .optimizer = optimizer_kind::adam, .batch_rows = 3, .augment = augmentation_kind::crop_flip_jitter},
        training_options{.epochs = 2,
        .batch_rows = 3,
        .momentum = 0.9,
        .replay_by = replay_pass::separate,
        .replay_augment = augmentation_kind::crop_flip,
        .replay_short_last = true}})
    for (const auto& net : {mlp_of({21}, 270, 6), net_of("cnn", small, 6), net_of("resnet8", small, 6)}) {
      INFO(net->identity());
      const auto jobs = clients_of(net, small, options);
      const auto runs = make_executor("cpu");
      const auto together = runs->run(jobs);
      for (std::size_t k = 0; k < jobs.size(); ++k) {
        INFO("client " << k);
        CHECK(same_bits(weights_of(together[k]), weights_of(runs->run(std::span(jobs).subspan(k, 1))[0])));
      }
      const auto some = runs->run(std::span(jobs).subspan(2, 3));
      for (std::size_t k = 0; k < some.size(); ++k)
        CHECK(same_bits(weights_of(together[2 + k]), weights_of(some[k])));
    }
}

TEST_CASE("replayed rows in a separate pass equal autograd if no layer normalizes over rows", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.epochs = 3, .batch_rows = 3, .learning_rate = 0.2, .replay_rows = 2, .replay_weight = 0.7});
  job.replay.annotations = {.weights = varied_weights(5), .targets = drawn_targets(5, 10)};
  const auto together = trained(job);
  job.options.replay_by = replay_pass::separate;
  CHECK(largest_difference(trained(job), plainly_trained(job)) < 2e-6);
  CHECK(largest_difference(trained(job), together) < 2e-6);
}

TEST_CASE("each of two passes has its own batch statistics, and replayed rows update running ones last",
          "[training rows]") {
  at::set_num_threads(1);
  const shape3 small{3, 10, 9};
  const auto net = net_of("resnet8", small, 6);
  const auto source = drawn_data(40, small, 6), other = drawn_data(30, small, 6);
  train_job job{.net = net,
                .start = weights_only(initial_weights(*net, 1)),
                .samples = rows_from(source, 3, 4),
                .replay = {.samples = rows_from(other, 6, 3)},
                .options = {.learning_rate = 0.0, .in_order = true, .classes = {0, 6}, .replay_rows = 3}};
  const auto together = trained(job);
  job.options.replay_by = replay_pass::separate;
  const auto apart = trained(job);
  auto expected = job.start->at(flat_weights).clone().unsqueeze(0);
  const training_mode training;
  tape kept;
  for (const auto* view : {&job.samples, &job.replay.samples}) {
    const auto pixels = reference_gather(*view->source, *view->rows, {}).unsqueeze(0);
    (void)net->forward(expected, pixels, {0, 6}, &kept, &training);
  }
  CHECK(largest_difference(apart, expected[0]) < 1e-6);
  CHECK(largest_difference(together, apart) > 1e-3);
}

TEST_CASE("a shuffle of the replayed set may end with a short batch", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.epochs = 2, .batch_rows = 2, .replay_rows = 4, .replay_short_last = true});
  const auto noted = std::make_shared<noting_loss>();
  job.objective = noted;
  job.replay.samples = rows_from(job.replay.samples.source, 0, 6); // labels 0 to 5
  const auto short_last = trained(job);
  CHECK(noted->widths == std::vector<std::int64_t>{6, 4, 6, 3, 6, 4, 6, 3}); // 2 or 1 own rows, 4 or 2 replayed
  CHECK(std::vector<std::int64_t>(noted->replayed.begin(), noted->replayed.begin() + 6) ==
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(largest_difference(short_last, plainly_trained(job)) > 1e-4); // which fills short batches
}

TEST_CASE("replayed rows may be resized differently, and an observer receives every step", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.epochs = 2, .batch_rows = 3, .augment = augmentation_kind::crop_flip, .replay_rows = 2});
  const auto both = trained(job);
  job.options.replay_augment = augmentation_kind::crop_flip;
  CHECK(same_bits(trained(job), both));
  job.options.replay_augment = augmentation_kind::none;
  CHECK_FALSE(same_bits(trained(job), both));
  job.options.augment = augmentation_kind::none;
  CHECK(largest_difference(trained(job), plainly_trained(job)) < 2e-6);
  job.options.replay_augment = augmentation_kind::crop_flip;
  CHECK_FALSE(same_bits(trained(job), both));

  const auto output_of = [](const train_job& request) {
    return std::get<train_output>(std::get<work_output>(outcome_of(request)));
  };
  CHECK_FALSE(output_of(job).observed);
  job.observation = recorded_losses();
  CHECK(output_of(job).observed->at("losses").sizes() == at::IntArrayRef{3 * job.options.epochs});
  job.options.epochs = 1;
  const auto one = output_of(job);
  CHECK(one.loss_mean == one.observed->at("losses").sum().item<double>() / 3.0);
  job.replay = {};
  job.options.replay_rows = 0;
  CHECK(output_of(job).observed->at("losses").numel() > 0); // a net that is otherwise trained client by client
}

TEST_CASE("weights of one and an empty replayed set change no bit", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.epochs = 2, .batch_rows = 3});
  job.replay = {};
  const auto plain = trained(job);
  auto weighted = job;
  weighted.annotations.weights = listed(std::vector<float>(7, 1.0F));
  CHECK(same_bits(trained(weighted), plain));
  weighted.options.replay_rows = 4;
  CHECK(same_bits(trained(weighted), plain));
  weighted.annotations.weights = varied_weights(7);
  const auto one_by_one = trained(weighted);
  CHECK_FALSE(same_bits(one_by_one, plain));
  weighted.options.replay_rows = 0;
  weighted.net = std::make_shared<const wrapped_model>(job.net); // trained in step
  CHECK(same_bits(trained(weighted), one_by_one));
}

TEST_CASE("a row of weight zero has no effect", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.batch_rows = 0});
  job.replay = {};
  job.annotations.weights = listed({2, 2, 2, 2, 0, 0, 0}); // 2 / 7 each
  auto fewer = job;
  fewer.samples = rows_from(job.samples.source, 3, 4);
  fewer.annotations.weights = listed(std::vector<float>(4, 8.0F / 7.0F)); // 8 / 7 / 4 each, as above
  CHECK(largest_difference(trained(job), trained(fewer)) < 1e-6);
}

TEST_CASE("replayed rows come from consecutive shuffles of the replayed set", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.epochs = 2, .batch_rows = 2, .replay_rows = 3});
  job.options.in_order = false;
  const auto noted = std::make_shared<noting_loss>();
  job.objective = noted;
  job.replay.samples = rows_from(job.replay.samples.source, 0, 6); // labels 0 to 5
  (void)trained(job);
  CHECK(noted->widths == std::vector<std::int64_t>{5, 5, 5, 4, 5, 5, 5, 4}); // 2 or 1 own rows, 3 replayed
  REQUIRE(noted->replayed.size() == 24);
  std::vector<std::vector<std::int64_t>> passes;
  for (auto begin = noted->replayed.begin(); begin != noted->replayed.end(); begin += 6) {
    passes.emplace_back(begin, begin + 6);
    auto sorted = passes.back();
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  }
  CHECK(passes[0] != passes[1]);
  const auto first = std::exchange(noted->replayed, {});
  (void)trained(job);
  CHECK(noted->replayed == first);
  noted->replayed.clear();
  job.stream.visit = 3;
  (void)trained(job);
  CHECK(noted->replayed != first);
}

TEST_CASE("padding follows each set, with labels of -1", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.batch_rows = 8, .replay_rows = 6});
  const auto noted = std::make_shared<noting_loss>();
  job.objective = noted;
  job.replay.samples = rows_from(job.replay.samples.source, 0, 3);
  (void)trained(job);
  CHECK(noted->widths == std::vector<std::int64_t>{12}); // seven own rows, three replayed ones
  CHECK(noted->replayed == std::vector<std::int64_t>{0, 1, 2, -1});
}

TEST_CASE("vectors and images, generated and plain, may be replayed together", "[training rows]") {
  at::set_num_threads(1);
  auto job = usual({.epochs = 2, .batch_rows = 3, .replay_rows = 3});
  auto vectors = std::make_shared<dataset>();
  vectors->vectors = drawn({20, 33}, 4);
  vectors->labels = job.replay.samples.source->labels;
  const auto exactly = trained(job);
  job.replay.samples.source = vectors;
  const auto plain = trained(job);
  CHECK_FALSE(same_bits(plain, exactly));
  auto noisy = std::make_shared<dataset>(*vectors);
  noisy->deviations = at::zeros({20, 33});
  job.replay.samples.source = noisy;
  CHECK(same_bits(trained(job), plain));
  noisy->deviations.fill_(0.1F);
  CHECK_FALSE(same_bits(trained(job), plain));
  std::swap(job.samples, job.replay.samples); // noise first, and fewer rows than its part is padded to
  CHECK(same_bits(trained(job), trained(job)));
}

TEST_CASE("invalid training jobs are refused with a reason", "[training rows]") {
  const auto job = usual({.batch_rows = 3, .replay_rows = 2});
  auto wrong = job;
  wrong.annotations.weights = varied_weights(6);
  CHECK(refusal(wrong) == "there are 6 weights of 7 rows; expected one of each");
  wrong = job;
  wrong.replay.annotations.weights = varied_weights(6);
  CHECK(refusal(wrong) == "there are 6 weights of 5 rows to replay; expected one of each");
  wrong = job;
  wrong.annotations.targets = drawn_targets(7, 9);
  CHECK(refusal(wrong) == "targets of rows are Float[7, 9]; expected contiguous float32 [7, 10] of the host, a row of "
                          "each and a column per class of the loss");
  wrong.annotations.targets = drawn_targets(7, 10);
  wrong.objective = std::make_shared<const labels_only>();
  CHECK(refusal(wrong) == "rows have targets, but the objective 'labels' reads labels only");
  wrong = job;
  wrong.options.replay_rows = 0;
  CHECK(refusal(wrong) == "5 rows are given for replay, but replay_rows = 0 of them join a step; expected 1 or more");
  wrong = job;
  wrong.replay.samples = rows_from(drawn_data(20, {1, 3, 11}, 7), 0, 5);
  CHECK(refusal(wrong) == "rows to replay have the shape [1, 3, 11]; expected that of the job's own, [1, 1, 33]");
  wrong = job;
  wrong.options.teachers = {{.classes = {0, 4}}};
  CHECK(refusal(wrong) ==
        "the job has weights of 0 teachers, but its options describe 1; expected one description of each");
}
